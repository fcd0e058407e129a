//! Prepares a function's desired resources for an apply, as Crossplane does: metadata, names,
//! references.

use std::collections::{BTreeMap, HashMap};

use crossplane::json::{at, remove, set, text};
use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE, COMPOSITE, SLOT};
use crossplane::{Scope, api_version};
use function_proto::structs;
use function_proto::v1::{Ready, Resource, RunFunctionResponse};
use serde_json::{Map, Value, json};

use super::{World, naming};

/// Why Crossplane would reject a response as a whole.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// A desired resource without apiVersion or kind.
    #[error("cannot apply composed resource {slot:?}: it has no {missing}")]
    NoKind {
        /// The resource's slot.
        slot: String,
        /// The missing field.
        missing: &'static str,
    },
    /// A name that Kubernetes rejects.
    #[error(
        "cannot apply composed resource {slot:?} because it has an invalid name {name:?}. Must be a valid RFC 1123 subdomain name."
    )]
    InvalidName {
        /// The resource's slot.
        slot: String,
        /// Its name.
        name: String,
    },
    /// A cluster-scoped kind in a namespaced XR.
    #[error(
        "cannot apply cluster scoped composed resource {slot:?} (a {kind} named {name}) for a namespaced composite resource."
    )]
    ClusterScoped {
        /// The resource's slot.
        slot: String,
        /// Its kind.
        kind: String,
        /// Its name. It is empty if the resource has none yet.
        name: String,
    },
    /// The object already has another controller.
    #[error(
        "cannot render metadata for composed resource {slot:?}: {name} is already controlled by {owner}"
    )]
    Controlled {
        /// The resource's slot.
        slot: String,
        /// Its name.
        name: String,
        /// Kind and name of its controller.
        owner: String,
    },
}

/// A desired resource, ready to be applied.
pub(super) struct Prepared {
    pub(super) object: Value,
    pub(super) ready: bool,
    /// The requested namespace, if the XR's own namespace replaced it.
    pub(super) overridden: Option<String>,
}

/// All desired resources of a response by slot, with Crossplane's metadata.
pub(super) fn prepare(
    world: &World,
    response: &RunFunctionResponse,
) -> Result<BTreeMap<String, Prepared>, ComposeError> {
    let none = HashMap::new();
    let desired = response.desired.as_ref().map_or(&none, |desired| &desired.resources);
    desired
        .iter()
        .map(|(slot, resource)| Ok((slot.clone(), prepare_one(world, slot, resource)?)))
        .collect()
}

fn prepare_one(world: &World, slot: &str, resource: &Resource) -> Result<Prepared, ComposeError> {
    let object = resource.resource.clone().map(structs::object).unwrap_or_default();
    let mut object = Value::Object(object);
    if let Some(observed) = world.resources.get(slot) {
        for field in ["name", "namespace", "generateName"] {
            match at(observed, &["metadata", field]) {
                Some(value) => set(&mut object, &["metadata", field], value.clone()),
                None => drop(remove(&mut object, &["metadata", field])),
            }
        }
    }
    let overridden = own_namespace(world, slot, &mut object)?;
    set_metadata(world, slot, &mut object)?;
    check(slot, &object)?;
    Ok(Prepared { object, ready: resource.ready == i32::from(Ready::True), overridden })
}

/// Puts a resource of a namespaced XR into the XR's namespace. Returns the requested namespace if
/// it differed.
fn own_namespace(
    world: &World,
    slot: &str,
    object: &mut Value,
) -> Result<Option<String>, ComposeError> {
    let Some(own) = world.namespace() else { return Ok(None) };
    let asked = text(object, &["metadata", "namespace"]).map(str::to_owned);
    if asked.is_none() && is_cluster_scoped(object) {
        let part = |path: &[&str]| text(object, path).unwrap_or_default().to_owned();
        let (kind, name) = (part(&["kind"]), part(&["metadata", "name"]));
        return Err(ComposeError::ClusterScoped { slot: slot.to_owned(), kind, name });
    }
    set(object, &["metadata", "namespace"], json!(own));
    Ok(asked.filter(|asked| asked != own))
}

