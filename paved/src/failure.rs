//! The failures of a command and their exit codes.

#[cfg(feature = "cluster")]
mod online;

use std::io;

use anstyle::Style;
use k8s_schema::Violation;
use paved_render::subject::pipeline_step::NoStep;

use crate::style;

/// The exit codes and their meanings.
pub(crate) const CODES: [(u8, &str); 10] = [
    (0, "done"),
    (1, "usage: a bad flag, an unreadable file, invalid YAML, or a name that does not exist"),
    (2, "rejected by the API server, validate or preview; or a field belongs to another manager"),
    (3, "rejected by the composition: the spec or the platform's Settings are invalid"),
    (4, "provisioning failed, or doctor found a broken component"),
    (5, "timed out"),
    (6, "no access: the cluster does not answer, or denies access"),
    (7, "no capacity: the cloud cannot start the environment now"),
    (8, "stale: something has changed since the plan of --confirm was made"),
    (130, "stopped by Ctrl-C or SIGTERM; 143 if SIGTERM stops connect or delete before they act"),
];

/// The exit codes as a text for the help.
pub(crate) fn codes() -> String {
    let lines = CODES.iter().map(|(code, meaning)| format!("\n  {code:<3}  {meaning}"));
    std::iter::once("Exit codes:".to_owned()).chain(lines).collect()
}

/// The stage that rejects a document, in the order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    /// The parser: the document is invalid YAML, or is not an object.
    Syntax,
    /// An API server.
    Schema,
    /// The function.
    Composition,
}

impl Grade {
    /// The name in JSON output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Schema => "schema",
            Self::Composition => "composition",
        }
    }
}

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A flag or a file is invalid.
    #[error("{0}")]
    Usage(String),
    /// An API server would reject the input.
    #[error("{what} is rejected")]
    Refused {
        /// File, kind and name.
        what: String,
        /// All errors.
        violations: Vec<Violation>,
    },
    /// Documents are invalid. Each error was already printed with its line.
    #[error("{count}")]
    Invalid {
        /// `3 errors`
        count: String,
        /// The stage that rejects the most severe error.
        by: Grade,
    },
    /// The function would compose no resources.
    #[error("{what}: {message}")]
    Fatal {
        /// File, kind and name.
        what: String,
        /// The message of the function or of Crossplane.
        message: String,
    },
    /// The environment is not ready, and no resource changes any more.
    #[error("{what} is not ready: {message}")]
    Stuck {
        /// File, kind and name.
        what: String,
        /// The condition that the environment waits for.
        message: String,
    },
    /// The environment does not exist.
    #[error("{0}")]
    Absent(String),
    /// The API server rejected a change.
    #[error("{what} is rejected: {message}")]
    Declined {
        /// The object of the change.
        what: String,
        /// The API server's message.
        message: String,
    },
    /// A resource was rejected permanently, or the environment is being deleted.
    #[error("{what} {message}")]
    Provisioning {
        /// Kind, namespace and name.
        what: String,
        /// The cause and the remediation.
        message: String,
    },
    /// The cloud has no capacity to start the environment.
    #[error("{what} {message}")]
    NoCapacity {
        /// Kind, namespace and name.
        what: String,
        /// The cause and the remediation.
        message: String,
    },
    /// Something has changed since the confirmed plan was made.
    #[error("{0}")]
    Stale(String),
    /// The time limit was exceeded.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// The cluster does not answer, or denies access.
    #[error("{message}; check {check}")]
    NoAccess {
        /// The cause.
        message: String,
        /// The flags or components to check.
        check: String,
    },
    /// A signal stopped the command. The text is the state at this time, or empty.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Several inputs failed.
    #[error("{} inputs failed", .0.len())]
    Several(Vec<Failure>),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl Failure {
    /// The exit code. Several failures have the highest code of all.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Absent(_)
            | Self::Output(_)
            | Self::Invalid { by: Grade::Syntax, .. } => 1,
            Self::Refused { .. }
            | Self::Declined { .. }
            | Self::Invalid { by: Grade::Schema, .. } => 2,
            Self::Fatal { .. } | Self::Invalid { by: Grade::Composition, .. } => 3,
            Self::Stuck { .. } | Self::Provisioning { .. } => 4,
            Self::TimedOut(_) => 5,
            Self::NoAccess { .. } => 6,
            Self::NoCapacity { .. } => 7,
            Self::Stale(_) => 8,
            // The code that shells use for SIGINT.
            Self::Interrupted(_) => 130,
            Self::Several(failures) => failures.iter().map(Self::code).max().unwrap_or(1),
        }
    }

    /// Prints the failure with all details.
    pub(crate) fn print(&self, err: &mut dyn io::Write) -> io::Result<()> {
        const RED: Style = style::RED.bold();
        if matches!(self, Self::Interrupted(told) if told.is_empty()) {
            return Ok(());
        }
        if let Self::Several(failures) = self {
            return failures.iter().try_for_each(|failure| failure.print(err));
        }
        writeln!(err, "{RED}error{RED:#}: {}", indented(&self.to_string()))?;
        if let Self::Refused { violations, .. } = self {
            for violation in violations {
                writeln!(err, "  {}", style::harmless_name(&violation.to_string()))?;
            }
        }
        Ok(())
    }

    /// Combines failures into one result.
    pub(crate) fn combine(mut failures: Vec<Self>) -> Result<(), Self> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(Self::Several(failures)),
        }
    }
}

