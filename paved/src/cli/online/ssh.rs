//! Flags of `paved ssh`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Access;

pub(super) const HELP: &str = "\
Examples:
  paved ssh config               write the entries
  ssh ada.paved                  open a shell, also in another namespace: ada.team-vision.paved
  scp data.tar ada.paved:        copy a file
  code --remote ssh-remote+ada.paved /home/developer

Exit codes:
  0    done
  1    usage: a bad flag, an unreadable file, or a name that does not exist";

pub(super) const CONFIG_HELP: &str = "\
The entries are one marked block at the start of the file. The other lines of the file stay. Run the
command again after you create a workspace, and after you move paved. A workspace without an entry
of its own is reached through the current context, as NAME.paved or NAME.NAMESPACE.paved.

An entry keeps the context, the namespace and the flags --start, --ssm, --kubeconfig and --as of
this command. Entries that you write for other contexts and namespaces stay.

Without --start, ssh asks on the terminal before it starts a stopped workspace, and fails without a
terminal. Programs that connect again by themselves, for example VS Code, would start it each time.

Exit codes:
  0    done, or the file has these entries already
  1    usage: a bad flag, an unreadable file, a damaged block, or OpenSSH before 8.5
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const KNOWN_HOSTS_HELP: &str = "\
OpenSSH runs this command. For other programs, for example paramiko, add the keys to a file:

  paved ssh known-hosts ada >>~/.ssh/known_hosts

The keys are the accepted keys of this machine, which ~/.ssh/known_hosts has under the ID of the
instance. `paved connect` writes them there when you accept the key of a machine.

Exit codes:
  0    done
  1    usage: a bad flag, or a name that does not exist
  4    no host key of this machine is known
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

/// Flags of `paved ssh`.
#[derive(Args, Debug)]
pub(crate) struct Ssh {
    #[command(subcommand)]
    pub(crate) command: SshCommand,
}

/// The commands of `paved ssh`.
#[derive(Debug, Subcommand)]
pub(crate) enum SshCommand {
    /// Write the workspaces into the configuration of OpenSSH, for `ssh NAME.paved`.
    #[command(after_help = CONFIG_HELP)]
    Config(SshConfig),
    /// Print the host keys of a workspace, in the format of `known_hosts`.
    #[command(after_help = KNOWN_HOSTS_HELP)]
    KnownHosts(SshKnownHosts),
    /// A name of a workspace, which is an argument of `ssh` and of `paved connect`.
    #[command(external_subcommand)]
    Name(Vec<OsString>),
}

/// Flags of `paved ssh config`.
// Each bool is a separate flag.
#[allow(clippy::struct_excessive_bools)]
#[derive(Args, Debug)]
pub(crate) struct SshConfig {
    /// File to change [default: ~/.ssh/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Write entries for the workspaces in all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Start a stopped workspace without a question.
    #[arg(long)]
    pub(crate) start: bool,

    /// Connect by Session Manager even if a workspace has a public address.
    #[arg(long)]
    pub(crate) ssm: bool,

    /// Remove the block from the file, without a request to the cluster.
    #[arg(long, conflicts_with_all = ["all_namespaces", "start", "ssm"])]
    pub(crate) remove: bool,

    #[command(flatten)]
    pub(crate) access: Access,
}

/// Flags of `paved ssh known-hosts`.
#[derive(Args, Debug)]
pub(crate) struct SshKnownHosts {
    /// Workspace: NAME, NAME.paved or NAME.NAMESPACE.paved.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) access: Access,
}
