//! The observed objects, from files: finds the ones of an environment, and the composite's data in
//! them.
//!
//! An environment is identified by group, kind, namespace and name, never by its name alone. Two
//! teams may use the same name, and so may a claim and a namespaced composite.

use std::cell::Cell;
use std::collections::BTreeSet;

use crossplane::api_version;
use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE, COMPOSITE, SLOT};
use function_paved_road::apis::Flavour;
use function_paved_road::models::{KINDS, Scope};
use serde_json::{Value, json};

use super::kind::{self, Target};
use crate::providers;

const CONNECTION: &str = "connection.crossplane.io/v1alpha1";

/// The observed documents. Each records whether an environment has used it.
#[derive(Default)]
pub struct Observed(Vec<Seen>);

/// An observed document.
struct Seen {
    value: Value,
    /// The file, kind and name, for messages.
    title: String,
    used: Cell<bool>,
}

/// The environment that owns the selected documents.
pub(super) struct Whose<'a> {
    pub(super) target: &'a Target,
    /// The claim's or the composite's namespace. `None` for a cluster-scoped composite.
    pub(super) namespace: Option<&'a str>,
    /// The claim's or the composite's name.
    pub(super) name: &'a str,
}

impl Observed {
    /// Creates observed documents that do not come from files.
    pub fn new(documents: Vec<Value>) -> Self {
        let seen = |value| Seen { value, title: String::new(), used: Cell::new(false) };
        Self(documents.into_iter().map(seen).collect())
    }

    /// Documents of files. Each has its file, kind and name for messages.
    pub fn titled(documents: Vec<(Value, String)>) -> Self {
        let seen = |(value, title)| Seen { value, title, used: Cell::new(false) };
        Self(documents.into_iter().map(seen).collect())
    }

    /// Whether the list of observed documents is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The titles of documents that no environment used. Only composed resources, our claims and
    /// composites, and connection Secrets are listed. A function may require any other document.
    pub fn unused(&self) -> Vec<&str> {
        let belongs = |value: &Value| {
            is_composed(value)
                || kind::find(value).is_ok()
                || is_secret(value) && value["type"] == CONNECTION
        };
        let unused = self.0.iter().filter(|seen| !seen.used.get() && belongs(&seen.value));
        unused.map(|seen| seen.title.as_str()).collect()
    }

    /// The observed claim or composite itself.
    pub(super) fn stored(&self, whose: &Whose<'_>) -> Option<&Value> {
        let kind = whose.target.kind();
        self.find(&whose.target.group, kind, whose.namespace, whose.name)
    }

    /// The name of the composite to which a claim is bound. It comes from the claim, or else from
    /// the composite with this claim, or else from the labels of composed resources. `None` if
    /// these name several composites.
    pub(super) fn bound_name(&self, claim: &Whose<'_>) -> Option<String> {
        let own =
            self.stored(claim).and_then(|claim| claim["spec"]["resourceRef"]["name"].as_str());
        if let Some(name) = own {
            return Some(name.to_owned());
        }
        let composites = self.0.iter().map(|seen| &seen.value).filter(|value| {
            let reference = &value["spec"]["claimRef"];
            is(value, &claim.target.group, claim.target.composite())
                && reference["kind"] == claim.target.kind()
                && reference["name"] == claim.name
                && reference["namespace"].as_str() == claim.namespace
        });
        let mut names: BTreeSet<&str> =
            composites.filter_map(|composite| composite["metadata"]["name"].as_str()).collect();
        if names.is_empty() {
            let composed = self.0.iter().map(|seen| &seen.value).filter(|value| {
                let labels = &value["metadata"]["labels"];
                is_composed(value)
                    && labels[CLAIM_NAME] == claim.name
                    && labels[CLAIM_NAMESPACE].as_str() == claim.namespace
                    && claim.may_own(value)
            });
            names = composed
                .filter_map(|value| value["metadata"]["labels"][COMPOSITE].as_str())
                .collect();
        }
        let first = names.pop_first()?;
        names.is_empty().then(|| first.to_owned())
    }

