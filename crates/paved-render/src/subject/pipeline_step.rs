//! The step of the Composition that runs the function, and its Settings.

use crossplane::api_version::{group, group_of};
use crossplane::object::merge;
use function_paved_road::apis;
use function_paved_road::manifests::{self, ENVIRONMENT_CONFIG, FUNCTION};
use function_paved_road::settings::{API_VERSION, KIND, Settings};
use serde_json::Value;

use super::kind::Target;

/// The other kind that can contain Settings.
pub const CONFIG: &str = "EnvironmentConfig";
/// Its `apiVersion`.
pub const CONFIG_VERSION: &str = "apiextensions.crossplane.io/v1beta1";

/// A Composition does not run the function.
#[derive(Debug, thiserror::Error)]
#[error("Composition {composition} has no step with functionRef.name {FUNCTION}")]
pub struct NoStep {
    /// The name of the Composition.
    pub composition: String,
}

/// The step that runs the function.
#[derive(Clone)]
pub struct Step {
    /// Its Composition.
    pub composition: Value,
    /// Its name.
    pub name: String,
    /// Its input: Settings.
    pub input: Value,
    /// The EnvironmentConfigs that the function may require.
    pub configs: Vec<Value>,
    /// The functions of the other steps, which a preview does not run.
    pub others: Vec<String>,
    /// Whether the Settings are known. The built-in Composition does not have the platform team's
    /// Settings.
    pub settled: bool,
    /// Whether the Composition is from the user. Otherwise it is the built-in one.
    pub given: bool,
}

/// Whether a Composition has a step of ours. Its function's name or its input's kind decides.
pub fn has_ours(composition: &Value) -> bool {
    let is_ours =
        |step: &Value| step["functionRef"]["name"] == FUNCTION || step["input"]["kind"] == KIND;
    composition["spec"]["pipeline"].as_array().is_some_and(|steps| steps.iter().any(is_ours))
}

/// Whether a document contains our Settings, as its own kind or as an EnvironmentConfig.
pub fn is_settings(document: &Value) -> bool {
    document["kind"] == KIND && group_of(document) == group(API_VERSION) || is_our_config(document)
}

/// Whether an EnvironmentConfig is ours: it has our name, or its data has a section of one of our
/// APIs.
pub fn is_our_config(document: &Value) -> bool {
    let sections = apis::sections();
    let is_ours = |key: &String| sections.contains(&key.as_str()) || key == "providerConfigs";
    document["kind"] == CONFIG
        && group_of(document) == group(CONFIG_VERSION)
        && (document["metadata"]["name"] == ENVIRONMENT_CONFIG
            || document["data"].as_object().is_some_and(|data| data.keys().any(is_ours)))
}

impl Step {
    /// Finds our step in a Composition by its function's name, or else by its input's kind. An only
    /// step is ours.
    pub fn from_composition(composition: Value) -> Result<Self, NoStep> {
        let steps = composition["spec"]["pipeline"].as_array().cloned().unwrap_or_default();
        let ours = steps
            .iter()
            .position(|step| step["functionRef"]["name"] == FUNCTION)
            .or_else(|| steps.iter().position(|step| step["input"]["kind"] == KIND))
            .or_else(|| (steps.len() == 1).then_some(0));
        let name = composition["metadata"]["name"].as_str().unwrap_or_default();
        let Some(ours) = ours else {
            return Err(NoStep { composition: name.to_owned() });
        };
        let function =
            |step: &Value| step["functionRef"]["name"].as_str().unwrap_or_default().to_owned();
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

    /// The Settings of the input, with those of the EnvironmentConfig that the input names. `None`
    /// if they are invalid.
    pub fn settings(&self) -> Option<Settings> {
        let mut body = self.input.as_object().cloned().unwrap_or_default();
        let named = self.input["settingsFrom"]["name"].as_str();
        let is_named =
            |config: &&Value| named.is_some() && config["metadata"]["name"].as_str() == named;
        let data = self.configs.iter().find(is_named).map(|config| &config["data"]);
        if let Some(data) = data.and_then(Value::as_object) {
            merge(&mut body, data.clone());
        }
        Settings::read(body, &apis::sections()).ok()
    }

    /// Allows new environments without the EnvironmentConfig that the input names, if that
    /// EnvironmentConfig is not known. Its limits are then unknown too.
    pub fn allow_missing_settings(&mut self) {
        let Some(named) = self.input["settingsFrom"]["name"].as_str() else { return };
        if self.configs.iter().all(|config| config["metadata"]["name"] != named) {
            self.input["settingsFrom"]["optional"] = true.into();
        }
    }

    /// A step with valid example Settings, used if the platform team's are unknown. They have a
    /// machine image in the region of `spec`, because any region may have one.
    pub fn example(target: &Target, spec: &Value) -> Result<Self, NoStep> {
        let composition = manifests::example_composition(target.api, target.flavour, &target.group);
        let mut step = Self::from_composition(composition)?;
        let images = step.input.pointer_mut("/gpuWorkspace/amis").and_then(Value::as_object_mut);
        if let (Some(images), Some(region)) = (images, spec["parameters"]["region"].as_str())
            && let Some(example) = images.values().next().cloned()
        {
            images.insert(region.to_owned(), example);
        }
        Ok(step)
    }
}
