//! A person's browser: Debian's Chromium, driven by Playwright with the specifications in
//! `e2e/browser`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::process::Command;
use xtask::{node, workspace};

/// The variable that passes addresses to the specifications.
const WORLD: &str = "PAVED_ROAD_WORLD";

/// Runs `specs/SPECIFICATION.spec.ts` with the addresses in `world`. The error is Playwright's
/// output with snapshots of the pages. Screenshots and traces are in `results`.
pub async fn play(specification: &str, world: &Value, results: &Path) -> Result<()> {
    let home = workspace::root().join("e2e/browser");
    let installed = home.clone();
    tokio::task::spawn_blocking(move || node::install(&installed)).await??;
    let mut command = Command::new("node");
    command
        .args(["node_modules/@playwright/test/cli.js", "test"])
        .arg(format!("specs/{specification}.spec"));
    command.arg("--output").arg(results).current_dir(home);
    command.env(WORLD, world.to_string()).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.context("starting node")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    fs::write(results.with_extension("log"), &said).context("writing Playwright's output")?;
    if !output.status.success() {
        bail!("{said}\n{}", seen(results));
    }
    Ok(())
}

/// The pages' accessibility snapshots. Playwright writes one in a folder for each failed test.
fn seen(results: &Path) -> String {
    let folders = fs::read_dir(results).into_iter().flatten().flatten();
    let texts = folders
        .filter_map(|folder| fs::read_to_string(folder.path().join("error-context.md")).ok());
    let snapshot =
        |text: String| Some(text.split("```yaml\n").nth(1)?.split("```").next()?.to_owned());
    texts.filter_map(snapshot).collect()
}
