//! YAML documents from files, folders and standard input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use crate::Console;
use crate::failure::Failure;
use crate::style::harmless_name;
use crate::yaml::{self, Broken, Located, Written};

/// A document and its source.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The file as the user named it, or `-` for standard input.
    pub(crate) file: PathBuf,
    /// Whether the file was found in a folder. Otherwise, the user named it.
    pub(crate) found: bool,
    pub(crate) value: Value,
    /// The original spelling of numbers that JSON writes differently.
    pub(crate) written: Written,
}

impl Document {
    /// File, kind and name for messages.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", shown(&self.file), self.name())
    }

    /// Kind and name.
    pub(crate) fn name(&self) -> String {
        let kind = self.value["kind"].as_str().unwrap_or("a document without kind");
        let name = self.value["metadata"]["name"].as_str().unwrap_or("without name");
        harmless_name(&format!("{kind} {name}"))
    }
}

/// A path for messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        harmless_name(&path.display().to_string())
    }
}

/// A file with its documents and its syntax errors.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file as the user named it, or `-` for standard input.
    pub(crate) file: PathBuf,
    /// Whether the file was found in a folder. Otherwise, the user named it.
    pub(crate) found: bool,
    pub(crate) text: String,
    pub(crate) documents: Vec<Located>,
    pub(crate) broken: Vec<Broken>,
}

/// The files that a command reads. Each file is read once for all environments, because a pipe
/// returns its text only once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs(Rc<RefCell<BTreeMap<PathBuf, Sources>>>);

/// A file or the files of a folder. An unreadable file does not hide the others.
type Sources = Rc<[Result<Rc<Source>, String>]>;

impl Inputs {
    /// The documents of a file, of a folder's YAML and JSON files, or of standard input. Lists are
    /// split into their items. A document in a folder that cannot be a Kubernetes object is skipped
    /// with a note.
    pub(crate) fn read(
        &self,
        path: &Path,
        console: &mut Console<'_>,
    ) -> Result<Vec<Document>, Failure> {
        let mut documents = Vec::new();
        for source in self.sources(path, console)?.iter() {
            let source = source.as_ref().map_err(|why| Failure::Usage(why.clone()))?;
            documents.extend(source.objects(console)?);
        }
        Ok(documents)
    }

    /// The files with their documents.
    pub(crate) fn sources(
        &self,
        path: &Path,
        console: &mut Console<'_>,
    ) -> Result<Sources, Failure> {
        let known = self.0.borrow().get(path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let sources: Sources = if path == Path::new("-") {
            let mut bytes = Vec::new();
            let unreadable =
                |error| Failure::Usage(format!("could not read standard input: {error}"));
            (console.input)(&mut bytes).map_err(unreadable)?;
            Rc::new([Source::from_bytes(path, false, bytes).map(Rc::new)])
        } else if path.is_dir() {
            let (files, folders) = inside(path)?;
            if !folders.is_empty() {
                let folders: Vec<String> = folders.iter().map(|folder| shown(folder)).collect();
                writeln!(
                    console.err,
                    "note: skipped folders: {}. Pass them separately",
                    folders.join(", ")
                )?;
            }
            files.iter().map(|file| Source::read(file, true).map(Rc::new)).collect()
        } else {
            Rc::new([Source::read(path, false).map(Rc::new)])
        };
        self.0.borrow_mut().insert(path.to_owned(), sources.clone());
        Ok(sources)
    }
}

impl Source {
    fn read(path: &Path, found: bool) -> Result<Self, String> {
        let bytes =
            fs::read(path).map_err(|error| format!("could not read {}: {error}", shown(path)))?;
        Self::from_bytes(path, found, bytes)
    }

    fn from_bytes(path: &Path, found: bool, bytes: Vec<u8>) -> Result<Self, String> {
        let text = text(bytes).map_err(|encoding| match encoding {
            Some(name) => {
                format!(
                    "{} is {name}, not UTF-8. Convert it with iconv -f {name} -t UTF-8",
                    shown(path)
                )
            }
            None => format!("{} is not UTF-8. Save it as UTF-8 in an editor", shown(path)),
        })?;
        Ok(Self::parse(path.to_owned(), found, text))
    }

