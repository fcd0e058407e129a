//! Connection details: the secret values of an environment.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use paved_client::cluster::Api;

use paved_client::connection::secret_of;

use super::Target;
use crate::failure::Failure;
use crate::stream::is_harmful;
use crate::style::harmless_name;

/// The values of an environment's Secret. The type has no `Debug`, so the values cannot be printed
/// accidentally.
pub(super) struct ConnectionSecret {
    name: String,
    values: BTreeMap<String, String>,
}

impl ConnectionSecret {
    /// Reads the Secret.
    pub(super) async fn read(target: &Target) -> Result<Self, Failure> {
        let environment = &target.environment;
        let name =
            secret_of(&target.object, &environment.kind, &environment.name).ok_or_else(|| {
                Failure::Usage(format!(
                    "{} has no Secret for connection details. Set \
                 spec.writeConnectionSecretToRef.name, and apply it again",
                    environment.title()
                ))
            })?;
        let secrets: Api<Secret> =
            Api::namespaced(target.cluster.client.clone(), &environment.namespace);
        let act = format!("read Secret {name} in namespace {}", environment.namespace);
        let secret =
            secrets.get_opt(&name).await.map_err(|error| target.cluster.explain(&error, &act))?;
        let Some(secret) = secret else {
            return Err(Failure::Provisioning {
                what: environment.title(),
                message: format!("does not have the Secret {name} with its connection details yet"),
            });
        };
        let values = secret.data.unwrap_or_default().into_iter();
        let values =
            values.filter_map(|(key, value)| Some((key, String::from_utf8(value.0).ok()?)));
        Ok(Self { name, values: values.filter(|(_, value)| !value.is_empty()).collect() })
    }

    /// The value of one of these keys, in one line. A line feed in the value could begin another
    /// line or another variable.
    pub(super) fn line(&self, keys: &[&str]) -> Result<&str, Failure> {
        let value = self.get(keys)?;
        if value.contains(|c| c == '\n' || is_harmful(c)) {
            let key = keys.iter().find(|key| self.values.contains_key(**key)).unwrap_or(&"");
            return Err(Failure::Provisioning {
                what: format!("Secret {}", harmless_name(&self.name)),
                message: format!(
                    "has a control character in {key}, so paved does not print it. Ask your \
                     platform team who \
                     changed the Secret"
                ),
            });
        }
        Ok(value)
    }

    /// The value of the first of these keys that exists.
    pub(super) fn get(&self, keys: &[&str]) -> Result<&str, Failure> {
        let found = keys.iter().find_map(|key| self.values.get(*key));
        found.map(String::as_str).ok_or_else(|| Failure::Provisioning {
            what: format!("Secret {}", self.name),
            message: format!("has no {} yet", keys.join(" nor ")),
        })
    }
}