/// Crossplane's `RenderComposedResourceMetadata` and its name generator.
fn set_metadata(world: &World, slot: &str, object: &mut Value) -> Result<(), ComposeError> {
    let label = |key: &str| text(&world.composite, &["metadata", "labels", key]);
    let composite = label(COMPOSITE).unwrap_or_default();
    let unnamed = text(object, &["metadata", "name"]).is_none();
    if unnamed && text(object, &["metadata", "generateName"]).is_none() {
        set(object, &["metadata", "generateName"], json!(format!("{composite}-")));
    }
    set(object, &["metadata", "annotations", SLOT], json!(slot));
    set(object, &["metadata", "labels", COMPOSITE], json!(composite));
    if let (Some(name), Some(namespace)) = (label(CLAIM_NAME), label(CLAIM_NAMESPACE)) {
        set(object, &["metadata", "labels", CLAIM_NAME], json!(name));
        set(object, &["metadata", "labels", CLAIM_NAMESPACE], json!(namespace));
    }
    control(world, slot, object)?;
    if unnamed {
        let prefix = text(object, &["metadata", "generateName"]).unwrap_or_default();
        let name = naming::child(prefix, world.uid(), slot);
        set(object, &["metadata", "name"], json!(name));
    }
    Ok(())
}

/// Makes the XR the controller of the object.
fn control(world: &World, slot: &str, object: &mut Value) -> Result<(), ComposeError> {
    let part = |path: &[&str]| text(&world.composite, path).unwrap_or_default();
    let uid = world.uid();
    let mut owners = at(object, &["metadata", "ownerReferences"])
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let other = owners.iter().find(|owner| owner["controller"] == true && owner["uid"] != uid);
    if let Some(other) = other {
        return Err(ComposeError::Controlled {
            slot: slot.to_owned(),
            name: text(object, &["metadata", "name"]).unwrap_or_default().to_owned(),
            owner: ["kind", "name"].map(|key| text(other, &[key]).unwrap_or_default()).join(" "),
        });
    }
    owners.retain(|owner| owner["uid"] != uid);
    owners.push(json!({
        "apiVersion": part(&["apiVersion"]), "kind": part(&["kind"]), "name": part(&["metadata", "name"]),
        "uid": uid, "controller": true, "blockOwnerDeletion": true,
    }));
    set(object, &["metadata", "ownerReferences"], Value::Array(owners));
    Ok(())
}

fn check(slot: &str, object: &Value) -> Result<(), ComposeError> {
    for missing in ["apiVersion", "kind"] {
        if text(object, &[missing]).is_none() {
            return Err(ComposeError::NoKind { slot: slot.to_owned(), missing });
        }
    }
    let name = text(object, &["metadata", "name"]).unwrap_or_default();
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        label.bytes().all(|byte| inner(byte) || byte == b'-')
            && label.bytes().next().is_some_and(inner)
            && label.bytes().last().is_some_and(inner)
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(ComposeError::InvalidName { slot: slot.to_owned(), name: name.to_owned() });
    }
    Ok(())
}

/// Whether a kind is cluster-scoped: the cluster-scoped managed resources of the Upbound and
/// contrib providers, and the built-in kinds that a composition may contain.
fn is_cluster_scoped(object: &Value) -> bool {
    let group = api_version::group_of(object);
    let kind = text(object, &["kind"]).unwrap_or_default();
    let of_provider =
        [".upbound.io", ".crossplane.io"].iter().any(|domain| group.ends_with(domain));
    let core = group.starts_with("protection.") || group.starts_with("apiextensions.");
    let cluster_kind =
        matches!(kind, "Namespace" | "ClusterRole" | "ClusterRoleBinding" | "StorageClass")
            || matches!(
                kind,
                "ClusterProviderConfig" | "ClusterUsage" | "CustomResourceDefinition"
            );
    cluster_kind || (of_provider && !core && !group.split('.').any(|part| part == "m"))
}

/// `resourceRefs`, in Crossplane's order.
pub(super) fn references<'a>(
    objects: impl IntoIterator<Item = &'a Value>,
    namespaced: bool,
) -> Value {
    let fields = |object: &Value| {
        let part = |path: &[&str]| text(object, path).unwrap_or_default().to_owned();
        [
            part(&["apiVersion"]),
            part(&["kind"]),
            part(&["metadata", "name"]),
            part(&["metadata", "namespace"]),
        ]
    };
    let mut refs: Vec<[String; 4]> = objects.into_iter().map(fields).collect();
    refs.sort_by_key(|fields| fields.concat());
    refs.into_iter()
        .map(|[api_version, kind, name, namespace]| {
            let mut fields = Map::from_iter([
                ("apiVersion".to_owned(), json!(api_version)),
                ("kind".to_owned(), json!(kind)),
                ("name".to_owned(), json!(name)),
            ]);
            if !(namespaced || namespace.is_empty()) {
                fields.insert("namespace".to_owned(), json!(namespace));
            }
            Value::Object(fields)
        })
        .collect()
}

impl World {
    /// The path of Crossplane's own fields in the XR's spec.
    pub(super) fn machinery(&self) -> &'static [&'static str] {
        match self.scope {
            Scope::LegacyCluster => &["spec"],
            Scope::Cluster | Scope::Namespaced => &["spec", "crossplane"],
        }
    }
}
