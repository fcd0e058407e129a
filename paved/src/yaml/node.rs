//! The positions of a document's values.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::Written;

/// 2⁵³: larger doubles do not identify a single integer.
const INEXACT: u64 = 1 << 53;

/// A document with the positions of its values.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) value: Value,
    pub(super) node: Node,
}

/// A position: bytes of the file, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) bytes: Range<usize>,
    /// The position of an alias or a merge that uses the value.
    pub(crate) used: Option<Range<usize>>,
}

/// The positions of a value and of its contents.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) spot: Spot,
    pub(super) content: Content,
}

/// The contents of a value.
#[derive(Clone, Debug, Default)]
pub(super) enum Content {
    #[default]
    Plain,
    List(Vec<Node>),
    Map(BTreeMap<String, Field>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Spot,
    pub(super) node: Node,
}

impl Node {
    /// Records the position of an alias for the value and its contents.
    pub(super) fn is_used_at(&mut self, bytes: &Range<usize>) {
        self.spot.used = Some(bytes.clone());
        match &mut self.content {
            Content::Plain => {}
            Content::List(items) => items.iter_mut().for_each(|item| item.is_used_at(bytes)),
            Content::Map(fields) => {
                for field in fields.values_mut() {
                    field.name.used = Some(bytes.clone());
                    field.node.is_used_at(bytes);
                }
            }
        }
    }

    /// The start of the value: its first name, or its first item.
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

    fn items(&self) -> Option<&Vec<Self>> {
        match &self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    fn field(&self, name: &str) -> Option<&Field> {
        match &self.content {
            Content::Map(fields) => fields.get(name),
            _ => None,
        }
    }
}

impl Located {
    /// The items of a list of objects, as kubectl splits them. The document is a `List`, or a list
    /// of one kind, for example `StockPoolList`. Items of the second form may omit `kind` and
    /// `apiVersion`. Any other document is a single item.
    pub(crate) fn items(mut self) -> Vec<Self> {
        let kind = self.value["kind"].as_str().unwrap_or_default().to_owned();
        let Some(of) = kind.strip_suffix("List") else { return vec![self] };
        let Some(values) =
            self.value.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take)
        else {
            return vec![self];
        };
        let mut nodes = self
            .node
            .field("items")
            .and_then(|field| field.node.items())
            .cloned()
            .unwrap_or_default();
        nodes.resize_with(values.len(), Node::default);
        let api_version = &self.value["apiVersion"];
        let mut items = Vec::new();
        for (mut value, node) in values.into_iter().zip(nodes) {
            let is_bare =
                value.is_object() && value["kind"].is_null() && value["apiVersion"].is_null();
            if is_bare && !of.is_empty() {
                value["kind"] = of.into();
                value["apiVersion"] = api_version.clone();
            }
            items.extend(Self { value, node }.items());
        }
        items
    }

    /// The position of a field: its value if that is plain, otherwise its name. For a missing
    /// field, it is the nearest existing parent.
    pub(crate) fn value_at(&self, path: &str) -> Spot {
        let (reached, missing) = self.reach(path);
        let is_plain =
            matches!(reached.node.content, Content::Plain) && !reached.node.spot.bytes.is_empty();
        if is_plain && !missing { reached.node.spot.clone() } else { reached.named() }
    }

    /// The position of a field's name.
    pub(crate) fn name_at(&self, path: &str) -> Spot {
        self.reach(path).0.named()
    }

    /// The original spelling of the document's numbers and other plain values.
    pub(crate) fn written(&self, file: &str) -> Written {
        let mut written = Written::new();
        collect("", &self.value, &self.node, file, &mut written);
        written
    }

    /// Follows a path as far as it exists. The fields of the document determine the end of a name,
    /// because a name may contain dots.
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

fn collect(path: &str, value: &Value, node: &Node, file: &str, written: &mut Written) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(field) = node.field(name) {
                    collect(&k8s_schema::child(path, name), value, &field.node, file, written);
                }
            }
        }
        Value::Array(items) => {
            for (index, (value, node)) in
                items.iter().zip(node.items().into_iter().flatten()).enumerate()
            {
                collect(&format!("{path}[{index}]"), value, node, file, written);
            }
        }
        Value::String(_) => {}
        plain => {
            let text = file.get(node.spot.bytes.clone()).unwrap_or_default();
            let is_exact = plain.as_i64().is_none_or(|number| number.unsigned_abs() < INEXACT);
            let is_same = is_exact && plain.to_string().as_str() == text;
            if !text.is_empty() && !is_same {
                written.insert(path.to_owned(), text.to_owned());
            }
        }
    }
}

/// The end of a path.
struct Reached<'a> {
    name: Option<&'a Spot>,
    node: &'a Node,
}

impl Reached<'_> {
    /// The position of the name. List items and documents have no name, so their start is used.
    fn named(&self) -> Spot {
        self.name.unwrap_or_else(|| self.node.beginning()).clone()
    }
}

fn step_into<'a>(
    fields: &'a BTreeMap<String, Field>,
    rest: &'a str,
) -> Option<(Reached<'a>, &'a str)> {
    let plain = rest.strip_prefix('.').unwrap_or(rest);
    let ends = |left: &str| left.is_empty() || left.starts_with(['.', '[']);
    let named = |(name, field): (&'a String, &'a Field)| {
        let bracketed = rest
            .strip_prefix('[')
            .and_then(|rest| rest.strip_prefix(name.as_str())?.strip_prefix(']'));
        let left =
            bracketed.or_else(|| plain.strip_prefix(name.as_str()).filter(|left| ends(left)))?;
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
