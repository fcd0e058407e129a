//! The choice of cores: one for the server, another one for the client.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};

/// The first and the last core that we may use.
pub(super) fn two() -> Result<(usize, usize)> {
    let all = allowed(&std::fs::read_to_string("/proc/self/status")?)
        .context("reading Cpus_allowed_list")?;
    // If only one core is allowed, as for the client, the server gets the machine's first core.
    let (first, last) = (*all.first().context("no core")?, *all.last().context("no core")?);
    Ok(if first == last { (usize::from(last == 0), last) } else { (first, last) })
}

/// A command that runs on one core only.
pub(super) fn pinned(cpu: usize, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cpu.to_string()]).arg(program);
    command
}

/// A command that runs on all cores, although this process has only one.
pub(super) fn everywhere(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", "0-4095"]).arg(program);
    command
}

/// Parses a list, for example `0-3,8`.
fn allowed(status: &str) -> Option<Vec<usize>> {
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    Some(cpus.split(',').map(range).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(allowed("Name: x\nCpus_allowed_list:\t0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(allowed("Name: x\n"), None);
    }
}
