#![allow(clippy::unwrap_used, clippy::expect_used)]

use function_proto::v1::Target;
use proptest::collection::{btree_map, hash_map, vec};
use proptest::option;
use proptest::prelude::*;
use prost::Message as _;

use super::*;

proptest! {
    #[test]
    fn prost_decodes_an_equal_message(response in response()) {
        let bytes = encode(&response);
        prop_assert_eq!(RunFunctionResponse::decode(bytes).unwrap(), response);
    }

    #[test]
    fn equal_messages_have_the_same_bytes(response in response()) {
        // Decoding makes new maps with an order of their own.
        let again = RunFunctionResponse::decode(response.encode_to_vec().as_slice()).unwrap();
        prop_assert_eq!(encode(&response), encode(&again));
    }

    #[test]
    fn maps_are_in_the_order_of_their_keys(keys in vec("[a-z]{1,3}", 0..20)) {
        let labels = keys.iter().map(|key| (key.clone(), "x".to_owned())).collect();
        let mut out = Backwards::with_capacity(1);
        MatchLabels { labels }.write(&mut out);
        // Sorted maps come with prost as well: a message of the same shape, a BTreeMap in place of
        // the HashMap.
        let sorted = Sorted { labels: keys.into_iter().map(|key| (key, "x".to_owned())).collect() };
        prop_assert_eq!(out.finish(), sorted.encode_to_vec());
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sorted {
    #[prost(btree_map = "string, string", tag = "1")]
    labels: std::collections::BTreeMap<String, String>,
}

#[test]
fn not_a_number_survives() {
    let payload = f64::from_bits(0x7ff8_0000_dead_beef);
    for number in [f64::NAN, payload, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        let context = Struct { fields: [("n".to_owned(), Value::from(number))].into() };
        let bytes = encode(&RunFunctionResponse { context: Some(context), ..Default::default() });
        let decoded = RunFunctionResponse::decode(bytes).unwrap();
        let Some(Kind::NumberValue(back)) = decoded.context.unwrap().fields["n"].kind else {
            panic!("no number")
        };
        assert_eq!(back.to_bits(), number.to_bits());
    }
}

#[test]
fn deeper_than_prost_reads_is_written_all_the_same() {
    for depth in [32, 1000] {
        let nested = (0..depth).fold(Struct::default(), |inner, _| Struct {
            fields: [("in".to_owned(), Value { kind: Some(Kind::StructValue(inner)) })].into(),
        });
        let response = RunFunctionResponse { context: Some(nested), ..Default::default() };
        assert_eq!(encode(&response).len(), response.encoded_len());
    }
}

#[test]
fn empty_response_has_no_bytes() {
    assert!(encode(&RunFunctionResponse::default()).is_empty());
}

fn response() -> impl Strategy<Value = RunFunctionResponse> {
    let meta = (text(), option::of((any::<i64>(), any::<i32>()))).prop_map(|(tag, ttl)| {
        ResponseMeta { tag, ttl: ttl.map(|(seconds, nanos)| Duration { seconds, nanos }) }
    });
    (
        option::of(meta),
        option::of(state()),
        vec(result(), 0..4),
        option::of(structure()),
        option::of(requirements()),
        vec(condition(), 0..4),
        option::of(structure()),
    )
        .prop_map(|(meta, desired, results, context, requirements, conditions, output)| {
            RunFunctionResponse {
                meta,
                desired,
                results,
                context,
                requirements,
                conditions,
                output,
            }
        })
}

fn state() -> impl Strategy<Value = State> {
    (option::of(resource()), hash_map(text(), resource(), 0..6))
        .prop_map(|(composite, resources)| State { composite, resources })
}

fn resource() -> impl Strategy<Value = Resource> {
    (option::of(structure()), hash_map(text(), vec(any::<u8>(), 0..200), 0..4), any::<i32>())
        .prop_map(|(resource, connection_details, ready)| Resource {
            resource,
            connection_details,
            ready,
        })
}

fn structure() -> impl Strategy<Value = Struct> {
    btree_map(text(), value(), 0..5).prop_map(|fields| Struct { fields })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|null| Some(Kind::NullValue(null))),
        any::<f64>().prop_map(|number| Some(Kind::NumberValue(number))),
        text().prop_map(|text| Some(Kind::StringValue(text))),
        any::<bool>().prop_map(|truth| Some(Kind::BoolValue(truth))),
        Just(None),
    ];
    let kind = leaf.prop_recursive(4, 24, 5, |inner| {
        let value = inner.prop_map(|kind| Value { kind });
        prop_oneof![
            btree_map(text(), value.clone(), 0..5)
                .prop_map(|fields| Some(Kind::StructValue(Struct { fields }))),
            vec(value, 0..5).prop_map(|values| Some(Kind::ListValue(ListValue { values }))),
        ]
    });
    kind.prop_map(|kind| Value { kind })
}

fn result() -> impl Strategy<Value = Result> {
    (any::<i32>(), text(), option::of(text()), target()).prop_map(
        |(severity, message, reason, target)| Result { severity, message, reason, target },
    )
}

fn condition() -> impl Strategy<Value = Condition> {
    (text(), any::<i32>(), text(), option::of(text()), target()).prop_map(
        |(r#type, status, reason, message, target)| Condition {
            r#type,
            status,
            reason,
            message,
            target,
        },
    )
}

fn requirements() -> impl Strategy<Value = Requirements> {
    let schema =
        || (text(), text()).prop_map(|(api_version, kind)| SchemaSelector { api_version, kind });
    (
        hash_map(text(), selector(), 0..3),
        hash_map(text(), selector(), 0..3),
        hash_map(text(), schema(), 0..3),
    )
        .prop_map(|(extra_resources, resources, schemas)| Requirements {
            extra_resources,
            resources,
            schemas,
        })
}

fn selector() -> impl Strategy<Value = ResourceSelector> {
    let labels = hash_map(text(), text(), 0..4)
        .prop_map(|labels| Match::MatchLabels(MatchLabels { labels }));
    (
        text(),
        text(),
        option::of(text()),
        option::of(prop_oneof![text().prop_map(Match::MatchName), labels]),
    )
        .prop_map(|(api_version, kind, namespace, r#match)| ResourceSelector {
            api_version,
            kind,
            namespace,
            r#match,
        })
}

fn target() -> impl Strategy<Value = Option<i32>> {
    option::of(prop_oneof![Just(0), Just(Target::CompositeAndClaim as i32), any::<i32>()])
}

/// Empty, short, and longer than a length of one byte can say.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => ".{0,6}", 1 => "[a-z]{120,140}"]
}
