//! The provider kinds in our Compositions, and the packages that serve them.

use function_paved_road::apis::{AnyApi, Flavour};
use function_paved_road::models::{KINDS, Kind, Provider, Scope};

/// The provider services that an API composes: always, only in the claims API, and only for some
/// options.
struct Needs {
    api: &'static str,
    always: &'static [Service],
    in_claims: &'static [Service],
    sometimes: &'static [Service],
}

/// A provider and one of its packages.
type Service = (Provider, &'static str);

const OBJECTS: Service = (Provider::Kubernetes, "");

/// Kinds in those packages that an API does not compose.
const NOT_COMPOSED: [(&str, &str); 2] =
    [("virtual-environment", "InstanceProfile"), ("virtual-environment", "RolePolicy")];

/// Kinds in environments of an earlier schema revision only.
const EARLIER: [(&str, &str); 1] = [("gpu-workspace", "RolePolicyAttachment")];

/// Kinds that an environment has only while it is stopped or started.
const AT_TIMES: [(&str, &str); 1] = [("gpu-workspace", "InstanceState")];

const NEEDS: [Needs; 5] = [
    Needs {
        api: "gpu-workspace",
        always: &[(Provider::Aws, "ec2"), (Provider::Aws, "iam")],
        in_claims: &[],
        sometimes: &[],
    },
    Needs {
        api: "application-environment",
        always: &[
            (Provider::Gcp, "cloudplatform"),
            (Provider::Gcp, "container"),
            (Provider::Gcp, "sql"),
            (Provider::Gcp, "storage"),
        ],
        in_claims: &[],
        sometimes: &[],
    },
    Needs {
        api: "unified-environment",
        always: &[
            (Provider::Aws, "s3"),
            (Provider::Aws, "cloudfront"),
            (Provider::Sql, "postgresql"),
        ],
        in_claims: &[OBJECTS],
        sometimes: &[(Provider::Aws, "rds")],
    },
    Needs { api: "stock-pool", always: &[], in_claims: &[OBJECTS], sometimes: &[] },
    Needs {
        api: "virtual-environment",
        always: &[(Provider::Helm, ""), OBJECTS],
        in_claims: &[],
        sometimes: &[
            (Provider::Aws, "eks"),
            (Provider::Aws, "iam"),
            (Provider::Azure, "containerservice"),
            (Provider::Gcp, "container"),
        ],
    },
];

/// The provider kinds that an API composes. The flag says whether all environments need the kind.
pub fn composed(api: &dyn AnyApi, flavour: Flavour) -> Vec<(&'static Kind, bool)> {
    let Some(needs) = NEEDS.iter().find(|needs| needs.api == api.info().name) else {
        return Vec::new();
    };
    let name = needs.api;
    let in_claims = if flavour == Flavour::Claims { needs.in_claims } else { &[] };
    let of = |(provider, service): &Service, needed: bool| {
        let (provider, service) = (*provider, *service);
        let kinds = KINDS.iter().map(|info| &info.kind);
        let is_usual = move |kind: &Kind| {
            EARLIER.iter().chain(&AT_TIMES).all(|rare| *rare != (name, kind.kind))
        };
        kinds
            .filter(move |kind| kind.provider == provider && kind.service == service)
            .filter(move |kind| !NOT_COMPOSED.contains(&(name, kind.kind)))
            .map(move |kind| (kind, needed && is_usual(kind)))
    };
    let needed = needs.always.iter().chain(in_claims).flat_map(|service| of(service, true));
    needed.chain(needs.sometimes.iter().flat_map(|service| of(service, false))).collect()
}

/// The scope of the resources that an API composes.
pub fn scope(flavour: Flavour) -> Scope {
    match flavour {
        Flavour::Claims => Scope::LegacyCluster,
        Flavour::Namespaced => Scope::Namespaced,
    }
}

/// The package that serves a kind.
pub fn package(kind: &Kind) -> String {
    let of = |family: &str| format!("provider-{family}-{}", kind.service);
    match kind.provider {
        Provider::Aws => of("aws"),
        Provider::Gcp => of("gcp"),
        Provider::Azure => of("azure"),
        Provider::Kubernetes => "provider-kubernetes".to_owned(),
        Provider::Helm => "provider-helm".to_owned(),
        Provider::Sql => "provider-sql".to_owned(),
    }
}

/// The packages that a kind needs: its own, and the one shared by its family.
pub fn packages(kind: &Kind) -> Vec<String> {
    let family = match kind.provider {
        Provider::Aws => Some("provider-family-aws"),
        Provider::Gcp => Some("provider-family-gcp"),
        Provider::Azure => Some("provider-family-azure"),
        Provider::Kubernetes | Provider::Helm | Provider::Sql => None,
    };
    family.map(str::to_owned).into_iter().chain([package(kind)]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use crate::packages::Package;
    use crossplane::api_version::group_of;
    use xtask::composed::all;

    use super::*;

    /// Whether a provider's package serves the object's kind. Provider configs are excluded,
    /// because every package of a provider serves them.
    fn is_composed(object: &serde_json::Value) -> bool {
        Package::serving(group_of(object)).is_some() && object["kind"] != "ProviderConfig"
    }

    #[test]
    fn table_lists_the_composed_kinds() {
        for composed in all().unwrap() {
            let known = super::composed(composed.api, composed.flavour);
            let name = |kind: &Kind| (kind.group(scope(composed.flavour)), kind.kind.to_owned());
            let found = |objects: &[serde_json::Value]| -> BTreeSet<(String, String)> {
                let theirs = objects.iter().filter(|object| is_composed(object));
                theirs
                    .map(|one| (group_of(one).to_owned(), one["kind"].as_str().unwrap().to_owned()))
                    .collect()
            };
            let (always, sometimes) = (found(&composed.always), found(&composed.sometimes));
            let api = composed.api.info().name;
            let today =
                known.iter().filter(|(kind, _)| !super::EARLIER.contains(&(api, kind.kind)));
            let ours = |needed| -> BTreeSet<(String, String)> {
                today
                    .clone()
                    .filter(|(_, one)| *one == needed)
                    .map(|(kind, _)| name(kind))
                    .collect()
            };
            assert_eq!(ours(true), always, "{api} {:?}", composed.flavour);
            assert_eq!(
                ours(false),
                sometimes.difference(&always).cloned().collect(),
                "{api} {:?}",
                composed.flavour
            );
            for (kind, _) in &known {
                let theirs = Package::serving(&kind.group(scope(composed.flavour))).unwrap();
                assert_eq!(package(kind), theirs.name);
            }
        }
    }
}
