//! The command line `paved`: preview, apply, watch and use self-service environments.
//!
//! [`run`] is the whole program. The caller passes a [`Console`]. The binary passes the streams of
//! its process.
//!
//! The feature `demo` has `paved demo`. The feature `cluster` has the other commands that need a
//! cluster. Without them, the program has only the
//! offline commands, and no Kubernetes client among its dependencies.

#![cfg_attr(
    not(feature = "cluster"),
    allow(dead_code, unused_imports, reason = "the commands that need a cluster use the rest")
)]

#[cfg(feature = "cluster")]
mod apply;
#[cfg(feature = "cluster")]
mod ask;
mod cli;
mod completions;
#[cfg(feature = "cluster")]
mod connect;
mod connection_secrets;
#[cfg(feature = "cluster")]
mod cost;
#[cfg(feature = "cluster")]
mod delete;
#[cfg(feature = "demo")]
mod demo;
mod diff;
#[cfg(feature = "cluster")]
mod doctor;
mod documents;
mod failure;
mod files;
mod init;
#[cfg(feature = "cluster")]
mod kinds;
#[cfg(feature = "cluster")]
mod lifecycle;
#[cfg(feature = "cluster")]
mod list;
#[cfg(feature = "cluster")]
mod live_view;
mod offers;
#[cfg(feature = "cluster")]
mod online;
#[cfg(feature = "cluster")]
mod outputs;
#[cfg(feature = "cluster")]
mod plan;
mod platform;
#[cfg(feature = "cluster")]
mod port_forward;
#[cfg(feature = "cluster")]
pub mod portal;
mod prepare;
mod preview;
#[cfg(feature = "cluster")]
mod publish;
#[cfg(feature = "cluster")]
mod record;
#[cfg(feature = "cluster")]
mod show;
#[cfg(feature = "cluster")]
mod signals;
#[cfg(feature = "cluster")]
mod ssh;
#[cfg(feature = "cluster")]
mod ssh_host;
#[cfg(feature = "cluster")]
mod status;
mod stream;
mod style;
mod target;
mod validate;
#[cfg(feature = "cluster")]
mod wait;
mod wrap;
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

/// Whether the process is a pipeline's job, by the variable `CI`. A job never answers a question.
pub fn is_job(ci: &str) -> bool {
    !(ci.is_empty() || ci == "false")
}

/// Runs the program and returns its exit code, as in [`exit_codes`]. If the reader closes the pipe,
/// commands that only print end with 0. Other commands continue and return their usual exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let command = match parse(&args.into_iter().collect::<Vec<_>>()) {
        Ok(Cli { command }) => command,
        Err(message) => return said(&message, console),
    };
    let only_prints = command.only_prints();
    if !only_prints {
        console.out.outlive_reader();
        console.err.outlive_reader();
    }
    console.out.set_wraps(command.has_prose());
    console.err.set_wraps(true);
    let code = match perform(command, console) {
        Ok(()) => 0,
        Err(Failure::Output(error)) if only_prints && error.kind() == io::ErrorKind::BrokenPipe => {
            0
        }
        Err(failure) => {
            _ = console.out.flush();
            // The caller gets the exit code even if the message cannot be written.
            let _ = failure.print(&mut console.err);
            failure.code()
        }
    };
    _ = console.out.flush();
    _ = console.err.flush();
    code
}

fn perform(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    match command {
        Command::Preview(args) => preview::run(&args, console),
        Command::Validate(args) => validate::run(&args, console),
        Command::Init(args) => init::run(&args, console),
        Command::Offers(args) => offers::run(&args, console),
        #[cfg(feature = "cluster")]
        Command::Platform(cli::Platform { command: Some(command), .. }) => {
            online::perform_on_platform(&command, console)
        }
        Command::Platform(args) => platform::run(&args, console),
        #[cfg(feature = "cluster")]
        Command::Online(command) => online::perform(command, console),
        Command::Completions { shell } => {
            console.out.verbatim(&completions(shell)).map_err(Failure::from)
        }
    }
}

/// Reads the flags. Help texts name `kubectl paved` if the program is a kubectl plugin.
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let program = args.first().and_then(|path| Path::new(path).file_name());
    let by_kubectl = program.is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"));
    let command = self::command().bin_name(if by_kubectl { "kubectl paved" } else { "paved" });
    let cli = Cli::from_arg_matches(&command.try_get_matches_from(args)?)?;
    #[cfg(feature = "cluster")]
    let cli = online::as_written(cli, args);
    Ok(cli)
}

/// The command tree, for manual pages, completions and the reference.
pub fn command() -> clap::Command {
    Cli::whole()
}

/// The completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> String {
    completions::script(command(), shell)
}

/// The exit codes of all commands and their meanings, for the reference.
pub fn exit_codes() -> &'static [(u8, &'static str)] {
    &failure::CODES
}

/// Prints a message of the parser. Help and version return 0, and errors return 1.
fn said(message: &clap::Error, console: &mut Console<'_>) -> u8 {
    console.out.set_wraps(true);
    console.err.set_wraps(true);
    let (writer, code) =
        if message.use_stderr() { (&mut console.err, 1) } else { (&mut console.out, 0) };
    let _ = write!(writer, "{}", message.render().ansi());
    let _ = writer.flush();
    code
}
