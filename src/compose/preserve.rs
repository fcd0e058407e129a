//! Preserved values: a field of an observed resource keeps its value, unless users may change it.

use serde_json::Value;

use crate::models;
use crate::observe::lenient;
use crate::value::{Object, at, put, text};

/// The `forProvider` to request if `observed` exists: the model's fields as observed, and the
/// fields at the paths in `updatable` as wanted. A field of the model that was not observed stays
/// absent.
pub(super) fn for_provider<M: models::Managed>(
    wanted: &Object,
    observed: &Value,
    updatable: &[&str],
) -> Object {
    let Some(running) = observed.as_object() else { return wanted.clone() };
    let mut preserved = observed_fields::<M>(observed).unwrap_or_else(|| {
        let mut preserved = legible::<M>(wanted, running, observed);
        keep_entries(&mut preserved, running);
        preserved
    });
    for path in updatable {
        let path: Vec<&str> = path.split('.').collect();
        put(&mut preserved, &path, at(wanted, &path).cloned());
    }
    preserved
}

/// The model's fields as observed, if the model can read them.
pub(super) fn observed_fields<M: models::Managed>(observed: &Value) -> Option<Object> {
    let mut preserved = fields_of::<M>(observed)?;
    keep_entries(&mut preserved, observed.as_object()?);
    Some(preserved)
}

/// Server-side apply treats a list as one value: a client that applies it owns all of it. The
/// entries therefore keep the provider's additions, for example the result of a selector. Otherwise
/// provider and composite would overwrite each other permanently.
fn keep_entries(preserved: &mut Object, running: &Object) {
    for (key, preserved) in preserved {
        match (preserved, running.get(key)) {
            (Value::Object(preserved), Some(Value::Object(running))) => {
                keep_entries(preserved, running);
            }
            (Value::Array(preserved), Some(Value::Array(running)))
                if preserved.len() == running.len() && running.iter().all(Value::is_object) =>
            {
                preserved.clone_from(running);
            }
            _ => {}
        }
    }
}

/// The native object to request if `running` exists: the fields of `wanted`, with their observed
/// values. Fields of other clients are left out.
pub(super) fn native(wanted: &Object, running: &Object, updatable: &[&str]) -> Object {
    let preserved = fields_like(wanted, running);
    finished(wanted, preserved, updatable)
}

/// The manifest to wrap if `running` is already wrapped. We are its only writer, so all of it is
/// preserved.
pub(super) fn wrapped(wanted: &Object, running: &Object, updatable: &[&str]) -> Object {
    finished(wanted, running.clone(), updatable)
}

/// A preserved object with its updatable fields as wanted. It always has the wanted kind and a
/// name.
fn finished(wanted: &Object, mut preserved: Object, updatable: &[&str]) -> Object {
    for path in updatable {
        let path: Vec<&str> = path.split('.').collect();
        replace(&mut preserved, wanted, &path);
    }
    for path in
        [["apiVersion"].as_slice(), &["kind"], &["metadata", "name"], &["metadata", "namespace"]]
    {
        if path.len() == 1 || text(&preserved, path).is_none() {
            put(&mut preserved, path, at(wanted, path).cloned());
        }
    }
    preserved
}

/// The fields of `running` that `wanted` also has.
fn fields_like(wanted: &Object, running: &Object) -> Object {
    let both = wanted.iter().filter_map(|(key, wanted)| Some((key, wanted, running.get(key)?)));
    both.map(|(key, wanted, running)| (key.clone(), like(wanted, running))).collect()
}

fn like(wanted: &Value, running: &Value) -> Value {
    match (wanted, running) {
        (Value::Object(wanted), Value::Object(running)) => fields_like(wanted, running).into(),
        (Value::Array(wanted), Value::Array(running)) => {
            let ours = |(index, running): (usize, &Value)| {
                let twin = match name(running) {
                    Some(name) => wanted.iter().find(|wanted| self::name(wanted) == Some(name)),
                    None => wanted.get(index),
                };
                // A named entry that is not in our list belongs to another client.
                twin.map_or_else(
                    || name(running).is_none().then(|| running.clone()),
                    |twin| Some(like(twin, running)),
                )
            };
            running.iter().enumerate().filter_map(ours).collect()
        }
        _ => running.clone(),
    }
}

/// Sets the wanted value at a path of a preserved object. An entry of a list is selected by its
/// name in both.
fn replace(preserved: &mut Object, wanted: &Object, path: &[&str]) {
    let [first, rest @ ..] = path else { return };
    match (preserved.get_mut(*first), wanted.get(*first)) {
        (Some(Value::Object(preserved)), Some(Value::Object(wanted))) if !rest.is_empty() => {
            replace(preserved, wanted, rest);
        }
        (Some(Value::Array(preserved)), Some(Value::Array(wanted))) if !rest.is_empty() => {
            replace_entry(preserved, wanted, rest);
        }
        (_, Some(wanted)) => {
            preserved.insert((*first).to_owned(), wanted.clone());
        }
        (_, None) => {
            preserved.remove(*first);
        }
    }
}

fn replace_entry(preserved: &mut [Value], wanted: &[Value], path: &[&str]) {
    let [entry, rest @ ..] = path else { return };
    let preserved = preserved
        .iter_mut()
        .find(|preserved| name(preserved) == Some(entry))
        .and_then(Value::as_object_mut);
    let wanted =
        wanted.iter().find(|wanted| name(wanted) == Some(entry)).and_then(Value::as_object);
    if let (Some(preserved), Some(wanted)) = (preserved, wanted) {
        replace(preserved, wanted, rest);
    }
}

/// The value at a path. An entry of a list is selected by its name.
pub(super) fn find<'v>(source: &'v Object, path: &str) -> Option<&'v Value> {
    let mut parts = path.split('.');
    let mut here = source.get(parts.next()?)?;
    for part in parts {
        here = match here {
            Value::Array(list) => list.iter().find(|entry| name(entry) == Some(part))?,
            other => other.get(part)?,
        };
    }
    Some(here)
}

/// The name of an entry of a list.
pub(super) fn name(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

/// The model's fields of an observed object.
fn fields_of<M: models::Managed>(observed: &Value) -> Option<Object> {
    let model = M::deserialize(observed).ok()?;
    match serde_json::to_value(model) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// The fields of an object that the model cannot read as a whole. Readable fields are as observed,
/// and other existing fields are as wanted.
fn legible<M: models::Managed>(wanted: &Object, running: &Object, observed: &Value) -> Object {
    let fields = lenient::<M>(observed).map(serde_json::to_value);
    let mut fields = match fields {
        Some(Ok(Value::Object(fields))) => fields,
        _ => Object::new(),
    };
    for (key, wanted) in wanted.iter().filter(|(key, _)| running.contains_key(*key)) {
        fields.entry(key).or_insert_with(|| wanted.clone());
    }
    fields
}
