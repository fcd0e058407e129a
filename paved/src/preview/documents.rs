//! Documents for pipes, as `crossplane composition render -x` prints them.

use serde_json::Value;
use simulator::core::Rendered;

use crate::Console;
use crate::cli::{Format, Preview};
use crate::documents;
use crate::failure::Failure;

/// Selects the composite and its resources. The function's results are included only on request,
/// because a cluster does not accept them.
pub(crate) fn select(rendered: &Rendered, args: &Preview) -> Vec<Value> {
    let wanted = |document: &&Value| args.include_function_results || document["kind"] != "Result";
    rendered.documents().filter(wanted).cloned().collect()
}

/// Prints documents as YAML, or as one List in JSON. A tree was already printed.
pub(crate) fn print(
    printed: &[Value],
    format: Format,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match format {
        Format::Tree => {}
        Format::Yaml => {
            for document in printed {
                write!(console.out, "---\n{}", documents::yaml(document)?)?;
            }
        }
        Format::Json => documents::print_list(printed, documents::Format::Json, console)?,
    }
    console.out.flush()?;
    Ok(())
}
