//! `/api/v1/watch`: changes of environments, as Server-Sent Events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::Instrument as _;

use crate::live::{Action, Feed, Next, Reader};
use crate::metrics::Metrics;
use crate::problem::{ErrorResponses, Problem, TooManyRequests};
use crate::signed_in::SignedIn;
use crate::stream_limits::End;

/// The pause before a browser reconnects.
const RETRY: Duration = Duration::from_secs(1);

/// Changes of environments, as Server-Sent Events.
///
/// The stream starts with `snapshot` (`{"total"}`, which replaces all earlier state) and one
/// `added` for each environment, or with the events since `Last-Event-ID`. Then it sends `synced`,
/// and `added`, `modified` and `deleted` for each change. `heartbeat` shows that the connection
/// works. `reset` (`{"reason"}`) ends the stream. The client may reconnect, except after a
/// sign-out.
#[utoipa::path(get, path = "/api/v1/watch", operation_id = "watchEnvironments", tag = "environments",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client read.")),
    responses((status = 200, description = "Events.", body = String, content_type = "text/event-stream"), ErrorResponses, TooManyRequests))]
pub(crate) async fn watch(
    State(feed): State<Feed>,
    State(metrics): State<Arc<Metrics>>,
    SignedIn(person): SignedIn,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let patience = feed.limits.event;
    let reader = Reader::new(&feed, &person, last).await?;
    // Room for one event and for the last one.
    let (events, mut told) = mpsc::channel(2);
    tokio::spawn(tell(metrics, reader, events, patience).in_current_span());
    let events =
        stream::poll_fn(move |cx| told.poll_recv(cx).map(|event| event.map(Ok::<_, Infallible>)));
    let mut response = Sse::new(events).into_response();
    // A buffering proxy would delay events.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Sends a reader's events to a client. A response body alone could not notice a slow client,
/// because it is not polled while the client's buffer is full.
async fn tell(
    metrics: Arc<Metrics>,
    mut reader: Reader,
    events: mpsc::Sender<Event>,
    patience: Duration,
) {
    // Reserves room for the final event, even if the channel is full.
    let Ok(last) = events.clone().reserve_owned().await else { return };
    let end = loop {
        let next = tokio::select! {
            next = reader.next() => next,
            () = events.closed() => return,
        };
        if let Next::End(end) = next {
            break end;
        }
        match timeout(patience, events.send(event(&next, &reader))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => break End::Slow,
        }
    };
    metrics.ended(end);
    last.send(event(&Next::End(end), &reader));
}

/// An event. A snapshot resets the last ID, and its entries have none. A client that disconnects
/// during a snapshot therefore starts again.
fn event(next: &Next, reader: &Reader) -> Event {
    let named = |name: &str| Event::default().event(name);
    match next {
        Next::Snapshot(total) => {
            named("snapshot").id("").retry(RETRY).data(json!({"total": total}).to_string())
        }
        Next::Present(entry) => named("added").data(&entry.text),
        Next::Synced => named("synced").id(reader.id()).data("{}"),
        Next::Beat => named("heartbeat").id(reader.id()).data("{}"),
        Next::Change(change) => {
            let name = match change.action {
                Action::Added => "added",
                Action::Modified => "modified",
                Action::Deleted => "deleted",
            };
            named(name).id(reader.id()).data(&change.entry.text)
        }
        Next::End(end) => named("reset").data(json!({"reason": end.word()}).to_string()),
    }
}
