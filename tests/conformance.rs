//! Every composed resource conforms to the schema that its provider's CRD gives it.
//!
//! The schemas are the slices in `tests/schemas`, cut from the CRDs by `cargo xtask schemas`. Where the CRDs
//! themselves lie beside the repository (`../shared/crds`), the slices are held against them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn slices() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/schemas")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
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
        let (slice, crd) = (yaml(&file), yaml(&crds.join(&name)));
        for part in ["group", "names", "scope"] {
            assert_eq!(slice["spec"][part], crd["spec"][part], "{name}: {part}");
        }
        let version = &slice["spec"]["versions"][0];
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let whole = versions.iter().find(|v| v["name"] == version["name"]).expect("the version exists");
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        part_of(&schema(version), &schema(whole), &name, &mut lies);
    }
    assert!(lies.is_empty(), "run `cargo xtask schemas --crds DIR`\n{}", lies.join("\n"));
}

/// A slice says the same as its CRD about every field it has; it may lack fields, and the rules about them.
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
