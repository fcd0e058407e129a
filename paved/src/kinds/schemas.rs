//! JSON schemas of the kinds, for editors.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests::{names, xrd};
use k8s_schema::Schemas;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The file with the schemas of all kinds.
pub(super) const ALL: &str = "all.json";

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// A kind of environment in a group.
pub(super) struct Wanted {
    pub(super) api: &'static dyn AnyApi,
    pub(super) flavour: Flavour,
    pub(super) group: String,
}

/// All kinds of this program, in a company's group or in the default groups.
pub(super) fn built_in(group: Option<&str>) -> Vec<Wanted> {
    let of = |flavour: Flavour| group.unwrap_or_else(|| flavour.default_group()).to_owned();
    Flavour::ALL
        .into_iter()
        .flat_map(|flavour| APIS.iter().map(move |api| (*api, flavour)))
        .map(|(api, flavour)| Wanted { api, flavour, group: of(flavour) })
        .collect()
}

/// Writes a schema for each kind, and one for all. Returns the number of kinds.
pub(super) fn write(folder: &Path, all: &[Wanted]) -> Result<usize, Failure> {
    let unwritable = |error: std::io::Error| {
        Failure::Usage(format!("could not write to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(unwritable)?;
    let mut kinds = BTreeSet::new();
    let mut cases = Vec::new();
    for wanted in all {
        let Some((kind, schema)) = schema(wanted) else { continue };
        let file = format!("{}.{}.json", kind.to_lowercase(), wanted.group);
        let api_version = schema["properties"]["apiVersion"].clone();
        fs::write(folder.join(&file), format!("{schema:#}\n")).map_err(unwritable)?;
        cases.push(json!({
            "if": {"properties": {"kind": {"const": kind}, "apiVersion": api_version}},
            "then": {"$ref": file},
        }));
        kinds.insert(kind);
    }
    let count = cases.len();
    let any = json!({"$schema": DIALECT, "type": "object", "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": kinds}}, "allOf": cases});
    fs::write(folder.join(ALL), format!("{any:#}\n")).map_err(unwritable)?;
    Ok(count)
}

/// The kind and its schema.
fn schema(Wanted { api, flavour, group }: &Wanted) -> Option<(String, Value)> {
    let info = api.info();
    let kind = match flavour {
        Flavour::Claims => info.claim.kind,
        Flavour::Namespaced => names(info, *flavour).kind,
    };
    let schemas = Schemas::new([&xrd(*api, *flavour, group)]).ok()?;
    let found = schemas.iter().find(|one| one.kind() == kind)?;
    let mut schema = found.schema().clone();
    k8s_schema::for_editors(&mut schema);
    schema["$schema"] = json!(DIALECT);
    schema["title"] = json!(kind);
    schema["description"] = json!(info.summary);
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    let properties = schema["properties"].as_object_mut()?;
    properties.remove("status");
    properties.insert("apiVersion".to_owned(), json!({"const": found.api_version()}));
    properties.insert("kind".to_owned(), json!({"const": kind}));
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let metadata = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "namespace": {"type": "string"}, "labels": texts, "annotations": texts}});
    properties.insert("metadata".to_owned(), metadata);
    Some((kind.to_owned(), schema))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_kind_has_a_schema_that_names_unknown_fields() {
        let folder = tempfile::tempdir().unwrap();
        let count = write(folder.path(), &built_in(None)).unwrap();
        assert_eq!(count, APIS.len() * 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), count + 1);
        let read = |file: &str| -> Value {
            serde_json::from_str(&fs::read_to_string(folder.path().join(file)).unwrap()).unwrap()
        };
        let schema = read("gpudevworkspaceclaim.platform.acme.io.json");
        let parameters = &schema["properties"]["spec"]["properties"]["parameters"];
        assert_eq!(parameters["additionalProperties"], false);
        assert!(parameters["properties"]["instanceType"]["description"].is_string());
        assert!(schema["properties"].get("status").is_none());
        let text = schema.to_string();
        assert!(!text.contains("x-kubernetes-") && !text.contains("nullable"), "{text}");
        let all = read(ALL);
        for case in all["allOf"].as_array().unwrap() {
            let file = case["then"]["$ref"].as_str().unwrap();
            assert_eq!(read(file)["properties"]["kind"], case["if"]["properties"]["kind"]);
        }
    }

    #[test]
    fn own_group_is_in_every_schema() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &built_in(Some("platform.example.org"))).unwrap();
        let text = fs::read_to_string(folder.path().join(ALL)).unwrap();
        assert!(text.contains("platform.example.org/v1alpha1") && !text.contains("acme"), "{text}");
    }
}
