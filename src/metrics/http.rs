//! GET /metrics.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Metrics;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn router(metrics: Arc<Metrics>) -> Router {
    Router::new().route("/metrics", get(render)).with_state(metrics)
}

async fn render(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, &metrics.registry).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    if wants_classic(&headers) {
        ([(CONTENT_TYPE, CLASSIC)], classic(&text)).into_response()
    } else {
        ([(CONTENT_TYPE, OPENMETRICS)], text).into_response()
    }
}

/// Only a scraper that asks for plain text and not for OpenMetrics gets the older format.
fn wants_classic(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/plain") && !accept.contains("application/openmetrics-text")
}

/// The older format has the name of a counter's samples, with `_total`, also in its head. It has no
/// end mark.
fn classic(openmetrics: &str) -> String {
    let counters: HashSet<_> = openmetrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let line = |line: &str| match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
        ["#", word, family, rest] if counters.contains(family) => {
            format!("# {word} {family}_total {rest}\n")
        }
        _ => format!("{line}\n"),
    };
    openmetrics.lines().filter(|line| *line != "# EOF").map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_unless_only_plain_text_is_wanted() {
        let wants = |accept: &'static str| {
            wants_classic(&HeaderMap::from_iter([(
                ACCEPT,
                axum::http::HeaderValue::from_static(accept),
            )]))
        };
        assert!(!wants_classic(&HeaderMap::new()));
        assert!(!wants("*/*"));
        assert!(!wants("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
        assert!(wants("text/plain;version=0.0.4"));
    }

    #[test]
    fn the_older_format_differs_in_a_counters_head_and_the_end() {
        let openmetrics = "# HELP a Some help.\n# TYPE a counter\na_total{b=\"c\"} 1\n# TYPE d gauge\nd 2\n# EOF\n";
        let expected = "# HELP a_total Some help.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n# TYPE d gauge\nd 2\n";
        assert_eq!(classic(openmetrics), expected);
    }
}
