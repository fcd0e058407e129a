//! The platform: all objects that environments need. It is the same as in `package/`, in the
//! Configurations and in the manifests of `paved platform`, for each combination of APIs.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests::{self, installation, policy};
use serde_json::{Value, json};

use super::helm::Objects;
use super::{Case, same};
use crate::package::{Registry, activation, names, rbac};
use crate::tools::{PROVIDER_HELM, PROVIDER_KUBERNETES};
use crate::{composed, workspace, yaml};

/// The annotations of kept objects, and their values.
const KEPT: [(&str, &str); 2] = [
    ("helm.sh/resource-policy", "keep"),
    ("argocd.argoproj.io/sync-options", "Prune=false,Delete=false"),
];

/// Objects by kind and name.
type ByName = BTreeMap<String, Value>;

pub fn check(case: &Case) -> Result<()> {
    is_expected(&case.platform, &case.values)
}

/// The group of each API.
pub fn groups(values: &Value) -> Result<Vec<(Flavour, String)>> {
    let text = |key: &str| values[key].as_str().unwrap_or_default().to_owned();
    let (group, claims) = (text("group"), text("claimsGroup"));
    Ok(match values["apis"].as_str().context("apis")? {
        "claims" => vec![(Flavour::Claims, group)],
        "both" => vec![(Flavour::Claims, claims), (Flavour::Namespaced, group)],
        _ => vec![(Flavour::Namespaced, group)],
    })
}

/// Fails unless the kept objects are those of the other sources.
pub(super) fn is_expected(kept: &Objects, values: &Value) -> Result<()> {
    let mut found = ByName::new();
    for object in &kept.0 {
        let (key, object) = plain(object)?;
        ensure!(found.insert(key.clone(), object).is_none(), "{key} is rendered twice");
    }
    let mut expected = ByName::new();
    for object in objects(values)? {
        expected.insert(key(&object), ordered(object));
    }
    let names = |all: &ByName| all.keys().cloned().collect::<BTreeSet<_>>();
    let (found_names, expected_names) = (names(&found), names(&expected));
    let differing: Vec<_> = found_names.symmetric_difference(&expected_names).collect();
    ensure!(differing.is_empty(), "rendered by the chart only, or missing: {differing:?}");
    for (key, object) in &found {
        same(key, object, &expected[key])?;
    }
    let groups = groups(values)?;
    found.values().try_for_each(|object| is_found_by_uninstall(object, &groups))
}

