//! Every composed resource conforms to the schema in its provider's CRD.
//!
//! The schemas are the slices in `tests/schemas`, cut from the CRDs by `cargo xtask schemas`. If
//! the CRDs themselves are beside the repository (`../shared/crds`), the slices are compared with
//! them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use function_paved_road::manifests::SCHEMA_REVISION;
use function_paved_road::value;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_schema::Schemas;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use support::{simulated, world};

#[test]
fn composed_resources_conform_to_their_schemas() {
    let schemas = schemas();
    let mut violations = Vec::new();
    for example in support::examples() {
        let desired = support::answer(example.request()).desired.unwrap();
        assert!(!desired.resources.is_empty(), "{} composes something", example.name());
        for (slot, resource) in desired.resources {
            let object = value::object(resource.resource.unwrap());
            let found = violations_of(&schemas, object.into());
            violations.extend(
                found.into_iter().map(|found| format!("{} {slot}: {found}", example.name())),
            );
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn settled_variants_conform_to_the_schemas() {
    let schemas = schemas();
    let mut violations = Vec::new();
    for case in simulated::all() {
        let mut input = case.input();
        input["schemaRevision"] = SCHEMA_REVISION.into();
        let running = case.settled();
        let mut stopped = running.clone();
        stopped.composite_mut()["spec"]["lifecycle"] = json!({"power": "Stopped"});
        for world in [running, stopped] {
            for (slot, object) in world::desired(&simulated::call(&world, &input)) {
                let found = violations_of(&schemas, object.into());
                violations.extend(
                    found.into_iter().map(|found| format!("{} {slot}: {found}", case.name())),
                );
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn composites_conform_to_their_xrds_with_the_status_we_give_them() {
    let schemas = schemas();
    for example in support::examples() {
        let mut xr = example.xr();
        let composite = support::answer(example.request()).desired.unwrap().composite.unwrap();
        xr["status"] = value::object(composite.resource.unwrap())["status"].clone();
        assert_eq!(violations_of(&schemas, xr), Vec::<String>::new(), "{}", example.name());
    }
}

/// The configs of the claims API differ as the document describes.
#[test]
fn the_provider_configs_that_we_show_people_conform() {
    let schemas = schemas();
    let text = include_str!("../docs/how-to/configure-providers.md");
    let configs = text.split("```yaml\n").filter_map(|block| Some(block.split_once("\n```")?.0));
    let configs: Vec<_> = configs.filter(|block| block.contains("ProviderConfig")).collect();
    let configs = configs.join("\n---\n");
    let claims = configs.replace(".m.", ".").replace("kind: Cluster", "kind: ");
    for manifests in [configs, claims] {
        let manifests: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
        assert_eq!(manifests.len(), 5);
        for manifest in manifests {
            assert_eq!(
                violations_of(&schemas, manifest.clone()),
                Vec::<String>::new(),
                "{manifest}"
            );
        }
    }
}

#[test]
fn invalid_resource_does_not_conform() {
    let schemas = schemas();
    let group = |spec: Value| {
        json!({ "apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "SecurityGroup",
            "metadata": { "name": "x" }, "spec": { "forProvider": spec } })
    };
    assert_eq!(
        violations_of(&schemas, group(json!({ "region": "us-east-1" }))),
        Vec::<String>::new()
    );
    assert_eq!(
        violations_of(&schemas, group(json!({ "region": "us-east-1", "regoin": "x" }))).len(),
        1
    );
    assert_eq!(violations_of(&schemas, group(json!({ "region": 1 }))).len(), 1);
    assert_eq!(violations_of(&schemas, group(json!({}))).len(), 1);
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "x" }, "datta": {} });
    assert_eq!(violations_of(&schemas, secret).len(), 1);
    let wrapped = |manifest: Value| {
        json!({ "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
            "metadata": { "name": "x" }, "spec": { "forProvider": { "manifest": manifest } } })
    };
    let service = |spec: Value| json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "x" }, "spec": spec });
    let (good, bad) = (json!({ "ports": [{ "port": 80 }] }), json!({ "prots": [{ "port": 80 }] }));
    assert_eq!(violations_of(&schemas, wrapped(service(good))), Vec::<String>::new());
    assert_eq!(violations_of(&schemas, wrapped(service(bad))).len(), 1);
}

/// The slices of the providers' CRDs, and our own XRDs.
fn schemas() -> Schemas {
    let mut documents: Vec<Value> = slices().iter().map(|file| yaml(file)).collect();
    for folder in ["xrd", "namespaced/xrd"] {
        documents.extend(files(&root().join(folder)).iter().map(|file| yaml(file)));
    }
    Schemas::new(&documents).unwrap()
}

/// The violations that an API server would report, including unknown fields. Crossplane gives a
/// resource its name, and the server its defaults. Another API server checks the manifest in a
/// provider-kubernetes Object.
fn violations_of(schemas: &Schemas, mut object: Value) -> Vec<String> {
    if let Some(lost) = lost_by_kubernetes(&object) {
        return lost;
    }
    let Some(definition) = schemas.for_object(&object) else {
        return vec![format!("no schema of {} {}", object["apiVersion"], object["kind"])];
    };
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = "name".into();
    }
    let wrapped = object["spec"]["forProvider"]["manifest"].clone();
    definition.apply_defaults(&mut object);
    let mut violations: Vec<_> =
        definition.validate(&object, None).iter().map(ToString::to_string).collect();
    if wrapped.is_object() && !elsewhere(&wrapped) {
        violations.extend(violations_of(schemas, wrapped));
    }
    violations
}

