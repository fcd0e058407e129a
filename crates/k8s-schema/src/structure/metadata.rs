//! Validates the fields of an object's metadata that people write.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::bounds::WORDS;
use super::{Place, Walk};
use crossplane::json::{at, text};

const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const NAME_WORDS: &str = "lower-case letters, digits and '-', with a letter or digit at both ends";
const LABEL_WORDS: &str = "letters, digits, '-', '_' and '.', with a letter or digit at both ends";
const LABEL: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// Keys of labels and annotations, and finalizers: a name after an optional DNS name and slash.
const KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$";
const KEY_WORDS: &str = "at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, and before them a domain and '/', if any";

/// The fields of apimachinery's ObjectMeta that users or controllers write.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    json!({"type": "object", "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": NAME, WORDS: NAME_WORDS},
        "generateName": {"type": "string"},
        "namespace": {"type": "string", "maxLength": 63,
            "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", WORDS: NAME_WORDS},
        "labels": {"type": "object", "nullable": true,
            "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL, WORDS: LABEL_WORDS}},
        "annotations": {"type": "object", "nullable": true, "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "nullable": true, "items": {"type": "string", "pattern": KEY, WORDS: KEY_WORDS}},
        "ownerReferences": {"type": "array", "nullable": true, "items": anything},
        "managedFields": {"type": "array", "nullable": true, "items": anything},
        "uid": {"type": "string"}, "resourceVersion": {"type": "string"}, "selfLink": {"type": "string"},
        "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer", "nullable": true},
        "creationTimestamp": time, "deletionTimestamp": time,
    }})
});

pub(super) fn validate(walk: &mut Walk, object: &Value, schema: &Value) {
    let Some(metadata) = object.get("metadata") else { return };
    walk.value("metadata", metadata, &SCHEMA, Place::Inside);
    let keys = json!({"pattern": KEY, WORDS: KEY_WORDS});
    for place in ["labels", "annotations"] {
        for key in metadata[place].as_object().into_iter().flat_map(Map::keys) {
            // apimachinery checks the keys of annotations in lower case.
            let key = if place == "labels" { key.clone() } else { key.to_lowercase() };
            walk.value(&format!("metadata.{place}"), &Value::from(key), &keys, Place::Inside);
        }
    }
    let name_schema = at(schema, &["properties", "metadata", "properties", "name"]);
    if let (Some(name), Some(schema)) = (text(metadata, &["name"]), name_schema) {
        walk.value("metadata.name", &Value::from(name), schema, Place::Inside);
    }
}
