//! Files with the place of every value in them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};

use crate::files::Text;
use crate::paint::harmless;

/// A file, its documents, and where its text is no YAML.
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// Whether the file was found in a folder, rather than named.
    pub(super) found: bool,
    pub(super) text: String,
    pub(super) documents: Vec<Located>,
    pub(super) broken: Vec<Broken>,
}

/// A document that knows where its values stand.
pub(super) struct Located {
    pub(super) value: Value,
    node: Node,
}

/// Text that is no YAML.
pub(super) struct Broken {
    pub(super) bytes: Range<usize>,
    pub(super) message: String,
}

/// Where something stands: bytes of the file, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) bytes: Range<usize>,
    /// Where it is used, if it stands elsewhere: an alias, or a merge.
    pub(super) used: Option<Range<usize>>,
}

impl Source {
    /// Reads all documents. Where the text is no YAML, each document is read by itself, so that one hides no other.
    pub(super) fn parse(text: Text) -> Self {
        let Text { file, found, text } = text;
        let whole = documents(&text, 0);
        let parts = if whole.is_ok() { vec![whole] } else { by_themselves(&text) };
        let mut source = Self { file, found, text, documents: Vec::new(), broken: Vec::new() };
        for part in parts {
            match part {
                Ok(documents) => source.documents.extend(documents),
                Err(broken) => source.broken.push(broken),
            }
        }
        source
    }

    /// The line of a byte, counted from 1, and the bytes of that line without its end.
    pub(super) fn line(&self, byte: usize) -> (usize, Range<usize>) {
        let byte = floor(&self.text, byte);
        let before = &self.text[..byte];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[byte..].find('\n').map_or(self.text.len(), |length| byte + length);
        let line = self.text[start..end].trim_end_matches('\r');
        (before.matches('\n').count() + 1, start..start + line.len())
    }

    /// The column of a byte in its line, in characters, counted from 1.
    pub(super) fn column(&self, byte: usize) -> usize {
        let byte = floor(&self.text, byte);
        self.text[self.line(byte).1.start..byte].chars().count() + 1
    }
}

/// The nearest beginning of a character.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte.min(text.len()))
}

/// The documents of a text that begins at a byte of its file.
fn documents(text: &str, base: usize) -> Result<Vec<Located>, Broken> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| broken(&error, text, base))?;
    let mut nodes: Vec<Node> = serde_saphyr::from_multiple(text).unwrap_or_default();
    nodes.resize_with(values.len(), Node::default);
    let mut located = Vec::new();
    for (value, mut node) in values.into_iter().zip(nodes).filter(|(value, _)| !value.is_null()) {
        node.settle(text, base);
        located.extend(Located { value, node }.items());
    }
    Ok(located)
}

/// What each document is by itself: a line that begins with --- always begins one.
fn by_themselves(text: &str) -> Vec<Result<Vec<Located>, Broken>> {
    let mut starts = vec![0];
    let mut byte = 0;
    for line in text.split_inclusive('\n') {
        if byte > 0
            && line
                .strip_prefix("---")
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            starts.push(byte);
        }
        byte += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| documents(&text[start..end], start)).collect()
}

fn broken(error: &serde_saphyr::Error, text: &str, base: usize) -> Broken {
    let message = harmless(&UserMessageFormatter.format_message(error.without_snippet())).replace('\n', " ");
    let bytes = error.location().map_or(0..0, |location| bytes(&location, text));
    Broken { bytes: base + bytes.start..base + bytes.end, message }
}

/// The bytes of a location, up to the end of its first line.
fn bytes(location: &Location, text: &str) -> Range<usize> {
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let span = location.span();
    let start = span.byte_offset().map_or_else(|| line_and_column(location, text), whole);
    let start = floor(text, start);
    let end = floor(text, start.saturating_add(whole(span.byte_len().unwrap_or_default())));
    let line = text[start..end].split(['\n', '\r']).next().unwrap_or_default();
    start..start + line.trim_end().len()
}

/// The byte of a line and a column, for locations that know no bytes.
fn line_and_column(location: &Location, text: &str) -> usize {
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    let (line, column) = (index(location.line()), index(location.column()));
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = &text[start..];
    start + rest.char_indices().nth(column).map_or(rest.len(), |(byte, _)| byte)
}

