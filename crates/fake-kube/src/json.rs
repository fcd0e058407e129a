//! Small helpers for JSON values.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

/// The text at a JSON pointer. It is empty if the value is absent or not a text.
pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of a list at a JSON pointer. The result is empty if the value is absent or not a
/// list.
pub fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Removes a field.
pub fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

/// Adds a finalizer unless the object has it.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    if !list(object, "/metadata/finalizers").iter().any(|one| one == finalizer) {
        let mut all = list(object, "/metadata/finalizers").to_vec();
        all.push(finalizer.into());
        object["metadata"]["finalizers"] = all.into();
    }
}

/// The time in whole seconds, as Kubernetes writes it.
pub fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Random digits, in hexadecimal.
pub fn random(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    // Without random numbers, names repeat, and the API rejects them as duplicates.
    let _ = getrandom::fill(&mut random);
    random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
