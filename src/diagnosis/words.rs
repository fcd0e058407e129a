//! The headline and the remediation of each cause.

use super::{Cause, Code};

impl Cause {
    /// The cause in a few words, without a full stop.
    pub fn headline(&self) -> String {
        let param = |name| self.param(name);
        match self.code {
            Code::QuotaExceeded => match (self.cloud(), param("quota")) {
                (Some(cloud), Some(quota)) => format!("{cloud} quota exceeded: {quota}"),
                (Some(cloud), None) => format!("{cloud} quota exceeded"),
                (None, Some(quota)) => format!("Quota exceeded: {quota}"),
                (None, None) => "Quota exceeded".to_owned(),
            },
            Code::NoCapacity => format!("{} has no capacity", self.cloud_or("The cloud")),
            Code::Throttled => {
                format!("{} limits the rate of requests", self.cloud_or("The cloud"))
            }
            Code::CredentialsInvalid => {
                "The provider's credentials are invalid or expired".to_owned()
            }
            Code::AccessDenied => self.denial(),
            Code::DatabaseAdministrator => {
                "The provider's database administrator lacks rights".to_owned()
            }
            Code::ServiceNotEnabled => match self.cloud() {
                Some(cloud) => format!("A service of {cloud} is not enabled"),
                None => "A service of the cloud is not enabled".to_owned(),
            },
            Code::NameTaken if param("conflict") == Some("rule") => {
                "The firewall rule already exists".to_owned()
            }
            Code::NameTaken if param("conflict") == Some("deleted") => {
                "The cloud reserves the name of a deleted resource".to_owned()
            }
            Code::NameTaken => "The name is already taken".to_owned(),
            Code::SettingsReference if param("problem") == Some("rejected") => {
                let key = param("settings").map(|key| format!("settings.{key}"));
                let key = key.unwrap_or_else(|| "a value of Settings".to_owned());
                format!("{} rejects {key}", self.cloud_or("The cloud"))
            }
            Code::SettingsReference => match param("settings") {
                Some(key) => format!("settings.{key} names something that does not exist"),
                None => "Settings name something that does not exist".to_owned(),
            },
            Code::Unreachable => match param("host") {
                Some(host) => format!("{host} cannot be reached"),
                None => "A host cannot be reached".to_owned(),
            },
            Code::ChartNotFound => match (param("chart"), param("version")) {
                (Some(chart), Some(version)) => {
                    format!("The repository has no chart {chart} in version {version}")
                }
                (Some(chart), None) => format!("The repository has no chart {chart}"),
                (None, _) => "The repository does not have the chart".to_owned(),
            },
            Code::ProviderConfigMissing => {
                format!("The provider cannot use {}", self.provider_config())
            }
            Code::ProviderMissing => match (param("kind"), param("version")) {
                (Some(kind), Some(version)) => {
                    format!("The cluster has no kind {kind} ({version})")
                }
                (Some(kind), None) => format!("The cluster has no kind {kind}"),
                (None, _) => "The cluster lacks a kind".to_owned(),
            },
            Code::NotAccepted => {
                format!("The API server has not accepted the {}", param("kind").unwrap_or("object"))
            }
            Code::WaitsFor => {
                let awaited = self.awaited().unwrap_or_else(|| "another resource".to_owned());
                format!("Waiting for {awaited}")
            }
            Code::WaitsForSecret => {
                format!("Waiting for {}", self.awaited().unwrap_or_else(|| "a Secret".to_owned()))
            }
            Code::TimedOut => {
                let minutes = param("minutes").map(|minutes| format!(" within {minutes} minutes"));
                let minutes = minutes.unwrap_or_else(|| " in time".to_owned());
                let awaited = self.awaited().map(|awaited| format!(": it waits for {awaited}"));
                format!("Not ready{minutes}{}", awaited.unwrap_or_default())
            }
            Code::Paused => "Reconciliation is paused".to_owned(),
            Code::CreationUnknown => {
                "The provider stopped during the creation, and does not know the result".to_owned()
            }
            Code::Uncomposed => "Crossplane does not compose this environment".to_owned(),
            Code::Overdue => "Crossplane has not processed the newest spec or request".to_owned(),
            Code::InvalidSpec => "The spec is invalid".to_owned(),
            Code::InvalidSettings => "The platform team's Settings are invalid".to_owned(),
            Code::WouldDelete => "The function refused to delete a resource".to_owned(),
            Code::UnsupportedKind => "The function does not know this kind".to_owned(),
            Code::NamespaceTaken => "The environment's namespace already exists".to_owned(),
            Code::ObjectExists => "An object of the environment's name already exists".to_owned(),
            Code::Unknown => match param("kind") {
                Some(kind) => format!("The {kind} failed"),
                None => "Crossplane cannot compose this environment".to_owned(),
            },
        }
    }

    /// The headline of [`Code::AccessDenied`].
    fn denial(&self) -> String {
        let cloud = self.cloud_or("The cloud");
        match self.param("conflict") {
            Some("bucket") => format!("{cloud} denied access to the bucket"),
            Some("account") => format!("{cloud} has not verified the account, or blocks it"),
            Some("policy") => match self.cloud() {
                Some(cloud) => format!("A policy of {cloud} forbids this"),
                None => "A policy forbids this".to_owned(),
            },
            _ => format!("{cloud} denied {}", self.param("action").unwrap_or("access")),
        }
    }

