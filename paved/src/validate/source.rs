//! Files with the place of every value in them.

mod node;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde_json::Value;
use serde_saphyr::{Location, MessageFormatter, UserMessageFormatter};

use crate::files::Text;
use crate::paint::harmless;
use node::{Content, Field, Node};

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
        let Text { file, found, content: text } = text;
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

#[cfg(test)]
mod tests;
