//! Runs the commands that need a cluster.

use std::ffi::OsString;
use std::io;

use crate::cli::{self, Cli, Command, Online, PlatformCommand};
use crate::failure::Failure;
use crate::platform::uninstall;
use crate::{
    Console, apply, connect, cost, delete, doctor, kinds, lifecycle, list, publish, signals, ssh,
    status, style, wait,
};

/// Runs a command.
pub(crate) fn perform(command: Online, console: &mut Console<'_>) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "demo")]
        Online::Demo(args) => crate::demo::run(&args, console),
        Online::Portal(args) => portal(&args, console),
        Online::Controller(args) => controller(&args, console),
        command => on_a_cluster(command, console),
    }
}

/// Runs a command on the platform of a cluster.
pub(crate) fn perform_on_platform(
    command: &PlatformCommand,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let PlatformCommand::Uninstall(args) = command;
    let done = runtime.block_on(uninstall::run(args, console));
    runtime.shutdown_background();
    done
}

/// Records whether the user has written `--namespace` out, which `delete` requires.
pub(crate) fn as_written(mut cli: Cli, args: &[OsString]) -> Cli {
    if let Command::Online(Online::Delete(delete)) = &mut cli.command {
        delete.names_namespace = args.iter().any(|arg| {
            let arg = arg.to_string_lossy();
            arg == "--namespace" || arg.starts_with("--namespace=")
        });
    }
    cli
}

/// Runs the commands that need a cluster on one thread, because they mostly wait.
fn on_a_cluster(command: Online, console: &mut Console<'_>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Online::Status(args) => {
                signals::unless_asked(Box::pin(status::run(&args, console)), "").await
            }
            Online::List(args) => {
                signals::unless_asked(Box::pin(list::run(&args, console)), "").await
            }
            Online::Kinds(args) => {
                signals::unless_asked(Box::pin(kinds::run(&args, console)), "").await
            }
            Online::Cost(args) => {
                signals::unless_asked(Box::pin(cost::run(&args, console)), "").await
            }
            Online::Apply(args) => apply::run(&args, console).await,
            Online::Extend(args) => {
                signals::unless_asked(Box::pin(lifecycle::extend(&args, console)), "").await
            }
            Online::Keep(args) => {
                signals::unless_asked(Box::pin(lifecycle::keep(&args, console)), "").await
            }
            Online::Stop(args) => {
                let told = "check with paved list which environments are being stopped";
                signals::unless_asked(Box::pin(lifecycle::stop(&args, console)), told).await
            }
            Online::Start(args) => {
                let told = "the cluster continues";
                signals::unless_asked(Box::pin(lifecycle::start(&args, console)), told).await
            }
            Online::Delete(args) => delete::run(&args, console).await,
            Online::Wait(args) => {
                signals::unless_asked(Box::pin(wait::run(&args, console)), "the cluster continues")
                    .await
            }
            Online::Connect(args) => connect::run(&args, console).await,
            Online::Ssh(args) => {
                signals::unless_asked(Box::pin(ssh::run(&args, console)), "").await
            }
            Online::Publish(args) => publish::run(&args, console).await,
            Online::Doctor(args) => {
                signals::unless_asked(Box::pin(doctor::run(&args, console)), "").await
            }
            // These choose their own runtime.
            #[cfg(feature = "demo")]
            Online::Demo(_) => Ok(()),
            Online::Portal(_) | Online::Controller(_) => Ok(()),
        }
    });
    // The process need not wait for pending DNS lookups and credential plugins.
    runtime.shutdown_background();
    done
}

/// Runs the portal on all processors, because it serves many users at once.
fn portal(args: &cli::Portal, console: &mut Console<'_>) -> Result<(), Failure> {
    if args.flags.print_openapi {
        let description = paved_portal::description().map_err(io::Error::other)?;
        writeln!(console.out, "{description}")?;
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(paved_portal::run(&args.flags, &(&args.access).into()));
    // The process need not wait for background tasks.
    runtime.shutdown_background();
    Ok(done?)
}

/// Runs the controller on one thread, because it mostly waits.
fn controller(args: &cli::Controller, console: &mut Console<'_>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(Box::pin(args.flags.run(&(&args.access).into())));
    // Pending DNS lookups and credential plugins hold no work that the process must wait for.
    runtime.shutdown_background();
    for line in done? {
        writeln!(console.out, "{}", style::harmless_name(&line))?;
    }
    Ok(())
}
