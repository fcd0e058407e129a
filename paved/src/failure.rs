//! Why a run ends early, and with which exit code.

use std::io;

use anstyle::Style;
use simulator::schema::Violation;

use crate::paint;

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
    /// Documents are invalid; each error was told where it stands.
    #[error("{count}")]
    Invalid {
        /// `3 errors`
        count: String,
        /// Whether the composition refuses, and not the API server alone.
        composed: bool,
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
    /// There is no environment of that name.
    #[error("{0}")]
    Absent(String),
    /// The API server refused a change.
    #[error("{what} is refused: {message}")]
    Declined {
        /// What was to be changed.
        what: String,
        /// The API server's words.
        message: String,
    },
    /// A part was refused for good, or it goes away: it will not become ready by itself.
    #[error("{what} {message}")]
    Provisioning {
        /// Kind, namespace and name.
        what: String,
        /// What happened, and what helps.
        message: String,
    },
    /// It took longer than the caller is ready to wait.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// The cluster does not answer, or does not let the caller.
    #[error("{message}; check {check}")]
    NoAccess {
        /// What happened.
        message: String,
        /// What to look at.
        check: String,
    },
    /// The caller ended it.
    #[error("interrupted: {0}")]
    Interrupted(String),
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
            Self::Usage(_) | Self::Absent(_) | Self::Output(_) => 1,
            Self::Refused { .. } | Self::Declined { .. } | Self::Invalid { composed: false, .. } => 2,
            Self::Fatal { .. } | Self::Invalid { .. } => 3,
            Self::Stuck { .. } | Self::Provisioning { .. } => 4,
            Self::TimedOut(_) => 5,
            Self::NoAccess { .. } => 6,
            // As shells count what SIGINT ended.
            Self::Interrupted(_) => 130,
            Self::Several(failures) => failures.iter().map(Self::code).max().unwrap_or(1),
        }
    }

    /// Says what is wrong: all of it.
    pub(crate) fn print(&self, err: &mut dyn io::Write) -> io::Result<()> {
        const RED: Style = paint::RED.bold();
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
