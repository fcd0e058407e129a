//! YAML documents from files, folders and standard input.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Console;
use crate::failure::Failure;
use crate::paint::harmless_name;

/// A document and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The file, as the user named it; `-` for standard input.
    pub(crate) file: PathBuf,
    /// Whether the file was found in a folder, rather than named.
    pub(crate) found: bool,
    pub(crate) value: Value,
}

impl Document {
    /// File, kind and name, as messages name it.
    pub(crate) fn title(&self) -> String {
        let kind = self.value["kind"].as_str().unwrap_or("a document without kind");
        let name = self.value["metadata"]["name"].as_str().unwrap_or("without name");
        format!("{}: {}", shown(&self.file), harmless_name(&format!("{kind} {name}")))
    }
}

/// A path as messages name it.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        harmless_name(&path.display().to_string())
    }
}

/// A file's text.
pub(crate) struct Text {
    /// The file, as the user named it; `-` for standard input.
    pub(crate) file: PathBuf,
    /// Whether the file was found in a folder, rather than named.
    pub(crate) found: bool,
    pub(crate) content: String,
}

/// The documents of a file, of a folder's YAML and JSON files, or of standard input. Lists are taken apart.
pub(crate) fn read(path: &Path, console: &mut Console<'_>) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for text in texts(path, console)? {
        documents.extend(parse(&text?)?);
    }
    Ok(documents)
}

/// The text of a file, of a folder's YAML and JSON files, or of standard input. A file of a folder that cannot be read is in the way of
/// no other.
pub(crate) fn texts(path: &Path, console: &mut Console<'_>) -> Result<Vec<Result<Text, Failure>>, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        let unreadable = |error| Failure::Usage(format!("cannot read standard input: {error}"));
        (console.input)(&mut text).map_err(unreadable)?;
        return Ok(vec![Ok(Text { file: path.to_owned(), found: false, content: without_mark(text) })]);
    }
    if !path.is_dir() {
        return Ok(vec![Ok(text_of(path, false)?)]);
    }
    let (files, folders) = inside(path)?;
    if !folders.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| shown(folder)).collect();
        writeln!(console.err, "note: folders inside are left alone: {}", folders.join(", "))?;
    }
    Ok(files.iter().map(|file| text_of(file, true)).collect())
}

fn text_of(path: &Path, found: bool) -> Result<Text, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", shown(path))))?;
    Ok(Text { file: path.to_owned(), found, content: without_mark(text) })
}

/// A text without the byte order mark that some editors put before it.
fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

fn parse(text: &Text) -> Result<Vec<Document>, Failure> {
    let Text { file, found, content } = text;
    let values: Vec<Value> = serde_saphyr::from_multiple(content)
        .map_err(|error| Failure::Usage(format!("{} is no YAML: {}", shown(file), located(&error, file))))?;
    let mut documents = Vec::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        if !value.is_object() {
            let message = format!("{}: found {}; a Kubernetes object is needed", shown(file), shape(&value));
            return Err(Failure::Usage(message));
        }
        let items = if value["kind"] == "List" { value["items"].as_array().cloned() } else { None };
        let document = |value| Document { file: file.clone(), found: *found, value };
        documents.extend(items.unwrap_or_else(|| vec![value]).into_iter().map(document));
    }
    Ok(documents)
}

/// What a value is, without saying it.
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

/// The parser's message, with the place in the file; the line itself may hold a secret.
fn located(error: &serde_saphyr::Error, path: &Path) -> String {
    let message = error.without_snippet().to_string();
    let message = message.strip_prefix("error: ").unwrap_or(&message).trim_end();
    let Some(location) = error.location() else { return message.to_owned() };
    let (line, column) = (location.line(), location.column());
    let message = message.strip_suffix(&format!(" at line {line}, column {column}")).unwrap_or(message);
    format!("{}:{line}:{column}: {message}", shown(path))
}

/// A folder's YAML and JSON files, and its folders, both sorted; hidden folders are left out.
fn inside(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let unreadable = |error| Failure::Usage(format!("cannot read {}: {error}", shown(folder)));
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_text =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
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
        let document = Document { file: "c\n::error::d.yaml".into(), found: true, value };
        assert_eq!(document.title(), "c ::error::d.yaml: Pod[2J a ::error::b");
        let bare = Document { file: "-".into(), found: false, value: json!({"kind": 3}) };
        assert_eq!(bare.title(), "standard input: a document without kind without name");
    }
}
