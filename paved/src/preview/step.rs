//! The step of the Composition that runs the function, and its Settings.

use std::path::{Path, PathBuf};

use function_paved_road::manifests::{self, FUNCTION};
use function_paved_road::settings::{API_VERSION, KIND};
use serde_json::{Value, json};

use super::kind::Target;
use crate::Console;
use crate::cli::Preview;
use crate::failure::Failure;
use crate::files::{self, Document};

const CONFIG: &str = "EnvironmentConfig";
const CONFIG_VERSION: &str = "apiextensions.crossplane.io/v1beta1";

/// The step that runs the function.
pub(crate) struct Step {
    /// Its Composition.
    pub(crate) composition: Value,
    /// Its name.
    pub(crate) name: String,
    /// Its input: Settings.
    pub(crate) input: Value,
    /// EnvironmentConfigs that it may ask for.
    pub(crate) configs: Vec<Value>,
    /// Other steps' functions, which a preview does not run.
    pub(crate) others: Vec<String>,
}

/// Finds the Settings: `--settings`, else `--composition`, else a composition.yaml beside the file, else those of the
/// built-in Composition.
pub(crate) fn find(
    target: &Target,
    file: &Path,
    args: &Preview,
    console: &mut Console<'_>,
) -> Result<Step, Failure> {
    let composition = match &args.composition {
        Some(path) => named(path, target, console)?,
        None => beside(file, target, console)?
            .unwrap_or_else(|| manifests::composition(target.api, target.flavour, &target.group)),
    };
    let mut step = step_of(composition)?;
    if let Some(path) = &args.settings {
        let settings = one_settings(path, console)?;
        step.take(settings, path, args.composition.as_deref())?;
    }
    Ok(step)
}

impl Step {
    /// Puts what `--settings` names in place of the input, or where the input looks for it.
    fn take(&mut self, settings: Value, path: &Path, composition: Option<&Path>) -> Result<(), Failure> {
        let file = path.display();
        if settings["kind"] == KIND {
            self.input = settings;
            return Ok(());
        }
        let name = settings["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match (self.input["settingsFrom"]["name"].as_str(), composition) {
            (Some(asked), _) if asked == name => {}
            (asked, Some(composition)) => {
                let asked = asked.map_or_else(
                    || "no EnvironmentConfig".to_owned(),
                    |asked| format!("EnvironmentConfig {asked}"),
                );
                let message =
                    format!("{file} is EnvironmentConfig {name}; {} asks for {asked}", composition.display());
                return Err(Failure::Usage(message));
            }
            _ => {
                self.input = json!({"apiVersion": API_VERSION, "kind": KIND, "settingsFrom": {"name": name}});
            }
        }
        self.configs.push(settings);
        Ok(())
    }
}

fn named(path: &Path, target: &Target, console: &mut Console<'_>) -> Result<Value, Failure> {
    let documents = files::read(path, console)?;
    let wanted = format!("{} {}", manifests::api_version(&target.group), target.composite());
    let has: Vec<String> = documents.iter().filter_map(composed_type).collect();
    documents
        .into_iter()
        .find(|document| composed_type(document).as_deref() == Some(&wanted))
        .map(|found| found.value)
        .ok_or_else(|| {
            let has = if has.is_empty() {
                "no Composition".to_owned()
            } else {
                format!("those of {}", has.join(", "))
            };
            Failure::Usage(format!("{} has no Composition of {wanted}; it has {has}", path.display()))
        })
}

fn beside(file: &Path, target: &Target, console: &mut Console<'_>) -> Result<Option<Value>, Failure> {
    let path: PathBuf = file.with_file_name("composition.yaml");
    if file == Path::new("-") || !path.is_file() {
        return Ok(None);
    }
    let wanted = format!("{} {}", manifests::api_version(&target.group), target.composite());
    let documents = files::read(&path, console)?;
    let matching = documents.into_iter().find(|document| composed_type(document).as_deref() == Some(&wanted));
    Ok(matching.map(|document| document.value))
}

/// apiVersion and kind that a Composition composes.
fn composed_type(document: &Document) -> Option<String> {
    let reference = &document.value["spec"]["compositeTypeRef"];
    let composes = document.value["kind"] == "Composition";
    composes
        .then(|| Some(format!("{} {}", reference["apiVersion"].as_str()?, reference["kind"].as_str()?)))?
}

/// The step of ours: by its function's name, else by its input's kind; the only one is ours in any case.
fn step_of(composition: Value) -> Result<Step, Failure> {
    let steps = composition["spec"]["pipeline"].as_array().cloned().unwrap_or_default();
    let ours = steps
        .iter()
        .position(|step| step["functionRef"]["name"] == FUNCTION)
        .or_else(|| steps.iter().position(|step| step["input"]["kind"] == KIND))
        .or_else(|| (steps.len() == 1).then_some(0));
    let name = composition["metadata"]["name"].as_str().unwrap_or_default();
    let Some(ours) = ours else {
        return Err(Failure::Usage(format!(
            "Composition {name} has no step with functionRef.name {FUNCTION}"
        )));
    };
    let function = |step: &Value| step["functionRef"]["name"].as_str().unwrap_or_default().to_owned();
    let others = steps
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != ours)
        .map(|(_, step)| function(step))
        .collect();
    Ok(Step {
        name: steps[ours]["step"].as_str().unwrap_or_default().to_owned(),
        input: steps[ours]["input"].clone(),
        configs: Vec::new(),
        others,
        composition,
    })
}

/// The document that `--settings` names.
fn one_settings(path: &Path, console: &mut Console<'_>) -> Result<Value, Failure> {
    let mut documents = files::read(path, console)?;
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
    Err(Failure::Usage(format!("{}: found {found}; {allowed} is needed", path.display())))
}

fn is(document: &Value, kind: &str, api_version: &str) -> bool {
    document["kind"] == kind && document["apiVersion"] == api_version
}