/// `paved platform uninstall` finds these objects by their names.
fn is_found_by_uninstall(object: &Value, groups: &[(Flavour, String)]) -> Result<()> {
    let of = |names: fn(&str) -> Vec<String>| -> Vec<String> {
        groups.iter().flat_map(|(_, group)| names(group)).collect()
    };
    let known = match object["kind"].as_str().unwrap_or_default() {
        "ClusterRole" | "ClusterRoleBinding" => {
            [of(installation::roles), installation::ROLES.map(str::to_owned).to_vec()].concat()
        }
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => {
            of(installation::policies)
        }
        "ManagedResourceActivationPolicy" => of(installation::activation),
        "DeploymentRuntimeConfig" => {
            let configs = [installation::FUNCTION_CONFIG].into_iter();
            configs.chain(installation::PROVIDER_CONFIGS).map(str::to_owned).collect()
        }
        _ => return Ok(()),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    ensure!(known.iter().any(|one| one == name), "{} is not removed", key(object));
    Ok(())
}

fn key(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// An object without the labels and annotations that the chart adds.
fn plain(object: &Value) -> Result<(String, Value)> {
    let (key, mut object) = (key(object), object.clone());
    let metadata = object["metadata"].as_object_mut().context("no metadata")?;
    let mut take = |map: &str, name: &str| {
        let entries = metadata.get_mut(map).and_then(Value::as_object_mut)?;
        let taken = entries.remove(name);
        if entries.is_empty() {
            metadata.remove(map);
        }
        taken
    };
    for (name, value) in KEPT {
        same(name, &json!(take("annotations", name)), &json!(value)).context(key.clone())?;
    }
    let part = take("labels", "app.kubernetes.io/part-of");
    same("part-of", &json!(part), &json!("paved-road")).context(key.clone())?;
    Ok((key, ordered(object)))
}

/// An object with the rules of a role in one order. The generator orders them by their groups, and
/// the chart fills in a group later.
fn ordered(mut object: Value) -> Value {
    if let Some(rules) = object["rules"].as_array_mut() {
        rules.sort_by_key(Value::to_string);
    }
    object
}

/// The objects of the platform, from the sources of the packages.
fn objects(values: &Value) -> Result<Vec<Value>> {
    let text = |path: &str| values.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let registry: Registry = text("/registry").parse().map_err(anyhow::Error::msg)?;
    let release = Some(text("/release")).filter(|text| !text.is_empty());
    let release = release.unwrap_or(concat!("v", env!("CARGO_PKG_VERSION")));
    let function = Some(text("/function/name")).filter(|text| !text.is_empty());
    let function = function.map_or_else(|| registry.installed_function(), str::to_owned);
    let groups = groups(values)?;
    let has_packages = values["configurations"]["enabled"] == true;
    let mut all = Vec::new();
    for (api, flavour, group) in installed(values, &groups)? {
        if has_packages {
            all.push(configuration(values, &registry, release, api, flavour));
        } else {
            all.push(manifests::xrd(api, flavour, group));
            let mut one = manifests::installed_composition(api, flavour, group, &function);
            one["metadata"]["labels"]["app.kubernetes.io/version"] = json!(release);
            all.push(one);
        }
        let policy = activation::policy(workspace::root(), api, flavour, group)?;
        let is_empty = policy["spec"]["activate"].as_array().is_none_or(Vec::is_empty);
        let is_packed = has_packages && flavour == Flavour::Namespaced;
        if values["crossplane"]["activation"] == true && !is_empty && !is_packed {
            all.push(policy);
        }
    }
    let mut package = format!("{}:{release}", registry.function());
    if let Some(digest) = Some(text("/function/digest")).filter(|text| !text.is_empty()) {
        package = format!("{}@{digest}", registry.function());
    }
    let mut spec = json!({"package": package, "runtimeConfigRef": {"name": manifests::FUNCTION}});
    let secrets = values["function"]["pullSecrets"].as_array().context("pullSecrets")?;
    if !secrets.is_empty() {
        let secrets: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
        spec["packagePullSecrets"] = json!(secrets);
    }
    all.push(object("pkg.crossplane.io/v1", "Function", &function, &spec));
    all.extend(providers(values, &groups)?);
    all.extend(runtime_configs(values)?);
    let of: Vec<_> = groups.iter().map(|(flavour, group)| (*flavour, group.as_str())).collect();
    let policies = policy::policies(&of, text("/crossplane/user"));
    let has_roles = values["rbac"]["create"] == true;
    all.extend(policies.into_iter().filter(|one| has_roles || one["kind"] != "ClusterRole"));
    if has_roles {
        all.extend(roles(values, &groups)?);
    }
    if let Some(settings) = values["settings"].as_object() {
        all.push(manifests::environment_config(settings.clone()));
    }
    Ok(all)
}

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The chosen kinds in each group.
fn installed<'g>(
    values: &Value,
    groups: &'g [(Flavour, String)],
) -> Result<Vec<(&'static dyn AnyApi, Flavour, &'g str)>> {
    let mut all = Vec::new();
    for name in values["kinds"].as_array().context("kinds")? {
        let name = name.as_str().unwrap_or_default();
        let api = APIS.iter().find(|api| api.info().name == name);
        let api = *api.with_context(|| format!("no API is called {name}"))?;
        all.extend(groups.iter().map(|(flavour, group)| (api, *flavour, group.as_str())));
    }
    Ok(all)
}

fn configuration(
    values: &Value,
    registry: &Registry,
    release: &str,
    api: &dyn AnyApi,
    flavour: Flavour,
) -> Value {
    let package = names::configuration(api, flavour);
    let name = values["configurations"]["names"][&package].as_str().unwrap_or(&package);
    let spec = json!({"package": format!("{}:{release}", registry.configuration(api, flavour))});
    object("pkg.crossplane.io/v1", "Configuration", name, &spec)
}

/// The Providers of the kinds. Crossplane installs the providers of Configurations.
fn providers(values: &Value, groups: &[(Flavour, String)]) -> Result<Vec<Value>> {
    let values_of = &values["providers"];
    if values_of["enabled"] != true || values["configurations"]["enabled"] == true {
        return Ok(Vec::new());
    }
    let mut needed = BTreeMap::new();
    for (api, flavour, _) in installed(values, groups)? {
        let of = composed::by(api, flavour)?;
        needed.extend(of.needed().into_iter().map(|one| (one.name.clone(), one)));
    }
    let list = |key: &str| {
        let texts = values_of[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (except, optional) = (list("except"), list("optional"));
    let every = composed::all()?.iter().flat_map(|of| of.optional().into_iter().chain(of.needed()));
    needed.extend(
        every.filter(|one| optional.contains(&one.name)).map(|one| (one.name.clone(), one)),
    );
    needed.retain(|name, _| !except.contains(name));
    let registry = values_of["registry"].as_str().unwrap_or_default();
    Ok(needed
        .into_iter()
        .map(|(name, package)| {
            let tested = match name.as_str() {
                "provider-kubernetes" => PROVIDER_KUBERNETES.version.to_owned(),
                "provider-helm" => PROVIDER_HELM.version.to_owned(),
                _ => format!("v{}.0", package.since),
            };
            let version = values_of["versions"][&name].as_str().unwrap_or(&tested);
            let mut spec = json!({"package": format!("{registry}/{name}:{version}")});
            if ["provider-kubernetes", "provider-helm"].contains(&name.as_str()) {
                spec["runtimeConfigRef"] = json!({"name": name});
            }
            let name = format!("crossplane-contrib-{name}");
            object("pkg.crossplane.io/v1", "Provider", &name, &spec)
        })
        .collect())
}

/// The runtime configs of `package/runtime-config.yaml`. With the default values, they are the same.
fn runtime_configs(values: &Value) -> Result<Vec<Value>> {
    let mut configs = yaml::read(&workspace::root().join("package/runtime-config.yaml"))?;
    let defaults = &super::over_defaults(&json!({}))?["function"];
    for config in &mut configs {
        if config["metadata"]["name"] != manifests::FUNCTION {
            continue;
        }
        let spec = &mut config["spec"]["deploymentTemplate"]["spec"];
        for (path, key) in
            [("/replicas", "replicas"), ("/template/spec/containers/0/resources", "resources")]
        {
            let found = spec.pointer_mut(path).with_context(|| path.to_owned())?;
            same("the default in values.yaml", &defaults[key], found)?;
            *found = values["function"][key].clone();
        }
    }
    Ok(configs)
}

/// The roles of `package/rbac`, or for users of another group those of `cargo xtask package`.
fn roles(values: &Value, groups: &[(Flavour, String)]) -> Result<Vec<Value>> {
    let files = rbac::files()?;
    let file = |name: &str| files[&format!("package/rbac/{name}.yaml")].clone();
    let mut all = file("crossplane");
    let people = file("people");
    all.push(people[0].clone());
    if groups.iter().any(|(flavour, group)| group == flavour.default_group()) {
        all.extend(people.into_iter().skip(1));
    }
    for (flavour, group) in groups {
        all.extend(file(&format!("providers/{flavour}")));
        if group != flavour.default_group() {
            all.extend(rbac::people(workspace::root(), *flavour, group)?);
        }
    }
    let kinds = values["kinds"].as_array().context("kinds")?;
    if kinds.iter().any(|kind| kind == "virtual-environment") {
        all.extend(file("providers/helm"));
    }
    Ok(all)
}
