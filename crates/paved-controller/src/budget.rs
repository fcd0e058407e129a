//! Budgets of namespaces: the controller adds up prices, and the function tells the owners. The
//! Lease has the namespaces over their budgets, so that the next leader sends the same events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use function_paved_road::catalog::prices::Usd;
use function_paved_road::settings::{Budget, Settings};
use function_paved_road::status::{BUDGET, Spending};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use paved_client::cluster::Cluster;
use serde_json::json;

use crate::Limits;
use crate::clock::Clock;
use crate::lease::{Election, NAME};
use crate::metrics::Metrics;
use crate::notify::Outbox;
use crate::notify::event::{Event, Excess};
use crate::store::{Cost, Key, Store};

/// The annotation of the Lease with the namespaces over their budgets.
const EXCESSES: &str = "paved-road.fn.crossplane.io/over-budget";

/// A sum is written again if it differs by more than this part of the budget.
const STEP: u128 = 10;

/// Compares costs with budgets.
pub(crate) struct Budgets {
    pub cluster: Cluster,
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
    pub election: Arc<Election>,
    pub outbox: Arc<Outbox>,
    pub clock: Clock,
    pub limits: Limits,
    /// The namespaces over their budgets, as the Lease has them.
    pub excesses: BTreeMap<String, Excess>,
    /// The version of the store and the budgets in the last comparison.
    pub seen: Option<(u64, Budget)>,
    /// Since when a change or a failed write waits, by the steady clock.
    pub waiting: Option<Duration>,
    /// The pause before the next comparison if a write of the last one failed.
    pub retry: Option<Duration>,
}

/// An annotation to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// The environment.
    pub key: Key,
    /// Its UID.
    pub uid: Box<str>,
    /// The value of the annotation.
    pub value: String,
}

impl Budgets {
    /// Goes on where an earlier leader stopped. `floor` is the time up to which events are sent.
    pub async fn resume(&mut self, floor: i64) {
        let text = self.election.annotation(EXCESSES).await.unwrap_or_default();
        self.excesses = serde_json::from_str(&text).unwrap_or_default();
        self.seen = None;
        for (namespace, excess) in &self.excesses {
            if excess.since.as_second() > floor {
                self.outbox.put(Event::over_budget(namespace, excess));
            }
        }
    }

    /// Compares once prices have not been looked at for a while, if they have changed. Compares
    /// again if a write failed.
    pub async fn pass(&mut self, settings: Option<&Settings>) {
        let Some(budget) = settings.map(|settings| &settings.common.budget) else { return };
        let now = (self.store.version(), budget.clone());
        let has_changed = self.seen.as_ref() != Some(&now);
        let pause = if has_changed { Some(self.limits.budgets) } else { self.retry };
        let Some(pause) = pause else { return };
        let steady = self.clock.steady();
        let since = *self.waiting.get_or_insert(steady);
        if self.seen.is_some() && steady.saturating_sub(since) < pause {
            return;
        }
        self.waiting = None;
        self.seen = Some(now);
        let is_done = self.compare(budget).await;
        self.retry = (!is_done).then_some((pause * 2).min(self.limits.longest_hold));
    }

    /// Compares the cost of each namespace with its budget. `false`: a write failed.
    async fn compare(&mut self, budget: &Budget) -> bool {
        let costs = self.store.costs();
        let names: BTreeSet<Arc<str>> = costs.keys().cloned().collect();
        self.metrics.keep_namespaces(&names);
        let mut is_done = self.note_excesses(&costs, budget).await;
        for (namespace, cost) in &costs {
            let most = budget.of(namespace);
            self.metrics.cost(namespace, cost.hourly.nanos(), most.map(Usd::nanos));
            for write in writes(cost, most) {
                is_done &= self.write(write).await;
            }
        }
        is_done
    }

    /// Writes the namespaces over their budgets into the Lease, and then sends an event for each
    /// new one. `false`: the Lease could not be written.
    async fn note_excesses(&mut self, costs: &BTreeMap<Arc<str>, Cost>, budget: &Budget) -> bool {
        let now = Timestamp::from_second(self.clock.now().as_second()).unwrap_or_default();
        let found = costs.iter().filter_map(|(namespace, cost)| {
            let new = excess(cost, budget.of(namespace)?, now)?;
            let excess = self.excesses.get(&**namespace).cloned().unwrap_or(new);
            Some((namespace.to_string(), excess))
        });
        let found: BTreeMap<String, Excess> = found.collect();
        if found == self.excesses {
            return true;
        }
        let text = serde_json::to_string(&found).unwrap_or_default();
        match self.election.annotate(&[(EXCESSES, text)]).await {
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => {
                tracing::warn!(%error, "the Lease cannot be written");
                self.metrics.failed();
                return false;
            }
        }
        for (namespace, excess) in &found {
            if !self.excesses.contains_key(namespace) {
                let Excess { hourly, budget, .. } = excess;
                tracing::warn!(%namespace, %hourly, %budget, "a namespace is over its budget");
                self.outbox.put(Event::over_budget(namespace, excess));
            }
        }
        self.excesses = found;
        true
    }

