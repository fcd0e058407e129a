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
    let columns = || size().1;
    let mut controls = io::stdout();
    let variable = |name| env::var(name).unwrap_or_default();
    let mut answer = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    };
    let is_job = is_job(&variable("CI"));
    let looked_at = io::stdout().is_terminal() && is_looked_at(&variable("TERM"), is_job);
    let err_looked_at = io::stderr().is_terminal() && is_looked_at(&variable("TERM"), is_job);
    let err_columns = || usize::from(console::Term::stderr().size().1);
    let (mut out, mut err) = (anstream::stdout(), anstream::stderr());
    let mut console = Console {
        input: &mut |bytes| io::stdin().read_to_end(bytes),
        out: Stream::new(&mut out).with_room(looked_at.then_some(&columns)),
        err: Stream::new(&mut err)
            .with_room(err_looked_at.then_some(&err_columns))
            .with_log(is_job || variable("PAVED_ACTION_LOG") == "-"),
        terminal: looked_at.then_some(Terminal { size: &size, controls: &mut controls }),
        // A job would wait without end.
        answer: if io::stdin().is_terminal() && !is_job { Some(&mut answer) } else { None },
    };
    ExitCode::from(paved::run(env::args_os(), &mut console))
}

/// Whether a user sees the terminal, by `TERM` and `CI`. The terminal of a pipeline's job ends in a
/// log, and a dumb terminal cannot redraw.
fn is_looked_at(term: &str, is_job: bool) -> bool {
    term != "dumb" && !is_job
}

#[cfg(test)]
mod tests {
    use super::{is_job, is_looked_at};

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
            assert_eq!(is_looked_at(term, is_job(ci)), looks, "TERM={term} CI={ci}");
        }
    }
}
