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

/// The object as the cluster has it, if it is among what is observed.
pub(crate) fn stored<'a>(object: &Value, observed: &'a [Value]) -> Option<&'a Value> {
    observed.iter().find(|document| {
        document["kind"] == object["kind"]
            && document["metadata"]["name"] == object["metadata"]["name"]
            && !is_composed(document)
    })
}

/// What is observed of this composite: itself and other composites' resources are left out.
pub(crate) fn of_composite(composite: &Value, observed: &[Value]) -> Vec<Value> {
    let name = &composite["metadata"]["name"];
    let elsewhere = |document: &&Value| {
        let owner = &document["metadata"]["labels"][COMPOSITE];
        is_composed(document) && !owner.is_null() && owner != name
    };
    let itself = stored(composite, observed);
    observed.iter().filter(|document| !elsewhere(document) && Some(*document) != itself).cloned().collect()
}

/// Fills in what only the cluster knows of the composite: uid, status and where its connection details go.
pub(crate) fn recall(composite: &mut Value, observed: &[Value]) {
    let uid = observed
        .iter()
        .filter_map(|document| document["metadata"]["ownerReferences"].as_array())
        .flatten()
        .find(|owner| owner["controller"] == true && owner["name"] == composite["metadata"]["name"])
        .map(|owner| owner["uid"].clone());
    let known = stored(composite, observed).cloned().unwrap_or_default();
    fill(composite, &["metadata", "uid"], &known["metadata"]["uid"]);
    fill(composite, &["metadata", "uid"], &uid.unwrap_or_default());
    fill(composite, &["status"], &known["status"]);
    fill(composite, &["spec", "writeConnectionSecretToRef"], &known["spec"]["writeConnectionSecretToRef"]);
}

/// Writes a value that is known where none stands.
fn fill(object: &mut Value, path: &[&str], value: &Value) {
    let stands = !path.iter().fold(&*object, |object, key| &object[*key]).is_null();
    if !(stands || value.is_null()) {
        *path.iter().fold(object, |object, key| &mut object[*key]) = value.clone();
    }
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

fn is_composed(document: &Value) -> bool {
    document["metadata"]["annotations"][SLOT].is_string()
}
