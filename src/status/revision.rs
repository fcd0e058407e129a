//! Schema revisions and their additions to the status.
//!
//! An API server rejects the whole status for one field, or one value of an enumeration, that its
//! XRD does not declare. A function that is newer than the XRD must write neither. The Composition
//! that came with the XRD has its revision (`schemaRevision` of Settings). The tables have the
//! later additions: [`COMMON`] for [`CommonStatus`], and
//! [`Info::since_revision`](crate::apis::Info::since_revision) for the status of one API.
//!
//! A new field or value of a status must be in one of these tables. A test compares the XRDs of
//! each earlier revision, `tests/contract/xrds-of-revision-*`, with the current XRDs.
//!
//! [`CommonStatus`]: super::CommonStatus

use std::cmp::Reverse;

use serde_json::Value;

use crate::value::Object;

/// The additions of later schema revisions to [`CommonStatus`](super::CommonStatus).
pub const COMMON: &[Addition] = &[
    Addition::field("onDeletion", 2),
    Addition::field("resources[].cause", 2),
    Addition::field("power", 3),
    Addition::field("lifecycle", 3),
    Addition::field("estimatedHourlyUSD", 3),
    Addition::field("estimatedStoppedHourlyUSD", 3),
    Addition::field("priceAsOf", 3),
    Addition::value("phase", "Stopping", 3, Some("Provisioning")),
    Addition::value("phase", "Stopped", 3, Some("Ready")),
    Addition::value("phase", "Starting", 3, Some("Provisioning")),
    Addition::value("phase", "Expired", 3, Some("Ready")),
];

/// A field, or a value of an enumeration, that a schema revision added to a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Path in the status: names separated by dots, and `[]` after the name of a list, for example
    /// `resources[].cause`.
    pub path: &'static str,
    /// The first schema revision that has it.
    pub since: u32,
    /// The added value. `None` if the field itself was added.
    pub value: Option<AddedValue>,
}

/// A value of an enumeration, and its replacement in older schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedValue {
    /// The value, for example `Stopped`.
    pub name: &'static str,
    /// The most similar older value, for example `Ready`. `None` leaves the field out.
    pub fallback: Option<&'static str>,
}

impl Addition {
    /// A field.
    pub const fn field(path: &'static str, since: u32) -> Self {
        Self { path, since, value: None }
    }

    /// A value of an enumeration, and the older value that replaces it.
    pub const fn value(
        path: &'static str,
        name: &'static str,
        since: u32,
        fallback: Option<&'static str>,
    ) -> Self {
        Self { path, since, value: Some(AddedValue { name, fallback }) }
    }

    /// Removes the addition from the object that has it as field `name`.
    fn take_out(&self, object: &mut Object, name: &str) {
        match self.value {
            None => {
                object.remove(name);
            }
            Some(added) if object.get(name).and_then(Value::as_str) == Some(added.name) => {
                match added.fallback {
                    Some(older) => object.insert(name.to_owned(), older.into()),
                    None => object.remove(name),
                };
            }
            Some(_) => {}
        }
    }
}

/// Removes the additions that schema `revision` does not have from a status.
pub(super) fn hold_back(status: &mut Object, revision: u32, additions: &[Addition]) {
    let mut later: Vec<&Addition> =
        additions.iter().filter(|addition| addition.since > revision).collect();
    // The newest first: a replacement may itself be too new.
    later.sort_by_key(|addition| Reverse(addition.since));
    for addition in later {
        at_each(status, addition.path, &|object, name| addition.take_out(object, name));
    }
}

/// Calls `act` with every object that has a field at `path`, and with the field's name.
fn at_each(object: &mut Object, path: &str, act: &impl Fn(&mut Object, &str)) {
    let Some((first, rest)) = path.split_once('.') else { return act(object, path) };
    match first.strip_suffix("[]") {
        Some(list) => {
            let items = object.get_mut(list).and_then(Value::as_array_mut);
            let items = items.into_iter().flatten().filter_map(Value::as_object_mut);
            items.for_each(|item| at_each(item, rest, act));
        }
        None => {
            if let Some(inner) = object.get_mut(first).and_then(Value::as_object_mut) {
                at_each(inner, rest, act);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ADDITIONS: &[Addition] = &[
        Addition::field("late", 2),
        Addition::field("resources[].cause", 3),
        Addition::field("place.zone.name", 2),
        Addition::value("phase", "Paused", 2, Some("Ready")),
        Addition::value("phase", "Stopped", 3, Some("Paused")),
        Addition::value("resources[].grade", "Severe", 2, None),
    ];

    fn held_back(revision: u32, status: Value) -> Value {
        let Value::Object(mut status) = status else { panic!("not an object") };
        hold_back(&mut status, revision, ADDITIONS);
        status.into()
    }

    #[test]
    fn later_fields_are_left_out_at_every_level() {
        let whole = json!({
            "early": 1, "late": 2, "place": {"zone": {"name": "a", "id": 1}},
            "resources": [{"slot": "a", "cause": {"code": "Quota"}}, {"slot": "b"}, null],
        });
        let second = json!({
            "early": 1, "late": 2, "place": {"zone": {"name": "a", "id": 1}},
            "resources": [{"slot": "a"}, {"slot": "b"}, null],
        });
        let first = json!({"early": 1, "place": {"zone": {"id": 1}}, "resources": [{"slot": "a"}, {"slot": "b"}, null]});
        assert_eq!(held_back(3, whole.clone()), whole);
        assert_eq!(held_back(2, whole.clone()), second);
        assert_eq!(held_back(1, whole), first);
    }

    #[test]
    fn later_values_are_replaced_with_older_values() {
        for (revision, told) in [(3, "Stopped"), (2, "Paused"), (1, "Ready")] {
            assert_eq!(held_back(revision, json!({"phase": "Stopped"})), json!({"phase": told}));
        }
        assert_eq!(held_back(1, json!({"phase": "Failed"})), json!({"phase": "Failed"}));
        let graded = json!({"resources": [{"grade": "Severe"}, {"grade": "Mild"}]});
        assert_eq!(held_back(2, graded.clone()), graded);
        assert_eq!(held_back(1, graded), json!({"resources": [{}, {"grade": "Mild"}]}));
    }

    #[test]
    fn status_of_another_shape_is_unchanged() {
        for odd in [json!({}), json!({"resources": {"cause": 1}, "place": []}), json!({"phase": 1})]
        {
            assert_eq!(held_back(1, odd.clone()), odd);
        }
    }
}
