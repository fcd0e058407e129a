//! The objects that the chart's templates render. They come from the functions that also write
//! `package/`, the Configurations and the manifests of `paved platform`.
//!
//! Marks, for example `@group@`, have the place of values. The templates replace them in the JSON, where
//! each text is quoted, and the schema of the values allows no quotes in these values.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests::{self, namespaces, policy};
use serde_json::{Map, Value, json};

use super::super::{Args, activation, rbac};
use crate::composed::{self, Composed};
use crate::tools::{PROVIDER_HELM, PROVIDER_KUBERNETES, PROVIDER_SQL};
use crate::yaml;
use paved_render::packages::Package;

/// The mark for the API group.
const GROUP: &str = "@group@";

/// The mark for the name of the Function.
const FUNCTION: &str = "@function@";

/// The mark for the user of Crossplane.
const CROSSPLANE: &str = "@crossplane@";

/// The mark for the version of the packages.
const RELEASE: &str = "@release@";

/// The files by their paths in the chart: `claims.json` and `namespaced.json` with the objects that
/// have a group, and `common.json` with all others.
pub fn files(args: &Args) -> Result<BTreeMap<String, Value>> {
    let mut files = BTreeMap::new();
    for flavour in Flavour::ALL {
        files.insert(format!("files/{flavour}.json"), with_group(args, flavour)?);
    }
    files.insert("files/common.json".to_owned(), common(args)?);
    Ok(files)
}

/// The schema of the values with the schema of the Settings in it.
pub fn with_settings(schema: &[u8]) -> Result<Vec<u8>> {
    let mut schema: Value = serde_json::from_slice(schema).context("reading the schema")?;
    let input = manifests::input();
    let mut settings = input["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    if let Some(fields) = settings["properties"].as_object_mut() {
        fields.retain(|name, _| !manifests::INPUT_ONLY.contains(&name.as_str()));
    }
    k8s_schema::for_editors(&mut settings);
    schema["properties"]["settings"] = settings;
    Ok(format!("{schema:#}\n").into_bytes())
}

/// The objects of the claims APIs or the namespaced APIs.
fn with_group(args: &Args, flavour: Flavour) -> Result<Value> {
    let root = args.place.root();
    let composed = composed::for_root(root)?;
    let mut apis = Map::new();
    for api in APIS {
        let of = composed::among(composed, *api, flavour)?;
        apis.insert(api.info().name.to_owned(), kind(args, *api, flavour, of)?);
    }
    let policies = policy::policies(&[(flavour, GROUP)], CROSSPLANE);
    Ok(json!({
        "defaultGroup": flavour.default_group(),
        "apis": apis,
        // The first object is the role that all groups share.
        "policies": policies[1..],
        "people": rbac::people(root, flavour, GROUP)?,
        "provider": rbac::home::provider_kubernetes(composed, flavour)?,
        "portal": rbac::portal::for_group(flavour, GROUP, composed)?.rules(),
        "controller": rbac::controller::for_group(flavour, GROUP, composed)?.rules(),
    }))
}

/// The objects of one API, and the names of its providers.
fn kind(args: &Args, api: &dyn AnyApi, flavour: Flavour, of: &Composed) -> Result<Value> {
    let mut composition = manifests::installed_composition(api, flavour, GROUP, FUNCTION);
    composition["metadata"]["labels"]["app.kubernetes.io/version"] = json!(RELEASE);
    let policy = activation::policy(args.place.root(), api, flavour, GROUP)?;
    let is_empty = policy["spec"]["activate"].as_array().is_none_or(Vec::is_empty);
    let providers: Vec<String> = of.needed().into_iter().map(|package| package.name).collect();
    Ok(json!({
        "xrd": manifests::xrd(api, flavour, GROUP),
        "composition": composition,
        "activation": if is_empty { Value::Null } else { policy },
        "providers": providers,
    }))
}

/// The objects without a group.
fn common(args: &Args) -> Result<Value> {
    let root = args.place.root();
    let composed = composed::for_root(root)?;
    let mut people = rbac::people::roles(composed, &rbac::plurals(root)?)?;
    let catalogue = people.remove(0);
    Ok(json!({
        "catalogue": catalogue,
        "people": people,
        "restore": policy::policies(&[], CROSSPLANE)[0],
        "crossplane": rbac::home::crossplane(composed)?,
        "helm": rbac::home::provider_helm(composed)?,
        "portal": rbac::portal::crossplane().rules(),
        "controller": rbac::controller::common(),
        "namespacePolicy": namespaces::policy_spec(),
        "runtimeConfigs": yaml::read(&root.join("package/runtime-config.yaml"))?,
        "versions": versions(composed),
    }))
}

/// The versions of the providers: those of the scenarios, otherwise the oldest supported ones.
fn versions(composed: &[Composed]) -> BTreeMap<String, String> {
    let version = |package: &Package| {
        let tested = [&PROVIDER_KUBERNETES, &PROVIDER_HELM, &PROVIDER_SQL];
        let tested = tested.iter().find(|tool| tool.name == package.name);
        tested.map_or_else(|| format!("v{}.0", package.since), |tool| tool.version.to_owned())
    };
    let all = composed.iter().flat_map(|api| api.needed().into_iter().chain(api.optional()));
    all.map(|package| (package.name.clone(), version(&package))).collect()
}
