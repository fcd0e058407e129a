//! The files that Settings come from.

use std::path::PathBuf;

use crate::cli;
use crate::files::Inputs;

/// Where the platform team's Settings are, and what was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// A Settings document, or an EnvironmentConfig.
    pub(crate) settings: Option<PathBuf>,
    /// The Composition whose input has the Settings.
    pub(crate) composition: Option<PathBuf>,
    /// What was read of these files, and of all others that the command reads.
    pub(crate) inputs: Inputs,
}

impl Sources {
    /// Those that the flags name; nothing is read yet.
    pub(crate) fn of(flags: &cli::Sources) -> Self {
        let cli::Sources { settings, composition } = flags.clone();
        Self { settings, composition, inputs: Inputs::default() }
    }
}
