//! Records of actions: their actors, verbs and environments. Each action has a Kubernetes Event beside
//! the environment and one line for a log.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::api::{DynamicObject, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::cluster::{Api, Cluster};
use crate::environment::Environment;

/// Time limit for a request about a record. A record never delays an action for long.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// The actor, if the API server does not name the user.
const UNKNOWN: &str = "unknown";

/// The longest note of an Event that the API server accepts, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// An action on an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Creates it.
    Create,
    /// Changes its document.
    Change,
    /// Deletes it.
    Delete,
    /// Extends its time to live.
    Extend,
    /// Removes its time to live.
    Keep,
    /// Stops it.
    Stop,
    /// Starts it.
    Start,
}

impl Verb {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
            Self::Extend => "extend",
            Self::Keep => "keep",
            Self::Stop => "stop",
            Self::Start => "start",
        }
    }

    /// Its past, for the message of an Event.
    fn past(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Change => "changed",
            Self::Delete => "deleted",
            Self::Extend => "extended",
            Self::Keep => "kept",
            Self::Stop => "stopped",
            Self::Start => "started",
        }
    }

    /// The reason of an Event.
    fn reason(self) -> String {
        let past = self.past();
        let first = past.chars().take(1).flat_map(char::to_uppercase);
        first.chain(past.chars().skip(1)).collect()
    }
}

/// A program through which users act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The command line.
    Paved,
    /// The portal.
    Portal,
}

impl Program {
    /// Its name in logs and as the reporter of Events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paved => "paved",
            Self::Portal => "paved-portal",
        }
    }

    /// The end of an Event's message.
    fn place(self) -> &'static str {
        match self {
            Self::Paved => "with the command line",
            Self::Portal => "in the portal",
        }
    }
}

/// An action of a user.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// The user, as the API server knows them.
    pub actor: &'a str,
    /// The action.
    pub verb: Verb,
    /// The program that sent the request.
    pub program: Program,
    /// The time.
    pub at: Timestamp,
}

impl Action<'_> {
    /// One JSON object on one line: time, actor, verb, object and result. The result is `created`,
    /// `configured`, `requested`, `rejected` or another word.
    pub fn line(&self, environment: &Environment, result: &str) -> String {
        let Environment { kind, group, namespace, name, .. } = environment;
        json!({
            "time": self.at.to_string(),
            "program": self.program.name(),
            "actor": self.actor,
            "verb": self.verb.name(),
            "object": {"kind": kind, "group": group, "namespace": namespace, "name": name},
            "result": result,
        })
        .to_string()
    }

    /// The Event beside the environment.
    fn event(&self, environment: ObjectReference) -> Event {
        let Self { actor, verb, program, at } = *self;
        let mut message = format!("{actor} {} this environment {}", verb.past(), program.place());
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        Event {
            metadata: ObjectMeta {
                // Object names with a dot and a suffix, as other reporters name their Events.
                generate_name: environment.name.as_ref().map(|name| format!("{name}.")),
                namespace: environment.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: environment,
            type_: Some("Normal".to_owned()),
            reason: Some(verb.reason()),
            message: Some(message),
            action: Some(verb.name().to_owned()),
            reporting_component: Some(program.name().to_owned()),
            reporting_instance: Some(program.name().to_owned()),
            source: Some(EventSource { component: Some(program.name().to_owned()), host: None }),
            event_time: Some(MicroTime(at)),
            first_timestamp: Some(Time(at)),
            last_timestamp: Some(Time(at)),
            count: Some(1),
            ..Event::default()
        }
    }

    /// Writes the Event.
    ///
    /// # Errors
    /// The API server rejects it or does not answer in time. An action never fails because its user
    /// may not write Events.
    pub async fn write_event(
        &self,
        client: &Client,
        environment: ObjectReference,
    ) -> Result<(), Unwritten> {
        let namespace = environment.namespace.as_deref().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        let (params, event) = (PostParams::default(), self.event(environment));
        timeout(TIME_LIMIT, events.create(&params, &event)).await??;
        Ok(())
    }
}

/// An Event that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// The API server rejected it.
    #[error(transparent)]
    Rejected(#[from] kube::Error),
    /// The API server did not answer in time.
    #[error("the API server did not answer in time")]
    TimedOut(#[from] Elapsed),
}

/// The reference to an environment in an Event.
pub fn reference(object: &DynamicObject) -> ObjectReference {
    let types = object.types.as_ref();
    ObjectReference {
        api_version: types.map(|types| types.api_version.clone()),
        kind: types.map(|types| types.kind.clone()),
        namespace: object.namespace(),
        name: object.metadata.name.clone(),
        uid: object.metadata.uid.clone(),
        ..ObjectReference::default()
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
    use serde_json::Value;

    use super::*;
    use crate::samples::{environment, ready};

    fn action(actor: &str) -> Action<'_> {
        let at = Timestamp::from_second(1_767_225_600).unwrap_or_default();
        Action { actor, verb: Verb::Stop, program: Program::Paved, at }
    }

    #[test]
    fn line_has_actor_object_verb_and_result() {
        let line = action("ada@acme.io\n").line(&environment(&ready()), "requested");
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
        let object = serde_json::from_value(ready()).unwrap_or_else(|error| panic!("{error}"));
        let event = action("ada").event(reference(&object));
        assert_eq!(event.involved_object.name.as_deref(), Some("ada"));
        assert_eq!(event.reason.as_deref(), Some("Stopped"));
        let message = "ada stopped this environment with the command line";
        assert_eq!(event.message.as_deref(), Some(message));
        let long = action(&"é".repeat(2000)).event(reference(&object));
        assert!(long.message.is_some_and(|message| message.len() <= LONGEST_MESSAGE));
    }
}
