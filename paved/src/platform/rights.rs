//! `--cloud-rights`: files with the rights that providers and publishers need in clouds.

use std::fs;
use std::path::Path;

use function_paved_road::manifests::rights::{self, Cloud, Document};
use serde_json::Value;

use crate::Console;
use crate::cli::Platform;
use crate::failure::Failure;

/// Prints the files of the clouds as one stream of documents, or writes them. Without a given
/// cloud, handles all clouds.
pub(super) fn run(
    args: &Platform,
    chosen: &[Cloud],
    settings: &Value,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let chosen = if chosen.is_empty() { &Cloud::ALL } else { chosen };
    for cloud in chosen {
        for document in rights::documents(*cloud, settings) {
            match &args.output {
                None => {
                    write!(console.out, "---\n# {}\n{:#}\n", document.path, document.body)?;
                }
                Some(folder) => write(&document, folder, console)?,
            }
        }
    }
    Ok(())
}

fn write(document: &Document, folder: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let path = folder.join(&document.path);
    let unwritable = |error| Failure::Usage(format!("could not write {}: {error}", path.display()));
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(unwritable)?;
    fs::write(&path, format!("{:#}\n", document.body)).map_err(unwritable)?;
    writeln!(console.out, "{}", path.display())?;
    Ok(())
}
