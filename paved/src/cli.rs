//! Flags of the command line.

mod groups;
mod offline;
#[cfg(feature = "cluster")]
mod online;

use std::path::PathBuf;

use clap::{Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use offline::{Form, Init, Offers, Platform, Sources, TextOrJson, Validate, group_of};
#[cfg(feature = "demo")]
pub(crate) use online::Demo;
#[cfg(feature = "cluster")]
pub(crate) use online::{
    Access, Apply, By, Connect, Controller, Cost, Delete, Doctor, Export, Extend, HASH_LENGTH,
    Keep, Kinds, List, Listing, Online, Outputs, Patience, PlanFormat, Planning, PlatformCommand,
    Portal, Printed, Publish, Sort, Ssh, SshCommand, SshConfig, SshKnownHosts, Start, Status, Stop,
    Uninstall, Wait,
};

/// Preview, apply and use self-service environments, which Crossplane creates from small claims.
#[derive(Debug, Parser)]
#[command(
    name = "paved",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = crate::failure::codes()
)]
#[cfg_attr(
    not(feature = "cluster"),
    command(
        before_help = "This build has only the offline commands. Build all commands with: cargo build -p paved"
    )
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// All flags. For `apply` and `start`, the flags `--timeout` and `--patience` require `--wait`.
    pub(crate) fn whole() -> clap::Command {
        let waits = |flag: Arg| match flag.get_id().as_str() {
            "timeout" | "patience" => flag.requires("wait"),
            _ => flag,
        };
        groups::grouped(Self::command().mut_subcommands(|one| {
            if ["apply", "start"].contains(&one.get_name()) { one.mut_args(waits) } else { one }
        }))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the resources of a claim or XR, without a cluster or a container.
    ///
    /// `paved` applies the schema's defaults, checks the input as an API server would, and runs the
    /// function in its own process. YAML and JSON output is the same as the output of
    /// `crossplane composition render -x -r`. A tree has one line for each resource, and never has
    /// a secret.
    #[command(after_help = EXAMPLES)]
    Preview(Preview),
    /// Check claims, XRs and Settings, and report every error, without a cluster.
    ///
    /// `paved` runs the checks of an API server (syntax, unknown fields, types, bounds, CEL rules)
    /// and the checks of the function on all documents. It skips documents of other kinds.
    #[command(after_help = offline::VALIDATE_HELP)]
    Validate(Validate),
    /// Write a claim with every field, its default and its allowed values.
    ///
    /// On a terminal, `paved` asks for the required fields. Otherwise, set them with --set.
    /// Optional fields are comments with their defaults. `paved` checks the claim as
    /// `paved validate` does, and then writes it.
    #[command(after_help = offline::INIT_HELP)]
    Init(Init),
    /// Show the values that you can choose for fields, with size and price.
    #[command(after_help = offline::OFFERS_HELP)]
    Offers(Offers),
    /// Write manifests for Git, show the effect of new Settings, or uninstall the platform.
    ///
    /// This command is for platform teams. It writes the manifests that a cluster needs besides the
    /// Function: the XRDs, a Composition for each XRD, the admission policies, and the
    /// EnvironmentConfig with the Settings. With --check, it writes no manifests. It composes each
    /// environment with the old and the new Settings, and shows the differences. Without
    /// --observed, more fields seem to change, because running environments preserve observed
    /// values.
    #[command(after_help = offline::PLATFORM_HELP)]
    Platform(Platform),
    /// The commands that need a cluster.
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    Online(Online),
    /// Print the completions of a shell.
    Completions {
        /// Name of the shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether standard output has sentences and trees, which are wrapped on a terminal. Other
    /// commands print files, and the output of other programs.
    pub(crate) fn has_prose(&self) -> bool {
        match self {
            Self::Preview(args) => args.output.is_none_or(|output| output == Format::Tree),
            Self::Validate(args) => args.output == Form::Text,
            #[cfg(feature = "cluster")]
            Self::Platform(args) if args.command.is_some() => true,
            Self::Offers(_) | Self::Init(_) | Self::Platform(_) | Self::Completions { .. } => false,
            #[cfg(feature = "cluster")]
            Self::Online(command) => command.has_prose(),
        }
    }

    /// Whether the command only prints. Such a command ends when its reader closes the pipe.
    pub(crate) fn only_prints(&self) -> bool {
        match self {
            Self::Preview(_) | Self::Offers(_) | Self::Completions { .. } => true,
            Self::Validate(_) | Self::Init(_) | Self::Platform(_) => false,
            #[cfg(feature = "cluster")]
            Self::Online(command) => command.only_prints(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  paved preview claim.yaml                             show the resources of a claim
  paved preview examples/gpu-workspace                 show every claim and XR in a folder
  cat claim.yaml | paved preview - --settings settings.yaml
  paved preview claim.yaml --observed cluster.yaml     include existing resources
  paved preview claim.yaml --until-ready               simulate rounds until all resources are ready
  paved preview claim.yaml --until-ready --fail instance='VcpuLimitExceeded: no GPUs left'

Exit codes:
  0  done
  1  usage: a bad flag, an unreadable file, or invalid YAML
  2  rejected: an API server would reject the input; preview prints every reason
  3  rejected by the composition: the spec or the platform's Settings are invalid
  4  not ready: with --until-ready, the resources stop changing before all are ready";

/// Flags of `paved preview`.
#[derive(Args, Debug)]
pub(crate) struct Preview {
    /// Claims, or composites of either API: files, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// Existing resources and connection Secrets: a file or a folder. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Vec<PathBuf>,

    /// Output format [default: tree on a terminal, otherwise yaml].
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// Print the function's results too, as `crossplane composition render` does with this flag.
    #[arg(short = 'r', long)]
    pub(crate) include_function_results: bool,

    /// Simulate providers, round by round, until all resources are ready.
    #[arg(long)]
    pub(crate) until_ready: bool,

    /// Slot whose resource the simulated cloud rejects, and its error message. Repeatable.
    #[arg(long, value_name = "SLOT=MESSAGE", requires = "until_ready", value_parser = slot_and_message)]
    pub(crate) fail: Vec<(String, String)>,
}

/// Output format of `paved preview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents, for pipes.
    Yaml,
    /// One List with the same documents.
    Json,
    /// One line for each resource.
    Tree,
}

fn slot_and_message(text: &str) -> Result<(String, String), String> {
    let (slot, message) = text.split_once('=').ok_or("expected SLOT=MESSAGE")?;
    Ok((slot.to_owned(), message.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Cli;

    /// More commands do not fit on a terminal with 24 lines.
    #[test]
    fn help_has_at_most_26_commands() {
        let command = Cli::whole();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set()).count();
        assert!((5..=26).contains(&shown), "{shown}");
    }
}
