//! Where an environment's objects live, and what they are called.

use serde_json::json;

use crate::check::{self, Refused};
use crate::compose::{Composite, Composition, SecretName, label};
use crate::error::Error;

/// Slot of the namespace that the claims flavour makes.
pub(super) const NAMESPACE: &str = "namespace";

/// Name of the Secret with the way into the database; in the namespaced flavour after the XR's
/// name.
const SECRET: &str = "db-connection-details";

/// A namespace, and names in it.
pub(super) struct Place {
    /// Where Deployment, Service, Ingress and the database's Secret are.
    pub namespace: String,
    /// What the first three are called.
    pub name: String,
    /// The environment's own name, by which its pods are told from others.
    pub environment: String,
    /// The Secret that the database's provider writes.
    pub secret: SecretName,
    /// Whether the namespace is there: what is put into one that is missing is refused, and a
    /// password that cannot be written down when it is made is lost.
    pub ready: bool,
    /// Whether the namespace is the environment's own, to be protected while something is in it.
    pub own: bool,
}

/// The backend's Service in the namespaced API has the environment's name, so that has to be a
/// Service's.
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

/// The namespace that resources of the environment are in already.
fn namespace_in_use(cx: &Composition<'_>) -> Option<String> {
    let databases = ["postgres-role", "postgres-instance"];
    let objects = ["backend-service", "backend-deployment", "backend-ingress"];
    let secrets = databases.into_iter().find_map(|slot| cx.secret_namespace(slot));
    secrets.or_else(|| objects.into_iter().find_map(|slot| cx.namespace_of(slot)))
}

/// The name of a new namespace. Users can choose the name of a claim's composite by
/// `spec.resourceRef`, so the name carries a part of the uid.
fn new_namespace(xr: &Composite) -> String {
    label(&[&xr.name, &xr.uid5(), "environment"])
}

impl Place {
    /// The XR's own namespace, or in the claims flavour one that is made for the environment.
    pub fn compose(cx: &mut Composition<'_>) -> Result<Self, Error> {
        match cx.xr.namespace.clone() {
            Some(namespace) => Ok(Self::shared(namespace, &cx.xr.name)),
            None => Self::own(cx),
        }
    }

    /// Others live there too, so that everything carries the XR's name.
    fn shared(namespace: String, name: &str) -> Self {
        let secret = SecretName { name: format!("{name}-{SECRET}"), namespace: namespace.clone() };
        Self {
            namespace,
            name: name.to_owned(),
            environment: name.to_owned(),
            secret,
            ready: true,
            own: false,
        }
    }

    fn own(cx: &mut Composition<'_>) -> Result<Self, Error> {
        let in_use = namespace_in_use(cx);
        let running = cx.namespace_of(NAMESPACE).or_else(|| in_use.clone());
        let namespace = running.unwrap_or_else(|| new_namespace(&cx.xr));
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        cx.own_namespace(NAMESPACE, &namespace, in_use.is_some(), labels)?;
        let ready = cx.is_ready(NAMESPACE);
        let secret = SecretName { name: SECRET.to_owned(), namespace: namespace.clone() };
        let environment = cx.xr.name.clone();
        Ok(Self { namespace, name: "backend".to_owned(), environment, secret, ready, own: true })
    }

    /// Keeps the environment's own namespace until what is in a slot is gone from it.
    pub fn outlives(&self, slot: &str, cx: &mut Composition<'_>) -> Result<(), Error> {
        if self.own { cx.usage(NAMESPACE, slot) } else { Ok(()) }
    }
}

/// What waits for the namespace waits for this.
pub(super) const NAMESPACE_READY: &str = "its namespace to be there";

fn is_label(name: &str) -> bool {
    check::kubernetes::label(name).is_ok()
}
