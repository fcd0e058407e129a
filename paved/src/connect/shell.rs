//! Quotes commands for a shell, and hands the terminal over to a command.

use std::fmt::Write as _;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::Console;
use crate::failure::Failure;
use crate::stream::is_harmful;

/// Quotes words as a command line, regardless of their characters.
pub(super) fn quoted(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for POSIX shells, without characters that control a terminal.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    word.chars().fold("'".to_owned(), |mut quoted, c| {
        match c {
            '\'' => quoted.push_str(r"'\''"),
            // `$'…'` is not POSIX. A command substitution drops only trailing line feeds, and line
            // feeds are not escaped here.
            c if is_harmful(c) => {
                quoted.push_str("'\"$(printf '");
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a String never fails.
                    _ = write!(quoted, "\\{byte:03o}");
                }
                quoted.push_str("')\"'");
            }
            // A stream breaks up `##[` and `##vso[`, because pipelines execute them. A shell reads
            // two adjacent quoted words as one word.
            '[' | 'v' if quoted.ends_with("##") => {
                quoted.push_str("''");
                quoted.push(c);
            }
            c => quoted.push(c),
        }
        quoted
    }) + "'"
}

/// Replaces this process with the command, which inherits the terminal and the signals. Returns
/// only if that fails.
pub(super) fn become_it(words: &[String], hint: &str, console: &mut Console<'_>) -> Failure {
    if let Err(error) = console.out.flush().and_then(|()| console.err.flush()) {
        return error.into();
    }
    let Some((program, args)) = words.split_first() else {
        return Failure::Usage("the command is empty".to_owned());
    };
    cannot_run(program, hint, &Command::new(program).args(args).exec())
}

/// The failure to start a program.
pub(super) fn cannot_run(program: &str, hint: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        return Failure::Usage(format!("{program} is not installed: {hint}"));
    }
    Failure::Usage(format!("could not run {program}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back_as_they_were() {
        let words = [
            "plain",
            "",
            "two words",
            "it's",
            "$(rm -rf /)",
            "a\nb",
            "`x`",
            "\\",
            "ü",
            "\u{1b}]0;x\u{7}",
            "a\r\u{9b}2J\u{202e}",
            "\t",
        ]
        .map(str::to_owned);
        let line = format!("printf '%s\\0' {}", quoted(&words));
        assert!(!line.chars().any(is_harmful), "{line:?}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let read: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .split_terminator('\0')
            .map(str::to_owned)
            .collect();
        assert_eq!(read, words);
    }
}