    /// The observed resources of a composite, and documents without an owner. Sets the fields that
    /// only the cluster knows: UID, status and the reference to the connection Secret.
    pub(super) fn surround(&self, composite: &mut Value, whose: &Whose<'_>) -> Vec<Value> {
        let name = composite["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let (parts, others): (Vec<&Seen>, Vec<&Seen>) = self
            .0
            .iter()
            .partition(|seen| is_composed(&seen.value) && whose.owns(&seen.value, &name));
        let namespace = whose.namespace.filter(|_| !whose.target.is_claim);
        let known = self.find(&whose.target.group, whose.target.composite(), namespace, &name);
        recall(composite, known, &parts);
        let foreign: Vec<&Seen> =
            others.into_iter().filter(|seen| is_composed(&seen.value)).collect();
        self.adopt_secret(composite, &parts, &foreign);
        let theirs: BTreeSet<_> =
            foreign.iter().filter_map(|seen| secret_of(&seen.value)).collect();
        let own: BTreeSet<_> = parts
            .iter()
            .map(|seen| &seen.value)
            .chain([&*composite])
            .filter_map(secret_of)
            .collect();
        let mut around: Vec<Value> = parts
            .iter()
            .map(|seen| {
                seen.used.set(true);
                seen.value.clone()
            })
            .collect();
        for seen in self.0.iter().filter(|seen| !is_composed(&seen.value)) {
            if is_secret(&seen.value) {
                let key = key_of(&seen.value);
                if own.contains(&key) || whose.claims_secret(composite, &seen.value) {
                    seen.used.set(true);
                } else if theirs.contains(&key) {
                    continue;
                }
            } else if kind::find(&seen.value).is_ok() {
                // A claim or a composite. This environment's own was handled above, and others do
                // not concern it.
                continue;
            }
            around.push(seen.value.clone());
        }
        around
    }

    /// Finds the connection Secret of a composite that was created from a claim. Its name is the
    /// composite's UID, which a claim does not contain. It is the Secret that the composite owns,
    /// or the Secret with its UID as name. If no other environment is observed, it may be the only
    /// Secret without an owner.
    fn adopt_secret(&self, composite: &mut Value, parts: &[&Seen], foreign: &[&Seen]) {
        if !composite["spec"]["writeConnectionSecretToRef"].is_null() || parts.is_empty() {
            return;
        }
        let written: BTreeSet<_> =
            parts.iter().chain(foreign).filter_map(|seen| secret_of(&seen.value)).collect();
        let secrets = self.0.iter().map(|seen| &seen.value).filter(|value| {
            is_secret(value) && !is_composed(value) && !written.contains(&key_of(value))
        });
        let (named, free): (Vec<&Value>, Vec<&Value>) = secrets
            .filter(|secret| secret["type"].is_null() || secret["type"] == CONNECTION)
            .partition(|secret| {
                let owner = controller(secret);
                let is_own = |owner: &Value| {
                    owner["kind"] == composite["kind"]
                        && owner["name"] == composite["metadata"]["name"]
                };
                owner.is_some_and(is_own)
                    || secret["metadata"]["name"] == composite["metadata"]["uid"]
            });
        let free: Vec<&Value> = free
            .into_iter()
            .filter(|secret| secret["metadata"]["ownerReferences"].is_null())
            .collect();
        let secret = match (named.as_slice(), free.as_slice()) {
            ([secret], _) => secret,
            ([], [secret]) if foreign.is_empty() => secret,
            _ => return,
        };
        let metadata = &secret["metadata"];
        composite["spec"]["writeConnectionSecretToRef"] =
            json!({"name": metadata["name"], "namespace": metadata["namespace"]});
    }

    /// An object that is not composed.
    fn find(&self, group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|Seen { value, .. }| {
            let own = || value["metadata"]["namespace"].as_str().unwrap_or("default");
            is(value, group, kind)
                && value["metadata"]["name"] == name
                && namespace.is_none_or(|namespace| own() == namespace)
        })?;
        found.used.set(true);
        Some(&found.value)
    }
}

