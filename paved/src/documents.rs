//! Documents that can be piped, as YAML or JSON.

use std::io;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::Console;
use crate::failure::Failure;

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Yaml,
    Json,
}

/// An object without what only the API server's bookkeeping needs.
pub(crate) fn tidy(object: &DynamicObject) -> Value {
    // A DynamicObject came out of JSON: it goes back.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

/// Prints documents as one List.
pub(crate) fn print_list(items: &[Value], format: Format, console: &mut Console<'_>) -> Result<(), Failure> {
    print(&json!({"apiVersion": "v1", "kind": "List", "items": items}), format, console)
}

/// Prints one document.
pub(crate) fn print(document: &Value, format: Format, console: &mut Console<'_>) -> Result<(), Failure> {
    match format {
        Format::Yaml => write!(console.out, "{}", yaml(document)?)?,
        Format::Json => {
            writeln!(console.out, "{}", serde_json::to_string_pretty(document).map_err(unprintable)?)?;
        }
    }
    Ok(())
}

/// A document as YAML that any reader takes; a long line, as a public key, stays one line.
pub(crate) fn yaml(document: &Value) -> Result<String, Failure> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(document, options).map_err(unprintable)
}

fn unprintable(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Output(io::Error::other(error))
}
