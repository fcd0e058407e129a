//! Server-side apply by one manager, with force.
//!
//! Lists are atomic here, which is the default in schemas of custom resources.

use serde_json::{Map, Value};

/// Merges `desired` into `live`. `before` is our last apply. Its fields that `desired` omits are
/// removed. Fields of other managers remain.
pub(super) fn apply(live: &mut Value, before: Option<&Value>, desired: &Value) {
    if let (Value::Object(live), Value::Object(desired)) = (&mut *live, desired) {
        return apply_map(live, before.and_then(Value::as_object), desired);
    }
    live.clone_from(desired);
}

fn apply_map(
    live: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    desired: &Map<String, Value>,
) {
    for (key, owned) in before.into_iter().flatten().filter(|(key, _)| !desired.contains_key(*key))
    {
        if live.get_mut(key).is_some_and(|live| release(live, owned)) {
            live.remove(key);
        }
    }
    for (key, desired) in desired {
        let before = before.and_then(|before| before.get(key));
        match live.get_mut(key) {
            Some(live) => apply(live, before, desired),
            None => drop(live.insert(key.clone(), desired.clone())),
        }
    }
}

/// Removes our fields from a value. Returns whether the value is then empty.
fn release(live: &mut Value, owned: &Value) -> bool {
    let (Value::Object(live), Value::Object(owned)) = (live, owned) else { return true };
    for (key, owned) in owned {
        if live.get_mut(key).is_some_and(|live| release(live, owned)) {
            live.remove(key);
        }
    }
    live.is_empty()
}
