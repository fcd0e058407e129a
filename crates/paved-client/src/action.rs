//! Records of actions: their actors, verbs and environments. Each action has a Kubernetes Event beside
//! the environment and one line for a log.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cluster::{Api, Cluster};
use crate::environment::Environment;

/// Time limit for a request about a record. A record never delays an action for long.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// The actor, if the API server does not name the user.
const UNKNOWN: &str = "unknown";

/// The longest note of an Event that the API server accepts, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A creation or a change.
    Apply,
    /// A deletion.
    Delete,
    /// The removal of the time to live.
    Keep,
    /// An upload of a website.
    Publish,
    /// A renewal.
    Renew,
    /// A start.
    Start,
    /// A stop.
    Stop,
}

impl Verb {
    /// The verb in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Keep => "keep",
            Self::Publish => "publish",
            Self::Renew => "renew",
            Self::Start => "start",
            Self::Stop => "stop",
        }
    }

    /// The reason of the Event.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Apply => "Applied",
            Self::Delete => "DeletionRequested",
            Self::Keep => "Kept",
            Self::Publish => "Published",
            Self::Renew => "Renewed",
            Self::Start => "StartRequested",
            Self::Stop => "StopRequested",
        }
    }
}

/// An action of a user, and its result.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// The user, as the API server knows them.
    pub actor: &'a str,
    /// The action.
    pub verb: Verb,
    /// The program that sent the request: `paved` or `paved-portal`.
    pub program: &'a str,
    /// `created`, `configured`, `requested`, `rejected` or another word.
    pub result: &'a str,
    /// The time.
    pub at: Timestamp,
}

impl Action<'_> {
    /// One JSON object on one line: time, actor, verb, object and result.
    pub fn line(&self, environment: &Environment) -> String {
        let Environment { kind, group, namespace, name, .. } = environment;
        json!({
            "time": self.at.to_string(),
            "program": self.program,
            "actor": self.actor,
            "verb": self.verb.name(),
            "object": {"kind": kind, "group": group, "namespace": namespace, "name": name},
            "result": self.result,
        })
        .to_string()
    }

    /// The Event beside the environment. Its name is unique by the time.
    fn event(&self, environment: &Environment, api_version: &str) -> Value {
        let Environment { kind, namespace, name, uid, .. } = environment;
        let Self { actor, verb, program, result, at } = self;
        let second = Timestamp::from_second(at.as_second()).unwrap_or(*at).to_string();
        let mut message = format!("{actor}: {} ({result})", verb.name());
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{name}.{:x}", at.as_nanosecond()),
                "namespace": namespace,
            },
            "involvedObject": {"apiVersion": api_version, "kind": kind, "namespace": namespace,
                "name": name, "uid": uid},
            "reason": verb.reason(),
            "message": message,
            "type": "Normal",
            "source": {"component": program},
            "reportingComponent": program,
            "reportingInstance": program,
            "action": verb.reason(),
            "firstTimestamp": second,
            "lastTimestamp": second,
            "count": 1,
        })
    }

    /// Writes the Event. Returns whether the API server accepted it. An action never fails because
    /// its user may not write Events.
    pub async fn write_event(
        &self,
        client: &Client,
        environment: &Environment,
        api_version: &str,
    ) -> bool {
        let event: Option<Event> =
            serde_json::from_value(self.event(environment, api_version)).ok();
        let Some(event) = event else { return false };
        let events: Api<Event> = Api::namespaced(client.clone(), &environment.namespace);
        let params = PostParams::default();
        let written = timeout(TIME_LIMIT, events.create(&params, &event)).await;
        matches!(written, Ok(Ok(_)))
    }
}

/// The user of this cluster's client, as the API server knows them.
pub async fn actor(cluster: &Cluster) -> String {
    username(cluster).await.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The same; `None` if the API server does not name the user.
pub async fn username(cluster: &Cluster) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(cluster.client.clone());
    let (params, review) = (PostParams::default(), SelfSubjectReview::default());
    let review = timeout(TIME_LIMIT, reviews.create(&params, &review)).await.ok()?.ok()?;
    let user = review.status?.user_info?.username?;
    Some(user).filter(|user| !user.is_empty() && user != "system:anonymous")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{environment, ready};

    fn action(actor: &str) -> Action<'_> {
        let at = Timestamp::from_second(1_767_225_600).unwrap_or_default();
        Action { actor, verb: Verb::Stop, program: "paved", result: "requested", at }
    }

    #[test]
    fn line_has_actor_object_verb_and_result() {
        let line = action("ada@acme.io\n").line(&environment(&ready()));
        assert_eq!(line.lines().count(), 1, "{line}");
        let read: Value = serde_json::from_str(&line).unwrap_or_default();
        assert_eq!(
            read,
            json!({"time": "2026-01-01T00:00:00Z", "program": "paved", "actor": "ada@acme.io\n",
                "verb": "stop", "result": "requested",
                "object": {"kind": "GpuDevWorkspaceClaim", "group": "platform.acme.io",
                    "namespace": "team-vision", "name": "ada"}})
        );
    }

    #[test]
    fn event_is_about_the_environment_and_fits() {
        let event = action(&"é".repeat(2000)).event(&environment(&ready()), "a/v1");
        let read: Event = serde_json::from_value(event).unwrap_or_default();
        assert_eq!(read.involved_object.name.as_deref(), Some("ada"));
        assert_eq!(read.reason.as_deref(), Some("StopRequested"));
        assert!(read.message.is_some_and(|message| message.len() <= LONGEST_MESSAGE));
    }
}
