//! The versions of Crossplane that a control plane can have, and what differs between them.

use std::path::PathBuf;

use anyhow::Result;
use function_paved_road::apis::Flavour;
use xtask::tools::{self, Tool};

/// What docs/operations.md tells people to start core with. Core counts every update of a composed resource twice, and by default stops
/// listening at the 51st at once: five for each of an environment's 23 resources are more than that.
const BREAKER: [&str; 2] = ["--circuit-breaker-burst=1000", "--circuit-breaker-refill-rate=10"];

/// Which core a control plane has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CoreVersion {
    /// The newest.
    #[default]
    #[value(name = "2.3")]
    New,
    /// The oldest that we support. It knows claims, and no composites in namespaces.
    #[value(name = "1.20")]
    Old,
}

impl CoreVersion {
    /// The one of our flavours that it can serve; nothing where it serves both.
    pub fn flavour(self) -> Option<Flavour> {
        match self {
            Self::New => None,
            Self::Old => Some(Flavour::Claims),
        }
    }

    /// Its program.
    pub fn tool(self) -> &'static Tool {
        match self {
            Self::New => &tools::CORE,
            Self::Old => &tools::OLD_CORE,
        }
    }

    /// The folder of its Go module with the chart, the CRDs and the webhooks.
    pub(super) fn source(self) -> Result<PathBuf> {
        let module = match self {
            Self::New => "github.com/crossplane/crossplane/v2",
            Self::Old => "github.com/crossplane/crossplane",
        };
        Ok(tools::source(module, self.tool())?.join("cluster"))
    }

    /// Flags of `core init`. Only the newer one has kinds of managed resources that nobody wants yet: here all are wanted.
    pub(super) fn init_flags(self) -> &'static [&'static str] {
        match self {
            Self::New => &["--activation=*"],
            Self::Old => &[],
        }
    }

    /// Flags of `core start`. Only the newer one has circuit breakers.
    pub(super) fn start_flags(self) -> &'static [&'static str] {
        match self {
            Self::New => &BREAKER,
            Self::Old => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_core_is_called_by_the_version_of_its_tool() {
        for core in CoreVersion::value_variants() {
            let name = core.to_possible_value().unwrap().get_name().to_owned();
            let version = core.tool().version;
            assert!(version.starts_with(&format!("v{name}.")), "{version} is called {name}");
        }
    }
}
