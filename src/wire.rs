//! Deterministic bytes: the same [`RunFunctionResponse`] is always the same protobuf message.
//!
//! prost keeps most maps in `HashMap`s and writes them in a random order, so that two equal responses
//! differ on the wire. Here every map is written in the order of its keys.
//!
//! A message's length stands before its content. prost computes it ahead, once more at every level
//! of nesting; we write from the end of the buffer towards its start and know each length when it
//! is due. That pays for the sorting.

use std::collections::HashMap;

use bytes::Bytes;
use function_proto::v1::resource_selector::Match;
use function_proto::v1::{
    Condition, MatchLabels, Requirements, Resource, ResourceSelector, ResponseMeta, Result,
    RunFunctionResponse, SchemaSelector, State,
};
use prost_types::value::Kind;
use prost_types::{Duration, ListValue, Struct, Value};

/// Encodes a response with all maps in the order of their keys.
///
/// prost decodes the bytes to an equal message. Every `f64` is written bit by bit, so NaN and the
/// infinities survive. Stack use grows with nesting, some 300 bytes a level.
pub fn encode(response: &RunFunctionResponse) -> Bytes {
    let mut out = Backwards::with_capacity(4096);
    response.write(&mut out);
    out.finish()
}

/// What stands inside a length-delimited field: a message's fields, a string's characters, plain
/// bytes.
///
/// Implementations take messages apart without `..`, so that a field which the protocol gains does
/// not compile until it is written; and they write the last field first.
trait Content {
    fn write(&self, out: &mut Backwards);
}

impl Content for RunFunctionResponse {
    fn write(&self, out: &mut Backwards) {
        let Self { meta, desired, results, context, requirements, conditions, output } = self;
        out.optional(7, output.as_ref());
        out.repeated(6, conditions);
        out.optional(5, requirements.as_ref());
        out.optional(4, context.as_ref());
        out.repeated(3, results);
        out.optional(2, desired.as_ref());
        out.optional(1, meta.as_ref());
    }
}

impl Content for ResponseMeta {
    fn write(&self, out: &mut Backwards) {
        let Self { tag, ttl } = self;
        out.optional(2, ttl.as_ref());
        out.text(1, tag);
    }
}

impl Content for Duration {
    fn write(&self, out: &mut Backwards) {
        let Self { seconds, nanos } = self;
        out.integer(2, i64::from(*nanos));
        out.integer(1, *seconds);
    }
}

impl Content for State {
    fn write(&self, out: &mut Backwards) {
        let Self { composite, resources } = self;
        out.map(2, resources);
        out.optional(1, composite.as_ref());
    }
}

impl Content for Resource {
    fn write(&self, out: &mut Backwards) {
        let Self { resource, connection_details, ready } = self;
        out.integer(3, i64::from(*ready));
        out.map(2, connection_details);
        out.optional(1, resource.as_ref());
    }
}

impl Content for Result {
    fn write(&self, out: &mut Backwards) {
        let Self { severity, message, reason, target } = self;
        out.optional_integer(4, *target);
        out.optional(3, reason.as_ref());
        out.text(2, message);
        out.integer(1, i64::from(*severity));
    }
}

impl Content for Condition {
    fn write(&self, out: &mut Backwards) {
        let Self { r#type, status, reason, message, target } = self;
        out.optional_integer(5, *target);
        out.optional(4, message.as_ref());
        out.text(3, reason);
        out.integer(2, i64::from(*status));
        out.text(1, r#type);
    }
}

impl Content for Requirements {
    fn write(&self, out: &mut Backwards) {
        let Self { extra_resources, resources, schemas } = self;
        out.map(3, schemas);
        out.map(2, resources);
        out.map(1, extra_resources);
    }
}

impl Content for ResourceSelector {
    fn write(&self, out: &mut Backwards) {
        let Self { api_version, kind, namespace, r#match } = self;
        out.optional(5, namespace.as_ref());
        match r#match {
            Some(Match::MatchLabels(labels)) => out.delimited(4, labels),
            Some(Match::MatchName(name)) => out.delimited(3, name),
            None => {}
        }
        out.text(2, kind);
        out.text(1, api_version);
    }
}

impl Content for MatchLabels {
    fn write(&self, out: &mut Backwards) {
        let Self { labels } = self;
        out.map(1, labels);
    }
}

impl Content for SchemaSelector {
    fn write(&self, out: &mut Backwards) {
        let Self { api_version, kind } = self;
        out.text(2, kind);
        out.text(1, api_version);
    }
}

impl Content for Struct {
    fn write(&self, out: &mut Backwards) {
        let Self { fields } = self;
        out.entries(1, fields.iter().rev());
    }
}

impl Content for ListValue {
    fn write(&self, out: &mut Backwards) {
        let Self { values } = self;
        out.repeated(1, values);
    }
}

impl Content for Value {
    fn write(&self, out: &mut Backwards) {
        let Self { kind } = self;
        match kind {
            None => {}
            Some(Kind::NullValue(null)) => out.varint_field(1, i64::from(*null)),
            Some(Kind::NumberValue(number)) => out.double(2, *number),
            Some(Kind::StringValue(text)) => out.delimited(3, text),
            Some(Kind::BoolValue(truth)) => out.varint_field(4, i64::from(*truth)),
            Some(Kind::StructValue(fields)) => out.delimited(5, fields),
            Some(Kind::ListValue(list)) => out.delimited(6, list),
        }
    }
}

impl Content for String {
    fn write(&self, out: &mut Backwards) {
        out.bytes(self.as_bytes());
    }
}

impl Content for Vec<u8> {
    fn write(&self, out: &mut Backwards) {
        out.bytes(self);
    }
}

/// A buffer filled from its end: `buffer[start..]` is what was written so far.
struct Backwards {
    buffer: Vec<u8>,
    start: usize,
}

/// Protobuf's wire types, as far as the response has them.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Delimited = 2,
}

impl Backwards {
    fn with_capacity(capacity: usize) -> Self {
        Self { buffer: vec![0; capacity], start: capacity }
    }

