//! Tests that the models have the fields of `status.atProvider` that the engine's tables name. The
//! providers' schemas in tests have only the fields of the models, so an API server would drop
//! others.

use super::super::{health, stopped};
use crate::models::{KINDS, KindInfo};

#[test]
fn cloud_states_are_in_their_models() {
    for (service, kind, field, ..) in health::CLOUD_STATES {
        let info = KINDS.iter().find(|info| (info.kind.service, info.kind.kind) == (service, kind));
        assert!(info.is_some_and(|info| has(info, field)), "{service} {kind}: {field}");
    }
}

#[test]
fn fields_of_stopped_resources_are_in_their_models() {
    for info in KINDS {
        for (field, _) in stopped::fields(info.kind.kind) {
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