    /// Writes an annotation. `false`: it has to be written again.
    async fn write(&self, write: Write) -> bool {
        let Some(kind) = self.store.kind(&write.key.kind) else { return true };
        let api = kind.api(&self.cluster.client, Some(&write.key.namespace));
        let patch = json!({"metadata": {
            "uid": write.uid,
            "annotations": {BUDGET: write.value},
        }});
        let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
        match api.patch(&write.key.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => true,
            // Another one has its name, or it is gone.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => true,
            Err(error) => {
                tracing::warn!(environment = %write.key, %error, "the budget cannot be written");
                self.metrics.failed();
                false
            }
        }
    }
}

/// The spending of a namespace that is over its budget.
pub(crate) fn over(cost: &Cost, most: Option<Usd>) -> Option<Spending> {
    Some(spending(cost, most?)).filter(Spending::is_over)
}

/// The excess of a namespace that is over its budget without the environments that are being
/// deleted.
fn excess(cost: &Cost, budget: Usd, since: Timestamp) -> Option<Excess> {
    (cost.staying > budget).then_some(Excess { since, hourly: cost.hourly, budget })
}

/// The annotations that have to change. An environment in a namespace that was never over its
/// budget has no annotation. A removed annotation would stay on the composite, so it is never
/// removed.
pub(crate) fn writes(cost: &Cost, most: Option<Usd>) -> Vec<Write> {
    let now = most.map(|most| spending(cost, most));
    let wanted = |written: Option<&str>| -> Option<String> {
        let known = written.and_then(Spending::read);
        let Some(now) = now.as_ref() else {
            // Without a budget, no cost is too high.
            return written.filter(|text| !text.is_empty()).map(|_| String::new());
        };
        let is_known = known.as_ref().is_some_and(|known| {
            let step = now.budget.nanos() / STEP;
            let moved = known.hourly.nanos().abs_diff(now.hourly.nanos());
            let is_near = moved <= step || !now.is_over();
            known.budget == now.budget && known.is_over() == now.is_over() && is_near
        });
        let is_needed = !is_known && (now.is_over() || written.is_some());
        is_needed.then(|| now.to_string())
    };
    let environments = cost.environments.iter();
    let written = environments.filter_map(|(key, uid, text)| {
        let value = wanted(text.as_deref())?;
        Some(Write { key: key.clone(), uid: uid.clone(), value })
    });
    written.collect()
}

fn spending(cost: &Cost, budget: Usd) -> Spending {
    Spending { hourly: cost.hourly, budget }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    /// A namespace with one environment.
    fn cost(sum: &str, written: Option<&str>) -> Cost {
        let key = Key { kind: "A.b".into(), namespace: "team".into(), name: "a".into() };
        let environments = vec![(key, "uid".into(), written.map(Into::into))];
        Cost { hourly: usd(sum), staying: usd(sum), environments }
    }

    #[test]
    fn annotation_is_written_only_when_the_state_changes() {
        for (sum, written, most, value) in [
            ("39", None, Some("40"), None),
            ("40", None, Some("40"), None),
            ("41", None, Some("40"), Some("41.000/40.000")),
            ("41", Some("41.000/40.000"), Some("40"), None),
            // Small changes are not worth a write.
            ("44", Some("41.000/40.000"), Some("40"), None),
            ("46", Some("41.000/40.000"), Some("40"), Some("46.000/40.000")),
            ("39", Some("41.000/40.000"), Some("40"), Some("39.000/40.000")),
            ("2", Some("39.000/40.000"), Some("40"), None),
            ("41", Some("41.000/40.000"), Some("20"), Some("41.000/20.000")),
            ("41", Some("41.000/40.000"), None, Some("")),
            ("41", Some(""), None, None),
            ("41", None, None, None),
            ("41", Some("much"), Some("40"), Some("41.000/40.000")),
        ] {
            let found = writes(&cost(sum, written), most.map(usd));
            let found: Vec<&str> = found.iter().map(|write| write.value.as_str()).collect();
            assert_eq!(found.first().copied(), value, "{sum} {written:?} {most:?}");
        }
    }
}
