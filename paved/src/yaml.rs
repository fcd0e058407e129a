//! Reads YAML as kubectl does, with the position of every value.
//!
//! The parser returns events. The meaning of a scalar follows [kubectl's rules](scalar), which are
//! mostly those of YAML 1.1. For example, `0755` is an octal number, and `no` is false. `paved` and
//! kubectl therefore read the same values.

mod node;
mod scalar;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{
    Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};

use node::{Content, Field, Node};
pub(crate) use node::{Located, Spot};

pub(crate) use paved_render::Written;

/// Text that is not YAML.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) bytes: Range<usize>,
    pub(crate) message: String,
}

/// All documents of a text. JSON objects in a row are also allowed. If the text is not YAML, each
/// document is read separately, so that a broken document does not hide the others.
pub(crate) fn documents(text: &str) -> Vec<Result<Located, Broken>> {
    if let Some(ranges) = json_stream(text) {
        return each(text, ranges);
    }
    match stream(text, 0) {
        Ok(documents) => documents.into_iter().map(Ok).collect(),
        Err(_) => each(text, by_separator(text)),
    }
}

/// The only value in a text, for example of a flag.
pub(crate) fn value(text: &str) -> Result<Value, Broken> {
    let mut documents = stream(text, 0)?;
    match documents.pop() {
        None => Ok(Value::Null),
        Some(one) if documents.is_empty() => Ok(one.value),
        Some(_) => {
            Err(Broken { bytes: 0..text.len(), message: "found several documents".to_owned() })
        }
    }
}

/// The documents in parts of a text.
fn each(text: &str, parts: Vec<Range<usize>>) -> Vec<Result<Located, Broken>> {
    let mut all = Vec::new();
    for part in parts {
        match stream(&text[part.clone()], part.start) {
            Ok(documents) => all.extend(documents.into_iter().map(Ok)),
            Err(broken) => all.push(Err(broken)),
        }
    }
    all
}

/// The ranges of JSON objects in a row, without separators. After two objects, the text counts as
/// JSON, and a broken rest is a separate part.
fn json_stream(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    while let Some(value) = values.next() {
        if value.is_err() {
            let is_json = parts.len() > 1;
            parts.push(start..text.len());
            return is_json.then_some(parts);
        }
        parts.push(start..values.byte_offset());
        start = values.byte_offset();
    }
    (parts.len() > 1).then_some(parts)
}

/// The ranges between lines that begin with `---`. Such a line always begins a document.
fn by_separator(text: &str) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    let mut byte = 0;
    for line in text.split_inclusive('\n') {
        let separates = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if byte > 0 && separates {
            starts.push(byte);
        }
        byte += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

/// The documents of a text that begins at a byte of its file. Empty documents are skipped.
fn stream(text: &str, base: usize) -> Result<Vec<Located>, Broken> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { text, base, parser, anchors: HashMap::new(), nodes: 0, aliased: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::DocumentStart(..), _) => {
                (reader.nodes, reader.aliased) = (0, 0);
                reader.anchors.clear();
            }
            (event, span) => {
                let Read { value, node, .. } = reader.read(event, span)?;
                if !value.is_null() {
                    documents.push(Located { value, node });
                }
            }
        }
    }
}

/// The fields of an object, and their positions.
type Values = Map<String, Value>;
type Places = BTreeMap<String, Field>;

/// Converts events to values.
struct Reader<'t> {
    text: &'t str,
    base: usize,
    parser: Parser<'t, StrInput<'t>>,
    /// The values of anchors that were already read.
    anchors: HashMap<usize, Read>,
    /// The number of values in the document so far, and the number of values from aliases.
    nodes: usize,
    aliased: usize,
}

