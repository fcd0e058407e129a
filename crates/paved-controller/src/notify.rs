//! Notifications: events of environments, sent to one URL. The queue of events is bounded, and no
//! other work waits for it.

pub(crate) mod event;
mod http_client;
mod template;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify as Signal;
use tokio::time::sleep;

use crate::Limits;
use crate::clock::Clock;
use crate::metrics::Metrics;
use event::Event;
use http_client::{HttpClient, Sent};
pub use template::Template;

/// How many events wait at most.
const CAPACITY: usize = 1_000;

/// How long delivery of one event is tried.
const DELIVERY_TIMEOUT: Duration = Duration::from_hours(1);

/// Where events are sent.
#[derive(Clone)]
pub struct Receiver {
    /// The URL. It may be a password: it is never logged.
    pub url: http::Uri,
    /// Turns an event into another body; `None` for CloudEvents.
    pub template: Option<Template>,
}

/// Events that wait for their delivery.
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Signal,
    metrics: Arc<Metrics>,
    is_open: bool,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// The time of the newest event that is not in the queue any more.
    done: Option<Timestamp>,
    /// Whether an event is being sent.
    is_busy: bool,
}

impl Outbox {
    /// An empty outbox. Without a receiver, events are dropped.
    pub fn new(metrics: Arc<Metrics>, is_open: bool) -> Self {
        Self { queue: Mutex::default(), filled: Signal::new(), metrics, is_open }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event that does not wait already. A full queue drops its oldest one.
    pub fn put(&self, event: Event) {
        if !self.is_open {
            return;
        }
        let mut queue = self.queue();
        if queue.events.iter().any(|waiting| waiting.id == event.id) {
            return;
        }
        if queue.events.len() == CAPACITY
            && let Some(dropped) = queue.events.pop_front()
        {
            self.metrics.notified("dropped");
            tracing::warn!(id = dropped.id, "the queue of notifications is full");
        }
        queue.events.push_back(event);
        self.metrics.waiting(queue.events.len());
        drop(queue);
        self.filled.notify_one();
    }

    /// Whether events are sent at all.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The time up to which all events are sent, once the queue is empty.
    pub fn settled(&self) -> Option<Timestamp> {
        let mut queue = self.queue();
        if queue.is_busy || !queue.events.is_empty() { None } else { queue.done.take() }
    }

    async fn next(&self) -> Event {
        loop {
            {
                let mut queue = self.queue();
                if let Some(event) = queue.events.pop_front() {
                    queue.is_busy = true;
                    return event;
                }
            }
            self.filled.notified().await;
        }
    }

    fn finish(&self, event: &Event, outcome: &'static str) {
        self.metrics.notified(outcome);
        let mut queue = self.queue();
        queue.is_busy = false;
        queue.done = queue.done.max(Some(event.time));
        self.metrics.waiting(queue.events.len());
    }

    /// Sends events, one after the other, until the task ends.
    pub async fn deliver(&self, receiver: Receiver, clock: Clock, limits: Limits) {
        let client = HttpClient::new(limits.answer);
        loop {
            let event = self.next().await;
            let outcome = match receiver.body(&event) {
                Ok((media_type, body)) => {
                    let begun = clock.steady();
                    let mut pause = limits.resend;
                    loop {
                        match client.post(&receiver.url, media_type, body.clone()).await {
                            Sent::Accepted => break "delivered",
                            Sent::Rejected(why) => {
                                tracing::warn!(id = event.id, why, "a notification is rejected");
                                break "rejected";
                            }
                            Sent::Failed(why) => {
                                if clock.steady().saturating_sub(begun) > DELIVERY_TIMEOUT {
                                    tracing::warn!(
                                        id = event.id,
                                        why,
                                        "a notification is given up"
                                    );
                                    break "failed";
                                }
                                tracing::debug!(id = event.id, why, "a notification is sent again");
                                self.metrics.notified("retried");
                            }
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(limits.longest_resend);
                    }
                }
                Err(error) => {
                    tracing::warn!(id = event.id, error, "the template cannot be used");
                    "rejected"
                }
            };
            self.finish(&event, outcome);
        }
    }
}

impl Receiver {
    /// The media type and the body of a request.
    fn body(&self, event: &Event) -> Result<(&'static str, bytes::Bytes), String> {
        match &self.template {
            None => {
                let body = serde_json::to_vec(event).map_err(|error| error.to_string())?;
                Ok(("application/cloudevents+json", body.into()))
            }
            Some(template) => Ok(("application/json", template.render(event)?.into())),
        }
    }
}
