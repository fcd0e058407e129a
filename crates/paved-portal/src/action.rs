//! Records the actions of users: a log line for each attempt, and an Event for each change.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use paved_client::action::{self, Program, Verb};
use paved_client::cluster::Kind;

use super::AUDIT;
use super::clients::Clients;
use super::identity::Person;
use super::problem::Problem;

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
            let environment = ObjectReference {
                api_version: Some(kind.resource.api_version.clone()),
                kind: Some(kind.name().to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: uid(object),
                ..ObjectReference::default()
            };
            let (client, actor) = (clients.own().client, person.username().to_owned());
            // An Event is a record for readers. The action does not wait for it.
            tokio::spawn(async move {
                let (program, at) = (Program::Portal, Timestamp::now());
                let action = action::Action { actor: &actor, verb, program, at };
                if let Err(error) = action.write_event(&client, environment).await {
                    tracing::warn!(error = %error, "could not write an Event about an action");
                }
            });
        }
    }
}
