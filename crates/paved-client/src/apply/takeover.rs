//! The move of an object from kubectl's client-side apply to server-side apply.
//!
//! Server-side apply removes a field that a file lacks only if no other manager owns the field.
//! After `kubectl apply`, kubectl owns all fields of the file. So we first move its fields to our
//! own manager, as `kubectl apply --server-side` does (package csaupgrade of k8s.io/client-go).

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::MANAGER;

/// The annotation of client-side apply with the last applied document.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The managers of `kubectl apply` without `--server-side`, of today and of old releases. Other
/// commands, for example `kubectl edit`, keep their fields.
const CLIENT_SIDE: [&str; 2] = ["kubectl-client-side-apply", "kubectl"];

/// The path of a field: `spec`, `parameters`, `region`.
type Path = Vec<String>;

/// Fields of client-side apply that we take over.
pub(super) struct Takeover {
    /// The new `metadata.managedFields`.
    managed_fields: Vec<Value>,
    /// The fields that only client-side apply and we own.
    owned: BTreeSet<Path>,
}

impl Takeover {
    /// The takeover of an object. `None` if client-side apply owns no field.
    pub(super) fn of(live: &DynamicObject) -> Option<Self> {
        let entries = entries(live);
        let (taken, mut kept): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_client_side);
        let last = taken.last()?.clone();
        let mut fields = json!({});
        for entry in &taken {
            unite(&mut fields, &entry["fieldsV1"]);
        }
        let mut owned = BTreeSet::new();
        collect(&fields, &mut Vec::new(), &mut owned);
        let foreign = kept.iter().filter(|entry| !is_ours(entry));
        for entry in foreign {
            let mut others = BTreeSet::new();
            collect(&entry["fieldsV1"], &mut Vec::new(), &mut others);
            owned.retain(|path| !others.contains(path));
        }
        if let Some(ours) = kept.iter_mut().find(|entry| is_ours(entry)) {
            unite(&mut ours["fieldsV1"], &fields);
        } else {
            let mut ours = last;
            ours["manager"] = json!(MANAGER);
            ours["operation"] = json!("Apply");
            ours["fieldsV1"] = fields;
            kept.push(ours);
        }
        Some(Self { managed_fields: kept, owned })
    }

    /// A merge patch that moves the fields, and drops the annotation of client-side apply. The API
    /// server rejects it if the object has changed.
    pub(super) fn patch(&self, live: &DynamicObject) -> Value {
        json!({"metadata": {
            "managedFields": self.managed_fields,
            "resourceVersion": live.metadata.resource_version,
            "annotations": {LAST_APPLIED: null},
        }})
    }

    /// A merge patch from the live object to the object as it will be after the takeover and the
    /// apply. `applied` is the result of an apply without a takeover.
    pub(super) fn rehearsal(
        &self,
        document: &Value,
        live: &DynamicObject,
        applied: &DynamicObject,
    ) -> Value {
        let mut object = serde_json::to_value(applied).unwrap_or_default();
        for path in &self.owned {
            let is_in_the_document = (1..=path.len()).any(|length| {
                let found = at(document, &path[..length]);
                found.is_some_and(|found| length == path.len() || !found.is_object())
            });
            if !is_in_the_document {
                remove(&mut object, path);
            }
        }
        let live = serde_json::to_value(live).unwrap_or_default();
        let of = |value: &Value| {
            let metadata = &value["metadata"];
            json!({"spec": value["spec"], "metadata": {
                "labels": metadata["labels"], "annotations": metadata["annotations"]}})
        };
        difference(&of(&live), &of(&object))
    }
}

/// The fields that other commands of kubectl set and that the document lacks, each with its
/// manager. An apply does not remove them.
pub fn kept_by_kubectl(document: &Value, live: &DynamicObject) -> Vec<(String, String)> {
    let object = serde_json::to_value(live).unwrap_or_default();
    let mut fields = Vec::new();
    for entry in entries(live) {
        let manager = entry["manager"].as_str().unwrap_or_default();
        if !(manager.starts_with("kubectl") && entry["operation"] == "Update") {
            continue;
        }
        let mut owned = BTreeSet::new();
        collect(&entry["fieldsV1"], &mut Vec::new(), &mut owned);
        for path in owned {
            let remains = at(&object, &path).is_some_and(|value| !value.is_object());
            let is_annotation_of_kubectl = path.last().is_some_and(|name| name == LAST_APPLIED);
            if remains && at(document, &path).is_none() && !is_annotation_of_kubectl {
                fields.push((path.join("."), manager.to_owned()));
            }
        }
    }
    fields
}

