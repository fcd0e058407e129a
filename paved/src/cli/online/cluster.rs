//! Flags of the commands that need a cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::OsStringValueParser;
use clap::{Args, ValueEnum};
use function_paved_road::lifecycle::Span;
use function_paved_road::manifests;
use jiff::SignedDuration;
use paved_client::cluster::{self, Cluster};
use paved_client::wait::Goal;

use super::Planning;
use crate::failure::Failure;

/// Flags that select the cluster and the user.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Access {
    /// Kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current context].
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) context: Option<String>,

    /// Namespace [default: the context's namespace].
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) namespace: Option<String>,

    /// User to impersonate.
    #[arg(long = "as", value_name = "USER", help_heading = "Cluster")]
    pub(crate) impersonate: Option<String>,
}

impl Access {
    /// Whether a flag selects the cluster.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Connects to the cluster that the flags select.
    pub(crate) async fn connect(&self) -> Result<Cluster, Failure> {
        Ok(Cluster::connect(&self.into()).await?)
    }
}

impl From<&Access> for cluster::Access {
    fn from(flags: &Access) -> Self {
        let Access { kubeconfig, context, namespace, impersonate } = flags.clone();
        Self { kubeconfig, context, namespace, impersonate }
    }
}

/// Output format of environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    /// A table or a tree with more columns.
    Wide,
    /// One object, or a List of objects.
    Json,
    /// The same objects in YAML.
    Yaml,
    /// The comment for a pull request, with a marker. Only for one environment.
    Markdown,
    /// `kind.group/name`, one line for each environment. With -A or -n, with the namespace.
    Name,
}

/// Flags of `paved list`.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// List environments in all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Kind to list: its name, plural or abbreviation [default: all kinds].
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Output format.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Listing>,

    /// Keep running, and print a line for each changed environment.
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// Order of the rows.
    #[arg(long, value_name = "COLUMN", default_value = "name")]
    pub(crate) sort: Sort,

    /// List only environments that expire or are deleted within this time, for example 24h.
    #[arg(long, value_name = "TIME", value_parser = super::lifecycle::finite_span,
        allow_hyphen_values = true, conflicts_with = "watch")]
    pub(crate) expiring: Option<Span>,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Order of environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By namespace, name and kind.
    #[default]
    Name,
    /// By age, the youngest first.
    Age,
    /// By time left, the shortest first. Environments without an end are last.
    TimeLeft,
    /// By power state.
    Power,
}

/// Flags of `paved status`.
#[derive(Args, Debug)]
pub(crate) struct Status {
    /// Environment: NAME, or KIND/NAME if the name is ambiguous [default: list all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Output format.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Listing>,

    /// Keep running, and show every change.
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved kinds`.
#[derive(Args, Debug)]
pub(crate) struct Kinds {
    /// Write JSON schemas of the kinds to this folder, for editors.
    #[arg(long, value_name = "DIR", help_heading = "Editors")]
    pub(crate) schemas: Option<PathBuf>,

    /// Write the kinds of this program, without a cluster.
    #[arg(long, requires = "schemas", help_heading = "Editors")]
    pub(crate) offline: bool,

    /// API group of your company, with --offline [default: the groups of both APIs].
    #[arg(long, value_name = "GROUP", value_parser = manifests::group, requires = "offline",
        help_heading = "Editors")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved doctor`.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Write a support archive (.tar.gz) without secrets instead, in at most 5 seconds.
    #[arg(long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved wait`.
#[derive(Args, Debug)]
pub(crate) struct Wait {
    /// Environments: NAME, or KIND/NAME if a name is ambiguous.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Goal of the wait: ready, deleted, condition=TYPE or condition=TYPE=STATUS.
    #[arg(long = "for", value_name = "WHAT", default_value = "ready")]
    pub(crate) goal: Goal,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) outputs: Outputs,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Time limits of a wait.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Time limit of the wait, for example 90s, 30m or 1h30m.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// Time after which a rejected resource counts as failed, if no other resource changes.
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    pub(crate) patience: Duration,
}

/// Files for the outputs of a pipeline step.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Outputs {
    /// File for the status fields: PAVED_PUBLIC_IP=… (dotenv), or JSON if the name ends in .json.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,

    /// File to append the status fields to, as outputs of a GitHub Actions step.
    #[arg(long, value_name = "FILE", env = "GITHUB_OUTPUT", hide_env_values = true, value_parser = OsStringValueParser::new())]
    pub(crate) github_output: Option<OsString>,
}

impl Outputs {
    /// The file for outputs of a GitHub Actions step, or `None` if the variable is empty.
    pub(crate) fn github_output(&self) -> Option<&Path> {
        self.github_output.as_deref().filter(|path| !path.is_empty()).map(Path::new)
    }
}

/// Flags of `paved apply`.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Apply {
    /// Claims or namespaced composites: files, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take over fields that another manager set.
    #[arg(long)]
    pub(crate) force_conflicts: bool,

    /// Check everything and print the planned actions, without any change.
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "server", require_equals = true)]
    pub(crate) dry_run: Option<DryRun>,

    /// Show the changes of the claim and, from a preview, of its resources. Ask on a terminal.
    #[arg(long)]
    pub(crate) diff: bool,

    /// Apply without a question.
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) planning: Planning,

    /// Skip the check by the function in `paved`. The function in the cluster may be newer.
    #[arg(long)]
    pub(crate) no_validate: bool,

    /// Settings for the check and for --diff [default: the cluster's Settings].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Composition for the check and for --diff [default: the cluster's Composition].
    #[arg(long, value_name = "FILE")]
    pub(crate) composition: Option<PathBuf>,

    /// Wait until every environment is ready or has failed.
    #[arg(long, conflicts_with_all = ["dry_run", "plan"])]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) outputs: Outputs,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Server that checks a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// The API server.
    Server,
}

/// Flags of `paved delete`.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// Environments: NAME, or KIND/NAME if a name is ambiguous.
    #[arg(required_unless_present = "namespace", value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Delete without confirmation. For a whole namespace, write its name: --yes=NAMESPACE.
    #[arg(short, long, num_args = 0..=1, require_equals = true, value_name = "NAMESPACE")]
    #[expect(clippy::option_option, reason = "absent, without a value, with a value")]
    pub(crate) yes: Option<Option<String>>,

    /// Treat environments that do not exist as deleted.
    #[arg(long)]
    pub(crate) ignore_not_found: bool,

    /// Wait until the environments are deleted, and show the reasons for remaining resources.
    #[arg(long)]
    pub(crate) wait: bool,

    /// Time limit of the wait, for example 90s, 30m or 1h30m [default: 30m].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) planning: Planning,

    /// Whether the command line has the namespace's flag in its long form.
    #[arg(skip)]
    pub(crate) names_namespace: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Parses a duration, for example `90s`, `30m` or `1h30m`. A number without a unit is in seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const MAX_DURATION: Duration = Duration::from_hours(30 * 24);
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    let written =
        || text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    seconds
        .or_else(written)
        .filter(|time| *time <= MAX_DURATION)
        .ok_or_else(|| "allowed: a time of at most 720h, for example 90s, 30m or 1h30m".to_owned())
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
        for text in [
            "",
            "m",
            "5x",
            "-1",
            "-5m",
            "99999999999999999999",
            "99999999999999999h",
            "1000h",
            "1é",
            "é",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
