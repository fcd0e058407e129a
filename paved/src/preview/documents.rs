//! Documents that can be piped: what `crossplane composition render -x -r` prints.

use serde_json::{Value, json};

use crate::Console;
use crate::cli::Format;
use crate::failure::Failure;

/// Prints documents as YAML, or as one List in JSON; a tree has been printed before.
pub(crate) fn print(documents: &[Value], format: Format, console: &mut Console<'_>) -> Result<(), Failure> {
    match format {
        Format::Tree => {}
        Format::Yaml => {
            for document in documents {
                write!(console.out, "---\n{}", yaml(document)?)?;
            }
        }
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
            writeln!(console.out, "{}", serde_json::to_string_pretty(&list).map_err(unprintable)?)?;
        }
    }
    console.out.flush()?;
    Ok(())
}

/// A document as YAML that any reader takes; a long line, as a public key, stays one line.
fn yaml(document: &Value) -> Result<String, Failure> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(document, options).map_err(unprintable)
}

fn unprintable(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Output(std::io::Error::other(error))
}
