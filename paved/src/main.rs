//! The command line `paved`, also as `kubectl paved`.

use std::env;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use paved::{Console, Stream, Terminal, is_job};

fn main() -> ExitCode {
    let size = || {
        let (rows, columns) = console::Term::stdout().size();
        (usize::from(rows), usize::from(columns))
    };
    let mut controls = io::stdout();
    let variable = |name| env::var(name).unwrap_or_default();
    let mut answer = || typed(&variable("CI"), |line| io::stdin().read_line(line));
    let looked_at = io::stdout().is_terminal() && is_looked_at(&variable("TERM"), &variable("CI"));
    let (mut out, mut err) = (anstream::stdout(), anstream::stderr());
    let mut console = Console {
        input: &mut |bytes| io::stdin().read_to_end(bytes),
        out: Stream::new(&mut out),
        err: Stream::new(&mut err),
        terminal: looked_at.then_some(Terminal { size: &size, controls: &mut controls }),
        answer: if io::stdin().is_terminal() { Some(&mut answer) } else { None },
    };
    ExitCode::from(paved::run(env::args_os(), &mut console))
}

/// Whether a user sees the terminal, by `TERM` and `CI`. The terminal of a pipeline's job ends in a
/// log, and a dumb terminal cannot redraw.
fn is_looked_at(term: &str, ci: &str) -> bool {
    term != "dumb" && !is_job(ci)
}

/// Reads a line from standard input. Returns an empty line in a pipeline's job, which would wait
/// without end.
fn typed(ci: &str, read: impl FnOnce(&mut String) -> io::Result<usize>) -> io::Result<String> {
    let mut line = String::new();
    if !is_job(ci) {
        read(&mut line)?;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::{is_looked_at, typed};

    #[test]
    fn terminal_of_a_job_is_not_live() {
        for (term, ci, looks) in [
            ("xterm-256color", "", true),
            ("xterm-256color", "false", true),
            ("", "", true),
            ("xterm-256color", "true", false),
            ("xterm-256color", "1", false),
            ("dumb", "", false),
        ] {
            assert_eq!(is_looked_at(term, ci), looks, "TERM={term} CI={ci}");
        }
    }

    #[test]
    fn job_does_not_wait_for_input() {
        for (ci, line) in [("", "y\n"), ("false", "y\n"), ("true", ""), ("1", "")] {
            let read = |text: &mut String| {
                text.push_str("y\n");
                Ok(2)
            };
            assert_eq!(typed(ci, read).ok().as_deref(), Some(line), "CI={ci}");
        }
    }
}
