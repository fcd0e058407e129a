//! Flags.

mod cluster;
mod connect;
mod help;
mod offline;
mod portal;
mod publish;

use std::path::PathBuf;

use clap::{Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use cluster::{
    Access, Apply, Delete, Doctor, Goal, Kinds, List, Listing, Outputs, Patience, Status, Wait,
};
pub(crate) use connect::{Connect, Export};
pub(crate) use offline::{Form, Init, Platform, Sources, Validate, group_of};
pub(crate) use portal::Portal;
pub(crate) use publish::Publish;

/// Self-service environments from small claims: what a claim becomes, and what becomes of it.
#[derive(Debug, Parser)]
#[command(
    name = "paved",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = crate::failure::codes()
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// All flags: `apply` has those of `wait`, and they say nothing where it does not wait.
    pub(crate) fn whole() -> clap::Command {
        let apply = |apply: clap::Command| {
            let waits = |flag: Arg| flag.requires("wait");
            apply.mut_arg("timeout", waits).mut_arg("patience", waits)
        };
        Self::command().mut_subcommand("apply", apply)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a claim or an XR becomes: no cluster, no container.
    ///
    /// The schema's defaults are applied and the input is checked as an API server would, then the function runs in
    /// this process. YAML and JSON are what `crossplane composition render -x -r` prints; a tree has a line per
    /// resource, and never a secret.
    #[command(after_help = EXAMPLES)]
    Preview(Preview),
    /// Check claims, XRs and Settings, and say everything that is wrong with them: no cluster.
    ///
    /// What an API server checks (syntax, unknown fields, types, bounds, CEL rules) and what the function checks, in one
    /// go and for all documents. Documents of other kinds are left alone.
    #[command(after_help = offline::VALIDATE_HELP)]
    Validate(Validate),
    /// Write a claim, with every field that it could have and what is allowed there.
    ///
    /// What is required is asked for on a terminal, elsewhere it comes by --set. What can be left out stands there as a comment,
    /// with its default. The claim is checked as by `paved validate` before it is written.
    #[command(after_help = offline::INIT_HELP)]
    Init(Init),
    /// For platform teams: write XRDs, Compositions and Settings for Git, or see what a change of Settings does.
    ///
    /// Everything that a cluster needs of Paved Road besides the function itself: the XRDs, a Composition for each, and
    /// the EnvironmentConfig that the Compositions take the Settings from. With --check nothing is written: each
    /// environment is composed with the old and with the new Settings, and what differs is shown.
    #[command(after_help = offline::PLATFORM_HELP)]
    Platform(Platform),
    /// Apply claims to the cluster: all of them, or none where one is refused.
    #[command(after_help = help::APPLY_HELP)]
    Apply(Apply),
    /// Wait until environments are ready, fail fast and say why, or until they are gone.
    #[command(after_help = help::WAIT_HELP)]
    Wait(Wait),
    /// Show an environment with every part, or all environments.
    #[command(after_help = help::EXIT_CODES)]
    Status(Status),
    /// List environments of every kind.
    #[command(visible_alias = "ls", after_help = help::EXIT_CODES)]
    List(List),
    /// Delete environments, and watch them go.
    #[command(after_help = help::EXIT_CODES)]
    Delete(Delete),
    /// Use an environment: a shell on its machine, its cluster in your kubeconfig, the way to its database.
    #[command(after_help = connect::HELP)]
    Connect(Connect),
    /// Upload a site's build to its environment: only what has changed, pages last.
    #[command(after_help = publish::HELP)]
    Publish(Publish),
    /// Serve the portal: environments by HTTP, for people who never write YAML.
    ///
    /// Beside Crossplane it keeps no state. It reads under its own role, shows each person what the API server says they may
    /// see, and writes under their rights.
    #[command(after_help = portal::HELP)]
    Portal(Box<Portal>),
    /// List the kinds of environment that this cluster makes.
    #[command(after_help = help::EXIT_CODES)]
    Kinds(Kinds),
    /// Check whether this cluster can serve environments, and you may ask for them.
    ///
    /// A line for Crossplane, the function, each provider, XRD and provider config, Settings and your rights: ✓ as it should be,
    /// … cannot be seen or need not be, ✗ broken, with what to do about it.
    #[command(after_help = help::DOCTOR_HELP)]
    Doctor(Doctor),
    /// Print a shell's completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether there is nothing to it but what it prints: then it ends where nobody reads that.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(
            self,
            Self::Preview(_) | Self::Status(_) | Self::List(_) | Self::Kinds(_) | Self::Completions { .. }
        )
    }
}

const EXAMPLES: &str = "\
Examples:
  paved preview claim.yaml                             what a claim becomes
  paved preview examples/gpu-workspace                 every claim and XR of a folder
  cat claim.yaml | paved preview - --settings settings.yaml
  paved preview claim.yaml --observed cluster.yaml     with what exists already
  paved preview claim.yaml --until-ready               round after round, until it is ready
  paved preview claim.yaml --until-ready --fail instance='VcpuLimitExceeded: no GPUs left'

Exit codes:
  0  done
  1  usage: a bad flag, a file that is unreadable or no YAML
  2  refused: an API server would not take the input; every reason is printed
  3  fatal: the function would compose nothing, and says why
  4  not ready: with --until-ready, when nothing changes any more";

/// Flags of `paved preview`.
#[derive(Args, Debug)]
pub(crate) struct Preview {
    /// Claims or XRs of either flavour: files with one or more documents, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// What exists: composed resources, and the Secrets with their connection details; a file or a folder, repeatable. Each
    /// resource is matched by group, kind, namespace and name.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Vec<PathBuf>,

    /// How to print [default: tree on a terminal, else yaml].
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// Print the function's results among the documents too, as a local render does with the same flag
    #[arg(short = 'r', long)]
    pub(crate) include_function_results: bool,

    /// Let simulated providers answer round after round until everything is ready.
    #[arg(long)]
    pub(crate) until_ready: bool,

    /// Let the cloud refuse the resource in a slot.
    #[arg(long, value_name = "SLOT=MESSAGE", requires = "until_ready", value_parser = slot_and_message)]
    pub(crate) fail: Vec<(String, String)>,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Documents that can be piped.
    Yaml,
    /// One List with the same documents.
    Json,
    /// A line per resource, for people.
    Tree,
}

fn slot_and_message(text: &str) -> Result<(String, String), String> {
    let (slot, message) = text.split_once('=').ok_or("expected SLOT=MESSAGE")?;
    Ok((slot.to_owned(), message.to_owned()))
}