    /// The remediation, in whole sentences.
    pub fn remediation(&self) -> &'static str {
        match self.code {
            Code::QuotaExceeded => {
                "Choose a smaller size, delete unused resources, or ask the platform team for \
                 a higher quota."
            }
            Code::NoCapacity => "Try again later, or choose another machine type or region.",
            Code::Throttled => "No action is needed: the provider retries automatically.",
            Code::CredentialsInvalid => {
                "Ask the platform team to renew the provider's credentials."
            }
            Code::AccessDenied => self.remediation_of_denial(),
            Code::DatabaseAdministrator => {
                "Ask the platform team to run the statements of the guide \"Use a shared PostgreSQL \
                 server\" as a superuser. Its query prints them."
            }
            Code::ServiceNotEnabled => {
                "Ask the platform team to enable the service that the message names for the account, \
                 project or subscription of the provider."
            }
            Code::NameTaken if self.param("conflict") == Some("rule") => {
                "Delete the rule that another user created."
            }
            Code::NameTaken if self.param("conflict") == Some("deleted") => {
                "Wait for a week, or create a new environment."
            }
            Code::NameTaken => "Choose another name, or delete the resource with this name.",
            Code::SettingsReference if self.param("problem") == Some("rejected") => {
                "Ask the platform team to correct the value in the Settings. The message has the rule."
            }
            Code::SettingsReference => "Ask the platform team to correct the Settings.",
            Code::Unreachable => {
                "Check the spelling of the region, the repository or the host. If it is right, ask \
                 the platform team to check the network, the DNS and the proxy of the provider."
            }
            Code::ChartNotFound => {
                "Check the repository, the name and the version of the chart. `helm search repo` lists \
                 the versions."
            }
            Code::ProviderConfigMissing => {
                "Ask the platform team to check that it exists and that its provider runs. `paved \
                 doctor` shows both."
            }
            Code::ProviderMissing | Code::NotAccepted => {
                "Ask the platform team to check that the provider is installed. `paved doctor` shows \
                 which one is missing."
            }
            Code::WaitsFor => "No action is needed: creation continues automatically.",
            Code::WaitsForSecret => {
                "No action is needed if the environment creates the Secret. If the wait lasts, ask \
                 the platform team for the Secret."
            }
            Code::TimedOut => {
                "Read the message, or ask the platform team. If the cause is removed, creation \
                 continues automatically."
            }
            Code::Paused => "Remove the annotation crossplane.io/paused to continue.",
            Code::CreationUnknown => {
                "Ask the platform team to look for the resource in the cloud by its tags. If it \
                 exists, write its id into the annotation crossplane.io/external-name. Then remove \
                 the annotation crossplane.io/external-create-pending."
            }
            Code::Uncomposed => {
                "Ask the platform team whether Crossplane runs, whether a Composition fits the \
                 compositionRef or compositionSelector, and whether every function of the Composition \
                 answers. `paved doctor` and the conditions of the composite show which."
            }
            Code::Overdue => {
                "Other environments may come first. If the wait lasts, ask the platform team whether \
                 every function of the Composition answers. `paved doctor` and the conditions of the \
                 composite show which."
            }
            Code::InvalidSpec => "Correct the fields that the message names.",
            Code::InvalidSettings => {
                "Ask the platform team to correct the Settings in the message."
            }
            Code::WouldDelete => {
                "Nothing was changed. Follow the message, or ask the platform team to report it."
            }
            Code::UnsupportedKind => "Ask the platform team to correct the Composition.",
            Code::NamespaceTaken => {
                "Delete the environment and create it again. It then gets another namespace."
            }
            Code::ObjectExists => {
                "Give the environment another name, or rename or delete the object of the message."
            }
            Code::Unknown => "Read the message, or ask the platform team.",
        }
    }

    /// The remediation of [`Code::AccessDenied`].
    fn remediation_of_denial(&self) -> &'static str {
        match self.param("conflict") {
            Some("bucket") => {
                "Ask the platform team to grant the permission to the provider's identity. If \
                 another account has a bucket of this name, create a new environment."
            }
            Some("account") => {
                "Ask the platform team to have the account verified. The cloud's support does this, \
                 and the message says where."
            }
            Some("policy") => {
                "Ask the platform team to change the Settings so that they fit the policy, or to \
                 exempt the project or the account from the policy."
            }
            _ => "Ask the platform team to grant the permission to the provider's identity.",
        }
    }

    /// The object of a wait, in words.
    fn awaited(&self) -> Option<String> {
        let secret = self.param("secret").map(|name| format!("Secret {name}"));
        let slot = self.param("slot").map(|slot| format!("the {}", readable(slot)));
        slot.or_else(|| self.param("for").map(str::to_owned)).or(secret)
    }

    /// Provider and service, for example `AWS EC2`.
    fn cloud(&self) -> Option<String> {
        let names: Vec<&str> =
            ["provider", "service"].into_iter().filter_map(|name| self.param(name)).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }

    fn cloud_or(&self, other: &str) -> String {
        self.cloud().unwrap_or_else(|| other.to_owned())
    }

    /// For example `ProviderConfig default (aws.upbound.io)`.
    pub fn provider_config(&self) -> String {
        let kind = self.param("kind").unwrap_or("provider config");
        let name = self.param("config").map(|name| format!(" {name}")).unwrap_or_default();
        let group = self.param("group").map(|group| format!(" ({group})")).unwrap_or_default();
        let article = if name.is_empty() { "its " } else { "" };
        format!("{article}{kind}{name}{group}")
    }
}

/// A slot in words, if its dashes separate words: `security-group`, not `ssh-192.0.2.0/24`.
fn readable(slot: &str) -> String {
    let is_words = slot.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if is_words { slot.replace('-', " ") } else { slot.to_owned() }
}
