//! `paved connect --stdio`: carries the bytes of an SSH program to a workspace and back, as its
//! `ProxyCommand`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::shell::cannot_run;
use super::workspace::{Machine, reach};
use super::{Target, find_workspace, ready};
use crate::cli::Connect;
use crate::failure::Failure;
use crate::ssh_host::Host;
use crate::{Console, Stream, is_job};

/// Connects, and ends with the connection.
pub(super) async fn run(args: &Connect, console: &mut Console<'_>) -> Result<(), Failure> {
    let pipe = Pipe::take()?;
    match way(args, pipe.has_terminal, console).await {
        Ok(Way::Stream(stream)) => carry(pipe, &stream).map_err(Failure::from),
        Ok(Way::Session(words, hint)) => Err(pipe.become_it(&words, hint)),
        Err(failure) => {
            pipe.leave_open();
            Err(failure)
        }
    }
}

/// The connection to a workspace.
enum Way {
    Stream(TcpStream),
    /// The command of a session, and a hint if it is not installed.
    Session(Vec<String>, &'static str),
}

/// Waits until the workspace is ready. Without a terminal, no question is asked.
async fn way(
    args: &Connect,
    has_terminal: bool,
    console: &mut Console<'_>,
) -> Result<Way, Failure> {
    let host = Host::parse(&args.name)?;
    let mut answer = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    };
    let is_asked = has_terminal && !is_job(&std::env::var("CI").unwrap_or_default());
    let mut nothing = io::sink();
    let mut aside = Console {
        input: &mut *console.input,
        out: Stream::new(&mut nothing),
        err: console.err.reborrow(),
        terminal: None,
        answer: if is_asked { Some(&mut answer) } else { None },
    };
    let end = args.end();
    let (cluster, found) = find_workspace(&args.access, &host).await?;
    let object = ready(&cluster, found, args, &mut aside).await?;
    let target = Target::new(cluster, object, end);
    let machine = Machine::of(&target, args.ssm)?;
    machine.print_missing(&mut aside)?;
    let Some(address) = machine.address() else {
        return Ok(Way::Session(machine.session(), machine.hint()));
    };
    let stream = reach(&target, address, &mut aside).await?.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(Way::Stream(stream))
}

/// The streams of the SSH program. The terminal takes their place, because questions, errors and
/// credential plugins must not mix with its bytes. OpenSSH discards our standard error in some
/// modes, so the terminal takes its place too.
struct Pipe {
    input: OwnedFd,
    output: OwnedFd,
    has_terminal: bool,
}

impl Pipe {
    fn take() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let terminal = File::options().read(true).write(true).open("/dev/tty");
        if let Ok(terminal) = &terminal {
            dup2_stdin(terminal)?;
            dup2_stderr(terminal)?;
        } else {
            dup2_stdin(File::open("/dev/null")?)?;
        }
        dup2_stdout(io::stderr())?;
        Ok(Self { input, output, has_terminal: terminal.is_ok() })
    }

    /// Replaces this process by a program with the streams. Returns only if that fails.
    fn become_it(self, words: &[String], hint: &str) -> Failure {
        let Some((program, args)) = words.split_first() else {
            return Failure::Usage("the command is empty".to_owned());
        };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::from(self.input)).stdout(Stdio::from(self.output));
        let failure = cannot_run(program, hint, &command.exec());
        mem::forget(command);
        failure
    }

    /// Leaves the streams open until this process has printed its error and ends. OpenSSH ends this
    /// process when its stream closes.
    fn leave_open(self) {
        mem::forget(self);
    }
}

/// Copies bytes in both directions until the server closes the connection.
fn carry(pipe: Pipe, stream: &TcpStream) -> io::Result<()> {
    let (mut input, mut output) = (File::from(pipe.input), File::from(pipe.output));
    let mut up = stream.try_clone()?;
    thread::spawn(move || {
        // The server sees the end of the input, and closes the connection.
        _ = copy(&mut input, &mut up);
        _ = up.shutdown(Shutdown::Write);
    });
    let mut down = stream;
    match copy(&mut down, &mut output) {
        // Either side may end the connection first.
        Err(error)
            if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset]
                .contains(&error.kind()) =>
        {
            Ok(())
        }
        copied => copied,
    }
}

/// Passes bytes on as they arrive. `io::copy` moves bytes between a pipe and a socket inside the
/// kernel, which holds them back until there are more.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