    /// Reads all documents of a text, and splits lists into their items.
    pub(crate) fn parse(file: PathBuf, found: bool, text: String) -> Self {
        let (mut documents, mut broken) = (Vec::new(), Vec::new());
        for document in yaml::documents(&text) {
            match document {
                Ok(document) => documents.extend(document.items()),
                Err(one) => broken.push(one),
            }
        }
        Self { file, found, text, documents, broken }
    }

    /// The Kubernetes objects of the file. Another document is an error in a named file. In a file
    /// from a folder, it is skipped with a note.
    pub(crate) fn objects(&self, console: &mut Console<'_>) -> Result<Vec<Document>, Failure> {
        if let Some(broken) = self.broken.first() {
            let (line, column) = (self.line(broken.bytes.start).0, self.column(broken.bytes.start));
            let file = shown(&self.file);
            let message = harmless_name(&broken.message);
            return Err(Failure::Usage(format!(
                "{file} is not valid YAML: {file}:{line}:{column}: {message}"
            )));
        }
        let mut documents = Vec::new();
        for located in &self.documents {
            if located.value.is_object() {
                let (file, found) = (self.file.clone(), self.found);
                let written = located.written(&self.text);
                documents.push(Document { file, found, value: located.value.clone(), written });
                continue;
            }
            let (file, shape) = (shown(&self.file), shape(&located.value));
            if !self.found {
                let message = format!("{file}: found {shape}; allowed: a Kubernetes object");
                return Err(Failure::Usage(message));
            }
            writeln!(console.err, "note: {file}: skipped, not a Paved Road kind: {shape}")?;
        }
        Ok(documents)
    }

    /// The line number of a byte, counted from 1, and the byte range of that line without its line
    /// end.
    pub(crate) fn line(&self, byte: usize) -> (usize, Range<usize>) {
        let byte = self.floor(byte);
        let before = &self.text[..byte];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[byte..].find('\n').map_or(self.text.len(), |length| byte + length);
        let line = self.text[start..end].trim_end_matches('\r');
        (before.matches('\n').count() + 1, start..start + line.len())
    }

    /// The column of a byte in its line, in characters, counted from 1.
    pub(crate) fn column(&self, byte: usize) -> usize {
        let byte = self.floor(byte);
        self.text[self.line(byte).1.start..byte].chars().count() + 1
    }

    /// The start of the character at a byte.
    fn floor(&self, byte: usize) -> usize {
        self.text.floor_char_boundary(byte.min(self.text.len()))
    }
}

/// The text of a file without the byte order mark of some editors. The error is the detected
/// encoding of a text that is not UTF-8.
fn text(bytes: Vec<u8>) -> Result<String, Option<&'static str>> {
    let encoding = match bytes.as_slice() {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        // ASCII in UTF-16 without a mark.
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => "UTF-16LE",
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => "UTF-16BE",
        _ => {
            let text = String::from_utf8(bytes).map_err(|_| None)?;
            return Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text));
        }
    };
    Err(Some(encoding))
}

/// The type of a value, without the value itself.
pub(crate) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::String(_) => "a text",
        Value::Number(_) => "a number",
        Value::Bool(_) => "true or false",
        Value::Null => "nothing",
        Value::Object(_) => "an object",
    }
}

/// A folder's YAML and JSON files and its subfolders, both sorted. Hidden folders are skipped.
fn inside(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let unreadable = |error| Failure::Usage(format!("could not read {}: {error}", shown(folder)));
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_text = path
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !is_hidden {
            folders.push(path);
        } else if is_text && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_others_stay_in_their_line() {
        let value = json!({"kind": "Pod\u{1b}[2J", "metadata": {"name": "a\n::error::b"}});
        let document = Document {
            file: "c\n::error::d.yaml".into(),
            found: true,
            value,
            written: Written::new(),
        };
        assert_eq!(document.title(), "c ::error::d.yaml: Pod[2J a ::error::b");
        let bare = Document {
            file: "-".into(),
            found: false,
            value: json!({"kind": 3}),
            written: Written::new(),
        };
        assert_eq!(bare.title(), "standard input: a document without kind without name");
    }
}
