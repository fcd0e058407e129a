//! Tests that the models have the fields of `status.atProvider` that the engine's tables name. The
//! providers' schemas in tests have only the fields of the models, so an API server would drop
//! others.

use crate::models::{KINDS, KindInfo};
use crate::observe::{CLOUD_STATES, fields};

#[test]
fn cloud_states_are_in_their_models() {
    for (service, kind, field, ..) in CLOUD_STATES {
        let info = KINDS.iter().find(|info| (info.kind.service, info.kind.kind) == (service, kind));
        assert!(info.is_some_and(|info| has(info, field)), "{service} {kind}: {field}");
    }
}

#[test]
fn fields_of_stopped_resources_are_in_their_models() {
    for info in KINDS {
        for (field, _) in fields(info.kind.kind) {
            assert!(has(info, field), "{}: {field}", info.kind.kind);
        }
    }
}

/// Whether the status of a model has the field at a path.
fn has(info: &KindInfo, path: &str) -> bool {
    let schema = (info.status)();
    let found = path.split('.').try_fold(schema.as_value(), |schema, name| {
        // An optional struct can be a choice between the struct and null.
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        choices.chain([schema]).find_map(|one| one["properties"].get(name))
    });
    found.is_some()
}
