//! The parameters of a cause: details of a message besides its code.

use super::reading::Reading;
use super::table::Row;
use super::{Cause, Code, Line};

/// Names of APIs, each with a key of Settings.
type KeysByApi = &'static [(&'static str, &'static str)];

/// The keys of Settings for the words of a cloud: by words in lower case, and by API.
const SETTINGS: &[(&[&str], KeysByApi)] = &[
    (&["invalidamiid", "image id"], &[("gpu-workspace", "gpuWorkspace.amis")]),
    (
        &["invalidsubnetid", "invalidsubnet", "subnet id", "valid subnet"],
        &[
            ("gpu-workspace", "gpuWorkspace.networks"),
            ("virtual-environment", "environment.eks.subnetIds"),
        ],
    ),
    (&["invalidvpcid"], &[("gpu-workspace", "gpuWorkspace.networks")]),
    (
        &["does not exist or is not attachable"],
        &[("gpu-workspace", "gpuWorkspace.permissionsBoundary")],
    ),
    (&["dbsubnetgroup"], &[("unified-environment", "unifiedEnvironment.rds.subnetGroup")]),
    (&["role with arn"], &[("virtual-environment", "environment.eks.clusterRoleArn")]),
    (
        &["resource group", "resourcegroup"],
        &[("virtual-environment", "environment.aks.resourceGroupName")],
    ),
    (
        &["subnetwork"],
        &[
            ("application-environment", "applicationEnvironment.subnetwork"),
            ("virtual-environment", "environment.gke.subnetwork"),
        ],
    ),
    (
        &["global/networks", "network \"", "network '", "private services", "network_not_peered"],
        &[
            ("application-environment", "applicationEnvironment.network"),
            ("virtual-environment", "environment.gke.network"),
        ],
    ),
    (
        &["project"],
        &[
            ("application-environment", "applicationEnvironment.projectId"),
            ("virtual-environment", "environment.gke.projectId"),
        ],
    ),
];

/// The longest value of a parameter in bytes.
const MAX_VALUE_LEN: usize = 120;

/// Minimum number of letters of a name that identifies a resource in a message.
const MIN_NAME_LEN: usize = 4;

/// The cause of a message that fits a row.
pub(super) fn details(row: &Row, reading: &Reading<'_>, api: Option<&str>) -> Cause {
    let (message, lower) = (reading.message, reading.lower.as_str());
    let found: Vec<(&str, Option<&str>)> = match row.code {
        Code::QuotaExceeded => [cloud(message, lower), vec![("quota", quota(message))]].concat(),
        Code::AccessDenied => {
            let action = after(message, "not authorized to perform: ", " ,")
                .or_else(|| after(message, "does not have authorization to perform action '", "'"));
            // These actions only check a bucket. They fail for a bucket of another account, and
            // without the permission.
            let is_look = ["headbucket", "storage.buckets.get"];
            let is_look = is_look.iter().any(|word| lower.contains(word));
            let own = vec![("action", action), ("conflict", is_look.then_some("bucket"))];
            [cloud(message, lower), own].concat()
        }
        Code::NoCapacity | Code::Throttled | Code::CredentialsInvalid | Code::ServiceNotEnabled => {
            cloud(message, lower)
        }
        Code::NameTaken => {
            let conflicts =
                [("invalidpermission.duplicate", "rule"), ("from the deletion date", "deleted")];
            let found = conflicts.iter().find(|(words, _)| lower.contains(words));
            vec![("conflict", found.map(|(_, conflict)| *conflict))]
        }
        Code::SettingsReference if row.param == Some(("problem", "rejected")) => {
            [cloud(message, lower), vec![("settings", Some("tags"))]].concat()
        }
        Code::SettingsReference => vec![("settings", settings(lower, api))],
        Code::Unreachable => vec![("host", reading.host())],
        Code::ChartNotFound => vec![
            ("chart", after(message, "chart \"", "\"")),
            ("version", after(message, "version \"", "\"")),
            ("repository", after(message, "not found in ", " ")),
        ],
        Code::ProviderConfigMissing => provider_config(message),
        Code::ProviderMissing => vec![
            ("kind", after(message, "no matches for kind \"", "\"")),
            ("version", after(message, "in version \"", "\"")),
        ],
        Code::WaitsForSecret => vec![("secret", secret(message))],
        _ => Vec::new(),
    };
    let fits = |value: &&str| !value.is_empty() && value.len() <= MAX_VALUE_LEN;
    let known = found.into_iter().filter_map(|(name, value)| Some((name, value.filter(fits)?)));
    // The parameter of the row wins.
    let params = known.chain(row.param);
    let params = params.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Cause { code: row.code, params }
}

