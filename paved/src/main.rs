//! The command line `paved`, also as `kubectl paved`.

use std::env;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use paved::{Console, Terminal};

fn main() -> ExitCode {
    let size = || {
        let (rows, columns) = console::Term::stdout().size();
        (usize::from(rows), usize::from(columns))
    };
    let mut controls = io::stdout();
    let mut answer = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    };
    let variable = |name| env::var(name).unwrap_or_default();
    let looked_at = io::stdout().is_terminal() && is_looked_at(&variable("TERM"), &variable("CI"));
    let mut console = Console {
        input: &mut |text| io::stdin().read_to_string(text),
        out: &mut anstream::stdout(),
        err: &mut anstream::stderr(),
        terminal: looked_at.then_some(Terminal { size: &size, controls: &mut controls }),
        answer: if io::stdin().is_terminal() { Some(&mut answer) } else { None },
    };
    ExitCode::from(paved::run(env::args_os(), &mut console))
}

/// Whether somebody looks at a terminal, by `TERM` and `CI`: that of a pipeline's job ends in a log, and a dumb one cannot be drawn
/// over.
fn is_looked_at(term: &str, ci: &str) -> bool {
    term != "dumb" && (ci.is_empty() || ci == "false")
}

#[cfg(test)]
mod tests {
    use super::is_looked_at;

    #[test]
    fn nobody_looks_at_the_terminal_of_a_job() {
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
}
