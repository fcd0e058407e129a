//! Paved Road's command line: see what a claim becomes before anyone applies it, apply it, and see what has become of it.
//!
//! [`run`] is the whole program, on a [`Console`] of the caller's; the binary hands it the process's own.

mod apply;
mod changes;
mod cli;
mod connect;
mod delete;
mod doctor;
mod documents;
mod failure;
mod files;
mod init;
mod kinds;
mod list;
mod live;
mod outputs;
mod paint;
mod platform;
mod prepare;
mod preview;
mod publish;
mod show;
mod status;
mod stop;
mod stream;
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

/// Where a run reads and writes.
pub struct Console<'a> {
    /// Reads standard input to its end.
    pub input: &'a mut dyn FnMut(&mut Vec<u8>) -> io::Result<usize>,
    /// Standard output. Styles are always written: a writer that is no terminal strips them.
    pub out: Stream<'a>,
    /// Standard error.
    pub err: Stream<'a>,
    /// Standard output as a terminal, where somebody looks at one: it decides what is printed, a tree or YAML, and whether secrets
    /// are.
    pub terminal: Option<Terminal<'a>>,
    /// Reads a line of what somebody types, where somebody sits at a terminal.
    pub answer: Option<&'a mut dyn FnMut() -> io::Result<String>>,
}

/// A terminal.
pub struct Terminal<'a> {
    /// Its height and width in characters, as they are now.
    pub size: &'a dyn Fn() -> (usize, usize),
    /// Standard output for what moves the cursor: nothing is stripped from it, wanted or not.
    pub controls: &'a mut dyn io::Write,
}

/// Runs the program and gives its exit code: 0 done, 1 usage, 2 refused input, 3 refused by the composition, 4 provisioning
/// failed, 5 timed out, 6 no access, 130 ended by Ctrl-C or SIGTERM. A reader that closed the pipe ends what only prints, with 0; anything
/// else goes on, and its exit code is what it would have been.
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
        Err(Failure::Output(error)) if only_prints && error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(failure) => {
            // Whoever cannot be told still gets the exit code.
            let _ = failure.print(&mut console.err);
            failure.code()
        }
    }
}

fn perform(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    match command {
        Command::Portal(args) => portal(&args, console),
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

/// Reads the flags. Whoever came by kubectl is spoken to as they typed it.
fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let program = args.first().and_then(|path| Path::new(path).file_name());
    let by_kubectl = program.is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"));
    let command = self::command().bin_name(if by_kubectl { "kubectl paved" } else { "paved" });
    Cli::from_arg_matches(&command.try_get_matches_from(args)?)
}

/// Commands that talk to a cluster, on one thread: they wait more than they work.
fn on_a_cluster(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Command::Status(args) => stop::unless_asked(Box::pin(status::run(&args, console)), "").await,
            Command::List(args) => stop::unless_asked(Box::pin(list::run(&args, console)), "").await,
            Command::Kinds(args) => stop::unless_asked(Box::pin(kinds::run(&args, console)), "").await,
            Command::Apply(args) => apply::run(&args, console).await,
            Command::Delete(args) => delete::run(&args, console).await,
            Command::Wait(args) => {
                stop::unless_asked(
                    Box::pin(wait::run(&args, console)),
                    "nothing is undone: it goes on by itself",
                )
                .await
            }
            Command::Connect(args) => connect::run(&args, console).await,
            Command::Publish(args) => publish::run(&args, console).await,
            Command::Doctor(args) => stop::unless_asked(Box::pin(doctor::run(&args, console)), "").await,
            Command::Preview(_)
            | Command::Portal(_)
            | Command::Validate(_)
            | Command::Init(_)
            | Command::Platform(_)
            | Command::Completions { .. } => Ok(()),
        }
    });
    // A name that is looked up, or a plugin that waits for a login, holds nothing that anybody waits for.
    runtime.shutdown_background();
    done
}

/// The portal serves many at once: on all processors.
fn portal(args: &cli::Portal, console: &mut Console<'_>) -> Result<(), Failure> {
    if args.flags.print_openapi {
        let description = paved_portal::description().map_err(io::Error::other)?;
        writeln!(console.out, "{description}")?;
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(paved_portal::run(&args.flags, &(&args.access).into()));
    // What still goes on in the background holds nothing that anybody waits for.
    runtime.shutdown_background();
    Ok(done?)
}

/// The flags, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::whole()
}

/// Help and version are answers; everything else that the parser says is a mistake in the flags.
fn said(message: &clap::Error, console: &mut Console<'_>) -> u8 {
    let (writer, code) = if message.use_stderr() { (&mut console.err, 1) } else { (&mut console.out, 0) };
    let _ = write!(writer, "{}", message.render().ansi());
    code
}
