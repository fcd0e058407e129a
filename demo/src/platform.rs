//! The platform team's installation on the fake cluster: namespaces, the APIs, Crossplane, the
//! function, the providers and their configs. `paved doctor` checks it.

use std::collections::BTreeMap;

use fake_kube::json::{list, text};
use fake_kube::kinds::{Kind, Kinds};
use function_paved_road::manifests;
use paved_render::packages::Package;
use serde_json::{Value, json};

use crate::recipes::{Recipe, Recipes};

/// The version of Crossplane that the fake cluster simulates.
const CROSSPLANE: &str = "v2.3.4";

/// All objects that exist before the first environment.
pub fn installed(kinds: &Kinds, recipes: &Recipes) -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}});
    let namespaces = ["default", "crossplane-system", "team-vision", "team-shop"].map(namespace);
    let of_recipe = |recipe: &Recipe| [established(&recipe.xrd), recipe.composition.clone()];
    let apis = recipes.all.iter().flat_map(of_recipe);
    let platform = platform(kinds.all(), &recipes.all);
    namespaces.into_iter().chain(apis).chain([recipes.config.clone()]).chain(platform).collect()
}

/// All packages and configs for these kinds and APIs.
fn platform(kinds: &[Kind], recipes: &[Recipe]) -> Vec<Value> {
    let mut all = vec![crossplane()];
    all.extend(functions(recipes));
    all.extend(providers(kinds));
    all.extend(kinds.iter().filter_map(provider_config));
    all
}

/// The XRD of an API after Crossplane has established it.
fn established(xrd: &Value) -> Value {
    let mut xrd = xrd.clone();
    let mut conditions = vec![condition("Established", "WatchingCompositeResource")];
    if xrd["spec"]["claimNames"].is_object() {
        conditions.push(condition("Offered", "WatchingCompositeResourceClaim"));
    }
    xrd["status"] = json!({"conditions": conditions});
    xrd
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": reason})
}

fn crossplane() -> Value {
    let image = format!("xpkg.crossplane.io/crossplane/crossplane:{CROSSPLANE}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "crossplane", "namespace": "crossplane-system", "labels": {"app": "crossplane"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "crossplane", "image": image}]}}},
        "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1},
    })
}

fn package(kind: &str, name: &str, reference: &str) -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"package": reference},
        "status": {"conditions": [
            condition("Installed", "ActivePackageRevision"),
            condition("Healthy", "HealthyPackageRevision"),
        ]},
    })
}

/// The functions in the Compositions.
fn functions(recipes: &[Recipe]) -> impl Iterator<Item = Value> {
    let steps = recipes.iter().flat_map(|recipe| list(&recipe.composition, "/spec/pipeline"));
    let named = steps.map(|step| text(step, "/functionRef/name").to_owned());
    let by_name: BTreeMap<String, Value> = named
        .map(|name| {
            let version = env!("CARGO_PKG_VERSION");
            let reference = format!("{}/{name}:v{version}", manifests::REGISTRY);
            let function = package("Function", &name, &reference);
            (name, function)
        })
        .collect();
    by_name.into_values()
}

/// The providers of the kinds, and the family providers of the clouds.
fn providers(kinds: &[Kind]) -> impl Iterator<Item = Value> {
    let serving = kinds.iter().filter_map(|kind| Package::serving(&kind.group));
    let families = ["aws", "gcp", "azure"].into_iter().filter_map(Package::family);
    let by_name: BTreeMap<String, Value> = serving
        .chain(families)
        .map(|provider| {
            let reference = format!("{}:v{}.0", provider.reference(), provider.since);
            (provider.name.clone(), package("Provider", &provider.name, &reference))
        })
        .collect();
    by_name.into_values()
}

/// The config `default` of a cluster-scoped kind of provider configs.
fn provider_config(kind: &Kind) -> Option<Value> {
    let is_config = ["ProviderConfig", "ClusterProviderConfig"].contains(&kind.name.as_str());
    (is_config && !kind.namespaced).then(|| {
        json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": {"name": "default"}, "spec": {}})
    })
}