    fn finish(self) -> Bytes {
        Bytes::from(self.buffer).slice(self.start..)
    }

    fn map<V: Content>(&mut self, field: u32, map: &HashMap<String, V>) {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        self.entries(field, entries.into_iter());
    }

    /// A map is a repeated message of key and value. The entries begin with the greatest key, because
    /// the buffer is filled from its end.
    fn entries<'e, V: Content + 'e>(
        &mut self,
        field: u32,
        entries: impl Iterator<Item = (&'e String, &'e V)>,
    ) {
        for (key, value) in entries {
            let end = self.written();
            self.delimited(2, value);
            self.delimited(1, key);
            self.close(field, end);
        }
    }

    fn repeated(&mut self, field: u32, items: &[impl Content]) {
        for item in items.iter().rev() {
            self.delimited(field, item);
        }
    }

    fn optional(&mut self, field: u32, content: Option<&impl Content>) {
        if let Some(content) = content {
            self.delimited(field, content);
        }
    }

    fn optional_integer(&mut self, field: u32, value: Option<i32>) {
        if let Some(value) = value {
            self.varint_field(field, i64::from(value));
        }
    }

    /// A string without presence: the empty one is not written.
    fn text(&mut self, field: u32, text: &String) {
        if !text.is_empty() {
            self.delimited(field, text);
        }
    }

    /// An integer or enumeration without presence: zero is not written.
    fn integer(&mut self, field: u32, value: i64) {
        if value != 0 {
            self.varint_field(field, value);
        }
    }

    fn delimited(&mut self, field: u32, content: &impl Content) {
        let end = self.written();
        content.write(self);
        self.close(field, end);
    }

    /// Puts length and key before what was written since `written()` was `end`.
    fn close(&mut self, field: u32, end: usize) {
        let length = self.written() - end;
        self.varint(length as u64);
        self.key(field, WireType::Delimited);
    }

    fn varint_field(&mut self, field: u32, value: i64) {
        self.varint(value.cast_unsigned());
        self.key(field, WireType::Varint);
    }

    fn double(&mut self, field: u32, value: f64) {
        self.bytes(&value.to_le_bytes());
        self.key(field, WireType::Fixed64);
    }

    fn key(&mut self, field: u32, wire_type: WireType) {
        self.varint(u64::from(field << 3 | wire_type as u32));
    }

    fn varint(&mut self, mut value: u64) {
        // 64 bits in groups of seven: ten bytes at most.
        let mut groups = [0; 10];
        let mut length = 0;
        loop {
            let last = value < 0x80;
            groups[length] = (value & 0x7f) as u8 | if last { 0 } else { 0x80 };
            length += 1;
            if last {
                return self.bytes(&groups[..length]);
            }
            value >>= 7;
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > self.start {
            self.grow(bytes.len());
        }
        let end = self.start;
        self.start -= bytes.len();
        self.buffer[self.start..end].copy_from_slice(bytes);
    }

    fn grow(&mut self, more: usize) {
        let written = self.written();
        let capacity = (self.buffer.len() * 2).max(written + more);
        let mut buffer = vec![0; capacity];
        buffer[capacity - written..].copy_from_slice(&self.buffer[self.start..]);
        self.start = capacity - written;
        self.buffer = buffer;
    }

    fn written(&self) -> usize {
        self.buffer.len() - self.start
    }
}

#[cfg(test)]
mod tests;
