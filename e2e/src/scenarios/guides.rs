//! The commands in the guides, and a shell that runs them.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use tokio::process::Command;

use crate::kubectl;

/// The blocks of a document that are marked `sh`.
pub(super) fn blocks(document: &str) -> Vec<String> {
    blocks_of(document, None)
}

/// The same, and the blocks for one kind of API: `sh claims`.
pub(super) fn blocks_of(document: &str, flavour: Option<Flavour>) -> Vec<String> {
    let own = flavour.map(|flavour| format!("```sh {flavour}"));
    fenced(document, |line| line == "```sh" || own.as_deref() == Some(line))
}

/// The blocks of a document with a matching first line.
pub(super) fn fenced(document: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while lines.any(&begins) {
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// The `kubectl get` commands within a document's sentences.
pub(super) fn looks_of(document: &str) -> Vec<String> {
    let looks =
        document.split('`').filter(|span| span.starts_with("kubectl get ") && !span.contains('\n'));
    looks.map(str::to_owned).collect()
}

/// Runs commands in a folder with these programs, as in a terminal. Stops at the first failure.
/// Returns their output.
pub(super) async fn run(
    block: &str,
    folder: &Path,
    programs: &Path,
    environment: &[(&str, &Path)],
) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", block]).current_dir(folder).kill_on_drop(true);
    command.env("PATH", format!("{}:{path}", programs.display())).envs(environment.iter().copied());
    command.env(kubectl::CACHE, programs.join("cache"));
    let output = command.stdin(Stdio::null()).output().await?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "running\n{block}\n{}", complaint.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
