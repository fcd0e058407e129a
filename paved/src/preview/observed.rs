//! The state of the world, from files, and what it tells of the composite.

use std::path::PathBuf;

use serde_json::{Value, json};
use simulator::core::SLOT;

use crate::Console;
use crate::failure::Failure;
use crate::files;

const COMPOSITE: &str = "crossplane.io/composite";
const CLAIM: &str = "crossplane.io/claim-name";

/// The documents of all files and folders.
pub(crate) fn read(paths: &[PathBuf], console: &mut Console<'_>) -> Result<Vec<Value>, Failure> {
    let mut documents = Vec::new();
    for path in paths {
        documents.extend(files::read(path, console)?.into_iter().map(|document| document.value));
    }
    Ok(documents)
}

/// The name of the composite that the observed resources of this claim belong to: the claim is bound to it.
pub(crate) fn bound_name(claim: &Value, observed: &[Value]) -> Option<String> {
    let labels = |document: &Value| document["metadata"]["labels"].clone();
    let ours = |document: &&Value| {
        let claim_name = &labels(document)[CLAIM];
        is_composed(document) && (claim_name.is_null() || *claim_name == claim["metadata"]["name"])
    };
    let mut names = observed
        .iter()
        .filter(ours)
        .filter_map(|document| labels(document)[COMPOSITE].as_str().map(str::to_owned));
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// What is observed of this composite: other composites' resources are left out, and what the world knows of the
/// composite itself, where it is among the documents, is taken from there.
pub(crate) fn of_composite(composite: &mut Value, observed: &[Value]) -> Vec<Value> {
    let name = composite["metadata"]["name"].clone();
    let is_itself = |document: &Value| {
        document["kind"] == composite["kind"]
            && document["metadata"]["name"] == name
            && !is_composed(document)
    };
    let other_owner = |document: &Value| {
        let label = &document["metadata"]["labels"][COMPOSITE];
        is_composed(document) && !label.is_null() && *label != name
    };
    let (itself, others): (Vec<&Value>, Vec<&Value>) =
        observed.iter().partition(|document| is_itself(document));
    let documents: Vec<Value> =
        others.into_iter().filter(|document| !other_owner(document)).cloned().collect();
    let uid = itself
        .iter()
        .map(|document| &document["metadata"]["uid"])
        .chain(owner_uids(&documents, &name))
        .find(|uid| uid.is_string())
        .cloned();
    if let (Some(uid), true) = (uid, composite["metadata"]["uid"].is_null()) {
        composite["metadata"]["uid"] = uid;
    }
    if let Some(known) = itself.first() {
        for (part, field) in [("status", None), ("spec", Some("writeConnectionSecretToRef"))] {
            match field {
                None if known[part].is_object() => composite[part] = known[part].clone(),
                Some(field) if composite[part][field].is_null() && known[part][field].is_object() => {
                    composite[part][field] = known[part][field].clone();
                }
                _ => {}
            }
        }
    }
    documents
}

/// The one observed Secret that no resource owns is the connection secret of a composite that was made from a claim:
/// its real name is the composite's uid, which a claim does not tell.
pub(crate) fn adopt_secret(composite: &mut Value, observed: &[Value]) {
    if !composite["spec"]["writeConnectionSecretToRef"].is_null() {
        return;
    }
    let owned = |secret: &Value| {
        observed
            .iter()
            .any(|owner| owner["spec"]["writeConnectionSecretToRef"]["name"] == secret["metadata"]["name"])
    };
    let is_secret = |document: &&Value| document["apiVersion"] == "v1" && document["kind"] == "Secret";
    let mut unowned =
        observed.iter().filter(is_secret).filter(|secret| !is_composed(secret) && !owned(secret));
    if let (Some(secret), None) = (unowned.next(), unowned.next()) {
        let metadata = &secret["metadata"];
        composite["spec"]["writeConnectionSecretToRef"] =
            json!({"name": metadata["name"], "namespace": metadata["namespace"]});
    }
}

fn owner_uids<'a>(documents: &'a [Value], name: &'a Value) -> impl Iterator<Item = &'a Value> {
    let owners =
        documents.iter().filter_map(|document| document["metadata"]["ownerReferences"].as_array()).flatten();
    owners
        .filter(move |owner| owner["controller"] == true && owner["name"] == *name)
        .map(|owner| &owner["uid"])
}

fn is_composed(document: &Value) -> bool {
    document["metadata"]["annotations"][SLOT].is_string()
}