impl Located {
    /// The items of a List; any other document is one.
    fn items(mut self) -> Vec<Self> {
        let is_list = self.value["kind"] == "List";
        let items = self.value.get_mut("items").and_then(Value::as_array_mut);
        let Some(values) = items.filter(|_| is_list).map(std::mem::take) else {
            return vec![self];
        };
        let nodes = match self.node.content {
            Content::Map(mut fields) => fields.remove("items").map(|field| field.node),
            _ => None,
        };
        let mut nodes = match nodes.map(|node| node.content) {
            Some(Content::List(nodes)) => nodes,
            _ => Vec::new(),
        };
        nodes.resize_with(values.len(), Node::default);
        values.into_iter().zip(nodes).map(|(value, node)| Self { value, node }).collect()
    }

    /// Where a field stands: its value where that is plain, else its name. Of a field that is missing, the nearest parent
    /// that is there.
    pub(super) fn value_at(&self, path: &str) -> Spot {
        let (reached, missing) = self.reach(path);
        let is_plain = matches!(reached.node.content, Content::Plain) && !reached.node.spot.bytes.is_empty();
        if is_plain && !missing { reached.node.spot.clone() } else { reached.named() }
    }

    /// Where the name of a field stands.
    pub(super) fn name_at(&self, path: &str) -> Spot {
        self.reach(path).0.named()
    }

    /// Goes down a path as far as it is there. The document itself says where a name ends: a name may have dots in it.
    fn reach<'a>(&'a self, path: &'a str) -> (Reached<'a>, bool) {
        let mut reached = Reached { name: None, node: &self.node };
        let mut rest = path;
        while !rest.is_empty() {
            let next = match &reached.node.content {
                Content::Map(fields) => step_into(fields, rest),
                Content::List(items) => step_to(items, rest),
                Content::Plain => None,
            };
            let Some((below, left)) = next else { return (reached, true) };
            (reached, rest) = (below, left);
        }
        (reached, false)
    }
}

/// Where a path has led to.
struct Reached<'a> {
    name: Option<&'a Spot>,
    node: &'a Node,
}

impl Reached<'_> {
    /// Its name; an item of a list, or a document, has none, but begins somewhere.
    fn named(&self) -> Spot {
        self.name.unwrap_or_else(|| self.node.beginning()).clone()
    }
}

fn step_into<'a>(fields: &'a BTreeMap<String, Field>, rest: &'a str) -> Option<(Reached<'a>, &'a str)> {
    let plain = rest.strip_prefix('.').unwrap_or(rest);
    let ends = |left: &str| left.is_empty() || left.starts_with(['.', '[']);
    let named = |(name, field): (&'a String, &'a Field)| {
        let bracketed =
            rest.strip_prefix('[').and_then(|rest| rest.strip_prefix(name.as_str())?.strip_prefix(']'));
        let left = bracketed.or_else(|| plain.strip_prefix(name.as_str()).filter(|left| ends(left)))?;
        Some((name.len(), Reached { name: Some(&field.name), node: &field.node }, left))
    };
    let longest = fields.iter().filter_map(named).max_by_key(|(length, ..)| *length)?;
    Some((longest.1, longest.2))
}

fn step_to<'a>(items: &'a [Node], rest: &'a str) -> Option<(Reached<'a>, &'a str)> {
    let (index, left) = rest.strip_prefix('[')?.split_once(']')?;
    let node = items.get(index.parse::<usize>().ok()?)?;
    Some((Reached { name: None, node }, left))
}

/// A value's place, and those of what it holds.
#[derive(Default)]
struct Node {
    spot: Spot,
    location: Option<(Location, Location)>,
    content: Content,
}

#[derive(Default)]
enum Content {
    #[default]
    Plain,
    List(Vec<Node>),
    Map(BTreeMap<String, Field>),
}

struct Field {
    name: Spot,
    location: (Location, Location),
    node: Node,
}

