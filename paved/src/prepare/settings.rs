//! Finds the Settings of an environment in files.

use std::path::{Path, PathBuf};

use crossplane::object::merge;
use function_paved_road::apis::{self, Flavour};
use function_paved_road::manifests;
use function_paved_road::settings::{API_VERSION, KIND};
use paved_render::subject::kind::{self, Target};
use paved_render::subject::pipeline_step::{CONFIG, CONFIG_VERSION, Step};
use serde_json::{Value, json};

use super::sources::Sources;
use crate::Console;
use crate::failure::Failure;
use crate::files::{Document, Inputs};

/// The field of Settings with the schema revision of their Composition.
const REVISION: &str = "schemaRevision";

/// Finds the Settings: `--settings`, or else the Settings in the file, merged over a Composition.
/// The Composition is `--composition`, a composition.yaml beside the file, or the built-in
/// Composition.
pub(crate) fn find(
    target: &Target,
    file: &Path,
    sources: &Sources,
    own: &[Value],
    console: &mut Console<'_>,
) -> Result<Step, Failure> {
    let given = match &sources.composition {
        Some(path) => Some(named(path, target, &sources.inputs, console)?),
        None => beside(file, target, &sources.inputs, console)?,
    };
    let built_in_only = given.is_none();
    let settled = given.is_some() || sources.settings.is_some() || !own.is_empty();
    let built_in = || manifests::composition(target.api, target.flavour, &target.group);
    let mut step = Step::from_composition(given.unwrap_or_else(built_in))?;
    step.settled = settled;
    step.given = !built_in_only;
    if let Some(path) = &sources.settings {
        let settings = one_settings(path, &sources.inputs, console)?;
        take(&mut step, settings, path, sources.composition.as_deref())?;
    } else {
        if built_in_only && own.iter().any(|settings| settings["kind"] == KIND) {
            // The file has the Settings, so there is no EnvironmentConfig to find.
            step.input.as_object_mut().and_then(|input| input.remove("settingsFrom"));
        }
        for settings in own {
            lay_over(&mut step, settings, file)?;
        }
    }
    if built_in_only {
        // Only the platform team's Composition says whether its Settings are required.
        step.allow_missing_settings();
    }
    Ok(step)
}

/// Replaces the input with a Settings document, or adds an EnvironmentConfig and refers to it in
/// the input. A Settings document without a schema revision has the revision of the Composition.
fn take(
    step: &mut Step,
    settings: Value,
    path: &Path,
    composition: Option<&Path>,
) -> Result<(), Failure> {
    let file = path.display();
    if settings["kind"] == KIND {
        let input = std::mem::replace(&mut step.input, settings);
        if let (Some(revision), Value::Object(settings)) = (input.get(REVISION), &mut step.input) {
            settings.entry(REVISION).or_insert_with(|| revision.clone());
        }
        return Ok(());
    }
    let name = settings["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match (step.input["settingsFrom"]["name"].as_str(), composition) {
        (Some(asked), _) if asked == name => {}
        (asked, Some(composition)) => {
            let asked = asked.map_or_else(
                || "no EnvironmentConfig".to_owned(),
                |asked| format!("EnvironmentConfig {asked}"),
            );
            let message = format!(
                "{file} has EnvironmentConfig {name}; {} uses {asked}",
                composition.display()
            );
            return Err(Failure::Usage(message));
        }
        _ => {
            step.input =
                json!({"apiVersion": API_VERSION, "kind": KIND, "settingsFrom": {"name": name}});
        }
    }
    step.configs.push(settings);
    Ok(())
}

/// Merges Settings from the same file over the input. An EnvironmentConfig is added instead, as for
/// `--settings`.
fn lay_over(step: &mut Step, settings: &Value, file: &Path) -> Result<(), Failure> {
    match (&mut step.input, settings) {
        (Value::Object(input), Value::Object(settings))
            if settings.get("kind") == Some(&json!(KIND)) =>
        {
            merge(input, settings.clone());
            Ok(())
        }
        _ => take(step, settings.clone(), file, None),
    }
}

/// The flavour of a document that its kind does not determine. The given Composition, or the
/// Composition beside the file, determines it. Only in the namespaced API does a Composition
/// compose the document's own kind.
pub(crate) fn flavour(
    document: &Value,
    file: &Path,
    sources: &Sources,
    console: &mut Console<'_>,
) -> Result<Option<Flavour>, Failure> {
    let path = sources.composition.clone().or_else(|| neighbour(file));
    let Some(path) = path.filter(|_| kind::is_open(document)) else { return Ok(None) };
    let composed: Vec<String> =
        sources.inputs.read(&path, console)?.iter().filter_map(composed_type).collect();
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let Some(api) = apis::find(text("kind")) else { return Ok(None) };
    let is_its = |flavour: &Flavour| {
        let composite = manifests::names(api.info(), *flavour).kind;
        composed.contains(&format!("{} {composite}", text("apiVersion")))
    };
    Ok(Flavour::ALL.into_iter().find(is_its))
}

fn named(
    path: &Path,
    target: &Target,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Value, Failure> {
    let documents = inputs.read(path, console)?;
    let wanted = format!("{} {}", manifests::api_version(&target.group), target.composite());
    let has: Vec<String> = documents.iter().filter_map(composed_type).collect();
    documents
        .into_iter()
        .find(|document| composed_type(document).as_deref() == Some(&wanted))
        .map(|found| found.value)
        .ok_or_else(|| {
            let found = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
            Failure::Usage(format!(
                "{}: found Compositions of {found}; allowed: a Composition of {wanted}",
                path.display()
            ))
        })
}

fn beside(
    file: &Path,
    target: &Target,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Option<Value>, Failure> {
    let Some(path) = neighbour(file) else { return Ok(None) };
    let wanted = format!("{} {}", manifests::api_version(&target.group), target.composite());
    let documents = inputs.read(&path, console)?;
    let matching =
        documents.into_iter().find(|document| composed_type(document).as_deref() == Some(&wanted));
    Ok(matching.map(|document| document.value))
}

/// The composition.yaml beside a file, if there is one.
fn neighbour(file: &Path) -> Option<PathBuf> {
    let path = file.with_file_name("composition.yaml");
    (file != Path::new("-") && path.is_file()).then_some(path)
}

/// The apiVersion and kind that a Composition composes.
fn composed_type(document: &Document) -> Option<String> {
    let reference = &document.value["spec"]["compositeTypeRef"];
    let composes = document.value["kind"] == "Composition";
    composes.then(|| {
        Some(format!("{} {}", reference["apiVersion"].as_str()?, reference["kind"].as_str()?))
    })?
}

/// The document that `--settings` names.
pub(crate) fn one_settings(
    path: &Path,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Value, Failure> {
    let mut documents = inputs.read(path, console)?;
    let found = match documents.as_slice() {
        [one] if is(&one.value, KIND, API_VERSION) || is(&one.value, CONFIG, CONFIG_VERSION) => {
            return Ok(documents.remove(0).value);
        }
        [one] => format!(
            "{} {}",
            one.value["apiVersion"].as_str().unwrap_or_default(),
            one.value["kind"].as_str().unwrap_or_default()
        ),
        all => format!("{} documents", all.len()),
    };
    let allowed = format!("one {KIND} ({API_VERSION}) or {CONFIG} ({CONFIG_VERSION})");
    Err(Failure::Usage(format!("{}: found {found}; allowed: {allowed}", path.display())))
}

fn is(document: &Value, kind: &str, api_version: &str) -> bool {
    document["kind"] == kind && document["apiVersion"] == api_version
}
