//! JSON objects, the objects of requests, and times. prost bounds the depth of a request (about 33
//! Structs).

pub use crossplane::object::{Object, at, put, text};
pub use function_proto::structs::{object, structure};
use function_proto::v1::Resource;
use jiff::Timestamp;
use prost_types::value::Kind;

/// A resource's object; empty where the request carries none. Without `metadata.managedFields`, the
/// API server's bookkeeping, which nobody here reads and which can be larger than everything else.
pub fn take_object(resource: &mut Resource) -> Object {
    let Some(mut whole) = resource.resource.take() else { return Object::new() };
    if let Some(Kind::StructValue(metadata)) =
        whole.fields.get_mut("metadata").and_then(|value| value.kind.as_mut())
    {
        metadata.fields.remove("managedFields");
    }
    object(whole)
}

/// RFC 3339 in whole seconds, as Kubernetes writes times.
pub fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
