//! Documents that can be piped: what `crossplane composition render -x` prints.

use serde_json::{Value, json};
use simulator::core::Rendered;

use crate::Console;
use crate::cli::{Format, Preview};
use crate::failure::Failure;

/// The composite and its resources; the function's results, which no cluster takes, only when they are asked for.
pub(crate) fn of(rendered: &Rendered, args: &Preview) -> Vec<Value> {
    let wanted = |document: &&Value| args.include_function_results || document["kind"] != "Result";
    rendered.documents().filter(wanted).cloned().collect()
}

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
