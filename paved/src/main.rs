//! The command line `paved`, also as `kubectl paved`.

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
    let mut console = Console {
        input: &mut |text| io::stdin().read_to_string(text),
        out: &mut anstream::stdout(),
        err: &mut anstream::stderr(),
        terminal: io::stdout().is_terminal().then_some(Terminal { size: &size, controls: &mut controls }),
        answer: if io::stdin().is_terminal() { Some(&mut answer) } else { None },
    };
    ExitCode::from(paved::run(std::env::args_os(), &mut console))
}
