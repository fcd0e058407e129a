//! Budgets of namespaces: the controller adds up prices, and the function tells the owners.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use function_paved_road::catalog::prices::Usd;
use function_paved_road::compose::{BUDGET, Spending};
use function_paved_road::settings::Settings;
use kube::api::{Patch, PatchParams};
use paved_client::cluster::Cluster;
use serde_json::json;

use crate::Limits;
use crate::clock::Clock;
use crate::lease::NAME;
use crate::metrics::Metrics;
use crate::notify::Outbox;
use crate::notify::event::Event;
use crate::store::{Cost, Key, Store};

/// A sum is written again if it differs by more than this part of the budget.
const STEP: u128 = 10;

/// Compares costs with budgets.
pub(crate) struct Budgets {
    pub cluster: Cluster,
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
    pub outbox: Arc<Outbox>,
    pub clock: Clock,
    pub limits: Limits,
    /// The version of the store and the budgets in the last comparison.
    pub seen: Option<(u64, function_paved_road::settings::Budget)>,
    /// Since when a change waits, by the steady clock.
    pub waiting: Option<Duration>,
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
    /// Compares once prices have not been looked at for a while, if they have changed.
    pub async fn pass(&mut self, settings: Option<&Settings>) {
        let Some(budget) = settings.map(|settings| &settings.common.budget) else { return };
        let version = self.store.version();
        if self.seen.as_ref() == Some(&(version, budget.clone())) {
            return;
        }
        let steady = self.clock.steady();
        let since = *self.waiting.get_or_insert(steady);
        if self.seen.is_some() && steady.saturating_sub(since) < self.limits.budgets {
            return;
        }
        self.waiting = None;
        self.seen = Some((version, budget.clone()));
        let costs = self.store.costs();
        let names: BTreeSet<Arc<str>> = costs.keys().cloned().collect();
        self.metrics.keep_namespaces(&names);
        for (namespace, cost) in &costs {
            let most = budget.of(namespace);
            self.metrics.cost(namespace, cost.hourly.nanos(), most.map(Usd::nanos));
            if let Some(spending) = newly_over(cost, most) {
                tracing::warn!(%namespace, %spending, "a namespace is over its budget");
                self.outbox.put(Event::over_budget(namespace, &spending, self.clock.now()));
            }
            for write in writes(cost, most) {
                self.write(write).await;
            }
        }
    }

    async fn write(&self, write: Write) {
        let Some(kind) = self.store.kind(&write.key.kind) else { return };
        let api = kind.api(&self.cluster.client, Some(&write.key.namespace));
        let patch = json!({"metadata": {
            "uid": write.uid,
            "annotations": {BUDGET: write.value},
        }});
        let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
        match api.patch(&write.key.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => {}
            // Another one has its name, or it is gone.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => {
                tracing::warn!(environment = %write.key, %error, "the budget cannot be written");
                self.metrics.failed();
            }
        }
    }
}

/// The spending of a namespace that is over its budget.
pub(crate) fn over(cost: &Cost, most: Option<Usd>) -> Option<Spending> {
    Some(spending(cost, most?)).filter(Spending::is_over)
}

/// The spending of a namespace that is over its budget, if none of its environments says so yet.
pub(crate) fn newly_over(cost: &Cost, most: Option<Usd>) -> Option<Spending> {
    let spending = over(cost, most)?;
    let mut written = cost.environments.iter().filter_map(|(_, _, text)| text.as_deref());
    let is_told = written.any(|text| Spending::read(text).is_some_and(|known| known.is_over()));
    (!is_told).then_some(spending)
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
        Cost { hourly: usd(sum), environments }
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

    #[test]
    fn namespace_is_told_once_to_be_over_its_budget() {
        let most = Some(usd("40"));
        assert!(newly_over(&cost("41", None), most).is_some());
        assert!(newly_over(&cost("41", Some("39.000/40.000")), most).is_some());
        assert!(newly_over(&cost("45", Some("41.000/40.000")), most).is_none());
        assert!(newly_over(&cost("39", None), most).is_none());
        assert!(newly_over(&cost("41", None), None).is_none());
    }
}
