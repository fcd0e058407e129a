//! Why a run ends early, and with which exit code.

use std::io;

use anstyle::{AnsiColor, Style};
use simulator::schema::Violation;

/// Why a run ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A flag or a file is not what it should be.
    #[error("{0}")]
    Usage(String),
    /// An API server would refuse the input.
    #[error("{what} is refused")]
    Refused {
        /// File, kind and name.
        what: String,
        /// Everything that is wrong.
        violations: Vec<Violation>,
    },
    /// The function would compose nothing.
    #[error("{what}: {message}")]
    Fatal {
        /// File, kind and name.
        what: String,
        /// What the function, or core, says.
        message: String,
    },
    /// Nothing changes any more, and it is not ready.
    #[error("{what} does not become ready: {message}")]
    Stuck {
        /// File, kind and name.
        what: String,
        /// What it waits for.
        message: String,
    },
    /// Several inputs failed, each for its own reason.
    #[error("{} inputs failed", .0.len())]
    Several(Vec<Failure>),
    /// Nothing can be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl Failure {
    /// The exit code; of several failures the gravest, which has the highest.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Output(_) => 1,
            Self::Refused { .. } => 2,
            Self::Fatal { .. } => 3,
            Self::Stuck { .. } => 4,
            Self::Several(failures) => failures.iter().map(Self::code).max().unwrap_or(1),
        }
    }

    /// Says what is wrong: all of it.
    pub(crate) fn print(&self, err: &mut dyn io::Write) -> io::Result<()> {
        const RED: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
        if let Self::Several(failures) = self {
            return failures.iter().try_for_each(|failure| failure.print(err));
        }
        writeln!(err, "{RED}error{RED:#}: {self}")?;
        if let Self::Refused { violations, .. } = self {
            for violation in violations {
                writeln!(err, "  {violation}")?;
            }
        }
        Ok(())
    }

    /// One failure for many: none, the only one, or all of them.
    pub(crate) fn of_all(mut failures: Vec<Self>) -> Result<(), Self> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(Self::Several(failures)),
        }
    }
}
