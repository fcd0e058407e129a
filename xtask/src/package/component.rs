//! Packages of others that are in a program: crates, and packages of npm.

use std::path::PathBuf;

/// A package of others that is in a program.
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An SPDX expression.
    pub license: String,
    /// The address of its sources.
    pub source: String,
    /// Where its files are on this machine.
    pub folder: PathBuf,
}

impl Component {
    /// Its name and version: `serde 1.0.228`.
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