/// Kinds from CRDs of a chart. The repository has no schemas of them.
fn elsewhere(object: &Value) -> bool {
    ["argoproj.io/v1alpha1", "operator.knative.dev/v1beta1"]
        .iter()
        .any(|version| object["apiVersion"] == *version)
}

/// For built-in kinds: the fields that the kind's Rust type does not know.
fn lost_by_kubernetes(object: &Value) -> Option<Vec<String>> {
    let kind = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let lost = match kind {
        ("v1", "Namespace") => lost_by::<Namespace>(object),
        ("v1", "Secret") => lost_by::<Secret>(object),
        ("v1", "Service") => lost_by::<Service>(object),
        ("apps/v1", "Deployment") => lost_by::<Deployment>(object),
        ("networking.k8s.io/v1", "Ingress") => lost_by::<Ingress>(object),
        ("storage.k8s.io/v1", "StorageClass") => lost_by::<StorageClass>(object),
        _ => return None,
    };
    Some(Vec::from_iter(lost))
}

/// Reports an object with fields that a Kubernetes type does not have.
fn lost_by<T: DeserializeOwned + Serialize>(object: &Value) -> Option<String> {
    let typed: T = match serde_json::from_value(object.clone()) {
        Ok(typed) => typed,
        Err(error) => return Some(error.to_string()),
    };
    let held = serde_json::to_value(typed).unwrap();
    (held != *object).then(|| format!("found {object}; the type knows only {held}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml(path: &Path) -> Value {
    support::read(path).remove(0)
}

fn slices() -> Vec<PathBuf> {
    files(&root().join("tests/schemas"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn slices_are_true_to_their_crds() {
    let crds = root().join("../shared/crds");
    if !crds.is_dir() {
        eprintln!("skipped: no CRDs in {}", crds.display());
        return;
    }
    let mut lies = Vec::new();
    for file in slices() {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        // The repository has the CRDs of kinds that the folder lacks.
        let whole = [crds.join(&name), root().join("xtask/crds").join(&name)];
        let whole = whole.iter().find(|file| file.is_file()).expect("the kind has a CRD");
        let (slice, crd) = (yaml(&file), yaml(whole));
        for part in ["group", "names", "scope"] {
            assert_eq!(slice["spec"][part], crd["spec"][part], "{name}: {part}");
        }
        let version = &slice["spec"]["versions"][0];
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let whole =
            versions.iter().find(|v| v["name"] == version["name"]).expect("the version exists");
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        part_of(&schema(version), &schema(whole), &name, &mut lies);
    }
    assert!(lies.is_empty(), "run `cargo xtask schemas --crds DIR`\n{}", lies.join("\n"));
}

/// Checks that a slice agrees with its CRD about every field it has. It may lack fields and rules
/// about them.
fn part_of(slice: &Value, whole: &Value, path: &str, lies: &mut Vec<String>) {
    let (slice, whole) = (slice.as_object().unwrap(), whole.as_object().unwrap());
    let keywords: BTreeSet<_> =
        slice.keys().chain(whole.keys()).filter(|name| *name != "description").collect();
    for keyword in keywords {
        let (said, true_) = (slice.get(keyword), whole.get(keyword));
        match (keyword.as_str(), said, true_) {
            ("properties", Some(Value::Object(said)), Some(Value::Object(true_))) => {
                for (field, schema) in said {
                    match true_.get(field) {
                        Some(whole) => part_of(schema, whole, &format!("{path}.{field}"), lies),
                        None => lies.push(format!("{path}.{field}: the CRD has no such field")),
                    }
                }
            }
            (
                "items" | "additionalProperties",
                Some(said @ Value::Object(_)),
                Some(true_ @ Value::Object(_)),
            ) => {
                part_of(said, true_, &format!("{path}.{keyword}"), lies);
            }
            ("x-kubernetes-validations", said, Some(true_)) => {
                let said = said.and_then(Value::as_array).into_iter().flatten();
                let invented = said.filter(|rule| !true_.as_array().unwrap().contains(rule));
                lies.extend(invented.map(|rule| format!("{path}: the CRD has no rule {rule}")));
            }
            _ if said == true_ => {}
            _ => lies.push(format!("{path}: {keyword} is {said:?}, in the CRD {true_:?}")),
        }
    }
}