fn entries(live: &DynamicObject) -> Vec<Value> {
    let entries = live.metadata.managed_fields.iter().flatten();
    entries
        .filter_map(|entry| serde_json::to_value(entry).ok())
        .filter(serde_json::Value::is_object)
        .collect()
}

/// Whether an entry has the fields of client-side apply. Subresources are written in other ways.
fn is_client_side(entry: &Value) -> bool {
    entry["operation"] == "Update"
        && entry["subresource"].as_str().is_none_or(str::is_empty)
        && entry["manager"].as_str().is_some_and(|manager| CLIENT_SIDE.contains(&manager))
}

fn is_ours(entry: &Value) -> bool {
    entry["operation"] == "Apply" && entry["manager"] == MANAGER
}

/// Adds the fields of one set in the format `FieldsV1` to another set. `{}` is a field itself, and
/// `.` is the field around other fields.
fn unite(into: &mut Value, from: &Value) {
    let Some(from) = from.as_object() else { return };
    let Some(own) = into.as_object_mut() else {
        *into = Value::Object(from.clone());
        return;
    };
    for (key, more) in from {
        let is_field = |value: &Value| value.as_object().is_none_or(Map::is_empty);
        let Some(inner) = own.get_mut(key) else {
            own.insert(key.clone(), more.clone());
            continue;
        };
        if is_field(inner) != is_field(more) {
            inner["."] = json!({});
        }
        if !is_field(more) {
            unite(inner, more);
        }
    }
}

/// The paths of the fields in `spec`, in the labels and in the annotations. A list is one field.
fn collect(fields: &Value, path: &mut Path, all: &mut BTreeSet<Path>) {
    let Some(fields) = fields.as_object() else { return };
    let inner = fields.iter().filter_map(|(key, value)| Some((key.strip_prefix("f:")?, value)));
    let mut is_leaf = true;
    for (key, value) in inner {
        let is_of_interest = match path.as_slice() {
            [] => ["spec", "metadata"].contains(&key),
            [one] if one == "metadata" => ["labels", "annotations"].contains(&key),
            _ => true,
        };
        is_leaf = false;
        if is_of_interest {
            path.push(key.to_owned());
            collect(value, path, all);
            path.pop();
        }
    }
    if is_leaf && !path.is_empty() {
        all.insert(path.clone());
    }
}