impl Whose<'_> {
    /// Whether a composed resource belongs to the composite with this name.
    fn owns(&self, document: &Value, name: &str) -> bool {
        let metadata = &document["metadata"];
        let label = |key: &str| metadata["labels"][key].as_str();
        if label(COMPOSITE) != Some(name) || !self.may_own(document) {
            return false;
        }
        if controller(document).is_some_and(|owner| owner["name"] != name) {
            return false;
        }
        match (self.target.is_claim, self.target.flavour) {
            (true, _) => {
                let is_it = |key, wanted: Option<&str>| {
                    label(key).is_none_or(|found| Some(found) == wanted)
                };
                is_it(CLAIM_NAME, Some(self.name)) && is_it(CLAIM_NAMESPACE, self.namespace)
            }
            (false, Flavour::Namespaced) => metadata["namespace"].as_str() == self.namespace,
            (false, Flavour::Claims) => true,
        }
    }

    /// Whether a composed resource can belong to this kind. Its controller decides, or else the
    /// kinds that the API composes.
    fn may_own(&self, document: &Value) -> bool {
        if let Some(owner) = controller(document) {
            return is(owner, &self.target.group, self.target.composite());
        }
        let all_scopes = [Scope::LegacyCluster, Scope::Namespaced];
        let is_providers = KINDS.iter().any(|info| {
            all_scopes.iter().any(|scope| is(document, &info.kind.group(*scope), info.kind.kind))
        });
        let scope = match self.target.flavour {
            Flavour::Claims => Scope::LegacyCluster,
            Flavour::Namespaced => Scope::Namespaced,
        };
        let composed = providers::composed(self.target.api, self.target.flavour);
        !is_providers
            || composed.iter().any(|(kind, _)| is(document, &kind.group(scope), kind.kind))
    }

    /// Whether Crossplane copies the connection details of this claim to a Secret.
    fn claims_secret(&self, composite: &Value, secret: &Value) -> bool {
        let claim = &composite["spec"]["claimRef"];
        controller(secret)
            .is_some_and(|owner| owner["kind"] == claim["kind"] && owner["name"] == claim["name"])
            && secret["metadata"]["namespace"].as_str() == self.namespace
            && self.target.is_claim
    }
}

/// Sets the composite's fields that only the cluster knows.
fn recall(composite: &mut Value, known: Option<&Value>, parts: &[&Seen]) {
    let uid =
        parts.iter().find_map(|seen| controller(&seen.value)).map(|owner| owner["uid"].clone());
    let known = known.cloned().unwrap_or_default();
    fill(composite, &["metadata", "uid"], &known["metadata"]["uid"]);
    fill(composite, &["metadata", "uid"], &uid.unwrap_or_default());
    fill(composite, &["status"], &known["status"]);
    fill(
        composite,
        &["spec", "writeConnectionSecretToRef"],
        &known["spec"]["writeConnectionSecretToRef"],
    );
}

/// Sets a known value if the field is missing.
fn fill(object: &mut Value, path: &[&str], value: &Value) {
    let stands = !path.iter().fold(&*object, |object, key| &object[*key]).is_null();
    if !(stands || value.is_null()) {
        *path.iter().fold(object, |object, key| &mut object[*key]) = value.clone();
    }
}

/// The composite that controls a composed resource.
fn controller(document: &Value) -> Option<&Value> {
    document["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|owner| owner["controller"] == true)
}

/// Whether an object, or a reference to one, is of a kind, in any version.
fn is(object: &Value, group: &str, kind: &str) -> bool {
    object["kind"] == kind && api_version::group_of(object) == group
}

/// The namespace and name of a Secret.
type Key<'a> = (&'a str, &'a str);

/// The Secret to which a resource or a composite writes its connection details.
fn secret_of(owner: &Value) -> Option<Key<'_>> {
    let reference = &owner["spec"]["writeConnectionSecretToRef"];
    let namespace =
        owner["metadata"]["namespace"].as_str().or_else(|| reference["namespace"].as_str())?;
    Some((namespace, reference["name"].as_str()?))
}

fn key_of(secret: &Value) -> Key<'_> {
    let part = |key: &str| secret["metadata"][key].as_str().unwrap_or_default();
    (part("namespace"), part("name"))
}

fn is_secret(document: &Value) -> bool {
    document["apiVersion"] == "v1" && document["kind"] == "Secret"
}

fn is_composed(document: &Value) -> bool {
    document["metadata"]["annotations"][SLOT].is_string()
}
