//! Flags of the commands that talk to a cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::OsStringValueParser;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

/// How to reach the cluster.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Access {
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, else the service account of this pod].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context [default: the current one].
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) context: Option<String>,

    /// The namespace [default: the context's].
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) namespace: Option<String>,

    /// Act as this user.
    #[arg(long = "as", value_name = "USER", help_heading = "Cluster")]
    pub(crate) impersonate: Option<String>,
}

/// How to print environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    /// A table, or a tree, with more columns.
    Wide,
    /// One object, or a List.
    Json,
    /// The same in YAML.
    Yaml,
    /// `kind.group/name`, a line for each.
    Name,
}

/// Flags of `paved list`.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Only this kind: its name, plural or abbreviation.
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// How to print.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Listing>,

    /// Go on, and print a line whenever one changes.
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved status`.
#[derive(Args, Debug)]
pub(crate) struct Status {
    /// The environment: NAME, or KIND/NAME where the name alone is not enough [default: list all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How to print.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Listing>,

    /// Go on, and show every change.
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved kinds`.
#[derive(Args, Debug)]
pub(crate) struct Kinds {
    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved doctor`.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved wait`.
#[derive(Args, Debug)]
pub(crate) struct Wait {
    /// The environments: NAME, or KIND/NAME where the name alone is not enough.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// What to wait for: ready, deleted, or condition=TYPE or condition=TYPE=STATUS.
    #[arg(long = "for", value_name = "WHAT", default_value = "ready")]
    pub(crate) goal: Goal,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) outputs: Outputs,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// How long to wait.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The longest to wait, as in 90s, 30m or 1h30m.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// How long a part may be refused, while nothing moves, before that counts as failed.
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    pub(crate) patience: Duration,
}

/// Where to leave what the next step of a pipeline needs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Outputs {
    /// Write the status fields there: PAVED_PUBLIC_IP=… (dotenv), or JSON where the name ends in .json.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,

    /// Append the status fields there as outputs of a step of GitHub Actions.
    #[arg(long, value_name = "FILE", env = "GITHUB_OUTPUT", hide_env_values = true, value_parser = OsStringValueParser::new())]
    pub(crate) github_output: Option<OsString>,
}

impl Outputs {
    /// Where outputs of a step of GitHub Actions go: a variable that is empty means nowhere.
    pub(crate) fn github_output(&self) -> Option<&Path> {
        self.github_output.as_deref().filter(|path| !path.is_empty()).map(Path::new)
    }
}

/// What to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Ready, for its newest spec.
    Ready,
    /// Gone, with all that it made.
    Deleted,
    /// A condition has this status.
    Condition { kind: String, status: String },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split('=').collect::<Vec<_>>().as_slice() {
            ["ready"] => Ok(Self::Ready),
            ["delete" | "deleted"] => Ok(Self::Deleted),
            ["condition", kind] if !kind.is_empty() => {
                Ok(Self::Condition { kind: (*kind).to_owned(), status: "True".to_owned() })
            }
            ["condition", kind, status] if !kind.is_empty() && !status.is_empty() => {
                Ok(Self::Condition { kind: (*kind).to_owned(), status: (*status).to_owned() })
            }
            _ => Err("allowed: ready, deleted, condition=TYPE, condition=TYPE=STATUS".to_owned()),
        }
    }
}

/// Flags of `paved apply`.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Apply {
    /// Claims, or composites in a namespace: files with one or more documents, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take over fields that another manager has set.
    #[arg(long)]
    pub(crate) force_conflicts: bool,

    /// Change nothing: let the API server, and the function in this program, check everything and say what would be done.
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "server", require_equals = true)]
    pub(crate) dry_run: Option<DryRun>,

    /// Show what changes, in the claim and, by a preview, in what is composed of it.
    #[arg(long)]
    pub(crate) diff: bool,

    /// Do not ask the function in this program first: the one in the cluster, which may be newer, refuses what it does not take.
    #[arg(long)]
    pub(crate) no_validate: bool,

    /// The platform's Settings, for what is checked and for --diff [default: the cluster's].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// The Composition, for what is checked and for --diff [default: the cluster's].
    #[arg(long, value_name = "FILE")]
    pub(crate) composition: Option<PathBuf>,

    /// Wait until everything is ready, or has failed.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) outputs: Outputs,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Who is asked in a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// The API server.
    Server,
}

/// Flags of `paved delete`.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// The environments: NAME, or KIND/NAME where the name alone is not enough.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Take what is not there for what is gone already, as whoever runs a step again needs it.
    #[arg(long)]
    pub(crate) ignore_not_found: bool,

    /// Wait until they are gone, and show what holds them.
    #[arg(long)]
    pub(crate) wait: bool,

    /// The longest to wait, as in 90s, 30m or 1h30m.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration, requires = "wait")]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// A time as people write it: `90s`, `30m`, `1h30m`; a number alone is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_hours(30 * 24);
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    let written = || text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    seconds
        .or_else(written)
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "expected a time such as 90s, 30m or 1h30m, 720h at most".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in
            [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("0", 0), ("45", 45), ("1h 30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "m", "5x", "-1", "-5m", "99999999999999999999", "99999999999999999h", "1000h", "1é", "é"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_goal_is_ready_deleted_or_a_condition() {
        let condition =
            |kind: &str, status: &str| Goal::Condition { kind: kind.into(), status: status.into() };
        for (text, goal) in [
            ("ready", Goal::Ready),
            ("deleted", Goal::Deleted),
            ("condition=Synced", condition("Synced", "True")),
            ("condition=Synced=False", condition("Synced", "False")),
        ] {
            assert_eq!(text.parse(), Ok(goal));
        }
        for text in ["", "Ready", "condition", "condition=", "condition=A=B=C", "condition=A="] {
            assert!(text.parse::<Goal>().is_err(), "{text}");
        }
    }
}
