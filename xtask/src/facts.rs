//! Generated files with the part of a file of facts that the code uses.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Writes the text that `cut` makes of the facts, or checks that the file has it. `file` is a path
/// from the repository's root. The error names the task of `cargo xtask` that writes the file.
pub fn update(
    task: &str,
    facts: &Path,
    file: &str,
    check: bool,
    cut: fn(&str) -> Result<String>,
) -> Result<()> {
    let reading = || format!("reading {}", facts.display());
    let text = fs::read_to_string(facts).with_context(reading)?;
    let slice = cut(&text).with_context(reading)?;
    let path = workspace::root().join(file);
    if !check {
        return fs::write(path, slice).with_context(|| format!("writing {file}"));
    }
    let present = fs::read_to_string(path).with_context(|| format!("reading {file}"))?;
    ensure!(present == slice, "run `cargo xtask {task} --facts DIR`: {file} drifted");
    println!("{file} matches its facts");
    Ok(())
}
