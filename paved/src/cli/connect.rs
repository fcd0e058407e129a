//! Flags of `paved connect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Access, Patience};

pub(super) const HELP: &str = "\
What it does depends on the environment:
  GPU workspace            opens a shell there by ssh, or by SSM where it has no public address
  application environment  puts its cluster into your kubeconfig; --database shows the way to PostgreSQL
  virtual environment      puts its cluster into your kubeconfig; one that is reachable from inside the cluster
                           only is forwarded to this machine for as long as the command runs
  unified environment      shows the way to its PostgreSQL database

Examples:
  paved connect ada                           a shell, once the workspace is prepared
  paved connect ada -- nvidia-smi             a command instead
  paved connect preview --into preview.yaml   a kubeconfig of its own
  eval \"$(paved connect shop --export)\"       PGHOST, PGPASSWORD and the others, for this shell
  paved connect shop --export=dotenv >.env

Exit codes:
  0    done, also where Ctrl-C ended a forwarding; where ssh or aws takes over, its own: that of
       COMMAND, but for SSM at a terminal, which does not tell it
  1    usage: a bad flag, an environment with nothing to connect to, a context of that name that is another's
  3    refused by the composition: the spec or the platform's settings are invalid
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or does not let you
  130  ended by Ctrl-C";

/// Flags of `paved connect`.
// Each is a flag of its own.
#[allow(clippy::struct_excessive_bools)]
#[derive(Args, Debug)]
pub(crate) struct Connect {
    /// The environment: NAME, or KIND/NAME where the name alone is not enough.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// A workspace: a command to run there instead of a shell.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Print the command, of a cluster kubectl with its context, once the environment is ready, and do nothing.
    #[arg(long)]
    pub(crate) print: bool,

    /// A workspace: by SSM, although it has a public address.
    #[arg(long, help_heading = "Workspaces")]
    pub(crate) ssm: bool,

    /// A workspace: wait neither until it answers nor until it is prepared.
    #[arg(long, help_heading = "Workspaces")]
    pub(crate) unprepared: bool,

    /// An application environment: its database instead of its cluster.
    #[arg(long, help_heading = "Databases")]
    pub(crate) database: bool,

    /// A database: print variables with the password, for a shell or as KEY=VALUE.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "shell", require_equals = true,
        help_heading = "Databases")]
    pub(crate) export: Option<Export>,

    /// A database: print the password although nobody sits at a terminal.
    #[arg(long, help_heading = "Databases")]
    pub(crate) show_secrets: bool,

    /// A cluster: the kubeconfig to write to; --kubeconfig is the one that leads to the platform's own cluster [default:
    /// $KUBECONFIG, ~/.kube/config].
    #[arg(long, value_name = "FILE", help_heading = "Clusters")]
    pub(crate) into: Option<PathBuf>,

    /// A cluster: what its context is called [default: paved/NAMESPACE/NAME].
    #[arg(long, value_name = "NAME", help_heading = "Clusters")]
    pub(crate) context_name: Option<String>,

    /// A cluster: replace a context of that name although it is another's.
    #[arg(long, help_heading = "Clusters")]
    pub(crate) replace: bool,

    /// A cluster that is forwarded: the port on this machine [default: a free one].
    #[arg(long, value_name = "PORT", help_heading = "Clusters")]
    pub(crate) port: Option<u16>,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// How variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// `export KEY='VALUE'`, for `eval`.
    Shell,
    /// `KEY=VALUE`, for dotenv files.
    Dotenv,
}
