//! Flags of the commands that need no cluster, but for those of `preview`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use function_paved_road::apis::Flavour;
use function_paved_road::manifests::{self, policy};

use crate::failure::Failure;
use crate::names::{self, A_NAME, is_name};

pub(super) const VALIDATE_HELP: &str = "\
Examples:
  paved validate claim.yaml                            one file, all of its documents
  paved validate environments/                         every claim, XR and Settings of a folder
  paved validate claims/*.yaml --settings settings.yaml
  paved validate environments/ -o github               as annotations in a pull request's review

Exit codes:
  0  everything is valid
  1  usage: a bad flag, a file that is unreadable or no YAML, nothing to check
  2  refused: an API server would not take a document
  3  refused by the composition: the function's own checks, or invalid Settings";

pub(super) const INIT_HELP: &str = "\
Examples:
  paved init GpuDevWorkspaceClaim                      ask, and print the claim
  paved init gpu-workspace ada -f ada.yaml             into a file
  paved init stockpool pool --flavour namespaced --set specName=a100 --set replicas=2
  paved init EnvironmentClaim shop --set backend.image=ghcr.io/acme/shop:1 \\
    --set database.size=small --set frontend.appName=shop

Exit codes:
  0  done
  1  usage: a bad flag, an unknown kind, a required field that is missing, a file that exists
  2  refused: an API server would not take the claim
  3  refused by the composition: the function's own checks";

pub(super) const PLATFORM_HELP: &str = "\
Examples:
  paved platform --settings settings.yaml -o platform/
  paved platform --settings settings.yaml --flavour namespaced --group platform.example.org | kubectl apply -f -
  paved platform --settings new.yaml --old settings.yaml --check environments/
  paved platform --settings new.yaml --check claim.yaml --observed cluster.yaml

Exit codes:
  0  done; with --check, whatever differs
  1  usage: a bad flag, an unreadable file
  2  refused: with --check, an API server would not take an environment
  3  the Settings are invalid, or with --check, an environment cannot be composed with them";

/// Where the platform team's Settings are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// Settings: a Settings document, or the EnvironmentConfig that the Composition's settingsFrom names [default: those that
    /// stand in the file itself, laid over the Composition's].
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

/// Flags of `paved init`.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// What to make: a kind, its plural or abbreviation, or the API's name, such as gpu-workspace.
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,

    /// The environment's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The flavour: claims or namespaced [default: that of the kind, else claims].
    #[arg(long, value_name = "FLAVOUR")]
    pub(crate) flavour: Option<Flavour>,

    /// The API group, where it is the company's own [default: that of the flavour].
    #[arg(long, value_name = "GROUP", value_parser = manifests::group)]
    pub(crate) group: Option<String>,

    /// The environment's namespace [default: whichever it is applied to].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Give a field a value, in YAML: spec.backend.port=8080, or a part of the path that only one field ends with; repeatable.
    /// Where a text is wanted, quotes are optional.
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub(crate) set: Vec<(String, String)>,

    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Replace the file if it is there.
    #[arg(long, requires = "file")]
    pub(crate) force: bool,
}

/// Flags of `paved platform`.
#[derive(Args, Debug)]
pub(crate) struct Platform {
    /// The Settings: a Settings document, or an EnvironmentConfig with them in its data.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: PathBuf,

    /// The API group of the company's own, such as platform.example.org [default: that of the flavour].
    #[arg(long, value_name = "GROUP", value_parser = manifests::group, conflicts_with = "check")]
    pub(crate) group: Option<String>,

    /// claims (XRD v1, Crossplane 1.20 and 2.x), or namespaced (XRD v2, Crossplane 2.x).
    #[arg(long, value_name = "FLAVOUR", default_value = "claims", conflicts_with = "check")]
    pub(crate) flavour: Flavour,

    /// The name under which the Function is installed: `kubectl get functions` shows it.
    #[arg(
        long,
        value_name = "NAME",
        default_value = names::FUNCTION,
        value_parser = object_name,
        conflicts_with = "check"
    )]
    pub(crate) function: String,

    /// The user that Crossplane runs as: the only one that the policies let write Crossplane's own fields.
    #[arg(long, value_name = "USER", default_value = policy::CROSSPLANE, value_parser = policy::user, conflicts_with = "check")]
    pub(crate) crossplane_user: String,

    /// Write into this folder, over what was written there before [default: print everything].
    #[arg(short, long, value_name = "DIR", conflicts_with = "check")]
    pub(crate) output: Option<PathBuf>,

    /// Write nothing; show what would change in these environments: claims and XRs, in files, folders or - for standard input.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Check")]
    pub(crate) check: Vec<PathBuf>,

    /// The Settings as they are now [default: those of a composition.yaml beside the environment, else none].
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Check")]
    pub(crate) old: Option<PathBuf>,

    /// What exists of the environments: composed resources, and the Secrets with their connection details; a file or a folder,
    /// repeatable. What runs keeps much of what it has; without it everything is composed anew, and more seems to change.
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Check")]
    pub(crate) observed: Vec<PathBuf>,
}

fn object_name(text: &str) -> Result<String, String> {
    let fits = is_name(text) && text.ends_with(|last: char| last.is_ascii_alphanumeric());
    if fits { Ok(text.to_owned()) } else { Err(format!("{text:?}: expected {A_NAME}")) }
}

/// The group of a flavour: the given one, else the flavour's own. That of the other flavour contradicts.
pub(crate) fn group_of(flavour: Flavour, group: Option<&str>) -> Result<String, Failure> {
    let group = group.unwrap_or_else(|| flavour.default_group());
    match Flavour::ALL.into_iter().find(|other| *other != flavour && other.default_group() == group) {
        Some(other) => Err(Failure::Usage(format!(
            "--group {group} is for --flavour {other}, and the flavour is {flavour}: leave one out, or name a group of your own"
        ))),
        None => Ok(group.to_owned()),
    }
}

fn path_and_value(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("expected PATH=VALUE, such as spec.backend.port=8080")?;
    Ok((path.trim().to_owned(), value.to_owned()))
}
