//! `/api/v1/watch`: environments as they change, as Server-Sent Events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;

use crate::portal::Portal;
use crate::portal::live::{Action, Next, Reader};
use crate::portal::problem::{Crowded, Problem, Refusals};
use crate::portal::who::SignedIn;

/// How long a browser waits before it comes back, in milliseconds.
const RETRY: u64 = 1000;

/// Environments as they change, as Server-Sent Events.
///
/// First `snapshot` (`{"total"}`, whatever was known before is void) and an `added` for each, or what was
/// missed since `Last-Event-ID`; then `synced`; then `added`, `modified` and `deleted` as they happen. `heartbeat` says that the line
/// stands; `reset` (`{"reason"}`) that it ends, and that one may come back unless one has signed out.
#[utoipa::path(get, path = "/api/v1/watch", operation_id = "watchEnvironments", tag = "environments",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was read.")),
    responses((status = 200, description = "Events.", body = String, content_type = "text/event-stream"), Refusals, Crowded))]
pub(in crate::portal) async fn watch(
    State(portal): State<Arc<Portal>>,
    SignedIn(person): SignedIn,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let reader = Reader::new(&portal, &person, last).await?;
    let events = stream::unfold(Some(reader), move |reader| {
        let portal = Arc::clone(&portal);
        async move {
            let mut reader = reader?;
            let next = reader.next().await;
            let event = event(&next, &reader);
            if let Next::End(end) = next {
                portal.metrics.ended(end);
                return Some((Ok::<_, Infallible>(event), None));
            }
            Some((Ok(event), Some(reader)))
        }
    });
    let mut response = Sse::new(events).into_response();
    // A proxy that gathers what it passes on would hold events back.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// An event. Those of a snapshot have no id: whoever loses the line amid one begins anew.
fn event(next: &Next, reader: &Reader) -> Event {
    let named = |name: &str| Event::default().event(name);
    match next {
        Next::Snapshot(total) => named("snapshot")
            .retry(std::time::Duration::from_millis(RETRY))
            .data(json!({"total": total}).to_string()),
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
