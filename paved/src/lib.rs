//! The command line `paved`: preview, apply, watch and use self-service environments.
//!
//! [`run`] is the whole program. The caller passes a [`Console`]. The binary passes the streams of
//! its process.

mod apply;
mod ask;
mod cli;
mod connect;
mod connection_secrets;
mod delete;
mod diff;
mod doctor;
mod documents;
mod failure;
mod files;
mod init;
mod kinds;
mod lifecycle;
mod list;
mod live_view;
mod outputs;
mod platform;
pub mod portal;
mod prepare;
mod preview;
mod publish;
mod show;
mod signals;
mod status;
mod stream;
mod style;
mod validate;
mod wait;
mod yaml;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::FromArgMatches;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
pub use crate::stream::Stream;

/// The input and the outputs of a run.
pub struct Console<'a> {
    /// Reads standard input to its end.
    pub input: &'a mut dyn FnMut(&mut Vec<u8>) -> io::Result<usize>,
    /// Standard output. A run always writes styles. A writer that is not a terminal strips them.
    pub out: Stream<'a>,
    /// Standard error.
    pub err: Stream<'a>,
    /// The terminal, if standard output is interactive. With a terminal, commands print trees
    /// instead of YAML, and may print secrets.
    pub terminal: Option<Terminal<'a>>,
    /// Reads a line from the user, if standard input is interactive.
    pub answer: Option<&'a mut dyn FnMut() -> io::Result<String>>,
}

/// A terminal.
pub struct Terminal<'a> {
    /// The current height and width in characters.
    pub size: &'a dyn Fn() -> (usize, usize),
    /// Standard output for cursor movements. Nothing is stripped from it.
    pub controls: &'a mut dyn io::Write,
}

/// Runs the program and returns its exit code, as in [`exit_codes`]. If the reader closes the pipe,
/// commands that only print end with 0. Other commands continue and return their usual exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let command = match parse(args.into_iter().collect()) {
        Ok(Cli { command }) => command,
        Err(message) => return said(&message, console),
    };
    let only_prints = command.only_prints();
    if !only_prints {
        console.out.outlive_reader();
        console.err.outlive_reader();
    }
    match perform(command, console) {
        Ok(()) => 0,
        Err(Failure::Output(error)) if only_prints && error.kind() == io::ErrorKind::BrokenPipe => {
            0
        }
        Err(failure) => {
            // The caller gets the exit code even if the message cannot be written.
            let _ = failure.print(&mut console.err);
            failure.code()
        }
    }
}

fn perform(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    match command {
        Command::Portal(args) => portal(&args, console),
        Command::Controller(args) => controller(&args, console),
        Command::Preview(args) => preview::run(&args, console),
        Command::Validate(args) => validate::run(&args, console),
        Command::Init(args) => init::run(&args, console),
        Command::Platform(args) => platform::run(&args, console),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut self::command(), "paved", &mut script);
            console.out.verbatim(&String::from_utf8_lossy(&script)).map_err(Failure::from)
        }
        online => on_a_cluster(online, console),
    }
}

/// Reads the flags. Help texts name `kubectl paved` if the program is a kubectl plugin.
fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let program = args.first().and_then(|path| Path::new(path).file_name());
    let by_kubectl = program.is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"));
    let command = self::command().bin_name(if by_kubectl { "kubectl paved" } else { "paved" });
    let names_namespace = args.iter().any(|arg| {
        let arg = arg.to_string_lossy();
        arg == "--namespace" || arg.starts_with("--namespace=")
    });
    let mut cli = Cli::from_arg_matches(&command.try_get_matches_from(args)?)?;
    if let Command::Delete(delete) = &mut cli.command {
        delete.names_namespace = names_namespace;
    }
    Ok(cli)
}

/// Runs the commands that need a cluster on one thread, because they mostly wait.
fn on_a_cluster(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Command::Status(args) => {
                signals::unless_asked(Box::pin(status::run(&args, console)), "").await
            }
            Command::List(args) => {
                signals::unless_asked(Box::pin(list::run(&args, console)), "").await
            }
            Command::Kinds(args) => {
                signals::unless_asked(Box::pin(kinds::run(&args, console)), "").await
            }
            Command::Apply(args) => apply::run(&args, console).await,
            Command::Extend(args) => {
                signals::unless_asked(Box::pin(lifecycle::extend(&args, console)), "").await
            }
            Command::Keep(args) => {
                signals::unless_asked(Box::pin(lifecycle::keep(&args, console)), "").await
            }
            Command::Stop(args) => {
                let told = "check with paved list which environments are being stopped";
                signals::unless_asked(Box::pin(lifecycle::stop(&args, console)), told).await
            }
            Command::Start(args) => {
                let told = "the cluster continues";
                signals::unless_asked(Box::pin(lifecycle::start(&args, console)), told).await
            }
            Command::Delete(args) => delete::run(&args, console).await,
            Command::Wait(args) => {
                signals::unless_asked(Box::pin(wait::run(&args, console)), "the cluster continues")
                    .await
            }
            Command::Connect(args) => connect::run(&args, console).await,
            Command::Publish(args) => publish::run(&args, console).await,
            Command::Doctor(args) => {
                signals::unless_asked(Box::pin(doctor::run(&args, console)), "").await
            }
            Command::Preview(_)
            | Command::Portal(_)
            | Command::Controller(_)
            | Command::Validate(_)
            | Command::Init(_)
            | Command::Platform(_)
            | Command::Completions { .. } => Ok(()),
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

/// The command tree, for manual pages, completions and the reference.
pub fn command() -> clap::Command {
    Cli::whole()
}

/// The exit codes of all commands and their meanings, for the reference.
pub fn exit_codes() -> &'static [(u8, &'static str)] {
    &failure::CODES
}

/// Prints a message of the parser. Help and version return 0, and errors return 1.
fn said(message: &clap::Error, console: &mut Console<'_>) -> u8 {
    let (writer, code) =
        if message.use_stderr() { (&mut console.err, 1) } else { (&mut console.out, 0) };
    let _ = write!(writer, "{}", message.render().ansi());
    code
}
