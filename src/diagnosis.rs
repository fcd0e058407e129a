//! The diagnosis: why a resource or an environment is not ready, with a remediation.
//!
//! A [`Cause`] is a code with parameters. One table (`table.rs`) maps the messages of providers, of
//! Crossplane and of this function to codes. Each code has a headline and a remediation
//! (`words.rs`). The function writes the causes into `status.resources[].cause`. The command line
//! and the portal take them from there. For a status without causes, which an older function wrote,
//! they ask the same table.

mod details;
mod names;
mod reading;
mod table;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use details::{blamed, details};
use reading::Reading;
pub use table::Effect;

/// Why a resource or an environment is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The cause in one word: QuotaExceeded, NoCapacity, Throttled, CredentialsInvalid,
    /// AccessDenied, DatabaseAdministrator, ServiceNotEnabled, NameTaken, SettingsReference,
    /// Unreachable, ChartNotFound, ProviderConfigMissing, ProviderMissing, NotAccepted, WaitsFor,
    /// WaitsForSecret, TimedOut, Paused, CreationUnknown, or Unknown. For an environment as a whole
    /// also Uncomposed or Overdue. Later releases may add words.
    #[schemars(with = "String")]
    pub code: Code,
    /// Details of the cause, if they are known: for example `slot`, the resource that this one
    /// waits for, or `quota`, the exceeded quota.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// The kinds of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Code {
    /// A quota is used up. Params: `provider`, `service`, `quota`.
    QuotaExceeded,
    /// The cloud has no capacity for the request. Params: `provider`, `service`.
    NoCapacity,
    /// The cloud limits the rate of requests. Params: `provider`, `service`.
    Throttled,
    /// The provider's credentials are invalid or expired. Params: `provider`, `service`.
    CredentialsInvalid,
    /// The provider's identity may not do this. Params: `provider`, `service`, `action`. Also
    /// `conflict`, which is `bucket` if another account may have the bucket.
    AccessDenied,
    /// The administrator of a PostgreSQL server lacks rights that the provider needs.
    DatabaseAdministrator,
    /// A service or an API of the cloud is not enabled for the account. Params: `provider`,
    /// `service`.
    ServiceNotEnabled,
    /// The name is taken. Params: `conflict`, which is `rule` if a firewall rule exists already,
    /// and `deleted` if the cloud reserves the name of a deleted resource.
    NameTaken,
    /// Settings name an object that does not exist, or that the cloud rejects. Params: `settings`,
    /// the key, and `problem`, which is `rejected` for an object that the cloud rejects.
    SettingsReference,
    /// A host does not answer, or does not exist. Params: `host`.
    Unreachable,
    /// The repository does not have the chart in this version. Params: `chart`, `version`,
    /// `repository`.
    ChartNotFound,
    /// The provider config is missing, or its provider does not run. Params: `config`, `kind`,
    /// `group`.
    ProviderConfigMissing,
    /// The cluster does not have the kind. Params: `kind`, `version`.
    ProviderMissing,
    /// The API server has not accepted the object. Params: `kind`.
    NotAccepted,
    /// Another object has to exist first. Params: `slot` of the other resource, or `for` in words.
    WaitsFor,
    /// A Secret has to exist first. Params: `secret`, its name.
    WaitsForSecret,
    /// The resource is not ready within its time. Params: `minutes`, and the parameters of the cause
    /// that it waited for.
    TimedOut,
    /// The annotation `crossplane.io/paused` stops the reconciliation.
    Paused,
    /// The provider stopped while it created the resource, and does not know the result.
    CreationUnknown,
    /// Crossplane does not compose the environment.
    Uncomposed,
    /// Crossplane has composed an older spec, and not the newest one.
    Overdue,
    /// The function rejected the spec.
    InvalidSpec,
    /// The function rejected the Settings.
    InvalidSettings,
    /// The function would have deleted an existing resource.
    WouldDelete,
    /// The Composition sends a kind to the function that the function does not know.
    UnsupportedKind,
    /// The environment's namespace exists, and was not created for this environment.
    NamespaceTaken,
    /// An object in the user's namespace has the name of an object that the environment needs.
    ObjectExists,
    /// None of these codes: only the provider's message is known. Codes of later releases are read
    /// as this code. Params: `kind` of the resource.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// The codes of rejected environments. Their names are reasons of the conditions `Provisioned`
    /// and `Stalled`.
    pub const REJECTIONS: [Self; 6] = [
        Self::InvalidSpec,
        Self::InvalidSettings,
        Self::WouldDelete,
        Self::UnsupportedKind,
        Self::NamespaceTaken,
        Self::ObjectExists,
    ];

    /// The code of a rejected environment, from the reason of its condition `Provisioned`.
    pub fn rejection(reason: &str) -> Option<Self> {
        Self::REJECTIONS.into_iter().find(|code| code.to_string() == reason)
    }

    /// Whether the cause is ordinary waiting, which ends without help.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::WaitsFor | Self::WaitsForSecret)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Cause {
    /// A cause with its parameters.
    pub fn new<const N: usize>(code: Code, params: [(&str, &str); N]) -> Self {
        let params = params.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { code, params: params.into() }
    }

    /// The value of a parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }
}

