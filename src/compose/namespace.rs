//! Objects with names that another owner may have used: Namespaces of an environment's own, with
//! the composite's uid as a label, and objects in the user's namespace. Objects of other owners are
//! never used.

use serde_json::{Value, json};

use super::{Composer, Found, Lookup};
use crate::error::Error;
use crate::value::{Object, at, text};

/// The label on a Namespace with the uid of the composite that it was created for.
pub const COMPOSITE_UID: &str = "paved-road.fn.crossplane.io/composite-uid";

/// The first schema revision that brought the lookup of a Namespace before its creation. Crossplane
/// needs the right to read Namespaces for that.
const LOOKS_UP_SINCE: u32 = 2;

/// The reason why resources in a Namespace of the environment's own are not composed yet.
pub const NAMESPACE_IS_FREE: &str = "Crossplane to look up whether its namespace exists already";

/// The reason why an object in the user's namespace is not composed yet.
pub(super) const NAME_IS_FREE: &str = "Crossplane to look up whether its name is free";

impl Composer<'_> {
    /// The namespace of a slot's resource: a Namespace's own name, the namespace of another
    /// Kubernetes object, or the target namespace of a release.
    pub fn namespace_of(&self, slot: &str) -> Option<String> {
        let for_provider = |path: &[&str]| self.running(slot, path).and_then(Value::as_str);
        let place = match for_provider(&["manifest", "kind"]) {
            Some("Namespace") => for_provider(&["manifest", "metadata", "name"]),
            Some(_) => for_provider(&["manifest", "metadata", "namespace"]),
            None => for_provider(&["namespace"]),
        };
        place.filter(|namespace| !namespace.is_empty()).map(str::to_owned)
    }

    /// The namespace of the observed connection Secret of a slot's resource.
    pub fn secret_namespace(&self, slot: &str) -> Option<String> {
        let object = &self.observation.resources.get(slot)?.object;
        let namespace = text(object, &["spec", "writeConnectionSecretToRef", "namespace"])?;
        Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty())
    }

    /// Composes a Namespace of the environment's own in `slot`. Returns whether resources may be
    /// composed into it.
    ///
    /// An existing Namespace is used only if it was created for this composite. Composed objects
    /// are applied with force, and deleted with the environment. `in_use` means that a resource of
    /// this environment is already in the namespace.
    ///
    /// # Errors
    /// [`Error::NamespaceTaken`] if the Namespace exists and was not created for this composite.
    pub fn own_namespace(
        &mut self,
        slot: &str,
        name: &str,
        in_use: bool,
        mut labels: Value,
    ) -> Result<bool, Error> {
        let known = in_use || self.exists(slot) || !self.is_limited_since(LOOKS_UP_SINCE);
        let free = known || self.is_free(name)?;
        labels[COMPOSITE_UID] = json!(self.xr.uid);
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        });
        self.object(slot, namespace).needs(free, NAMESPACE_IS_FREE).add()?;
        Ok(free)
    }

    /// Whether a Namespace is absent or was created for this composite. False until that is known.
    fn is_free(&mut self, name: &str) -> Result<bool, Error> {
        let uid = self.xr.uid.clone();
        match self.look_up(Lookup::namespace(name)) {
            Found::Unknown => Ok(false),
            Found::Absent => Ok(true),
            Found::Present(namespace) => {
                let made_for =
                    at(namespace, &["metadata", "labels", COMPOSITE_UID]).and_then(Value::as_str);
                if made_for == Some(uid.as_str()) {
                    Ok(true)
                } else {
                    Err(Error::NamespaceTaken(name.to_owned()))
                }
            }
        }
    }

    /// Whether an object may be composed in the user's namespace: it exists, its name has a part of
    /// the composite's uid, or no other object has its name. False until that is known.
    ///
    /// Crossplane applies composed objects with force, and deletes them with the environment.
    ///
    /// # Errors
    /// [`Error::ObjectExists`] if the composite does not control the object of that name.
    pub(super) fn is_name_free(&mut self, slot: &str, object: &Object) -> Result<bool, Error> {
        let field = |path: &[&str]| text(object, path).unwrap_or_default().to_owned();
        let (kind, name) = (field(&["kind"]), field(&["metadata", "name"]));
        let Some(namespace) = self.xr.namespace.clone() else { return Ok(true) };
        if name.is_empty() || name.ends_with(&format!("-{}", self.xr.uid5())) || self.exists(slot) {
            return Ok(true);
        }
        let uid = self.xr.uid.clone();
        let lookup = Lookup {
            api_version: field(&["apiVersion"]),
            kind: kind.clone(),
            namespace: Some(namespace.clone()),
            name: name.clone(),
        };
        match self.look_up(lookup) {
            Found::Unknown => Ok(false),
            Found::Absent => Ok(true),
            Found::Present(found) if is_controlled_by(found, &uid) => Ok(true),
            Found::Present(_) => Err(Error::ObjectExists { kind, name, namespace }),
        }
    }
}

/// Whether the object with this uid is the controller of `object`.
fn is_controlled_by(object: &Object, uid: &str) -> bool {
    let owners = at(object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let is_it = |owner: &Value| owner["controller"] == true && owner["uid"] == uid;
    owners.is_some_and(|owners| owners.iter().any(is_it))
}
