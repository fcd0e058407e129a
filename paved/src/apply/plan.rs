//! The steps of `paved apply`, from the documents of all files. Checks each document as far as
//! possible without a request.

use std::collections::BTreeSet;
use std::path::PathBuf;

use function_paved_road::lifecycle::REQUESTS;
use k8s_schema::Violation;
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Kind, Kinds};
use paved_client::environment::Price;
use paved_client::names::{A_NAME, is_name};
use serde_json::{Value, json};

use crate::Console;
use crate::failure::Failure;
use crate::files::{Document, Inputs, shown};
use crate::style::harmless_name;

/// One document, and the API server's answers about it.
pub(super) struct Step {
    pub(super) file: PathBuf,
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The object to send.
    pub(super) object: Value,
    /// The existing object.
    pub(super) live: Option<DynamicObject>,
    /// The object after the dry run.
    pub(super) rehearsed: Option<DynamicObject>,
    /// The estimated price, if it is known.
    pub(super) price: Option<Price>,
    /// The requests that were removed from the document.
    pub(super) dropped: Vec<&'static str>,
}

impl Step {
    /// Kind, namespace and name.
    pub(super) fn title(&self) -> String {
        format!("{} {}/{}", self.kind.name(), self.namespace, self.name)
    }

    /// Removes the requests of another environment from a document that creates one: a renewal, a
    /// stop or a start in a copied file.
    pub(super) fn drop_requests(&mut self) {
        let annotations = self.object.pointer_mut("/metadata/annotations");
        let annotations = annotations.and_then(Value::as_object_mut);
        let Some(annotations) = annotations.filter(|_| self.live.is_none()) else { return };
        let found = REQUESTS.into_iter().filter(|name| annotations.remove(*name).is_some());
        self.dropped.extend(found);
    }

    /// The title, after the document's file.
    pub(super) fn what(&self) -> String {
        format!("{}: {}", shown(&self.file), self.title())
    }
}

/// The documents of all files.
pub(super) fn documents(
    paths: &[PathBuf],
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for path in paths {
        documents.extend(inputs.read(path, console)?);
    }
    Ok(documents)
}

/// Returns a step for each document, or all failures at once. A document of another kind that was
/// found in a folder is skipped with a note.
pub(super) fn steps(
    documents: Vec<Document>,
    kinds: &Kinds,
    cluster: &Cluster,
    asked: Option<&str>,
    console: &mut Console<'_>,
) -> Result<Vec<Step>, Failure> {
    let mut steps: Vec<Step> = Vec::new();
    let mut failures = Vec::new();
    let mut named = BTreeSet::new();
    for document in documents {
        let text =
            |path: &str| document.value.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if document.found && !kinds.may_be_meant(text("/apiVersion"), text("/kind")) {
            writeln!(console.err, "note: {} is skipped: not an environment", document.title())?;
            continue;
        }
        match step(&document, kinds, &cluster.namespace, asked) {
            Ok(step) => {
                if !named.insert((step.kind.full_name(), step.namespace.clone(), step.name.clone()))
                {
                    failures.push(refused(
                        &document,
                        "metadata.name",
                        "is in the files twice. Remove one of the documents",
                    ));
                }
                steps.push(step);
            }
            Err(failure) => failures.push(failure),
        }
    }
    Failure::combine(failures)?;
    if steps.is_empty() {
        return Err(Failure::Usage(
            "the files have no environment. Pass files with claims or composites".to_owned(),
        ));
    }
    Ok(steps)
}

fn step(
    document: &Document,
    kinds: &Kinds,
    default: &str,
    asked: Option<&str>,
) -> Result<Step, Failure> {
    let text = |path: &str| document.value.pointer(path).and_then(Value::as_str);
    let kind = kinds
        .for_document(text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default())
        .map_err(|(field, message)| refused(document, field, &message))?;
    let missing = || refused(document, "metadata.name", "is missing; allowed: a string");
    let name = text("/metadata/name").filter(|name| !name.is_empty()).ok_or_else(missing)?;
    if !is_name(name) {
        return Err(refused(
            document,
            "metadata.name",
            &format!("found {name:?}; allowed: {A_NAME}"),
        ));
    }
    if document
        .value
        .pointer("/metadata/namespace")
        .is_some_and(|own| !(own.is_string() || own.is_null()))
    {
        return Err(refused(document, "metadata.namespace", "allowed: a string"));
    }
    let own = text("/metadata/namespace").filter(|own| !own.is_empty());
    if let (Some(own), Some(asked)) = (own, asked)
        && own != asked
    {
        let message = format!("found {own:?}, and --namespace {asked:?}. Remove one of them");
        return Err(refused(document, "metadata.namespace", &message));
    }
    let namespace = own.or(asked).unwrap_or(default).to_owned();
    if !is_name(&namespace) {
        let message = format!("found {namespace:?}; allowed: {A_NAME}");
        return Err(refused(document, "metadata.namespace", &message));
    }
    let mut object = document.value.clone();
    object["metadata"]["namespace"] = json!(namespace);
    if let Some(object) = object.as_object_mut() {
        // The function writes the status, and the API server sets the bookkeeping fields.
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for bookkeeping in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
        ] {
            metadata.remove(bookkeeping);
        }
    }
    Ok(Step {
        file: document.file.clone(),
        kind: kind.clone(),
        namespace,
        name: name.to_owned(),
        object,
        live: None,
        rehearsed: None,
        price: None,
        dropped: Vec::new(),
    })
}

