//! `paved preview`, the other side of the comparison.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::example::Example;
use crate::yaml;

/// The command line.
pub struct Paved {
    /// Its binary.
    pub program: PathBuf,
}

impl Paved {
    /// The example's preview, as documents.
    pub fn preview(&self, example: &Example) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        command.args([
            "preview",
            "--output",
            "yaml",
            "--include-function-results",
            "--composition",
        ]);
        command.arg(&example.composition).arg(&example.xr);
        for (flag, file) in
            [("--observed", &example.observed), ("--settings", &example.environment)]
        {
            command.args(file.iter().flat_map(|file| [Path::new(flag), file]));
        }
        let answer = command.output()?;
        let complaint = String::from_utf8_lossy(&answer.stderr);
        ensure!(answer.status.success(), "paved preview: {}\n{complaint}", answer.status);
        yaml::documents(&String::from_utf8(answer.stdout)?)
    }
}
