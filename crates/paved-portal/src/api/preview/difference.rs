//! The differences between two sets of composed resources.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Resource;

/// A resource that a change affects.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedResource {
    /// The slot: the permanent name of the resource in the environment.
    slot: String,
    kind: String,
    /// The effect on the resource.
    action: Action,
    /// The changed fields of a resource that is not deleted. A long list is truncated.
    fields: Vec<ChangedField>,
}

/// The effect on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Create,
    Change,
    Delete,
}

/// A changed field. Long values are truncated.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ChangedField {
    /// The path, for example `spec.forProvider.instanceType`.
    path: String,
    /// The current value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The new value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// The maximum number of fields listed for a resource.
const FIELDS: usize = 30;

/// The maximum length of a value in the response, in characters.
const SHOWN: usize = 200;

/// The differences between two sets of resources, by slot.
pub(super) fn differences(before: &[Resource], after: &[Resource]) -> Vec<ChangedResource> {
    let slots = |all: &'_ [Resource]| -> BTreeSet<String> {
        all.iter().map(|one| one.slot.clone()).collect()
    };
    let find = |all: &'_ [Resource], slot: &str| all.iter().position(|one| one.slot == slot);
    let mut changes = Vec::new();
    for slot in slots(before).union(&slots(after)) {
        let (old, new) = (find(before, slot), find(after, slot));
        let (old, new) = (old.map(|index| &before[index]), new.map(|index| &after[index]));
        let Some(kind) = new.or(old).map(|one| one.kind.clone()) else { continue };
        let (action, fields) = match (old, new) {
            (Some(old), Some(new)) => {
                let mut fields = Vec::new();
                // Labels and annotations are set by us, and the status by the provider.
                for (name, value) in new.manifest.as_object().into_iter().flatten() {
                    if !["metadata", "status"].contains(&name.as_str()) {
                        compare(name, Some(&old.manifest[name]), Some(value), &mut fields);
                    }
                }
                (Action::Change, fields)
            }
            (None, _) => (Action::Create, Vec::new()),
            (_, None) => (Action::Delete, Vec::new()),
        };
        if action != Action::Change || !fields.is_empty() {
            changes.push(ChangedResource { slot: slot.clone(), kind, action, fields });
        }
    }
    changes
}

/// Records the differing fields. A list counts as one field.
fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    fields: &mut Vec<ChangedField>,
) {
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            compare(&format!("{path}.{name}"), old.get(name), new.get(name), fields);
        }
        return;
    }
    let told = |value: Option<&Value>| {
        let value = value.filter(|value| !value.is_null())?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(text.chars().take(SHOWN).collect())
    };
    if before != after && fields.len() < FIELDS {
        fields.push(ChangedField {
            path: path.to_owned(),
            before: told(before),
            after: told(after),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_names_the_resources_and_fields_that_differ() {
        let resource = |slot: &str, manifest: Value| Resource {
            slot: slot.into(),
            kind: "Instance".into(),
            manifest,
        };
        let machine = |kind: &str| json!({"metadata": {"annotations": {"hash": kind}}, "spec": {"type": kind, "disks": [1, 2]}});
        let before = [
            resource("a", machine("small")),
            resource("b", machine("small")),
            resource("c", machine("x")),
        ];
        let after = [
            resource("a", machine("large")),
            resource("b", machine("small")),
            resource("d", machine("x")),
        ];
        let changes = differences(&before, &after);
        let told: Vec<(&str, Action, usize)> =
            changes.iter().map(|one| (one.slot.as_str(), one.action, one.fields.len())).collect();
        assert_eq!(
            told,
            [("a", Action::Change, 1), ("c", Action::Delete, 0), ("d", Action::Create, 0)]
        );
        let field = ChangedField {
            path: "spec.type".into(),
            before: Some("small".into()),
            after: Some("large".into()),
        };
        assert_eq!(changes[0].fields, [field]);
    }

    #[test]
    fn change_of_many_long_fields_is_short() {
        let manifest = |text: &str| {
            let data: serde_json::Map<String, Value> =
                (0..1_000).map(|number| (number.to_string(), json!(text.repeat(10_000)))).collect();
            json!({"data": data})
        };
        let resource = |text: &str| {
            [Resource { slot: "a".into(), kind: "ConfigMap".into(), manifest: manifest(text) }]
        };
        let changes = differences(&resource("a"), &resource("b"));
        assert_eq!(changes[0].fields.len(), FIELDS);
        assert!(serde_json::to_string(&changes).unwrap_or_default().len() < 50_000);
    }
}
