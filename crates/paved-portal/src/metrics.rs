//! Metrics of the portal.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::live::Live;
use super::stream_limits::{End, Streams};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reset {
    reason: &'static str,
}

/// All metrics of the process.
pub(super) struct Metrics {
    registry: Registry,
    answers: Family<Answer, Counter>,
    seconds: Histogram,
    resets: Family<Reset, Counter>,
}

impl Metrics {
    /// `asked` counts the access reviews.
    pub(super) fn new(asked: &Counter, live: &Live, streams: &Streams) -> Self {
        let mut registry = Registry::with_prefix("paved_portal");
        let answers = Family::<Answer, Counter>::default();
        let seconds = Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let resets = Family::<Reset, Counter>::default();
        registry.register(
            "http_requests",
            "HTTP responses by method, route and status",
            answers.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time until the response; for streams, until the start",
            Unit::Seconds,
            seconds.clone(),
        );
        registry.register(
            "stream_resets",
            "Streams that the portal ended, by reason",
            resets.clone(),
        );
        registry.register("streams", "Open streams", streams.open.clone());
        registry.register("environments", "Environments in the watches", live.count.clone());
        registry.register(
            "changes",
            "Changes of environments in the watches",
            live.changed.clone(),
        );
        registry.register(
            "access_reviews",
            "Access reviews that the API server answered",
            asked.clone(),
        );
        Self { registry, answers, seconds, resets }
    }

    /// Counts a response.
    pub(super) fn answered(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        took: Duration,
    ) {
        let method = match *method {
            Method::GET
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::HEAD
            | Method::OPTIONS => method.as_str(),
            _ => "other",
        };
        let answer =
            Answer { method: method.to_owned(), route: route.to_owned(), status: status.as_u16() };
        self.answers.get_or_create(&answer).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a stream that the portal ended.
    pub(super) fn ended(&self, end: End) {
        self.resets.get_or_create(&Reset { reason: end.word() }).inc();
    }

    /// The metrics as text.
    pub(super) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::super::limits::Limits;
    use super::*;

    #[test]
    fn metrics_keep_their_names_and_labels() {
        let (live, streams) = (Live::new(String::new()), Streams::new(&Limits::default()));
        let metrics = Metrics::new(&Counter::default(), &live, &streams);
        metrics.answered(&Method::GET, "/", StatusCode::OK, Duration::ZERO);
        metrics.ended(End::Slow);
        let text = metrics.text().unwrap();
        // Text in quotation marks is the value of a label.
        let series = |line: &str| line.split('"').step_by(2).collect::<String>();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(series);
        let names: BTreeSet<String> =
            samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect();
        let expected = [
            "paved_portal_access_reviews_total",
            "paved_portal_changes_total",
            "paved_portal_environments",
            "paved_portal_http_request_duration_seconds_bucket{le=}",
            "paved_portal_http_request_duration_seconds_count",
            "paved_portal_http_request_duration_seconds_sum",
            "paved_portal_http_requests_total{method=,route=,status=}",
            "paved_portal_stream_resets_total{reason=}",
            "paved_portal_streams",
        ];
        assert_eq!(names, expected.map(str::to_owned).into());
    }
}
