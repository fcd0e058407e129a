//! The exit code of a command over SSM. `aws ssm start-session` does not report it. The script
//! therefore prints its exit code as the last line, and `paved` removes this line from the output.

use std::io::{self, Write as _};
use std::process::{Stdio, exit};

use jiff::Timestamp;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::shell::cannot_run;
use crate::Console;
use crate::failure::Failure;

/// The mark before the exit code. No other program prints it.
pub(super) fn mark() -> String {
    format!("paved-exit-{:x}-{:x}:", Timestamp::now().as_nanosecond(), std::process::id())
}

/// The script. It prints its exit code in every case.
pub(super) fn marked(script: &str, mark: &str) -> String {
    format!("trap 'echo {mark}$?' EXIT; {script}")
}

/// Runs the program, passes on its output, and exits with the script's exit code. Returns only
/// without a known exit code.
pub(super) async fn run(
    words: &[String],
    hint: &str,
    mark: &str,
    title: &str,
    console: &mut Console<'_>,
) -> Failure {
    if let Err(error) = console.out.flush().and_then(|()| console.err.flush()) {
        return error.into();
    }
    match followed(words, hint, mark).await {
        Ok((_, Some(code))) => exit(code),
        Ok((code, None)) if code != 0 => exit(code),
        Ok(_) => Failure::Provisioning {
            what: title.to_owned(),
            message: "ended the session before the command finished".to_owned(),
        },
        Err(failure) => failure,
    }
}

/// The exit codes of the program and of the script.
async fn followed(words: &[String], hint: &str, mark: &str) -> Result<(i32, Option<i32>), Failure> {
    let Some((program, args)) = words.split_first() else {
        return Err(Failure::Usage("the command is empty".to_owned()));
    };
    // Ctrl-C belongs to the session, which passes it on and ends on its own.
    let _handled = signal(SignalKind::interrupt())?;
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| cannot_run(program, hint, &error))?;
    let mut sieve = Sieve::new(mark);
    let mut out = io::stdout();
    if let Some(mut printed) = child.stdout.take() {
        let mut buffer = vec![0; 8192];
        loop {
            let count = printed.read(&mut buffer).await?;
            let passed = if count == 0 { sieve.rest() } else { sieve.pass(&buffer[..count]) };
            out.write_all(&passed)?;
            out.flush()?;
            if count == 0 {
                break;
            }
        }
    }
    let status = child.wait().await?;
    Ok((status.code().unwrap_or(1), sieve.code))
}

/// Removes the line with the exit code from the output, and delays no other output.
struct Sieve<'m> {
    mark: &'m [u8],
    /// A possible start of that line.
    held: Vec<u8>,
    code: Option<i32>,
}

impl<'m> Sieve<'m> {
    fn new(mark: &'m str) -> Self {
        Self { mark: mark.as_bytes(), held: Vec::new(), code: None }
    }

    /// The bytes that can be passed on now.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut passed = Vec::new();
        loop {
            let begin = self.begin();
            let rest = self.held[begin..].strip_prefix(self.mark);
            let Some((rest, length)) =
                rest.and_then(|rest| Some((rest, rest.iter().position(|byte| *byte == b'\n')?)))
            else {
                passed.extend(self.held.drain(..begin));
                return passed;
            };
            let code =
                std::str::from_utf8(&rest[..length]).ok().and_then(|code| code.trim().parse().ok());
            let end = begin + self.mark.len() + length + 1;
            passed.extend_from_slice(&self.held[..if code.is_some() { begin } else { end }]);
            self.held.drain(..end);
            self.code = code.or(self.code);
        }
    }

    /// The bytes that were held to the end.
    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// The position of the mark, or of a possible start of it.
    fn begin(&self) -> usize {
        let may_be = |rest: &[u8]| rest.starts_with(self.mark) || self.mark.starts_with(rest);
        (0..self.held.len()).find(|at| may_be(&self.held[*at..])).unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn exit_code_line_is_removed_at_any_chunk_size() {
        let printed = b"Starting\r\npaved-\xff half a line paved-exit-1:7\r\n\r\nExiting\r\n";
        for size in 1..=printed.len() {
            let mut sieve = Sieve::new("paved-exit-1:");
            let mut passed: Vec<u8> =
                printed.chunks(size).flat_map(|chunk| sieve.pass(chunk)).collect();
            passed.extend(sieve.rest());
            assert_eq!(passed, b"Starting\r\npaved-\xff half a line \r\nExiting\r\n", "{size}");
            assert_eq!(sieve.code, Some(7), "{size}");
        }
    }

    #[test]
    fn similar_text_is_passed_on() {
        let mut sieve = Sieve::new("paved-exit-1:");
        assert_eq!(sieve.pass(b"a paved-exit-1:$?'\nb"), b"a paved-exit-1:$?'\nb");
        assert_eq!(sieve.pass(b"> paved"), b"> ");
        assert_eq!((sieve.rest(), sieve.code), (b"paved".to_vec(), None));
    }

    #[test]
    fn script_reports_its_exit_code() {
        for (script, code) in
            [("false", 1), ("exit 4", 4), ("sh -c 'exit 9'", 9), ("cd /; true", 0)]
        {
            let script = marked(script, "mark:");
            let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(
                String::from_utf8(ran.stdout).unwrap(),
                format!("mark:{code}\n"),
                "{script}"
            );
        }
    }
}
