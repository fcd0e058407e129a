//! Commands as a shell takes them, and handing the terminal over to one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::Console;
use crate::failure::Failure;

/// A command line that means these words, whatever is in them.
pub(super) fn quoted(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// A word as POSIX shells read it back.
pub(super) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Becomes this command: terminal, signals and exit code are its own from here on. Comes back only where it cannot.
pub(super) fn become_it(words: &[String], hint: &str, console: &mut Console<'_>) -> Failure {
    if let Err(error) = console.out.flush().and_then(|()| console.err.flush()) {
        return error.into();
    }
    let Some((program, args)) = words.split_first() else {
        return Failure::Usage("there is no command to run".to_owned());
    };
    cannot_run(program, hint, &Command::new(program).args(args).exec())
}

/// Why a program does not run.
pub(super) fn cannot_run(program: &str, hint: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        return Failure::Usage(format!("{program} is not installed: {hint}"));
    }
    Failure::Usage(format!("cannot run {program}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back_as_they_were() {
        let words =
            ["plain", "", "two words", "it's", "$(rm -rf /)", "a\nb", "`x`", "\\", "ü"].map(str::to_owned);
        let line = format!("printf '%s\\0' {}", quoted(&words));
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let read: Vec<String> =
            String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect();
        assert_eq!(read, words);
    }
}
