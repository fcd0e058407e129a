//! Flags of the commands that need no cluster, but for those of `preview`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(super) const VALIDATE_HELP: &str = "\
Examples:
  paved validate claim.yaml                            one file, all of its documents
  paved validate environments/                         every claim, XR and Settings of a folder
  paved validate claims/*.yaml --settings settings.yaml
  paved validate environments/ -o github               as annotations in a pull request's review

Exit codes:
  0  everything is valid
  1  usage: a bad flag, an unreadable file, nothing to check
  2  refused: an API server would not take a document
  3  refused by the composition: the function's own checks, or invalid Settings";

/// Where the platform team's Settings are.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Sources {
    /// Settings: a Settings document, or the EnvironmentConfig that the Composition's settingsFrom names.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// The Composition whose input has the Settings [default: a composition.yaml beside the file, else the built-in one].
    #[arg(long, value_name = "FILE")]
    pub(crate) composition: Option<PathBuf>,
}

/// Flags of `paved validate`.
#[derive(Args, Debug)]
pub(crate) struct Validate {
    /// Claims, XRs and Settings: files with one or more documents, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
}

/// How to print what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people: the line in question with a mark below.
    Text,
    /// One object: errors, valid documents, and those that were left alone.
    Json,
    /// GitHub's workflow commands: annotations in a review.
    Github,
}
