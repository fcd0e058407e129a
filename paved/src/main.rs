//! The command line `paved`.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use paved::Console;

fn main() -> ExitCode {
    let mut console = Console {
        input: &mut |text| io::stdin().read_to_string(text),
        out: &mut anstream::stdout(),
        err: &mut anstream::stderr(),
        is_terminal: io::stdout().is_terminal(),
    };
    ExitCode::from(paved::run(std::env::args_os(), &mut console))
}
