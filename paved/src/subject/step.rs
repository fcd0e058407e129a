//! The step of the Composition that runs the function, and its Settings.

use std::path::{Path, PathBuf};

use crossplane::api_version::{group, group_of};
use crossplane::object::merge;
use function_paved_road::apis::{self, Flavour};
use function_paved_road::manifests::{self, ENVIRONMENT_CONFIG, FUNCTION};
use function_paved_road::settings::{API_VERSION, KIND};
use serde_json::{Value, json};

use super::kind::{self, Target};
use super::sources::Sources;
use crate::Console;
use crate::failure::Failure;
use crate::files::{Document, Inputs};

/// The kind that Settings can also come as.
pub(crate) const CONFIG: &str = "EnvironmentConfig";
/// Its `apiVersion`.
pub(crate) const CONFIG_VERSION: &str = "apiextensions.crossplane.io/v1beta1";

/// The step that runs the function.
#[derive(Clone)]
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
    /// Whether anybody said what the Settings are: nobody did where the Composition is the built-in one.
    pub(crate) settled: bool,
    /// Whether the Composition is one that somebody wrote, and not the built-in one.
    pub(crate) given: bool,
}

/// Finds the Settings: `--settings`, else those in the file itself laid over those of `--composition`, else of a
/// composition.yaml beside the file, else of the built-in Composition.
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
    let mut step = Step::of(given.unwrap_or_else(built_in))?;
    step.settled = settled;
    step.given = !built_in_only;
    if let Some(path) = &sources.settings {
        let settings = one_settings(path, &sources.inputs, console)?;
        step.take(settings, path, sources.composition.as_deref())?;
    } else {
        if built_in_only && own.iter().any(|settings| settings["kind"] == KIND) {
            // The file says what counts: there is no EnvironmentConfig to look for.
            step.input.as_object_mut().and_then(|input| input.remove("settingsFrom"));
        }
        for settings in own {
            step.lay_over(settings, file)?;
        }
    }
    Ok(step)
}

/// Whether a Composition has a step of ours: by its function's name, or its input's kind.
pub(crate) fn has_ours(composition: &Value) -> bool {
    let is_ours = |step: &Value| step["functionRef"]["name"] == FUNCTION || step["input"]["kind"] == KIND;
    composition["spec"]["pipeline"].as_array().is_some_and(|steps| steps.iter().any(is_ours))
}

/// Whether a document is Settings, or an EnvironmentConfig with our data.
pub(crate) fn is_settings(document: &Value) -> bool {
    document["kind"] == KIND && group_of(document) == group(API_VERSION) || is_our_config(document)
}

/// An EnvironmentConfig of ours has our name, or a section of one of our APIs in its data.
pub(crate) fn is_our_config(document: &Value) -> bool {
    let sections = apis::sections();
    let is_ours = |key: &String| sections.contains(&key.as_str()) || key == "providerConfigs";
    document["kind"] == CONFIG
        && group_of(document) == group(CONFIG_VERSION)
        && (document["metadata"]["name"] == ENVIRONMENT_CONFIG
            || document["data"].as_object().is_some_and(|data| data.keys().any(is_ours)))
}

impl Step {
    /// The step of ours: by its function's name, else by its input's kind; the only one is ours in any case.
    pub(crate) fn of(composition: Value) -> Result<Self, Failure> {
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
        Ok(Self {
            name: steps[ours]["step"].as_str().unwrap_or_default().to_owned(),
            input: steps[ours]["input"].clone(),
            configs: Vec::new(),
            others,
            settled: true,
            given: true,
            composition,
        })
    }

    /// A step with Settings that work, for where nobody knows the platform team's.
    pub(crate) fn example(target: &Target) -> Result<Self, Failure> {
        Self::of(manifests::example_composition(target.api, target.flavour, &target.group))
    }

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
                    format!("{file} has EnvironmentConfig {name}; {} uses {asked}", composition.display());
                return Err(Failure::Usage(message));
            }
            _ => {
                self.input = json!({"apiVersion": API_VERSION, "kind": KIND, "settingsFrom": {"name": name}});
            }
        }
        self.configs.push(settings);
        Ok(())
    }

    /// Lays Settings that stand in the same file over the input; an EnvironmentConfig goes where the input looks for it.
    fn lay_over(&mut self, settings: &Value, file: &Path) -> Result<(), Failure> {
        match (&mut self.input, settings) {
            (Value::Object(input), Value::Object(settings)) if settings.get("kind") == Some(&json!(KIND)) => {
                merge(input, settings.clone());
                Ok(())
            }
            _ => self.take(settings.clone(), file, None),
        }
    }
}

/// The flavour of a kind that the document leaves open, by the Composition that is given or stands beside the file: that one composes
/// the document's own kind where there are no claims.
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

fn named(path: &Path, target: &Target, inputs: &Inputs, console: &mut Console<'_>) -> Result<Value, Failure> {
    let documents = inputs.read(path, console)?;
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

fn beside(
    file: &Path,
    target: &Target,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Option<Value>, Failure> {
    let Some(path) = neighbour(file) else { return Ok(None) };
    let wanted = format!("{} {}", manifests::api_version(&target.group), target.composite());
    let documents = inputs.read(&path, console)?;
    let matching = documents.into_iter().find(|document| composed_type(document).as_deref() == Some(&wanted));
    Ok(matching.map(|document| document.value))
}

/// The composition.yaml beside a file, if there is one.
fn neighbour(file: &Path) -> Option<PathBuf> {
    let path = file.with_file_name("composition.yaml");
    (file != Path::new("-") && path.is_file()).then_some(path)
}

/// apiVersion and kind that a Composition composes.
fn composed_type(document: &Document) -> Option<String> {
    let reference = &document.value["spec"]["compositeTypeRef"];
    let composes = document.value["kind"] == "Composition";
    composes
        .then(|| Some(format!("{} {}", reference["apiVersion"].as_str()?, reference["kind"].as_str()?)))?
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
