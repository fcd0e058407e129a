//! The files with the Settings.

use std::path::PathBuf;

use crate::cli;
use crate::files::Inputs;

/// The files with the platform team's Settings, and the files that the command has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// A Settings document, or an EnvironmentConfig.
    pub(crate) settings: Option<PathBuf>,
    /// The Composition whose input has the Settings.
    pub(crate) composition: Option<PathBuf>,
    /// These files, and all others that the command reads.
    pub(crate) inputs: Inputs,
}

impl Sources {
    /// The files that the flags name. They are not read yet.
    pub(crate) fn from_flags(flags: &cli::Sources) -> Self {
        let cli::Sources { settings, composition } = flags.clone();
        Self { settings, composition, inputs: Inputs::default() }
    }
}
