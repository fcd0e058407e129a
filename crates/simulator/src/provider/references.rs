//! References and selectors among composed resources.

use serde_json::{Value, json};

use super::is_ready;
use super::kind_behaviour::{KindBehaviour, Reference};
use crate::core::World;
use crossplane::api_version::group_of;
use crossplane::json::{at, set, text};

/// Sets the fields of references and selectors. The error is the provider's message.
pub(super) fn resolve(
    behaviour: &KindBehaviour,
    object: &mut Value,
    world: &World,
) -> Result<(), String> {
    let own = object.clone();
    let Some(params) = object.pointer_mut("/spec/forProvider") else { return Ok(()) };
    behaviour.references.iter().try_for_each(|reference| {
        let place =
            reference.within.map(|list| format!("{}[i3].", go_name(list))).unwrap_or_default();
        let holders = match reference.within {
            None => std::slice::from_mut(&mut *params),
            Some(list) => params
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .map_or(&mut [][..], Vec::as_mut_slice),
        };
        holders
            .iter_mut()
            .try_for_each(|holder| resolve_one(reference, holder, &own, world))
            .map_err(|why| {
                let field = go_name(reference.field);
                format!("cannot resolve references: mg.Spec.ForProvider.{place}{field}: {why}")
            })
    })
}

/// A field's name in the providers' own code: `SecurityGroupID`, `VPCSecurityGroupIds`.
fn go_name(field: &str) -> String {
    let mut name = field.replacen("vpc", "VPC", usize::from(field.starts_with("vpc")));
    name[..1].make_ascii_uppercase();
    name.strip_suffix("Id").map(|stem| format!("{stem}ID")).unwrap_or(name)
}

/// Sets one field of `params`. `own` is the resource with these parameters.
fn resolve_one(
    reference: &Reference,
    params: &mut Value,
    own: &Value,
    world: &World,
) -> Result<(), String> {
    if params.get(reference.field).is_some() {
        return Ok(());
    }
    let mut found = Vec::new();
    for target in targets(reference, params, own, world)? {
        found.push((target.name().to_owned(), target.external_name()?));
    }
    let Some((first, value)) = found.first() else { return Ok(()) };
    let (refs, value) = if reference.many {
        let refs: Vec<Value> = found.iter().map(|(name, _)| json!({"name": name})).collect();
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        (json!(refs), json!(values))
    } else {
        (json!({"name": first}), json!(value))
    };
    let refs_field = format!("{}Ref{}", reference.base, if reference.many { "s" } else { "" });
    set(params, &[&refs_field], refs);
    set(params, &[reference.field], value);
    Ok(())
}

/// A referenced resource.
enum Target<'a> {
    /// A resource of this world.
    Sibling(&'a Value),
    /// A resource outside of this world. It counts as existing.
    Elsewhere(String),
}

/// The resources for `<base>Ref`, `<base>Refs` or `<base>Selector`. Empty if all three are missing.
fn targets<'a>(
    reference: &Reference,
    params: &Value,
    own: &Value,
    world: &'a World,
) -> Result<Vec<Target<'a>>, String> {
    let siblings = || {
        world
            .resources()
            .values()
            .filter(|one| one["kind"] == reference.target && family(one) == family(own))
    };
    let asked = |end: &str| params.get(format!("{}{end}", reference.base));
    let named = asked("Refs")
        .and_then(Value::as_array)
        .map_or_else(|| asked("Ref").into_iter().collect(), |refs| refs.iter().collect::<Vec<_>>());
    if !named.is_empty() {
        let asked_names = named.into_iter().filter_map(|one| text(one, &["name"]));
        return Ok(asked_names
            .map(|name| {
                let sibling = siblings().find(|one| text(one, &["metadata", "name"]) == Some(name));
                sibling.map_or_else(|| Target::Elsewhere(name.to_owned()), Target::Sibling)
            })
            .collect());
    }
    let Some(selector) = asked("Selector") else { return Ok(Vec::new()) };
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let matching = siblings().filter(|one| {
        labels
            .into_iter()
            .flatten()
            .all(|(key, value)| at(one, &["metadata", "labels", key]) == Some(value))
    });
    let limit = if reference.many { usize::MAX } else { 1 };
    let found: Vec<Target<'_>> = matching.take(limit).map(Target::Sibling).collect();
    if found.is_empty() { Err("no resources matched selector".to_owned()) } else { Ok(found) }
}

impl Target<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Sibling(object) => text(object, &["metadata", "name"]).unwrap_or_default(),
            Self::Elsewhere(name) => name,
        }
    }

    fn external_name(&self) -> Result<String, String> {
        let annotated = match self {
            Self::Sibling(object) => {
                text(object, &["metadata", "annotations", "crossplane.io/external-name"])
            }
            Self::Elsewhere(name) => Some(name.as_str()),
        };
        // A resource with a reference to an unfinished resource would be rejected.
        let made = match self {
            Self::Sibling(object) => is_ready(object),
            Self::Elsewhere(_) => true,
        };
        let why = "referenced field was empty (referenced resource may not yet be ready)";
        annotated.filter(|_| made).map(str::to_owned).ok_or_else(|| why.to_owned())
    }
}

/// The provider that serves a kind: its group without the service.
fn family(object: &Value) -> Option<&str> {
    group_of(object).split_once('.').map(|(_, family)| family)
}
