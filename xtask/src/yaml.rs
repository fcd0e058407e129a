//! YAML files of several documents.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// The documents of a text, without empty ones.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The documents of a file.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let read = || documents(&fs::read_to_string(path)?);
    read().with_context(|| format!("reading {}", path.display()))
}

/// Writes documents to a file.
pub fn write(path: &Path, documents: &[Value]) -> Result<()> {
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
