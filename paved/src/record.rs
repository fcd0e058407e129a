//! The record of actions: an Event beside the environment, and a line for a log.
//!
//! In a CI job the lines are on standard error. `PAVED_ACTION_LOG` names a file, or `-` for standard
//! error.

use std::fs::OpenOptions;
use std::io::Write as _;

use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::action::{self, Action, Program, Verb};
use paved_client::cluster::Cluster;
use paved_client::environment::Environment;

use crate::Console;
use crate::failure::Failure;

/// The variable with the file of the log.
pub(crate) const LOG: &str = "PAVED_ACTION_LOG";

/// Records the actions of one command.
pub(crate) struct Recorder<'c> {
    cluster: &'c Cluster,
    actor: Option<String>,
}

impl<'c> Recorder<'c> {
    pub(crate) fn new(cluster: &'c Cluster) -> Self {
        Self { cluster, actor: None }
    }

    /// Writes the Event of an accepted action, and returns its line for [`log`]. A missing right to
    /// write Events does not fail the action.
    pub(crate) async fn accepted(
        &mut self,
        verb: Verb,
        object: &DynamicObject,
        result: &str,
    ) -> String {
        let actor = self.actor().await;
        let action = Action { actor: &actor, verb, program: Program::Paved, at: Timestamp::now() };
        let reference = action::reference(object);
        let _: Result<_, action::Unwritten> =
            action.write_event(&self.cluster.client, reference).await;
        action.line(&Environment::from_object(object), result)
    }

    /// The line of a failed action. It has no Event, because its object may not exist.
    pub(crate) async fn failed(
        &mut self,
        verb: Verb,
        object: &DynamicObject,
        failure: &Failure,
    ) -> String {
        let actor = self.actor().await;
        let result = match failure {
            Failure::NoAccess { .. } => "denied",
            Failure::Stale(_) => "stale",
            _ => "rejected",
        };
        let action = Action { actor: &actor, verb, program: Program::Paved, at: Timestamp::now() };
        action.line(&Environment::from_object(object), result)
    }

    async fn actor(&mut self) -> String {
        if let Some(actor) = &self.actor {
            return actor.clone();
        }
        let actor = action::actor(self.cluster).await;
        self.actor = Some(actor.clone());
        actor
    }
}

/// Writes a line of the log.
pub(crate) fn log(line: &str, console: &mut Console<'_>) -> Result<(), Failure> {
    if line.is_empty() {
        return Ok(());
    }
    let named = std::env::var_os(LOG).filter(|path| !path.is_empty() && path != "-");
    if let Some(path) = named {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        {
            let path = path.display();
            writeln!(console.err, "note: could not write {LOG} {path}: {error}")?;
        }
        return Ok(());
    }
    if console.err.has_log() {
        console.err.json(|err| std::io::Write::write_all(err, line.as_bytes()))?;
        writeln!(console.err)?;
    }
    Ok(())
}
