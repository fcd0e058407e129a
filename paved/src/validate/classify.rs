//! Classifies documents.

use function_paved_road::settings::{API_VERSION, KIND};
use k8s_schema::Violation;
use paved_render::subject::kind;
use paved_render::subject::pipeline_step::{self, CONFIG};
use serde_json::Value;

use crate::files::shape;
use crate::yaml::Located;

/// The class of a document.
pub(super) enum DocumentClass {
    /// A claim or an XR.
    Environment,
    /// Settings, or a document that contains Settings.
    Settings(SettingsLocation),
    /// A document of another kind.
    Foreign,
    /// A document that is probably a misspelled one of ours.
    Wrong(Violation),
}

/// The place of the Settings in a document.
#[derive(Clone, Copy)]
pub(super) enum SettingsLocation {
    /// The whole document.
    Whole,
    /// `data` of an EnvironmentConfig.
    Data,
    /// The input of a Composition's step.
    Input(usize),
}

/// Classifies a document. Foreign documents are allowed in a folder, but not in a named file.
pub(super) fn classify(document: &Located, in_folder: bool) -> DocumentClass {
    let value = &document.value;
    if !value.is_object() {
        let message = format!("found {}; allowed: a Kubernetes object", shape(value));
        return if in_folder { DocumentClass::Foreign } else { wrong("", message) };
    }
    if pipeline_step::is_settings(value) {
        return DocumentClass::Settings(if value["kind"] == CONFIG {
            SettingsLocation::Data
        } else {
            SettingsLocation::Whole
        });
    }
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let (group, version) = crossplane::api_version::split(api_version);
    if kind == "Composition" && group == "apiextensions.crossplane.io" {
        return input(value).map_or(DocumentClass::Foreign, |index| {
            DocumentClass::Settings(SettingsLocation::Input(index))
        });
    }
    if kind == KIND && group.is_empty() {
        return wrong("apiVersion", format!("found {api_version:?}; allowed: {API_VERSION}"));
    }
    let known = kind::known();
    let is_meant = kind::is_our_group(group)
        || version == function_paved_road::manifests::VERSION
            && crossplane::nearest(kind, known.iter().copied()).is_some();
    match kind::find(value) {
        Ok(_) => DocumentClass::Environment,
        Err(violation) if known.contains(&kind) || is_meant => DocumentClass::Wrong(violation),
        Err(violation) if kind.is_empty() && !in_folder => DocumentClass::Wrong(violation),
        Err(_) => DocumentClass::Foreign,
    }
}

/// The index of the Composition's step with Settings.
fn input(composition: &Value) -> Option<usize> {
    let steps = composition["spec"]["pipeline"].as_array()?;
    steps.iter().position(|step| step["input"]["kind"] == KIND)
}

fn wrong(path: &str, message: String) -> DocumentClass {
    DocumentClass::Wrong(Violation { path: path.to_owned(), message })
}
