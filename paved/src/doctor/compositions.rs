//! The steps of our function in the cluster's Compositions, and their Settings.

use function_paved_road::apis::{self, AnyApi, Flavour};
use function_paved_road::settings::KIND as SETTINGS;
use kube::api::DynamicObject;
use serde_json::Value;

use super::objects::{composes, is_ours, name};
use super::snapshot::{ClusterSnapshot, ListResult};

/// A step of our function in a Composition of one of our XRDs.
pub(super) struct UsedComposition<'w> {
    pub(super) api: &'static dyn AnyApi,
    pub(super) flavour: Flavour,
    /// The Composition's name.
    pub(super) composition: &'w str,
    /// The step's input.
    pub(super) input: &'w Value,
}

impl UsedComposition<'_> {
    /// The EnvironmentConfig that the input names.
    pub(super) fn named(&self) -> Option<&str> {
        self.input["settingsFrom"]["name"].as_str()
    }

    /// The schema revision of the Composition. Default: the first.
    pub(super) fn revision(&self) -> u64 {
        self.input["schemaRevision"].as_u64().unwrap_or(1)
    }

    /// The effective Settings: the EnvironmentConfig's over the input's. `None` if the caller
    /// cannot read the EnvironmentConfig.
    pub(super) fn settings(&self, configs: &ListResult) -> Option<Value> {
        let mut all = self.input.as_object().cloned().unwrap_or_default();
        let over = match (self.named(), configs) {
            (Some(named), ListResult::All(configs)) => {
                configs.iter().find(|one| name(one) == named)
            }
            (Some(_), ListResult::Hidden | ListResult::Failed(_)) => return None,
            (None, _) | (_, ListResult::NoSuchKind) => None,
        };
        if let Some(data) = over.and_then(|config| config.data["data"].as_object()) {
            crossplane::object::merge(&mut all, data.clone());
        }
        Some(Value::Object(all))
    }
}

/// Every step of our function.
pub(super) fn all(snapshot: &ClusterSnapshot) -> Vec<UsedComposition<'_>> {
    let (ListResult::All(definitions), ListResult::All(compositions)) =
        (&snapshot.definitions, &snapshot.compositions)
    else {
        return Vec::new();
    };
    let of = |definition: &'_ DynamicObject| {
        let api = apis::find(definition.data["spec"]["names"]["kind"].as_str()?)?;
        let claims = definition.data["spec"]["claimNames"].is_object();
        Some((api, if claims { Flavour::Claims } else { Flavour::Namespaced }))
    };
    let mut all = Vec::new();
    for definition in definitions.iter().filter(|one| is_ours(one)) {
        let Some((api, flavour)) = of(definition) else { continue };
        for composition in compositions.iter().filter(|one| composes(one, definition)) {
            let steps = composition.data["spec"]["pipeline"].as_array().into_iter().flatten();
            let inputs = steps.map(|step| &step["input"]).filter(|input| input["kind"] == SETTINGS);
            all.extend(inputs.map(|input| UsedComposition {
                api,
                flavour,
                composition: name(composition),
                input,
            }));
        }
    }
    all
}
