//! Connection Secrets that two environments would share. Crossplane lets only one of them write it,
//! and the other one never gets its connection details.

use k8s_schema::Violation;
use paved_client::connection::secret_of;
use paved_render::subject::kind;
use serde_json::Value;

/// Namespace and name of a Secret.
pub(crate) type Secret = (String, String);

/// Kind, namespace and name of an environment.
pub(crate) type Identity = (String, String, String);

/// The connection Secret of an environment, and the environment. A missing namespace is empty.
pub(crate) fn connection_secret(object: &Value) -> Option<(Secret, Identity)> {
    kind::find(object).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let dynamic = serde_json::from_value(object.clone()).ok()?;
    let secret = secret_of(&dynamic, &kind, &name)?;
    Some(((namespace.clone(), secret), (kind, namespace, name)))
}

/// The violation of a document with the connection Secret of another environment.
pub(crate) fn in_use((_, secret): &Secret, other: &str) -> Violation {
    Violation {
        path: "spec.writeConnectionSecretToRef.name".to_owned(),
        message: format!(
            "found {secret:?}, the connection Secret of {other}; allowed: a name that no other \
             environment of the namespace uses"
        ),
    }
}
