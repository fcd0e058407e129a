//! The controller's metrics.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Namespace {
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

type Usd = Gauge<f64, AtomicU64>;

/// All figures of the process.
pub(crate) struct Metrics {
    registry: Registry,
    leads: Gauge<i64, AtomicI64>,
    environments: Family<Kind, Gauge>,
    held: Family<Reason, Gauge>,
    longest_held: Family<Reason, Gauge>,
    settings_missing: Gauge,
    clock_ahead: Gauge,
    deletions: Family<Kind, Counter>,
    stops: Family<Kind, Counter>,
    costs: Family<Namespace, Usd>,
    budgets: Family<Namespace, Usd>,
    namespaces: Mutex<BTreeSet<Arc<str>>>,
    notifications: Family<Outcome, Counter>,
    waiting: Gauge,
    failures: Counter,
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("paved_controller");
        let leads = Gauge::default();
        let environments = Family::default();
        let held = Family::default();
        let longest_held = Family::default();
        let settings_missing = Gauge::default();
        let clock_ahead = Gauge::default();
        let deletions = Family::default();
        let stops = Family::default();
        let costs = Family::<Namespace, Usd>::default();
        let budgets = Family::<Namespace, Usd>::default();
        let notifications = Family::default();
        let waiting = Gauge::default();
        let failures = Counter::default();
        registry.register("leader", "1 if this replica leads", leads.clone());
        registry.register("environments", "Environments by kind", environments.clone());
        registry.register(
            "held_environments",
            "Environments that stay after their end, by reason",
            held.clone(),
        );
        registry.register(
            "longest_held_seconds",
            "Time since the end of the environment that stays longest, by reason",
            longest_held.clone(),
        );
        registry.register(
            "settings_missing",
            "1 if this replica leads and has no Settings, so that it deletes nothing",
            settings_missing.clone(),
        );
        registry.register(
            "clock_ahead_seconds",
            "How far this replica's clock is ahead of the API server's",
            clock_ahead.clone(),
        );
        registry.register("deletions", "Deleted environments by kind", deletions.clone());
        registry.register("stops", "Stopped environments by kind", stops.clone());
        registry.register(
            "cost_usd_per_hour",
            "Estimated cost of a namespace's environments",
            costs.clone(),
        );
        registry.register("budget_usd_per_hour", "Budget of a namespace", budgets.clone());
        registry.register("notifications", "Notifications by outcome", notifications.clone());
        registry.register(
            "waiting_notifications",
            "Notifications that wait for their delivery",
            waiting.clone(),
        );
        registry.register("failures", "Requests to the API server that failed", failures.clone());
        Self {
            registry,
            leads,
            environments,
            held,
            longest_held,
            settings_missing,
            clock_ahead,
            deletions,
            stops,
            costs,
            budgets,
            namespaces: Mutex::default(),
            notifications,
            waiting,
            failures,
        }
    }

    /// Notes whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leads.set(i64::from(leads));
    }

    /// Notes whether the leader lacks the Settings.
    pub fn settings_missing(&self, is_missing: bool) {
        self.settings_missing.set(i64::from(is_missing));
    }

    /// Notes how far the clock is ahead of the API server's.
    pub fn clock_ahead(&self, ahead: SignedDuration) {
        self.clock_ahead.set(ahead.as_secs());
    }

    /// Counts the environments in the store.
    pub fn count(&self, store: &Store, now: Timestamp) {
        for (kind, count) in store.counts() {
            let gauge = self.environments.get_or_create(&Kind { kind: kind.to_string() });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.held.clear();
        self.longest_held.clear();
        for (why, staying) in store.held() {
            let reason = Reason { reason: why.word() };
            let count = i64::try_from(staying.count).unwrap_or(i64::MAX);
            self.held.get_or_create(&reason).set(count);
            let age = now.duration_since(staying.oldest).as_secs().max(0);
            self.longest_held.get_or_create(&reason).set(age);
        }
    }

    /// Counts a deletion.
    pub fn deleted(&self, kind: &str) {
        self.deletions.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    /// Counts a stop.
    pub fn stopped(&self, kind: &str) {
        self.stops.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    /// Counts a request to the API server that failed.
    pub fn failed(&self) {
        self.failures.inc();
    }

    /// Counts a notification.
    pub fn notified(&self, outcome: &'static str) {
        self.notifications.get_or_create(&Outcome { outcome }).inc();
    }

    /// Notes how many notifications wait.
    pub fn waiting(&self, count: usize) {
        self.waiting.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Notes the cost of a namespace and its budget, in billionths of a dollar.
    pub fn cost(&self, namespace: &str, nanos: u128, budget: Option<u128>) {
        let label = Namespace { namespace: namespace.to_owned() };
        self.costs.get_or_create(&label).set(dollars(nanos));
        match budget {
            Some(budget) => {
                self.budgets.get_or_create(&label).set(dollars(budget));
            }
            None => {
                self.budgets.remove(&label);
            }
        }
    }

    /// Forgets the cost of all namespaces but these.
    pub fn keep_namespaces(&self, names: &BTreeSet<Arc<str>>) {
        let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        for lost in known.difference(names) {
            let label = Namespace { namespace: lost.to_string() };
            self.costs.remove(&label);
            self.budgets.remove(&label);
        }
        known.clone_from(names);
    }

    /// The list in OpenMetrics.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
fn dollars(nanos: u128) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn metrics_keep_their_names_and_labels() {
        let metrics = Metrics::new();
        metrics.leads(true);
        metrics.deleted("a");
        metrics.stopped("a");
        metrics.notified("delivered");
        metrics.cost("a", 1_500_000_000, Some(2_000_000_000));
        drop(metrics.environments.get_or_create(&Kind { kind: "a".to_owned() }));
        drop(metrics.held.get_or_create(&Reason { reason: "limit" }));
        drop(metrics.longest_held.get_or_create(&Reason { reason: "limit" }));
        let text = metrics.text().unwrap();
        // Text in quotation marks is the value of a label.
        let series = |line: &str| line.split('"').step_by(2).collect::<String>();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(series);
        let names: BTreeSet<String> =
            samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect();
        let expected = [
            "paved_controller_budget_usd_per_hour{namespace=}",
            "paved_controller_clock_ahead_seconds",
            "paved_controller_cost_usd_per_hour{namespace=}",
            "paved_controller_deletions_total{kind=}",
            "paved_controller_environments{kind=}",
            "paved_controller_failures_total",
            "paved_controller_held_environments{reason=}",
            "paved_controller_leader",
            "paved_controller_longest_held_seconds{reason=}",
            "paved_controller_notifications_total{outcome=}",
            "paved_controller_settings_missing",
            "paved_controller_stops_total{kind=}",
            "paved_controller_waiting_notifications",
        ];
        assert_eq!(names, expected.map(str::to_owned).into());
        assert!(text.contains("paved_controller_cost_usd_per_hour{namespace=\"a\"} 1.5"), "{text}");
    }

    #[test]
    fn namespace_without_environments_has_no_cost() {
        let metrics = Metrics::new();
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        metrics.keep_namespaces(&names(&["a", "b"]));
        metrics.cost("a", 1, Some(1));
        metrics.cost("b", 1, None);
        metrics.keep_namespaces(&names(&["b"]));
        let text = metrics.text().unwrap();
        assert!(!text.contains("namespace=\"a\"") && text.contains("namespace=\"b\""), "{text}");
    }
}