/// A resource of an environment, as its entry in `status.resources` describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'l> {
    /// Its permanent name in the environment.
    pub slot: &'l str,
    /// Its Kubernetes kind.
    pub kind: &'l str,
    /// Its object's name in the cluster.
    pub name: Option<&'l str>,
    /// Its name or id in the cloud.
    pub external_name: Option<&'l str>,
    /// Whether it is ready.
    pub ready: bool,
    /// Its reason, if it is not in its expected state.
    pub reason: Option<&'l str>,
    /// Its message.
    pub message: Option<&'l str>,
}

/// The cause of each resource. `None` for a resource that is ready or is being created. `api` is
/// the API's name, for example `gpu-workspace`.
pub fn causes(lines: &[Line<'_>], api: Option<&str>) -> Vec<Option<Cause>> {
    lines.iter().map(|line| cause(line, lines, api)).collect()
}

fn cause(line: &Line<'_>, lines: &[Line<'_>], api: Option<&str>) -> Option<Cause> {
    let message = line.message.unwrap_or_default();
    match line.reason? {
        "Paused" => Some(Cause::new(Code::Paused, [])),
        "NotAccepted" => Some(Cause::new(Code::NotAccepted, [("kind", line.kind)])),
        "Waiting" => Some(waiting(line, lines, message)),
        "Failed" => {
            let unknown = || Cause::new(Code::Unknown, [("kind", line.kind)]);
            Some(refusal(message, api).unwrap_or_else(unknown))
        }
        _ => refusal(message, api),
    }
}

/// The cause in a message from Crossplane about an environment that it cannot compose.
pub fn composite_cause(message: &str) -> Cause {
    refusal(message, None).unwrap_or_else(|| Cause::new(Code::Unknown, []))
}

/// The meaning of an error of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The cause. Its code is Unknown if the table does not know the message.
    pub cause: Cause,
    /// The effect on the state of the resource.
    pub effect: Effect,
}

/// The meaning of an error of a provider, an API server or Crossplane. `api` is the API's name.
pub fn find(message: &str, api: Option<&str>) -> Finding {
    let reading = Reading::new(message);
    match table::find(&reading) {
        Some(row) => Finding { cause: details(row, &reading, api), effect: row.effect },
        None => Finding { cause: Cause::new(Code::Unknown, []), effect: Effect::Fails },
    }
}

/// The cause of a rejection by a provider, an API server or Crossplane, if the table knows the
/// message.
fn refusal(message: &str, api: Option<&str>) -> Option<Cause> {
    let cause = find(message, api).cause;
    let known = !cause.code.is_waiting() && cause.code != Code::Unknown;
    known.then_some(cause)
}

/// The cause of a resource that waits.
fn waiting(line: &Line<'_>, lines: &[Line<'_>], message: &str) -> Cause {
    let cause = find(message, None).cause;
    let composed = match cause.code {
        // The environment may create the provider config itself.
        Code::ProviderConfigMissing => lines.iter().find(|other| {
            let is_config = other.kind.ends_with("ProviderConfig") && other.name.is_some();
            is_config && other.name == cause.param("config")
        }),
        _ => None,
    };
    if let Some(config) = composed {
        return Cause::new(Code::WaitsFor, [("slot", config.slot)]);
    }
    let is_own = [Code::WaitsForSecret, Code::ProviderConfigMissing].contains(&cause.code);
    if is_own || cause.code == Code::WaitsFor && cause.param("for").is_some() {
        return cause;
    }
    match blamed(line, lines, &message.to_lowercase()) {
        Some(other) => Cause::new(Code::WaitsFor, [("slot", other.slot)]),
        None => Cause::new(Code::WaitsFor, []),
    }
}

/// Whether the error of a provider means that an object does not exist yet.
pub fn is_not_there_yet(message: &str) -> bool {
    find(message, None).effect == Effect::Waits
}

#[cfg(test)]
mod tests;
