//! Data of others passes through: resources of other steps, other fields of the composite, the
//! context.

use std::collections::{BTreeMap, HashMap};

use function_proto::v1::{Ready, Resource, State};
use proptest::collection::{btree_map, hash_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost_types::Struct;
use serde_json::{Value, json};

use crate::generate::{self, Rubbish};
use crate::support::{self, world};
use function_paved_road::observe::OWNED_LABEL;

proptest! {
    #![proptest_config(generate::config())]

    #[test]
    fn resources_of_other_steps_pass_through(
        world in generate::world(), theirs in state(), context in option::of(document()), faults in vec((any::<Index>(), generate::rubbish()), 0..2),
    ) {
        let mut world = world;
        for (at, rubbish) in &faults {
            generate::spoil_spec(&mut world, *at, rubbish);
        }
        let mut request = world.request();
        request.desired = Some(theirs.clone());
        request.context = context.clone();
        let response = support::answer(request);
        prop_assert_eq!(&response.context, &context);
        prop_assert_eq!(&response.meta.as_ref().unwrap().tag, "test");
        if world::is_fatal(&response) {
            prop_assert_eq!(response.desired, Some(theirs));
            return Ok(());
        }
        let mut ours = response.desired.unwrap();
        for (slot, resource) in &theirs.resources {
            prop_assert_eq!(ours.resources.get(slot), Some(resource));
        }
        let their_composite = theirs.composite.unwrap_or_default();
        let composite = ours.composite.take().unwrap();
        for (key, value) in &their_composite.connection_details {
            prop_assert_eq!(composite.connection_details.get(key), Some(value));
        }
        if their_composite.ready() == Ready::False {
            prop_assert_eq!(composite.ready(), Ready::False);
        }
        let fields = |resource: &Resource| resource.resource.clone().unwrap_or_default().fields;
        let (theirs, ours) = (fields(&their_composite), fields(&composite));
        for (key, value) in theirs.iter().filter(|(key, _)| *key != "status") {
            prop_assert_eq!(ours.get(key), Some(value), "{}", key);
        }
        let status = |fields: &BTreeMap<String, prost_types::Value>| match fields.get("status").and_then(|v| v.kind.clone()) {
            Some(prost_types::value::Kind::StructValue(status)) => status.fields,
            _ => BTreeMap::new(),
        };
        let ours = status(&ours);
        for (key, value) in &status(&theirs) {
            prop_assert_eq!(ours.get(key), Some(value), "status.{}", key);
        }
    }

    #[test]
    fn foreign_observed_resources_change_no_answer(
        world in generate::world(), theirs in btree_map("[a-z]{1,8}-of-others", document(), 1..3), mark in select(vec![None, Some("false"), Some("")]),
    ) {
        let before = world.answer();
        let mut world = world;
        for (slot, object) in theirs {
            let mut object = function_paved_road::value::object(object);
            let labels = json!({OWNED_LABEL: mark});
            object.insert("metadata".to_owned(), json!({"name": slot, "labels": labels}));
            let composed = world::Composed { object: Value::Object(object), details: world::Details::new() };
            world.composed.insert(slot, composed);
        }
        prop_assert_eq!(world.answer(), before);
    }

    #[test]
    fn lost_label_is_restored(world in generate::running(), whom: Index) {
        let mut world = world;
        let before = world.answer();
        let slot = whom.get(&world.composed.keys().cloned().collect::<Vec<_>>()).clone();
        let path = ["metadata", "labels", OWNED_LABEL].map(str::to_owned);
        generate::put(&mut world.composed.get_mut(&slot).unwrap().object, &path, &Rubbish::Removed);
        prop_assert_eq!(world::desired(&world.answer()), world::desired(&before));
    }
}

/// The desired state of earlier steps.
fn state() -> impl Strategy<Value = State> {
    let composite = (option::of(composite()), details(), ready());
    let composite = composite.prop_map(|(resource, connection_details, ready)| Resource {
        resource,
        connection_details,
        ready,
    });
    let resource = (option::of(document()), details(), ready());
    let resource = resource.prop_map(|(resource, connection_details, ready)| Resource {
        resource,
        connection_details,
        ready,
    });
    (option::of(composite), hash_map("[a-z]{1,8}-of-others", resource, 0..3))
        .prop_map(|(composite, resources)| State { composite, resources })
}

/// A composite with a status from an earlier step.
fn composite() -> impl Strategy<Value = Struct> {
    (document(), option::of(document())).prop_map(|(mut composite, status)| {
        let status = status.map(|status| Struct {
            fields: BTreeMap::from([("theirs".to_owned(), structure(status))]),
        });
        composite.fields.extend(status.map(|status| ("status".to_owned(), structure(status))));
        composite
    })
}

fn structure(inner: Struct) -> prost_types::Value {
    prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(inner)) }
}

fn document() -> impl Strategy<Value = Struct> {
    let value = prop_oneof![
        "[a-z]{0,5}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!({"in": ["a", 1.5, null]})),
    ];
    btree_map("[a-z]{1,6}", value, 0..4).prop_map(|fields| world::structure(&json!(fields)))
}

fn details() -> impl Strategy<Value = HashMap<String, Vec<u8>>> {
    hash_map("[a-z]{1,5}-theirs", vec(any::<u8>(), 0..4), 0..2)
}

fn ready() -> impl Strategy<Value = i32> {
    select(vec![Ready::Unspecified as i32, Ready::True as i32, Ready::False as i32])
}
