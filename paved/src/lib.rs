//! Paved Road's command line: see what a claim becomes before anyone applies it.
//!
//! [`run`] is the whole program, on a [`Console`] of the caller's; the binary hands it the process's own.

mod cli;
mod failure;
mod files;
mod function;
mod preview;
mod suggest;

use std::ffi::OsString;
use std::io;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::failure::Failure;

/// Where a run reads and writes.
pub struct Console<'a> {
    /// Reads standard input to its end.
    pub input: &'a mut dyn FnMut(&mut String) -> io::Result<usize>,
    /// Standard output. Styles are always written: a writer that is no terminal strips them.
    pub out: &'a mut dyn io::Write,
    /// Standard error.
    pub err: &'a mut dyn io::Write,
    /// Whether standard output is a terminal: it decides what is printed, a tree or YAML.
    pub is_terminal: bool,
}

/// Runs the program and gives its exit code: 0 done, 1 usage, 2 refused input, 3 fatal result, 4 not ready and no
/// progress. A reader that closed the pipe is no failure.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let done = match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Preview(args) }) => preview::run(&args, console),
        Ok(Cli { command: Command::Completions { shell } }) => {
            clap_complete::generate(shell, &mut command(), "paved", &mut console.out);
            Ok(())
        }
        Err(message) => return said(&message, console),
    };
    match done {
        Ok(()) => 0,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(failure) => {
            // Whoever cannot be told still gets the exit code.
            let _ = failure.print(console.err);
            failure.code()
        }
    }
}

/// The flags, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Help and version are answers; everything else that the parser says is a mistake in the flags.
fn said(message: &clap::Error, console: &mut Console<'_>) -> u8 {
    let (writer, code): (&mut dyn io::Write, u8) =
        if message.use_stderr() { (console.err, 1) } else { (console.out, 0) };
    let _ = write!(writer, "{}", message.render().ansi());
    code
}
