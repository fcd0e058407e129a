//! YAML documents from files, folders and standard input.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Console;
use crate::failure::Failure;

/// A document and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The file, as the user named it; `-` for standard input.
    pub(crate) file: PathBuf,
    /// Whether the file was found in a folder, rather than named.
    pub(crate) found: bool,
    pub(crate) value: Value,
}

/// The documents of a file, of a folder's YAML and JSON files, or of standard input. Lists are taken apart.
pub(crate) fn read(path: &Path, console: &mut Console<'_>) -> Result<Vec<Document>, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        let unreadable = |error| Failure::Usage(format!("cannot read standard input: {error}"));
        (console.input)(&mut text).map_err(unreadable)?;
        return parse(path, false, &text);
    }
    if !path.is_dir() {
        return read_file(path, false);
    }
    let mut documents = Vec::new();
    for file in files_of(path)? {
        documents.extend(read_file(&file, true)?);
    }
    Ok(documents)
}

fn read_file(path: &Path, found: bool) -> Result<Vec<Document>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    parse(path, found, &text)
}

fn parse(path: &Path, found: bool, text: &str) -> Result<Vec<Document>, Failure> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        Failure::Usage(format!("{} is no YAML: {}", path.display(), located(&error, path)))
    })?;
    let mut documents = Vec::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        if !value.is_object() {
            let message = format!("{}: found {value}; a Kubernetes object is needed", path.display());
            return Err(Failure::Usage(message));
        }
        let items = if value["kind"] == "List" { value["items"].as_array().cloned() } else { None };
        let document = |value| Document { file: path.to_owned(), found, value };
        documents.extend(items.unwrap_or_else(|| vec![value]).into_iter().map(document));
    }
    Ok(documents)
}

/// The parser's message, with the place in the file.
fn located(error: &serde_saphyr::Error, path: &Path) -> String {
    let message = error.to_string();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    message.replace("<input>", &path.display().to_string()).trim_end().to_owned()
}

/// A folder's YAML and JSON files, sorted; its folders are left alone.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_text =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if is_text && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