/// A merge patch from one value to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(key.clone(), difference(before, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Removes a field, and then the maps around it that became empty, except `spec`.
fn remove(value: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else { return };
    if let Some(inner) = value.get_mut(key).filter(|_| !rest.is_empty()) {
        remove(inner, rest);
        if key == "spec" || key == "metadata" || inner.as_object().is_none_or(|one| !one.is_empty())
        {
            return;
        }
    }
    if let Some(fields) = value.as_object_mut() {
        fields.remove(key);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn live(managed: Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": "lin", "resourceVersion": "7", "annotations": {LAST_APPLIED: "{}"}},
            "spec": {"parameters": {"owner": "lin", "allowedCidrs": ["0.0.0.0/0"], "diskGB": 100}},
        });
        object["metadata"]["managedFields"] = managed;
        serde_json::from_value(object).unwrap()
    }

    fn entry(manager: &str, operation: &str, parameters: &[&str]) -> Value {
        let fields: Map<String, Value> =
            parameters.iter().map(|name| (format!("f:{name}"), json!({}))).collect();
        json!({"manager": manager, "operation": operation, "apiVersion": "platform.acme.io/v1alpha1",
            "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {".": {}, "f:parameters": fields}}})
    }

    fn fields(takeover: &Takeover, manager: &str) -> Value {
        let found = takeover.managed_fields.iter().find(|entry| entry["manager"] == manager);
        found.unwrap()["fieldsV1"]["f:spec"]["f:parameters"].clone()
    }

    #[test]
    fn fields_of_client_side_apply_become_ours() {
        for manager in ["kubectl-client-side-apply", "kubectl"] {
            let theirs = entry(manager, "Update", &["owner", "allowedCidrs"]);
            let alone = Takeover::of(&live(json!([theirs]))).unwrap();
            let only = json!({"f:owner": {}, "f:allowedCidrs": {}});
            assert_eq!((alone.managed_fields.len(), fields(&alone, MANAGER)), (1, only));
            assert_eq!(alone.managed_fields[0]["operation"], "Apply");
            let ours = entry(MANAGER, "Apply", &["owner", "diskGB"]);
            let both = Takeover::of(&live(json!([theirs, ours]))).unwrap();
            let all = json!({"f:owner": {}, "f:allowedCidrs": {}, "f:diskGB": {}});
            assert_eq!((both.managed_fields.len(), fields(&both, MANAGER)), (1, all));
        }
    }

    #[test]
    fn fields_of_other_managers_stay_theirs() {
        for (manager, operation) in [
            ("kubectl-create", "Update"),
            ("kubectl-edit", "Update"),
            ("kubectl-patch", "Update"),
            ("kubectl-label", "Update"),
            ("kubectl", "Apply"),
            ("argocd-controller", "Update"),
            ("paved-lifecycle", "Update"),
            ("crossplane", "Update"),
            (MANAGER, "Update"),
        ] {
            let other = entry(manager, operation, &["allowedCidrs"]);
            assert!(Takeover::of(&live(json!([other]))).is_none(), "{manager} {operation}");
            let theirs = entry("kubectl-client-side-apply", "Update", &["allowedCidrs", "diskGB"]);
            let takeover = Takeover::of(&live(json!([other, theirs]))).unwrap();
            assert!(takeover.managed_fields.contains(&other), "{manager} {operation}");
            let path = |name: &str| ["spec", "parameters", name].map(str::to_owned).to_vec();
            assert!(!takeover.owned.contains(&path("allowedCidrs")), "{manager} {operation}");
            assert!(takeover.owned.contains(&path("diskGB")), "{manager} {operation}");
        }
        let mut status = entry("kubectl", "Update", &["owner"]);
        status["subresource"] = json!("status");
        assert!(Takeover::of(&live(json!([status]))).is_none());
        assert!(Takeover::of(&live(Value::Null)).is_none());
    }

    #[test]
    fn takeover_fails_if_the_object_has_changed_and_drops_the_annotation() {
        let live = live(json!([entry("kubectl", "Update", &["owner"])]));
        let patch = Takeover::of(&live).unwrap().patch(&live);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["metadata"]["annotations"].get(LAST_APPLIED), Some(&Value::Null));
    }

    #[test]
    fn rehearsal_removes_only_fields_that_the_document_lacks() {
        let theirs = entry("kubectl", "Update", &["owner", "allowedCidrs", "diskGB"]);
        let live = live(json!([theirs, entry("kubectl-edit", "Update", &["diskGB"])]));
        let document = json!({"spec": {"parameters": {"owner": "lin"}}});
        let patch = Takeover::of(&live).unwrap().rehearsal(&document, &live, &live);
        let expected = json!({"spec": {"parameters": {"allowedCidrs": null}}});
        assert_eq!(patch, expected);
        assert_eq!(
            kept_by_kubectl(&document, &live),
            [
                ("spec.parameters.allowedCidrs", "kubectl"),
                ("spec.parameters.diskGB", "kubectl"),
                ("spec.parameters.diskGB", "kubectl-edit")
            ]
            .map(|(field, manager)| (field.to_owned(), manager.to_owned()))
        );
    }

    #[test]
    fn united_fields_keep_the_map_around_them() {
        let mut fields = json!({"f:a": {}, "f:b": {"f:c": {}}});
        unite(&mut fields, &json!({"f:a": {"f:x": {}}, "f:b": {"f:d": {}}, "f:e": {}}));
        let expected =
            json!({"f:a": {".": {}, "f:x": {}}, "f:b": {"f:c": {}, "f:d": {}}, "f:e": {}});
        assert_eq!(fields, expected);
        unite(&mut fields, &json!({"f:b": {}}));
        assert_eq!(fields["f:b"], json!({".": {}, "f:c": {}, "f:d": {}}));
    }
}
