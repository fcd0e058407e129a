//! Flags of `paved connect`.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};

use super::{Access, Patience};
use crate::port_forward::PortForward;

pub(super) const HELP: &str = "\
The effect depends on the kind of the environment:
  GPU workspace            opens a shell by ssh, or by SSM if the machine has no public address
  application environment  adds its cluster to your kubeconfig; with --database, prints the command
                           for its PostgreSQL database
  virtual environment      adds its cluster to your kubeconfig; forwards the cluster to this machine
                           while the command runs, if it is reachable only from inside
  unified environment      prints the command for its PostgreSQL database

With --print, paved prints the command and does not run it. --print=vscode prints a link that opens
a workspace in VS Code, and --print=url the URL of a database, with a masked password.

If the environment is stopped, paved asks whether to start it. In scripts, use --start.

--kubeconfig selects the platform's cluster. --into selects the kubeconfig to change.

Examples:
  paved connect ada                           open a shell when the workspace is prepared
  paved connect ada -- nvidia-smi             run a command instead
  paved connect ada -L 8888:localhost:8888    forward a port, and open no shell
  paved connect preview --into preview.yaml   write a separate kubeconfig
  eval \"$(paved connect shop --export)\"       set PGHOST, PGPASSWORD and others in this shell
  paved connect shop --export=dotenv >.env

Exit codes:
  0    done, also if Ctrl-C stops a forwarding. With ssh or aws, their exit code, which is the
       exit code of COMMAND. SSM on a terminal does not report the exit code of COMMAND.
  1    usage: a bad flag, an environment that has no connection, or a foreign context of that name
  2    rejected by the API server: the environment cannot be started
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or denies access
  7    no capacity: the cloud cannot start the environment now
  130  stopped by Ctrl-C";

/// Flags of `paved connect`.
// Each bool is a separate flag.
#[allow(clippy::struct_excessive_bools)]
#[derive(Args, Debug)]
pub(crate) struct Connect {
    /// Environment: NAME, or KIND/NAME if the name is ambiguous.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Command to run in a workspace instead of a shell.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Print the command when the environment is ready, but do not run it.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "command", require_equals = true)]
    pub(crate) print: Option<Printed>,

    /// Forward a port of this machine to the workspace: PORT or PORT:HOST:PORT. Repeatable.
    #[arg(short = 'L', long = "forward", value_name = "PORT:HOST:PORT", conflicts_with_all = ["command", "unprepared"],
        help_heading = "Workspaces")]
    pub(crate) forward: Vec<PortForward>,

    /// Carry the bytes of an SSH program, as its ProxyCommand. NAME may be a host name.
    #[arg(long, conflicts_with_all = ["command", "print", "forward", "unprepared", "database", "export", "show_secrets",
        "into", "context_name", "replace", "port"], help_heading = "Workspaces")]
    pub(crate) stdio: bool,

    /// Connect by SSM even if the workspace has a public address.
    #[arg(long, help_heading = "Workspaces")]
    pub(crate) ssm: bool,

    /// Start a stopped environment without confirmation.
    #[arg(long)]
    pub(crate) start: bool,

    /// Connect without waiting for the workspace to answer and to be prepared.
    #[arg(long, help_heading = "Workspaces")]
    pub(crate) unprepared: bool,

    /// Connect to the database of an application environment instead of its cluster.
    #[arg(long, help_heading = "Databases")]
    pub(crate) database: bool,

    /// Print variables with the password, for a shell or as KEY=VALUE.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "shell", require_equals = true,
        help_heading = "Databases")]
    pub(crate) export: Option<Export>,

    /// Print the password even without an interactive terminal.
    #[arg(long, help_heading = "Databases")]
    pub(crate) show_secrets: bool,

    /// Kubeconfig to add the context to [default: $KUBECONFIG, ~/.kube/config].
    #[arg(long, value_name = "FILE", help_heading = "Clusters")]
    pub(crate) into: Option<PathBuf>,

    /// Name of the new context [default: paved/NAMESPACE/NAME].
    #[arg(long, value_name = "NAME", help_heading = "Clusters")]
    pub(crate) context_name: Option<String>,

    /// Replace a foreign context of the same name.
    #[arg(long, help_heading = "Clusters")]
    pub(crate) replace: bool,

    /// Port on this machine for a forwarded cluster [default: a free port].
    #[arg(long, value_name = "PORT", help_heading = "Clusters")]
    pub(crate) port: Option<u16>,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) access: Access,
}

impl Connect {
    /// The end of the time limit.
    pub(crate) fn end(&self) -> Instant {
        Instant::now() + self.patience.timeout
    }
}

/// A text that opens an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Printed {
    /// The command.
    Command,
    /// The link that opens a workspace in VS Code.
    Vscode,
    /// The URL of a database. Its password is masked, unless --show-secrets is set.
    Url,
}

/// Output format of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// `export KEY='VALUE'`, for `eval`.
    Shell,
    /// `KEY=VALUE`, for dotenv files.
    Dotenv,
}