impl Node {
    /// Turns locations into bytes of the file.
    fn settle(&mut self, text: &str, base: usize) {
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
    fn beginning(&self) -> &Spot {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn source(text: &str) -> Source {
        Source::parse(Text { file: "a.yaml".into(), found: false, text: text.to_owned() })
    }

    /// Line, column and text of what is marked for a path of a document.
    fn marked(text: &str, document: usize, path: &str) -> (usize, usize, String) {
        let source = source(text);
        let Spot { bytes, .. } = source.documents[document].value_at(path);
        (source.line(bytes.start).0, source.column(bytes.start), source.text[bytes].to_owned())
    }

    #[test]
    fn a_value_is_found_in_every_style() {
        for (text, document, path, line, column, shown) in [
            ("a:\n  b: 1\n", 0, "a.b", 2, 6, "1"),
            ("a:\n  b: 1\n", 0, "a", 1, 1, "a"),
            ("a: {b: [1, \"two\"]}", 0, "a.b[1]", 1, 12, "\"two\""),
            ("{\"a\":\n\t{\"b\": null, \"c\": 'x'}}", 0, "a.c", 2, 18, "'x'"),
            ("x: 1\n---\na: 1\n---\n# why\nb:\n- c: é\n  d: ü\n", 2, "b[0].d", 8, 6, "ü"),
            ("a: |\n  text\n  more\nb: 1\n", 0, "b", 4, 4, "1"),
            ("a: &x [1, two]\nb: *x\n", 0, "b[1]", 1, 11, "two"),
            ("base: &b {k: v}\nm:\n  <<: *b\n", 0, "m.k", 1, 14, "v"),
            ("a:\n  we.ird key: 7\n  we: 8\n", 0, "a[we.ird key]", 2, 15, "7"),
            ("a:\n  we.ird: 7\n  we: {ird: 8}\n", 0, "a.we.ird", 2, 11, "7"),
            ("a: \"one\n  two\"\n", 0, "a", 1, 4, "\"one"),
            ("a:\nb: 1\n", 0, "a", 1, 1, "a"),
            ("kind: List\nitems:\n- x: 1\n- y: 2\n", 1, "y", 4, 6, "2"),
        ] {
            assert_eq!(marked(text, document, path), (line, column, shown.to_owned()), "{text}: {path}");
        }
    }

    #[test]
    fn what_is_missing_is_told_at_its_parent() {
        for (text, path, line, column, shown) in [
            ("a:\n  b: 1\n", "a.c", 1, 1, "a"),
            ("# why\nx: 1\na: 1\n", "c.d", 2, 1, "x"),
            ("a:\n- b: 1\n", "a[0].c", 2, 3, "b"),
            ("a: [1]\n", "a[4]", 1, 1, "a"),
            ("a: [{}]\n", "a[0].b", 1, 5, "{"),
        ] {
            let (found_line, found_column, found) = marked(text, 0, path);
            assert_eq!(
                (found_line, found_column, found.chars().next()),
                (line, column, shown.chars().next()),
                "{text}: {path}"
            );
        }
    }

    #[test]
    fn an_alias_is_told_where_it_is_used_too() {
        let source = source("a: &x wrong\nb: *x\n");
        let spot = source.documents[0].value_at("b");
        assert_eq!(
            (&source.text[spot.bytes], spot.used.map(|used| &source.text[used])),
            ("wrong", Some("*x"))
        );
        assert_eq!(source.documents[0].value_at("a").used, None);
    }

    #[test]
    fn one_broken_document_hides_no_other() {
        let source = source("a: 1\n---\nb: [\n---\nc: }\n--- \nd: 4\n");
        let lines: Vec<usize> =
            source.broken.iter().map(|broken| source.line(broken.bytes.start).0).collect();
        assert_eq!((source.documents.len(), lines), (2, vec![3, 5]));
        let spot = source.documents[1].value_at("d");
        assert_eq!(source.line(spot.bytes.start).0, 7);
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(|number| json!(number)),
            "[ -~é]{0,12}".prop_map(|text| json!(text)),
            any::<bool>().prop_map(|flag| json!(flag)),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z]{1,4}", inner, 1..4).prop_map(|map| json!(map)),
            ]
        })
    }

    /// The paths of all plain values.
    fn leaves(value: &Value, path: &str) -> Vec<(String, Value)> {
        match value {
            Value::Object(fields) => {
                fields.iter().flat_map(|(name, value)| leaves(value, &format!("{path}.{name}"))).collect()
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .flat_map(|(index, value)| leaves(value, &format!("{path}[{index}]")))
                .collect(),
            plain => vec![(path.trim_start_matches('.').to_owned(), plain.clone())],
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What is marked for a path is the value that stands there, in block style and as JSON.
        #[test]
        fn every_value_is_where_it_is_said_to_be(value in tree()) {
            let document = json!({"spec": value});
            let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
            let block = serde_saphyr::to_string_with_options(&document, options).unwrap();
            let pretty = serde_json::to_string_pretty(&document).unwrap();
            for text in [block, pretty, document.to_string()] {
                let source = source(&format!("first: 1\n---\n{text}\n"));
                for (path, leaf) in leaves(&document, "") {
                    let bytes = source.documents[1].value_at(&path).bytes;
                    let shown: Value = serde_saphyr::from_str(&source.text[bytes.clone()]).unwrap();
                    prop_assert_eq!(&shown, &leaf, "{} at {:?} of {}", path, bytes, source.text);
                }
            }
        }
    }
}