/// The cloud that wrote the message, and its service.
fn cloud<'m>(message: &'m str, lower: &str) -> Vec<(&'static str, Option<&'m str>)> {
    // The format of AWS's SDK: `operation error EC2: RunInstances, ...`.
    let service = after(message, "operation error ", ":");
    let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let provider = if service.is_some() || is(&["arn:aws", "aws support", "aws account"]) {
        Some("AWS")
    } else if is(&["googleapi:", "google compute engine"]) {
        Some("Google Cloud")
    } else if is(&["azure", "code=\"", "aadsts", "microsoft.", "aka.ms"]) {
        Some("Azure")
    } else if is(&["exceeded quota: ", " is forbidden: "]) {
        Some("Kubernetes")
    } else {
        None
    };
    vec![("provider", provider), ("service", service)]
}

fn quota(message: &str) -> Option<&str> {
    after(message, "exceeded quota: ", ", ")
        .or_else(|| after(message, "Quota '", "'"))
        .or_else(|| message.contains("vCPU limit").then_some("vCPUs"))
        .or_else(|| {
            // The format of Azure: `exceeding approved Total Regional Cores quota`.
            let (_, rest) = message.split_once("exceeding approved ")?;
            rest.split_once(" quota").map(|(quota, _)| quota)
        })
}

/// The key of Settings that names a missing object. If the API is unknown, the likeliest key.
fn settings(lower: &str, api: Option<&str>) -> Option<&'static str> {
    let is_named = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let (_, keys) = SETTINGS.iter().find(|(words, _)| is_named(words))?;
    let own = keys.iter().find(|(name, _)| Some(*name) == api);
    own.or_else(|| keys.first().filter(|_| api.is_none())).map(|(_, key)| *key)
}

/// Name, kind and group of a provider config. Crossplane's runtime writes
/// `ProviderConfig.aws.upbound.io "default" not found`, controller-runtime writes
/// `providerconfigs.aws.upbound.io "default" not found`. This function writes
/// `ProviderConfig default (aws.upbound.io)`.
fn provider_config(message: &str) -> Vec<(&'static str, Option<&str>)> {
    const KINDS: [(&str, &str); 4] = [
        ("ClusterProviderConfig", "ClusterProviderConfig"),
        ("clusterproviderconfigs", "ClusterProviderConfig"),
        ("ProviderConfig", "ProviderConfig"),
        ("providerconfigs", "ProviderConfig"),
    ];
    for (word, kind) in KINDS {
        let Some(rest) = message.match_indices(word).find_map(|(at, _)| {
            let rest = &message[at + word.len()..];
            rest.starts_with(['.', ' ']).then_some(rest)
        }) else {
            continue;
        };
        if let Some(rest) = rest.strip_prefix('.') {
            let group = rest.split([' ', '"']).next();
            return vec![
                ("config", after(rest, "\"", "\"")),
                ("kind", Some(kind)),
                ("group", group),
            ];
        }
        let (name, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let group = rest.strip_prefix('(').and_then(|rest| rest.split(')').next());
        let is_name = group.is_some() || name.starts_with('"');
        let config = Some(name.trim_matches('"')).filter(|_| is_name);
        return vec![("config", config), ("kind", Some(kind)), ("group", group)];
    }
    Vec::new()
}

fn secret(message: &str) -> Option<&str> {
    after(message, "ecret \"", "\"").or_else(|| after(message, "ecrets \"", "\""))
}

/// The text between `begin` and the first of the characters in `ends`.
fn after<'m>(message: &'m str, begin: &str, ends: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(begin)?;
    rest.split(|c| ends.contains(c)).next().filter(|found| !found.is_empty())
}

/// The resource that a message, in lower case, blames. It is not ready, and the message contains
/// its external name, slot or kind. The longest match wins.
pub(super) fn blamed<'l>(
    line: &Line<'_>,
    lines: &'l [Line<'l>],
    lower: &str,
) -> Option<&'l Line<'l>> {
    let packed = letters(lower);
    let blame = |other: &Line<'_>| {
        let external =
            other.external_name.map(str::to_lowercase).filter(|name| lower.contains(name));
        let own = [other.slot, other.kind].map(letters);
        let named = own.into_iter().filter(|name| packed.contains(name.as_str()));
        named.chain(external).map(|name| name.len()).filter(|length| *length >= MIN_NAME_LEN).max()
    };
    let others = lines.iter().filter(|other| {
        !other.ready && other.slot != line.slot && other.kind != line.kind && other.kind != "Usage"
    });
    let mut found: Option<(usize, &Line<'_>)> = None;
    for other in others {
        let Some(length) = blame(other) else { continue };
        if found.is_none_or(|(longest, _)| length > longest) {
            found = Some((length, other));
        }
    }
    found.map(|(_, other)| other)
}

/// Letters and digits in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