fn refused(document: &Document, path: &str, message: &str) -> Failure {
    let message = harmless_name(message);
    Failure::Refused {
        what: document.title(),
        violations: vec![Violation { path: path.to_owned(), message }],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::kinds;

    use super::*;
    use crate::yaml::Written;

    fn planned(value: &Value, asked: Option<&str>) -> Result<Step, Failure> {
        let document = Document {
            file: "a.yaml".into(),
            found: false,
            value: value.clone(),
            written: Written::new(),
        };
        step(&document, &kinds(), "default", asked)
    }

    fn claim() -> Value {
        json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": "ada", "uid": "u", "resourceVersion": "7"}, "spec": {}, "status": {"phase": "Ready"}})
    }

    #[test]
    fn document_uses_its_own_namespace_then_the_given_namespace() {
        assert_eq!(planned(&claim(), None).unwrap().namespace, "default");
        assert_eq!(planned(&claim(), Some("team")).unwrap().namespace, "team");
        let mut own = claim();
        own["metadata"]["namespace"] = json!("own");
        assert_eq!(planned(&own, None).unwrap().namespace, "own");
        let failure = planned(&own, Some("team")).err().unwrap();
        assert_eq!(failure.code(), 2);
    }

    #[test]
    fn fields_of_the_api_server_are_not_sent() {
        let object = planned(&claim(), None).unwrap().object;
        assert_eq!(object["metadata"], json!({"name": "ada", "namespace": "default"}));
        assert!(object.get("status").is_none());
    }

    #[test]
    fn requests_in_a_copied_file_are_dropped_at_the_creation() {
        let mut copy = claim();
        copy["metadata"]["annotations"] = json!({"team": "vision",
            REQUESTS[0]: "2026-11-20T08:00:00Z", REQUESTS[1]: "4w",
            REQUESTS[2]: "2026-11-20T08:00:00Z", REQUESTS[3]: "2026-11-20T08:00:00Z"});
        let mut created = planned(&copy, None).unwrap();
        created.drop_requests();
        assert_eq!(created.object["metadata"]["annotations"], json!({"team": "vision"}));
        assert_eq!(created.dropped, REQUESTS);
        let mut existing = planned(&copy, None).unwrap();
        existing.live = Some(serde_json::from_value(claim()).unwrap());
        existing.drop_requests();
        assert_eq!(existing.object["metadata"]["annotations"].as_object().unwrap().len(), 5);
    }

    #[test]
    fn rejection_has_no_terminal_commands() {
        for kind in ["Gpu\u{9b}2J\n::error::", "GpuDevWorkspaceClaim"] {
            let strange = json!({"apiVersion": "platform.acme.io/v1\u{1b}[2J", "kind": kind,
                "metadata": {"name": "a\u{1b}[1A"}});
            let mut told = Vec::new();
            planned(&strange, None).err().unwrap().print(&mut told).unwrap();
            let told = String::from_utf8(told).unwrap();
            assert!(
                ["\u{1b}[2J", "\u{1b}[1A", "\u{9b}"].iter().all(|control| !told.contains(control)),
                "{told:?}"
            );
            assert_eq!(told.lines().count(), 2, "{told:?}");
        }
    }

    #[test]
    fn no_document_is_too_strange_to_be_refused() {
        for strange in [
            json!({}),
            json!({"kind": 3, "apiVersion": []}),
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim"}),
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": []}),
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": {"name": ""}}),
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim", "metadata": {"name": "../x"}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        ] {
            assert_eq!(planned(&strange, None).err().unwrap().code(), 2, "{strange}");
        }
    }
}
