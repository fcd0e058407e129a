//! Crossplane's circuit breakers. While a breaker is open, Crossplane ignores events of composed
//! resources.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::{ControlPlane, CoreVersion};

/// Has no samples before a breaker opens.
const OPENED: &str = "circuit_breaker_opens_total";

/// Counts the events that breakers receive. Has no samples before the first event.
const HEARD: &str = "circuit_breaker_events_total";

const RECONCILED: &str = "controller_runtime_reconcile_total";

/// How often each breaker has opened since Crossplane started.
#[derive(Default)]
pub struct CircuitBreakers {
    /// The process id of the Crossplane that counted.
    core: Option<u32>,
    opened: BTreeMap<String, f64>,
}

impl CircuitBreakers {
    /// Reads the current counts. Returns an error if Crossplane does not count, because open
    /// breakers would then go unnoticed.
    pub async fn from_plane(plane: &ControlPlane) -> Result<Self> {
        if plane.options.core != CoreVersion::Old {
            do_count(plane).await?;
        }
        Ok(Self {
            core: plane.process("crossplane")?.pid(),
            opened: plane.metrics.samples(OPENED).await?,
        })
    }

    /// Returns an error if a breaker has opened since `before`. A restarted Crossplane counts from
    /// zero.
    pub fn have_not_opened_since(&self, before: &Self) -> Result<()> {
        let nothing = BTreeMap::new();
        let before = if before.core == self.core { &before.opened } else { &nothing };
        let count_before = |what: &String| before.get(what).copied().unwrap_or_default();
        let opened = self.opened.iter().filter(|(what, count)| count_before(what) < **count);
        let opened: Vec<_> = opened.map(|(what, count)| format!("{what}: {count}")).collect();
        ensure!(opened.is_empty(), "circuit breakers of Crossplane opened: {}", opened.join(", "));
        Ok(())
    }
}

/// Checks that Crossplane counts at all. Each reconcile of a composite follows an event that a
/// breaker counts. Crossplane 1.20 has no breakers.
async fn do_count(plane: &ControlPlane) -> Result<()> {
    // Read the reconciles first: each of them follows an event that is counted already.
    let reconciled = plane.metrics.sum(RECONCILED, "controller=\"composite/").await?;
    let heard = plane.metrics.samples(HEARD).await?;
    ensure!(
        reconciled < 1.0 || !heard.is_empty(),
        "Crossplane has reconciled composites, but has no {HEARD}"
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
    fn restarted_crossplane_counts_from_zero() {
        let before = breakers(1, 2.0);
        assert!(breakers(1, 2.0).have_not_opened_since(&before).is_ok());
        assert!(breakers(1, 3.0).have_not_opened_since(&before).is_err());
        assert!(breakers(2, 0.0).have_not_opened_since(&before).is_ok());
        assert!(breakers(2, 1.0).have_not_opened_since(&before).is_err());
        assert!(breakers(1, 1.0).have_not_opened_since(&CircuitBreakers::default()).is_err());
    }
}
