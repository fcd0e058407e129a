//! `/ws/status/`: changes of the user's application environments, by WebSocket.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use paved_client::cluster::Kind;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use super::environments::kinds;
use crate::identity::{Person, Token};
use crate::kinds::Catalog;
use crate::live::{Action, Entry, Feed, Next, Reader};
use crate::metrics::Metrics;
use crate::owner::LABEL;
use crate::problem::{ErrorResponses, Problem};
use crate::request::REQUEST;
use crate::signed_in::Callers;
use crate::stream_limits::{End, Stranger};
use crate::token_auth::TokenAuth;

/// The maximum length of a client's message, in bytes. The only message is a token.
const LARGEST: usize = 16 * 1024;

/// Not signed in.
const UNAUTHORIZED: u16 = 4401;

/// Changes of my application environments, by WebSocket.
///
/// Messages are `{requestId, name, status, eventType}`. With the status Error, they also have a
/// `message`. The stream starts with existing environments, as ADDED. The session, the header Authorization or a first message `{"token":
/// "…"}` identifies the user. A token in the URL is ignored.
#[utoipa::path(get, path = "/ws/status/", operation_id = "watchApplicationEnvironments", tag = "application environments",
    responses((status = 101, description = "A WebSocket."), ErrorResponses))]
pub(crate) async fn status(
    State(callers): State<Callers>,
    State(feed): State<Feed>,
    State(metrics): State<Arc<Metrics>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|_| Problem::bad_request("This path only serves WebSockets."))?;
    let who = match callers.person(&headers).await? {
        Some(person) => Who::Known(person),
        None => Who::Unknown(feed.streams.admit()?),
    };
    let upgrade = upgrade.max_message_size(LARGEST).max_frame_size(LARGEST);
    // The client sends only a token, and messages are sent immediately.
    let upgrade = upgrade.read_buffer_size(LARGEST).write_buffer_size(0);
    let span = Span::current();
    let line = Line { bearers: callers.bearers, feed, metrics };
    Ok(upgrade.on_upgrade(move |socket| talk(line, who, socket).instrument(span)))
}

/// The state of an open socket.
struct Line {
    bearers: Arc<TokenAuth>,
    feed: Feed,
    metrics: Arc<Metrics>,
}

/// The user of a socket.
enum Who {
    Known(Arc<Person>),
    /// The first message names the user. Until then, the socket counts as anonymous.
    Unknown(Stranger),
}

async fn talk(line: Line, who: Who, mut socket: WebSocket) {
    let limits = line.feed.limits;
    let patience = limits.event;
    let person = match who {
        Who::Known(person) => person,
        Who::Unknown(_place) => match introduced(&line, &mut socket).await {
            Ok(person) => person,
            Err(problem) if problem.status() == 401 => {
                return close(socket, UNAUTHORIZED, "send a session or a token", patience).await;
            }
            Err(_) => return close(socket, close_code::AGAIN, "unavailable", patience).await,
        },
    };
    match timeout(limits.response, Reader::new(&line.feed, &person, None)).await {
        Ok(Ok(reader)) => follow(&line, &person, reader, socket).await,
        Ok(Err(problem)) if problem.status() == 429 => {
            close(socket, close_code::AGAIN, "too many streams", patience).await;
        }
        Ok(Err(_)) | Err(_) => close(socket, close_code::AGAIN, "unavailable", patience).await,
    }
}

/// The first message of a client.
#[derive(Deserialize)]
struct Introduction {
    token: String,
}

/// The user of the token in the first message.
async fn introduced(line: &Line, socket: &mut WebSocket) -> Result<Arc<Person>, Problem> {
    let nobody = || Problem::unauthorized("The first message has no token.");
    let first = timeout(line.feed.limits.first_message, async {
        loop {
            match socket.recv().await? {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                _ => return None,
            }
        }
    });
    let text = first.await.ok().flatten().ok_or_else(nobody)?;
    // Other fields are skipped, because their values would take many times their length.
    let introduction: Option<Introduction> = serde_json::from_str(&text).ok();
    let token = introduction.as_ref().map(|introduction| introduction.token.trim());
    let token = token
        .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    line.bearers.person(&Token::new(token.ok_or_else(nobody)?)).await
}

async fn follow(line: &Line, person: &Person, mut reader: Reader, mut socket: WebSocket) {
    let owner = person.owner().label();
    // The environments that the client knows, by their UID.
    let mut known = BTreeSet::new();
    let end = loop {
        let Some(next) = next(&mut reader, &mut socket).await else { return };
        let message = match next {
            Next::End(end) => break end,
            Next::Beat => Some(Message::Ping(Vec::new().into())),
            Next::Present(entry) => {
                message(&line.feed.catalog, &entry, Action::Added, &owner, &mut known)
            }
            Next::Change(change) => {
                message(&line.feed.catalog, &change.entry, change.action, &owner, &mut known)
            }
            Next::Snapshot(_) | Next::Synced => None,
        };
        let Some(message) = message else { continue };
        match timeout(line.feed.limits.event, socket.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => break End::Slow,
        }
    };
    line.metrics.ended(end);
    let code = match end {
        End::SignedOut | End::Expired => UNAUTHORIZED,
        End::Shutdown => close_code::RESTART,
        End::Slow | End::AccessChanged | End::Unavailable => close_code::AGAIN,
    };
    close(socket, code, end.word(), line.feed.limits.event).await;
}

/// The next message. `None` if the client has disconnected. Later messages from the client are
/// ignored.
async fn next(reader: &mut Reader, socket: &mut WebSocket) -> Option<Next> {
    let mut read = pin!(reader.next());
    loop {
        tokio::select! {
            next = &mut read => return Some(next),
            said = socket.recv() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            },
        }
    }
}

async fn close(mut socket: WebSocket, code: u16, reason: &'static str, patience: Duration) {
    let frame = CloseFrame { code, reason: reason.into() };
    // A disconnected client needs no response.
    let _ = timeout(patience, socket.send(Message::Close(Some(frame)))).await;
}

/// The message about an environment. The socket reports only visible application environments of
/// the user. A change of the owner appears as ADDED or DELETED, as in a label-selected watch of
/// Kubernetes.
fn message(
    catalog: &Catalog,
    entry: &Entry,
    action: Action,
    owner: &str,
    known: &mut BTreeSet<String>,
) -> Option<Message> {
    let has_label = || entry.view.labels.get(LABEL).is_some_and(|label| label == owner);
    let is_one = || kinds(catalog).iter().map(Kind::full_name).any(|kind| kind == entry.key.kind);
    let action = if action != Action::Deleted && has_label() && is_one() {
        if known.insert(entry.view.uid.clone()) { Action::Added } else { Action::Modified }
    } else {
        known.remove(&entry.view.uid).then_some(Action::Deleted)?
    };
    Some(Message::Text(told(entry, action).to_string().into()))
}

fn told(entry: &Entry, action: Action) -> Value {
    let status = if entry.is_deleting() || action == Action::Deleted {
        "Deleting"
    } else if entry.view.failed {
        "Error"
    } else if entry.view.ready {
        "Ready"
    } else {
        "Provisioning"
    };
    let request = entry.view.labels.get(REQUEST).unwrap_or(&entry.view.uid);
    let mut told = json!({"requestId": request, "name": entry.key.name, "status": status, "eventType": action.word()});
    if status == "Error" {
        told["message"] = json!(entry.view.message);
    }
    told
}
