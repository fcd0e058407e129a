//! What docs/operations.md tells a platform team to type does what it says there.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use xtask::package::Args;
use xtask::workspace;

use super::upgrade;
use crate::stage::{Stage, eventually};

/// From uninstalling to installing to uninstalling: after it there is nothing of the namespaced flavour.
pub(super) async fn its_documented_commands_run(stage: Stage) -> Result<()> {
    let plane = &stage.plane;
    // Who uninstalls has no environments any more.
    stage.looking_on().await?.clear().await?;
    upgrade::publish(&stage).await?;
    plane.runtime.serve(&format!(":{}", upgrade::NEXT), &plane.function.endpoint);
    let programs = plane.ground().subfolder("operations")?;
    std::os::unix::fs::symlink(plane.kubectl_path(), programs.join("kubectl"))?;
    let text = std::fs::read_to_string(workspace::root().join("docs/operations.md"))?;
    let blocks = blocks(&text);
    ensure!(blocks.len() > 5, "docs/operations.md has {} blocks of commands", blocks.len());
    // The last one uninstalls: so the first ones have something to install.
    for block in blocks.last().into_iter().chain(&blocks) {
        run(&stage, &programs, block).await.with_context(|| format!("running\n{block}"))?;
        if Some(block) == blocks.last() {
            uninstalled(&stage).await?;
        }
    }
    Ok(())
}

async fn uninstalled(stage: &Stage) -> Result<()> {
    eventually("what was uninstalled is gone", async || {
        let kinds = stage.objects.list("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "");
        let is_left = |kind: &Value| kind["spec"]["group"] == "platform.m.acme.io";
        Ok((!kinds.await?.iter().any(is_left)).then_some(()))
    })
    .await
}

/// The blocks that are marked `sh`.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.any(|line| line == "```sh") {
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// As somebody runs them at a terminal, in the repository's folder; the first command that fails ends it.
async fn run(stage: &Stage, programs: &Path, block: &str) -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", block]).current_dir(workspace::root()).kill_on_drop(true);
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.env("KUBECONFIG", stage.plane.kubeconfig()).env("REGISTRY", Args::default().registry.to_string());
    let output = command.stdin(Stdio::null()).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
