//! Third-party packages in a program: crates, and packages of npm.

use std::path::PathBuf;

/// A third-party package in a program.
pub struct Component {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// An SPDX expression.
    pub license: String,
    /// The address of its sources.
    pub source: String,
    /// The folder of its files on this machine.
    pub folder: PathBuf,
}

impl Component {
    /// The name and version: `serde 1.0.228`.
    pub fn called(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// `serde 1.0.228: MIT OR Apache-2.0, https://…`
    pub fn line(&self) -> String {
        let about = [self.license.as_str(), self.source.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty());
        format!("{}: {}", self.called(), about.collect::<Vec<_>>().join(", "))
    }
}
