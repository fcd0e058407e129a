//! Records the actions of users: a log line for each attempt, and an Event for each change.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::api::PostParams;
use paved_client::cluster::{Api, Kind};

use super::AUDIT;
use super::clients::Clients;
use super::identity::Person;
use super::problem::Problem;

/// The reporter of Events.
const REPORTER: &str = "paved-portal";

/// An action on an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
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
    /// Its name in the log.
    fn name(self) -> &'static str {
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

    /// Its past, for the reason and the message of an Event.
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
}

/// An attempt of a user to change an environment.
#[derive(Clone, Copy)]
pub(super) struct Action<'a> {
    pub(super) verb: Verb,
    pub(super) person: &'a Person,
    pub(super) kind: &'a Kind,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Action<'_> {
    /// Logs the result at any log level, and writes an Event about a change. `uid` identifies the
    /// changed object, if it is known.
    pub(super) fn record<T>(
        self,
        clients: &Clients,
        result: &Result<T, Problem>,
        uid: impl FnOnce(&T) -> Option<String>,
    ) {
        let Self { verb, person, kind, namespace, name } = self;
        let (outcome, status) = match result {
            Ok(_) => ("done", None),
            Err(problem) if problem.status().is_server_error() => {
                ("failed", Some(problem.status().as_u16()))
            }
            Err(problem) => ("refused", Some(problem.status().as_u16())),
        };
        tracing::info!(
            target: AUDIT,
            audit = verb.name(),
            user = person.username(),
            kind = kind.full_name(),
            namespace,
            name,
            outcome,
            status,
            "environment: {}",
            verb.name()
        );
        if let Ok(object) = result {
            let event = self.event(uid(object));
            let api: Api<Event> = Api::namespaced(clients.own().client, namespace);
            // An Event is a record for readers. The action does not wait for it.
            tokio::spawn(async move {
                if let Err(error) = api.create(&PostParams::default(), &event).await {
                    tracing::warn!(error = %error, "could not write an Event about an action");
                }
            });
        }
    }

    /// The Event about the change.
    fn event(self, uid: Option<String>) -> Event {
        let Self { verb, person, kind, namespace, name } = self;
        let now = Timestamp::now();
        let past = verb.past();
        let reason: String = past.chars().take(1).flat_map(char::to_uppercase).collect();
        Event {
            metadata: ObjectMeta {
                // Object names with a dot and a suffix, as other reporters name their Events.
                generate_name: Some(format!("{name}.")),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(kind.resource.api_version.clone()),
                kind: Some(kind.name().to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid,
                ..ObjectReference::default()
            },
            type_: Some("Normal".to_owned()),
            reason: Some(format!("{reason}{}", &past[1..])),
            message: Some(format!("{} {past} this environment in the portal", person.username())),
            action: Some(verb.name().to_owned()),
            reporting_component: Some(REPORTER.to_owned()),
            reporting_instance: Some(REPORTER.to_owned()),
            source: Some(EventSource { component: Some(REPORTER.to_owned()), host: None }),
            event_time: Some(MicroTime(now)),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        }
    }
}
