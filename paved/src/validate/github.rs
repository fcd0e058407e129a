//! Errors as GitHub's workflow commands. Each becomes an annotation at its line.

use std::path::Path;

use super::text::{file, notes};
use super::{Problem, Report};
use crate::Console;
use crate::failure::Failure;
use crate::style::harmless;

/// Prints a command for each error. Files that cannot be read have no position.
pub(super) fn print(found: &Report, console: &mut Console<'_>) -> Result<(), Failure> {
    for problem in found.in_order() {
        console.out.verbatim(&format!("{}\n", command(found, problem)))?;
    }
    for note in notes(found) {
        console.out.verbatim(&format!("::notice::{}\n", data(&harmless(&note))))?;
    }
    for valid in &found.valid {
        writeln!(
            console.out,
            "{}: {} is valid",
            file(&found.sources[valid.source]),
            valid.document
        )?;
    }
    Ok(())
}

/// `::error file=…,line=…,col=…,endColumn=…,title=…::message`
fn command(found: &Report, problem: &Problem) -> String {
    let source = &found.sources[problem.source];
    let bytes = &problem.spot.bytes;
    let (line, column) = (source.line(bytes.start).0, source.column(bytes.start));
    let end = source.column(bytes.end.max(bytes.start));
    let title = if problem.document.is_empty() { "YAML" } else { &problem.document };
    let is_file = source.file != Path::new("-");
    let file = if is_file { format!("file={},", property(&file(source))) } else { String::new() };
    format!(
        "::error {file}line={line},col={column},endColumn={end},title={}::{}",
        property(title),
        data(&harmless(&problem.sentence()))
    )
}

/// Escapes a message for a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property's value for a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{data, property};

    #[test]
    fn workflow_commands_are_escaped() {
        assert_eq!(data("100%\r\n::error::x"), "100%25%0D%0A::error::x");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}
