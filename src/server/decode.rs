//! Decodes a request, with a limit of its own for the depth of documents.
//!
//! prost stops at 100 nested messages. A level of a JSON object takes three of them, so one deep
//! field of a spec would make the whole request unreadable, and its environment could not even be
//! stopped. A request that prost rejects is therefore read again by this module. The depth of the
//! recursion is bounded here too, so that no message exhausts the stack.

use bytes::{Buf as _, Bytes, BytesMut};
use function_proto::v1::{Resource, RunFunctionRequest, State};
use prost::encoding::{WireType, decode_key, decode_varint};
use prost::{DecodeError, Message as _};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

/// Maximum number of nested objects and lists in a document. It is larger than any depth that a
/// check of a spec allows.
const MAX_LEVELS: usize = 64;

/// Numbers of fields in `run_function.proto`.
const OBSERVED: u32 = 2;
const COMPOSITE: u32 = 1;
const RESOURCES: u32 = 2;
const DOCUMENT: u32 = 1;

/// Numbers of fields in `google/protobuf/struct.proto`.
const FIELDS: u32 = 1;
const VALUES: u32 = 1;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// Decodes a request. In the composite, objects and lists below the limit are null: the checks of
/// the spec reject a value of that depth. Such a depth anywhere else is an error.
pub(super) fn decode(message: Bytes) -> Result<RunFunctionRequest, DecodeError> {
    RunFunctionRequest::decode(message.clone()).or_else(|error| deep(message).ok_or(error))
}

fn deep(message: Bytes) -> Option<RunFunctionRequest> {
    let mut others = BytesMut::new();
    let mut observed = None;
    for field in fields(message)? {
        match field.content {
            Some(content) if field.number == OBSERVED => observed = Some(state(content)?),
            _ => others.extend_from_slice(&field.whole),
        }
    }
    let request = RunFunctionRequest::decode(others.freeze()).ok()?;
    Some(RunFunctionRequest { observed, ..request })
}

fn state(message: Bytes) -> Option<State> {
    let mut state = State::default();
    for field in fields(message)? {
        match (field.number, field.content) {
            (COMPOSITE, Some(content)) => state.composite = Some(resource(content, TooDeep::Null)?),
            (RESOURCES, Some(content)) => {
                let (slot, content) = entry(content)?;
                state.resources.insert(slot, resource(content, TooDeep::Error)?);
            }
            _ => {}
        }
    }
    Some(state)
}

fn resource(message: Bytes, too_deep: TooDeep) -> Option<Resource> {
    let mut others = BytesMut::new();
    let mut document = None;
    for field in fields(message)? {
        match field.content {
            Some(content) if field.number == DOCUMENT => {
                document = Some(structure(content, MAX_LEVELS, too_deep)?);
            }
            _ => others.extend_from_slice(&field.whole),
        }
    }
    let resource = Resource::decode(others.freeze()).ok()?;
    Some(Resource { resource: document, ..resource })
}

/// The result for an object or a list below the limit.
#[derive(Clone, Copy)]
enum TooDeep {
    Null,
    Error,
}

fn structure(message: Bytes, levels: usize, too_deep: TooDeep) -> Option<Struct> {
    let mut structure = Struct::default();
    for field in fields(message)? {
        if let (FIELDS, Some(content)) = (field.number, field.content) {
            let (key, content) = entry(content)?;
            structure.fields.insert(key, value(content, levels, too_deep)?);
        }
    }
    Some(structure)
}

fn value(message: Bytes, levels: usize, too_deep: TooDeep) -> Option<Value> {
    let mut value = Value::default();
    for field in fields(message)? {
        let kind = match (field.number, field.content, levels.checked_sub(1)) {
            (STRUCT | LIST, Some(_), None) => match too_deep {
                TooDeep::Null => Kind::NullValue(0),
                TooDeep::Error => return None,
            },
            (STRUCT, Some(content), Some(left)) => {
                Kind::StructValue(structure(content, left, too_deep)?)
            }
            (LIST, Some(content), Some(left)) => Kind::ListValue(list(content, left, too_deep)?),
            _ => match Value::decode(field.whole).ok()?.kind {
                Some(kind) => kind,
                None => continue,
            },
        };
        value.kind = Some(kind);
    }
    Some(value)
}

fn list(message: Bytes, levels: usize, too_deep: TooDeep) -> Option<ListValue> {
    let mut list = ListValue::default();
    for field in fields(message)? {
        if let (VALUES, Some(content)) = (field.number, field.content) {
            list.values.push(value(content, levels, too_deep)?);
        }
    }
    Some(list)
}

/// The key and the value of an entry of a map.
fn entry(message: Bytes) -> Option<(String, Bytes)> {
    let (mut key, mut value) = (String::new(), Bytes::new());
    for field in fields(message)? {
        match (field.number, field.content) {
            (1, Some(content)) => str::from_utf8(&content).ok()?.clone_into(&mut key),
            (2, Some(content)) => value = content,
            _ => {}
        }
    }
    Some((key, value))
}

/// A field of a message.
struct Field {
    number: u32,
    /// The content of a text, of bytes or of a message.
    content: Option<Bytes>,
    /// The field with its number.
    whole: Bytes,
}

