//! The places of a document's values, as the parser gives them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::{Spot, bytes};

/// A value's place, and those of what it holds.
#[derive(Default)]
pub(super) struct Node {
    pub(super) spot: Spot,
    location: Option<(Location, Location)>,
    pub(super) content: Content,
}

/// What a value holds.
#[derive(Default)]
pub(super) enum Content {
    #[default]
    Plain,
    List(Vec<Node>),
    Map(BTreeMap<String, Field>),
}

/// A field of an object.
pub(super) struct Field {
    pub(super) name: Spot,
    location: (Location, Location),
    pub(super) node: Node,
}

impl Node {
    /// Turns locations into bytes of the file.
    pub(super) fn settle(&mut self, text: &str, base: usize) {
        if let Some(location) = self.location.take() {
            self.spot = spot(&location, text, base);
        }
        match &mut self.content {
            Content::Plain => {}
            Content::List(items) => items.iter_mut().for_each(|item| item.settle(text, base)),
            Content::Map(fields) => {
                for field in fields.values_mut() {
                    field.name = spot(&field.location, text, base);
                    field.node.settle(text, base);
                }
            }
        }
    }

    /// Where it begins: at its first name, or its first item.
    pub(super) fn beginning(&self) -> &Spot {
        let first = match &self.content {
            Content::Plain => None,
            Content::List(items) => items.first().map(Self::beginning),
            Content::Map(fields) => {
                fields.values().map(|field| &field.name).min_by_key(|spot| spot.bytes.start)
            }
        };
        first.unwrap_or(&self.spot)
    }
}

fn spot((used, defined): &(Location, Location), text: &str, base: usize) -> Spot {
    let shifted = |bytes: Range<usize>| base + bytes.start..base + bytes.end;
    let used = (used != defined && *used != Location::UNKNOWN).then(|| shifted(bytes(used, text)));
    Spot { bytes: shifted(bytes(defined, text)), used }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined } = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { spot: Spot::default(), location: Some((referenced, defined)), content: value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shape)
    }
}

struct Shape;

impl<'de> Visitor<'de> for Shape {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_str<E>(self, _: &str) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Plain)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Content::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
        let mut named = BTreeMap::new();
        while let Some(name) = fields.next_key::<Spanned<Option<String>>>()? {
            let Some(key) = name.value else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let field = Field {
                name: Spot::default(),
                location: (name.referenced, name.defined),
                node: fields.next_value()?,
            };
            named.insert(key, field);
        }
        Ok(Content::Map(named))
    }
}
