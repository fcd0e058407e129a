//! Counters and measurements, served as OpenMetrics at /metrics. They are our own series and the
//! SDK's `grpc_server_*` series, with the names and labels of every function.
//!
//! | series | labels | meaning |
//! |---|---|---|
//! | `paved_road_answers_total` | `kind`, `outcome` | answers |
//! | `paved_road_compose_seconds` | `kind` | time in the function, without decoding and encoding |
//! | `paved_road_waiting_requests` | | requests that wait for their turn, unread |
//!
//! `kind` is one of our kinds, or `other`. Senders of requests cannot create series. `outcome` is
//! ready, asking, waiting, failed, fatal or invalid.

mod grpc;
mod http;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

pub(crate) use grpc::{CountCalls, RUN_FUNCTION};

use crate::outcome::Outcome;

/// Upper bounds of `paved_road_compose_seconds`: 50 µs to 100 ms.
const SECONDS: [f64; 11] =
    [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3];

/// The label of kinds that Paved Road does not serve.
const OTHER: &str = "other";

/// All series of one server.
pub(crate) struct Metrics {
    kinds: Vec<&'static str>,
    registry: Registry,
    answers: Family<Answer, Counter>,
    seconds: Family<Composite, Histogram>,
    waiting: Gauge,
    calls: Arc<grpc::Calls>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Composite {
    kind: &'static str,
}

impl Metrics {
    /// `kinds` are the kinds of composites with their own label.
    pub(crate) fn new(kinds: Vec<&'static str>) -> Self {
        let mut registry = Registry::default();
        let answers = Family::<Answer, Counter>::default();
        let seconds =
            Family::<Composite, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        let waiting = Gauge::default();
        registry.register(
            "paved_road_answers",
            "Answers by the composite's kind and the outcome",
            answers.clone(),
        );
        registry.register(
            "paved_road_compose_seconds",
            "Time the function took, in seconds",
            seconds.clone(),
        );
        registry.register(
            "paved_road_waiting_requests",
            "Requests that wait for their turn, unread",
            waiting.clone(),
        );
        let calls = Arc::new(grpc::Calls::new(&mut registry));
        Self { kinds, registry, answers, seconds, waiting, calls }
    }

    /// Counts an answer about a composite of `kind`.
    pub(crate) fn answered(&self, kind: &str, outcome: Outcome) {
        self.answers
            .get_or_create(&Answer { kind: self.known(kind), outcome: outcome.as_str() })
            .inc();
    }

    /// Records the duration of composing.
    pub(crate) fn composed(&self, kind: &str, took: Duration) {
        self.seconds
            .get_or_create(&Composite { kind: self.known(kind) })
            .observe(took.as_secs_f64());
    }

    /// Counts a request as waiting until the returned value is dropped.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        self.waiting.inc();
        Waiting(&self.waiting)
    }

    /// A layer that counts calls.
    pub(crate) fn count_calls(&self) -> CountCalls {
        CountCalls(self.calls.clone())
    }

    /// Serves /metrics until dropped.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        http_server::serve(listener, http::router(self)).await;
    }

    fn known(&self, kind: &str) -> &'static str {
        self.kinds.iter().find(|known| **known == kind).unwrap_or(&OTHER)
    }
}

/// One waiting request.
pub(crate) struct Waiting<'a>(&'a Gauge);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn metrics_keep_their_names_and_labels() {
        let metrics = Metrics::new(vec!["StockPool"]);
        metrics.answered("StockPool", Outcome::Ready);
        metrics.composed("StockPool", Duration::ZERO);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &metrics.registry).unwrap();
        // Text in quotation marks is the value of a label.
        let series = |line: &str| line.split('"').step_by(2).collect::<String>();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(series);
        let names: BTreeSet<String> =
            samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect();
        let expected = [
            "grpc_server_handled_total{grpc_type=,grpc_service=,grpc_method=,grpc_code=}",
            "grpc_server_msg_received_total{grpc_type=,grpc_service=,grpc_method=}",
            "grpc_server_msg_sent_total{grpc_type=,grpc_service=,grpc_method=}",
            "grpc_server_started_total{grpc_type=,grpc_service=,grpc_method=}",
            "paved_road_answers_total{kind=,outcome=}",
            "paved_road_compose_seconds_bucket{le=,kind=}",
            "paved_road_compose_seconds_count{kind=}",
            "paved_road_compose_seconds_sum{kind=}",
            "paved_road_waiting_requests",
        ];
        assert_eq!(names, expected.map(str::to_owned).into());
    }
}
