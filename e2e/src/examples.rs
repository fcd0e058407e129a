//! The repository's examples, as users apply them to a namespace.

use std::path::Path;

use anyhow::{Context, Result};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use serde_json::{Value, json};
use xtask::yaml;

/// Every API in each of `flavours`.
pub fn all(flavours: Vec<Flavour>) -> impl Iterator<Item = (&'static dyn AnyApi, Flavour)> {
    APIS.iter().flat_map(move |api| flavours.clone().into_iter().map(|flavour| (*api, flavour)))
}

/// The managed clusters that a virtual environment can be on, in each of `flavours`.
pub fn clusters(flavours: Vec<Flavour>) -> impl Iterator<Item = (&'static str, Flavour)> {
    ["gke", "eks", "aks"].into_iter().flat_map(move |cluster| {
        flavours.clone().into_iter().map(move |flavour| (cluster, flavour))
    })
}

/// An API's example in these sources, for a namespace.
pub fn example(sources: &Path, api: &str, flavour: Flavour, namespace: &str) -> Result<Value> {
    let file = match flavour {
        Flavour::Claims => "claim.yaml",
        Flavour::Namespaced => "namespaced/xr.yaml",
    };
    let path = sources.join("examples").join(api).join(file);
    let documents = yaml::read(&path)?;
    let mut object =
        documents.into_iter().next().with_context(|| format!("{} is empty", path.display()))?;
    object["metadata"]["namespace"] = namespace.into();
    Ok(object)
}

/// The change that lets an example share a namespace with all others. Some examples have the same
/// name across APIs, and clouds identify resources by this name.
pub fn beside(api: &str, flavour: Flavour) -> Value {
    match flavour {
        Flavour::Claims => json!({}),
        Flavour::Namespaced => json!({"metadata": {"name": format!("direct-{api}")}}),
    }
}

/// The change that makes an example select a provider's Composition.
pub fn selecting(flavour: Flavour, provider: &str) -> Value {
    let selector = json!({"compositionSelector": {"matchLabels": {"provider": provider}}});
    match flavour {
        Flavour::Claims => json!({"spec": selector}),
        Flavour::Namespaced => json!({"spec": {"crossplane": selector}}),
    }
}