/// A value, its position, and the number of values in it.
#[derive(Clone)]
struct Read {
    value: Value,
    node: Node,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Broken> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.unreadable(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Reads the value that begins with this event.
    fn read(&mut self, event: Event<'t>, span: Span) -> Result<Read, Broken> {
        let before = self.nodes;
        self.nodes += 1;
        let spot = self.spot(span);
        let (anchor, value, content) = match event {
            Event::Alias(anchor) => return self.alias(anchor, &spot),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref(), &spot)?;
                (anchor, value, Content::Plain)
            }
            Event::SequenceStart(_, anchor, _) => {
                let (items, nodes) = self.items()?;
                (anchor, Value::Array(items), Content::List(nodes))
            }
            Event::MappingStart(_, anchor, _) => {
                let (fields, nodes) = self.fields()?;
                (anchor, Value::Object(fields), Content::Map(nodes))
            }
            _ => {
                return Err(Broken { bytes: spot.bytes, message: "a value is missing".to_owned() });
            }
        };
        let read = Read { value, node: Node { spot, content }, nodes: self.nodes - before };
        if anchor > 0 {
            self.anchors.insert(anchor, read.clone());
        }
        Ok(read)
    }

    fn items(&mut self) -> Result<(Vec<Value>, Vec<Node>), Broken> {
        let (mut values, mut nodes) = (Vec::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((values, nodes));
            }
            let read = self.read(event, span)?;
            values.push(read.value);
            nodes.push(read.node);
        }
    }

    fn fields(&mut self) -> Result<(Values, Places), Broken> {
        let (mut values, mut nodes) = (Values::new(), Places::new());
        // Fields that are written in this object, and not merged.
        let mut own = BTreeSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok((values, nodes));
            }
            let is_merge =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let written = match &event {
                Event::Scalar(text, style, _, tag) => {
                    Some(scalar::key(kind(*style, tag.as_deref()), text))
                }
                _ => None,
            };
            let key = self.key(event, span)?;
            let (event, span) = self.next()?;
            let field = self.read(event, span)?;
            if is_merge {
                merge(field, &key.node.spot, &mut values, &mut nodes)?;
                continue;
            }
            // An alias can refer to a text.
            let Some(name) = written.unwrap_or_else(|| key.value.as_str().map(str::to_owned))
            else {
                let message = "a key must be a text, a number, true or false".to_owned();
                return Err(Broken { bytes: key.node.spot.bytes, message });
            };
            if !own.insert(name.clone()) {
                let message = format!("the key {name:?} is used twice");
                return Err(Broken { bytes: key.node.spot.bytes, message });
            }
            nodes.insert(name.clone(), Field { name: key.node.spot, node: field.node });
            values.insert(name, field.value);
        }
    }

    /// Reads a key. Its text may be invalid as a value.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<Read, Broken> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                let spot = self.spot(span);
                let node = Node { spot, content: Content::Plain };
                let read = Read { value: Value::from(text.into_owned()), node, nodes: 1 };
                self.nodes += 1;
                if anchor > 0 {
                    self.anchors.insert(anchor, read.clone());
                }
                Ok(read)
            }
            other => self.read(other, span),
        }
    }

    /// A copy of the aliased value. As in kubectl, a document that consists mostly of aliases is
    /// rejected, because a few lines of aliases could fill any memory.
    fn alias(&mut self, anchor: usize, spot: &Spot) -> Result<Read, Broken> {
        let broken =
            |message: &str| Broken { bytes: spot.bytes.clone(), message: message.to_owned() };
        let Some(read) = self.anchors.get(&anchor) else {
            return Err(broken("the alias is inside its own anchor"));
        };
        self.nodes += read.nodes;
        self.aliased += read.nodes;
        if self.aliased > 100
            && self.nodes > 1000
            && ratio(self.aliased, self.nodes) > allowed_ratio(self.nodes)
        {
            return Err(broken("the document has too many aliases"));
        }
        let mut read = read.clone();
        read.node.is_used_at(&spot.bytes);
        Ok(read)
    }

    /// The bytes of a span, up to the end of its first line.
    fn spot(&self, span: Span) -> Spot {
        let whole = span.byte_range().unwrap_or_default();
        let text = self.text.get(whole.clone()).unwrap_or_default();
        let line = text.split(['\n', '\r']).next().unwrap_or_default();
        let start = self.base + whole.start;
        Spot { bytes: start..start + line.trim_end().len(), used: None }
    }

    fn unreadable(&self, error: &ScanError) -> Broken {
        let byte = error.marker().byte_offset().unwrap_or(self.text.len());
        let byte = self.base + self.text.floor_char_boundary(byte.min(self.text.len()));
        Broken { bytes: byte..byte, message: error.info().replace('\n', " ") }
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, spot: &Spot) -> Result<Value, Broken> {
    let refused = |message| Broken { bytes: spot.bytes.clone(), message };
    scalar::value(kind(style, tag), text).map_err(refused)
}

/// Merges an object, or a list of objects. The first object in a list takes precedence. As in
/// kubectl, merged fields replace the fields before them.
fn merge(merged: Read, key: &Spot, values: &mut Values, nodes: &mut Places) -> Result<(), Broken> {
    let all = match (merged.value, merged.node.content) {
        (Value::Object(fields), Content::Map(places)) => vec![(fields, places)],
        (Value::Array(items), Content::List(places)) => {
            let each = items.into_iter().zip(places).rev().map(|(item, place)| {
                match (item, place.content) {
                    (Value::Object(fields), Content::Map(places)) => Some((fields, places)),
                    _ => None,
                }
            });
            each.collect::<Option<Vec<_>>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    if all.is_empty() {
        let message = "<< needs an object or a list of objects".to_owned();
        return Err(Broken { bytes: key.bytes.clone(), message });
    }
    for (fields, places) in all {
        values.extend(fields);
        nodes.extend(places);
    }
    Ok(())
}

/// The tag of a scalar, from its style and explicit tag.
fn kind(style: ScalarStyle, tag: Option<&Tag>) -> scalar::Tag<'_> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain {
            scalar::Tag::None
        } else {
            scalar::Tag::Standard("str")
        };
    };
    match tag.parts() {
        ("tag:yaml.org,2002:", name) => scalar::Tag::Standard(name),
        _ => scalar::Tag::Custom,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a document's values")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// The allowed share of values from aliases, as in kubectl's reader. It is nearly the whole of a
/// small document, and a tenth of a large document.
fn allowed_ratio(nodes: usize) -> f64 {
    const SMALL: usize = 400_000;
    const LARGE: usize = 4_000_000;
    0.99 - 0.89 * ratio(nodes.clamp(SMALL, LARGE) - SMALL, LARGE - SMALL)
}

#[cfg(test)]
mod tests;
