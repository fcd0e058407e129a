//! References and selectors among siblings.

use serde_json::{Value, json};

use super::is_ready;
use super::manner::{Manner, Reference};
use crate::core::World;
use crate::value::{at, set, text};

/// Fills the fields that references and selectors stand for; an error is what a provider says while it cannot.
pub(super) fn resolve(manner: &Manner, object: &mut Value, world: &World) -> Result<(), String> {
    manner.references.iter().try_for_each(|reference| {
        resolve_one(reference, object, world).map_err(|why| {
            format!("cannot resolve references: mg.Spec.ForProvider.{}: {why}", go_name(reference.field))
        })
    })
}

/// A field as the providers' own code calls it: `SecurityGroupID`, `VPCSecurityGroupIds`.
fn go_name(field: &str) -> String {
    let mut name = field.replacen("vpc", "VPC", usize::from(field.starts_with("vpc")));
    name[..1].make_ascii_uppercase();
    name.strip_suffix("Id").map(|stem| format!("{stem}ID")).unwrap_or(name)
}

fn resolve_one(reference: &Reference, object: &mut Value, world: &World) -> Result<(), String> {
    let params = at(object, &["spec", "forProvider"]).cloned().unwrap_or_default();
    if params.get(reference.field).is_some() {
        return Ok(());
    }
    let mut found = Vec::new();
    for target in targets(reference, &params, object, world)? {
        found.push((target.name().to_owned(), target.external_name()?));
    }
    let Some((first, _)) = found.first() else { return Ok(()) };
    let (refs, value) = if reference.many {
        let refs: Vec<Value> = found.iter().map(|(name, _)| json!({"name": name})).collect();
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        (json!(refs), json!(values))
    } else {
        (json!({"name": first}), json!(found[0].1))
    };
    let refs_field = format!("{}Ref{}", reference.base, if reference.many { "s" } else { "" });
    set(object, &["spec", "forProvider", &refs_field], refs);
    set(object, &["spec", "forProvider", reference.field], value);
    Ok(())
}

/// A resource that is referred to.
enum Target<'a> {
    /// One of this world.
    Sibling(&'a Value),
    /// One that only its name is known of; it is taken to exist.
    Elsewhere(String),
}

/// What `<base>Ref`, `<base>Refs` or `<base>Selector` stands for; nothing if none of them is there.
fn targets<'a>(
    reference: &Reference,
    params: &Value,
    own: &Value,
    world: &'a World,
) -> Result<Vec<Target<'a>>, String> {
    let siblings = || {
        world.resources().values().filter(|one| one["kind"] == reference.target && family(one) == family(own))
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
        labels.into_iter().flatten().all(|(key, value)| at(one, &["metadata", "labels", key]) == Some(value))
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
        // What refers to a sibling that is still being made would only be refused.
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
    text(object, &["apiVersion"])?.split_once('/')?.0.split_once('.').map(|(_, family)| family)
}