impl From<NoStep> for Failure {
    fn from(failure: NoStep) -> Self {
        Self::Usage(failure.to_string())
    }
}

/// Removes control sequences from a message, and indents all lines after the first, so that no line
/// looks like a separate message.
fn indented(message: &str) -> String {
    let lines = style::harmless(message);
    let indent =
        |line: &str| if line.starts_with("  ") { line.to_owned() } else { format!("  {line}") };
    let (first, rest) = lines.split_once('\n').unwrap_or((&lines, ""));
    std::iter::once(first.to_owned()).chain(rest.lines().map(indent)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// One failure of each kind.
    fn all() -> Vec<Failure> {
        let text = String::new;
        let invalid = |by| Failure::Invalid { count: text(), by };
        vec![
            Failure::Usage(text()),
            Failure::Refused { what: text(), violations: Vec::new() },
            invalid(Grade::Syntax),
            invalid(Grade::Schema),
            invalid(Grade::Composition),
            Failure::Fatal { what: text(), message: text() },
            Failure::Stuck { what: text(), message: text() },
            Failure::Absent(text()),
            Failure::Declined { what: text(), message: text() },
            Failure::Provisioning { what: text(), message: text() },
            Failure::NoCapacity { what: text(), message: text() },
            Failure::Stale(text()),
            Failure::TimedOut(text()),
            Failure::NoAccess { message: text(), check: text() },
            Failure::Interrupted(text()),
            Failure::Several(Vec::new()),
            Failure::Output(io::Error::other("")),
        ]
    }

    #[test]
    fn foreign_message_cannot_move_the_cursor_or_start_a_line() {
        let words = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\n::error::y".to_owned();
        let violation = Violation { path: words.clone(), message: words.clone() };
        let failures = [
            Failure::Usage(words.clone()),
            Failure::NoAccess { message: words.clone(), check: words.clone() },
            Failure::Refused { what: words, violations: vec![violation] },
        ];
        for failure in failures {
            let mut told = Vec::new();
            assert!(failure.print(&mut told).is_ok());
            let told = anstream::adapter::strip_str(&String::from_utf8_lossy(&told)).to_string();
            let harmful = |c| c != '\n' && crate::stream::is_harmful(c);
            assert!(!told.chars().any(harmful), "{told:?}");
            assert!(
                told.lines()
                    .all(|line| ["error: ", "  "].iter().any(|begin| line.starts_with(begin))),
                "{told}"
            );
        }
    }

    #[test]
    fn exit_codes_match_the_table() {
        let given: BTreeSet<u8> = all().iter().map(Failure::code).chain([0]).collect();
        assert_eq!(given, CODES.iter().map(|(code, _)| *code).collect());
    }

    #[test]
    fn every_help_names_codes_of_the_table_and_online_ones_ctrl_c() {
        let command = crate::command();
        let codes = |command: &clap::Command| -> Vec<u8> {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines = help.split("Exit codes:\n").nth(1).unwrap_or_default().lines();
            lines.filter_map(|line| line.trim().split("  ").next()?.parse().ok()).collect()
        };
        assert_eq!(codes(&command), CODES.map(|(code, _)| code));
        let inner = command.get_subcommands().flat_map(clap::Command::get_subcommands);
        let all = command.get_subcommands().chain(inner);
        for command in all.filter(|one| one.get_name() != "completions") {
            let (name, codes) = (command.get_name(), codes(command));
            assert!(codes.starts_with(&[0, 1]) && codes.is_sorted(), "{name}: {codes:?}");
            assert!(
                codes.iter().all(|code| CODES.iter().any(|(known, _)| known == code)),
                "{name}: {codes:?}"
            );
            let online = command.get_arguments().any(|flag| flag.get_id() == "context");
            // A signal is the normal way to stop a server.
            let interrupted = online && !["portal", "controller"].contains(&name);
            assert_eq!(codes.contains(&130), interrupted, "{name}: {codes:?}");
            assert_eq!(codes.contains(&6), online, "{name}: {codes:?}");
        }
    }
}
