//! The commands that need a cluster.

mod cluster;
mod connect;
mod controller;
mod cost;
#[cfg(feature = "demo")]
mod demo;
mod help;
mod lifecycle;
mod planning;
mod platform;
mod portal;
mod publish;
mod ssh;

use clap::Subcommand;

pub(crate) use cluster::{
    Access, Apply, Delete, Doctor, Kinds, List, Listing, Outputs, Patience, Sort, Status, Wait,
};
pub(crate) use connect::{Connect, Export, Printed};
pub(crate) use controller::Controller;
pub(crate) use cost::{By, Cost};
#[cfg(feature = "demo")]
pub(crate) use demo::Demo;
pub(crate) use lifecycle::{Extend, Keep, Start, Stop};
pub(crate) use planning::{HASH_LENGTH, PlanFormat, Planning};
pub(crate) use platform::{PlatformCommand, Uninstall};
pub(crate) use portal::Portal;
pub(crate) use publish::Publish;
pub(crate) use ssh::{Ssh, SshCommand, SshConfig, SshKnownHosts};

/// The commands that need a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Online {
    /// Check and apply claims. If one claim is rejected, none is applied.
    #[command(after_help = help::APPLY_HELP)]
    Apply(Apply),
    /// Wait until environments are ready or deleted. If one fails, stop early and show the reason.
    #[command(after_help = help::WAIT_HELP)]
    Wait(Wait),
    /// Show an environment with all its resources, or list all environments.
    #[command(after_help = help::EXIT_CODES)]
    Status(Status),
    /// List environments of all kinds.
    #[command(visible_alias = "ls", after_help = help::EXIT_CODES)]
    List(List),
    /// Renew an environment, so that it expires later.
    #[command(after_help = lifecycle::EXTEND_HELP)]
    Extend(Extend),
    /// Remove the time to live of an environment, so that it does not expire.
    #[command(after_help = lifecycle::KEEP_HELP)]
    Keep(Keep),
    /// Stop environments, and keep disks and databases, but not an instance store.
    #[command(after_help = lifecycle::STOP_HELP)]
    Stop(Stop),
    /// Start a stopped environment. With --wait, also wait until it runs.
    #[command(after_help = lifecycle::START_HELP)]
    Start(Start),
    /// Delete environments, or a namespace with all its environments.
    #[command(after_help = help::DELETE_HELP)]
    Delete(Delete),
    /// Open an environment: a shell on its machine, its cluster or its database.
    #[command(after_help = connect::HELP)]
    Connect(Connect),
    /// Write the entries of workspaces for OpenSSH: ssh, scp, rsync and VS Code.
    #[command(after_help = ssh::HELP)]
    Ssh(Ssh),
    /// Upload the changed files of a site's build to its environment, pages last.
    #[command(after_help = publish::HELP)]
    Publish(Publish),
    /// Serve the portal with a fake cluster: no cluster, no cloud, no other program.
    ///
    /// The fake cluster has environments of every kind. One has failed, one ends soon, and one
    /// becomes ready while you look. All objects are in the memory of this process, and are lost at its
    /// end. You are the user ada, with all rights.
    #[cfg(feature = "demo")]
    #[command(after_help = demo::HELP)]
    Demo(Demo),
    /// Serve the portal, a web page for environments that needs no YAML.
    ///
    /// The portal has no state of its own. All state is in the cluster. The portal reads with its
    /// own role, shows each user only the objects that the API server allows, and writes with the
    /// user's rights.
    #[command(after_help = portal::HELP)]
    Portal(Box<Portal>),
    /// Delete expired environments, compare costs with budgets, and send notifications.
    ///
    /// The controller is optional. Without it, the function stops environments at their end, and
    /// expired environments are not deleted. Several replicas can run: one of them leads.
    #[command(after_help = controller::HELP)]
    Controller(Box<Controller>),
    /// List the kinds of environment that this cluster serves.
    #[command(after_help = help::EXIT_CODES)]
    Kinds(Kinds),
    /// Add up the estimated prices by owner, namespace and kind, and compare with budgets.
    #[command(after_help = cost::HELP)]
    Cost(Cost),
    /// Check whether this cluster can serve environments, and whether you may create them.
    ///
    /// `paved` prints one line for each check: Crossplane, the function, each provider, XRD and
    /// provider config, the Settings and your rights. The mark ✓ means correct, … means not visible
    /// or not required, and ✗ means broken. A line with ✗ has the remediation.
    #[command(after_help = help::DOCTOR_HELP)]
    Doctor(Doctor),
}

impl Online {
    /// Whether standard output has sentences, tables and trees.
    pub(super) fn has_prose(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Portal(_) | Self::Controller(_) => false,
            #[cfg(feature = "demo")]
            Self::Demo(_) => false,
            _ => true,
        }
    }

    /// Whether the command only prints.
    pub(super) fn only_prints(&self) -> bool {
        matches!(self, Self::Status(_) | Self::List(_) | Self::Kinds(_) | Self::Cost(_))
    }
}
