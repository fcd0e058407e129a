//! The namespace and the names of an environment's objects.

use serde_json::json;

use crate::check::{self, Refused};
use crate::compose::Composer;
use crate::error::Error;
use crate::observe::{Composite, SecretName, label};

/// Slot of the namespace that the claims API creates.
pub(super) const NAMESPACE: &str = "namespace";

/// Name of the Secret with the database's connection details. In the namespaced API, the XR's name
/// precedes it.
const SECRET: &str = "db-connection-details";

/// A namespace, and names in it.
pub(super) struct Place {
    /// The namespace of Deployment, Service, Ingress and the database's Secret.
    pub namespace: String,
    /// The name of Deployment, Service and Ingress.
    pub name: String,
    /// The environment's own name, which identifies its pods.
    pub environment: String,
    /// The Secret that the database's provider writes.
    pub secret: SecretName,
    /// Whether the namespace exists. Objects in a missing namespace are rejected. A password that
    /// cannot be stored when it is generated is lost.
    pub ready: bool,
}

/// The backend's Service in the namespaced API has the environment's name. The name must therefore
/// be valid for a Service.
pub(super) fn check_name(xr: &Composite) -> Result<(), Refused> {
    let name = &xr.name;
    if xr.namespace.is_none()
        || is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase())
    {
        return Ok(());
    }
    let allowed = "at most 63 lowercase letters, digits and hyphens, starting with a letter and \
                   not \
                   ending with a hyphen, as for the backend's Service";
    Err(Refused::new(name, allowed))
}

/// The namespace that resources of the environment already use.
fn namespace_in_use(cx: &Composer<'_>) -> Option<String> {
    let databases = ["postgres-role", "postgres-instance"];
    let objects =
        ["backend-service", "backend-deployment", "backend-ingress", "frontend-rewrite-code"];
    let secrets = databases.into_iter().find_map(|slot| cx.secret_namespace(slot));
    secrets.or_else(|| objects.into_iter().find_map(|slot| cx.namespace_of(slot)))
}

/// The name of a new namespace. It contains a part of the uid, because users can choose the name of
/// a claim's composite by `spec.resourceRef`.
fn new_namespace(xr: &Composite) -> String {
    label(&[&xr.name, &xr.uid5(), "environment"])
}

impl Place {
    /// The XR's own namespace. In the claims API, a namespace that is created for the environment.
    pub fn compose(cx: &mut Composer<'_>) -> Result<Self, Error> {
        match cx.xr.namespace.clone() {
            Some(namespace) => Ok(Self::shared(namespace, &cx.xr.name)),
            None => Self::own(cx),
        }
    }

    /// The namespace has other objects too, so all names contain the XR's name.
    fn shared(namespace: String, name: &str) -> Self {
        let secret = SecretName { name: format!("{name}-{SECRET}"), namespace: namespace.clone() };
        Self { namespace, name: name.to_owned(), environment: name.to_owned(), secret, ready: true }
    }

    fn own(cx: &mut Composer<'_>) -> Result<Self, Error> {
        let in_use = namespace_in_use(cx);
        let running = cx.namespace_of(NAMESPACE).or_else(|| in_use.clone());
        let namespace = running.unwrap_or_else(|| new_namespace(&cx.xr));
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        cx.own_namespace(NAMESPACE, &namespace, in_use.is_some(), labels)?;
        let ready = cx.is_ready(NAMESPACE);
        let secret = SecretName { name: SECRET.to_owned(), namespace: namespace.clone() };
        let environment = cx.xr.name.clone();
        Ok(Self { namespace, name: "backend".to_owned(), environment, secret, ready })
    }
}

/// Preserves the Usage of an earlier release that protects the environment's own namespace. A
/// namespace deletes its content in any order, and an Object without its namespace is gone.
pub fn keep_namespace_usage(by: &str, cx: &mut Composer<'_>) -> Result<(), Error> {
    cx.keep_usage(NAMESPACE, by)
}

/// The reason why resources wait for the namespace.
pub(super) const NAMESPACE_READY: &str = "its namespace to be there";

fn is_label(name: &str) -> bool {
    check::kubernetes::label(name).is_ok()
}