/// The fields of a message. `None` for bytes that are not a message.
fn fields(mut message: Bytes) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let before = message.clone();
        let (number, wire_type) = decode_key(&mut message).ok()?;
        let length = match wire_type {
            WireType::Varint => decode_varint(&mut message).map(|_| 0).ok()?,
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::LengthDelimited => decode_varint(&mut message).ok()?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= message.len())?;
        let content = message.slice(..length);
        message.advance(length);
        fields.push(Field {
            number,
            content: (wire_type == WireType::LengthDelimited).then_some(content),
            whole: before.slice(..before.len() - message.len()),
        });
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::BufMut as _;
    use function_proto::v1::RequestMeta;
    use prost::encoding::{encode_key, encode_varint};
    use serde_json::json;

    use super::*;
    use crate::value;

    /// A message in reverse order, which makes nesting cheap.
    struct Reversed(Vec<u8>);

    impl Reversed {
        fn field(&mut self, number: u32, from: usize) {
            let mut head = Vec::new();
            encode_key(number, WireType::LengthDelimited, &mut head);
            encode_varint((self.0.len() - from) as u64, &mut head);
            self.0.extend(head.iter().rev());
        }

        /// Wraps the value as the field `a` of an object.
        fn object(&mut self) {
            self.field(2, 0);
            let from = self.0.len();
            self.0.push(b'a');
            self.field(1, from);
            self.field(FIELDS, 0);
            self.field(STRUCT, 0);
        }

        fn list(&mut self) {
            self.field(VALUES, 0);
            self.field(LIST, 0);
        }
    }

    /// A value of this many levels, objects or lists, as the field `spec` of a document.
    fn document(levels: usize, wrap: fn(&mut Reversed)) -> Vec<u8> {
        let mut nested = Reversed(Vec::new());
        (0..levels).for_each(|_| wrap(&mut nested));
        nested.field(2, 0);
        let from = nested.0.len();
        nested.0.extend(b"spec".iter().rev());
        nested.field(1, from);
        nested.field(FIELDS, 0);
        nested.field(DOCUMENT, 0);
        nested.0.reverse();
        nested.0
    }

    fn message(tag: &str, field: u32, content: &[u8]) -> Bytes {
        let meta = RequestMeta { tag: tag.to_owned(), ..RequestMeta::default() };
        let request = RunFunctionRequest { meta: Some(meta), ..RunFunctionRequest::default() };
        let mut bytes = request.encode_to_vec();
        let mut state = Vec::new();
        encode_key(field, WireType::LengthDelimited, &mut state);
        encode_varint(content.len() as u64, &mut state);
        state.put(content);
        encode_key(OBSERVED, WireType::LengthDelimited, &mut bytes);
        encode_varint(state.len() as u64, &mut bytes);
        bytes.put(state.as_slice());
        bytes.into()
    }

    /// The number of levels of the field `spec` of the composite.
    fn levels(request: RunFunctionRequest) -> usize {
        let composite = request.observed.unwrap().composite.unwrap();
        let mut levels = 0;
        let object = value::object(composite.resource.unwrap());
        let mut value = object.get("spec").unwrap();
        while let Some(inner) = value.get("a").or_else(|| value.get(0)) {
            levels += 1;
            value = inner;
        }
        levels
    }

    #[test]
    fn deep_spec_is_decoded_to_the_limit() {
        for wrap in [Reversed::object, Reversed::list] {
            for (deep, found) in [(1, 1), (27, 27), (40, 40), (64, 64), (200, 64), (150_000, 64)] {
                let message = message("deep", COMPOSITE, &document(deep, wrap));
                let request = decode(message).unwrap();
                assert_eq!(request.meta.as_ref().unwrap().tag, "deep");
                assert_eq!(levels(request), found, "{deep}");
            }
        }
    }

    #[test]
    fn deep_composed_resource_is_decoded_whole_or_not_at_all() {
        let mut entry = Vec::new();
        let mut with = |levels| {
            let document = document(levels, Reversed::object);
            entry.clear();
            encode_key(1, WireType::LengthDelimited, &mut entry);
            encode_varint(3, &mut entry);
            entry.put(&b"app"[..]);
            encode_key(2, WireType::LengthDelimited, &mut entry);
            encode_varint(document.len() as u64, &mut entry);
            entry.put(document.as_slice());
            message("", RESOURCES, &entry)
        };
        let request = decode(with(50)).unwrap();
        assert!(request.observed.unwrap().resources.contains_key("app"));
        assert!(decode(with(100)).is_err());
    }

    #[test]
    fn both_readers_return_the_same_request() {
        let xr = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}},
            "spec": {"list": [1, -2.5, true, null, "text", [], {}], "empty": ""},
        });
        let resource = Resource {
            resource: Some(value::structure(xr.as_object().unwrap().clone())),
            connection_details: [("password".to_owned(), b"x".to_vec())].into(),
            ready: 1,
        };
        let observed = State {
            composite: Some(resource.clone()),
            resources: [("app".to_owned(), resource)].into(),
        };
        let meta = RequestMeta { tag: "t".to_owned(), ..RequestMeta::default() };
        let request = RunFunctionRequest {
            meta: Some(meta),
            observed: Some(observed),
            ..RunFunctionRequest::default()
        };
        assert_eq!(deep(request.encode_to_vec().into()), Some(request));
    }

    #[test]
    fn malformed_message_is_rejected() {
        for bytes in [&b"\xff"[..], b"\x12\x05ab", b"\x13", b"\x0a\x02\x08", b"not a message"] {
            assert!(decode(Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
