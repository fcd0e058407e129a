//! Core's circuit breakers: while one is open, core does not listen to what it composed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::{ControlPlane, CoreVersion};

/// It has no samples before a breaker opens.
const OPENED: &str = "circuit_breaker_opens_total";

/// What breakers hear; there are samples once they have heard anything.
const HEARD: &str = "circuit_breaker_events_total";

const RECONCILED: &str = "controller_runtime_reconcile_total";

/// How often each has opened since core was started.
#[derive(Default)]
pub struct CircuitBreakers {
    /// Which core it was that counted.
    core: Option<u32>,
    opened: BTreeMap<String, f64>,
}

impl CircuitBreakers {
    /// As they are now. An error where core does not count: then nobody knows whether one has
    /// opened.
    pub async fn from_plane(plane: &ControlPlane) -> Result<Self> {
        if plane.options.core != CoreVersion::Old {
            do_count(plane).await?;
        }
        Ok(Self {
            core: plane.process("crossplane")?.pid(),
            opened: plane.metrics.samples(OPENED).await?,
        })
    }

    /// An error where one has opened since then; a core that was started again has counted from
    /// zero.
    pub fn have_not_opened_since(&self, before: &Self) -> Result<()> {
        let nothing = BTreeMap::new();
        let before = if before.core == self.core { &before.opened } else { &nothing };
        let count_before = |what: &String| before.get(what).copied().unwrap_or_default();
        let opened = self.opened.iter().filter(|(what, count)| count_before(what) < **count);
        let opened: Vec<_> = opened.map(|(what, count)| format!("{what}: {count}")).collect();
        ensure!(opened.is_empty(), "circuit breakers of core have opened: {}", opened.join(", "));
        Ok(())
    }
}

/// Whether core counts at all: a composite is reconciled because a breaker has heard of it.
/// Crossplane 1.20 has none.
async fn do_count(plane: &ControlPlane) -> Result<()> {
    // In this order: what is reconciled now was heard before.
    let reconciled = plane.metrics.sum(RECONCILED, "controller=\"composite/").await?;
    let heard = plane.metrics.samples(HEARD).await?;
    ensure!(
        reconciled < 1.0 || !heard.is_empty(),
        "core has reconciled composites, and no {HEARD}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakers(core: u32, opened: f64) -> CircuitBreakers {
        CircuitBreakers {
            core: Some(core),
            opened: BTreeMap::from([("controller=\"a\"".to_owned(), opened)]),
        }
    }

    #[test]
    fn a_core_that_was_started_again_counts_from_zero() {
        let before = breakers(1, 2.0);
        assert!(breakers(1, 2.0).have_not_opened_since(&before).is_ok());
        assert!(breakers(1, 3.0).have_not_opened_since(&before).is_err());
        assert!(breakers(2, 0.0).have_not_opened_since(&before).is_ok());
        assert!(breakers(2, 1.0).have_not_opened_since(&before).is_err());
        assert!(breakers(1, 1.0).have_not_opened_since(&CircuitBreakers::default()).is_err());
    }
}
