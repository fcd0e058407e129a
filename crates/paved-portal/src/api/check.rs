//! The checks of a document before the API server gets it: the function accepts it, and its price
//! fits the budget of its namespace.

use kube::api::DynamicObject;
use paved_client::cluster::Kind;
use paved_render::subject::pipeline_step::Step;
use serde_json::Value;

use super::budget::{Budget, as_document};
use super::composed::{Composed, Rejected};
use super::composer;
use super::environments::Environments;
use crate::identity::Person;
use crate::problem::Problem;

/// A document to write.
pub(super) struct Write<'w> {
    /// The kind of the environment.
    pub(super) kind: &'w Kind,
    /// The namespace of the environment.
    pub(super) namespace: &'w str,
    /// The document.
    pub(super) after: Value,
    /// The existing environment.
    pub(super) before: Option<&'w DynamicObject>,
    /// Whether the function's errors are ignored.
    pub(super) skip: bool,
}

/// Rejects a document that the function would reject, or with a price that exceeds the budget of
/// its namespace. A change is not rejected for errors that the existing environment already has.
///
/// A user without the right to write the document gets the API server's answer instead. The same
/// applies if the portal cannot read the Composition.
pub(super) async fn check(
    environments: &Environments,
    person: &Person,
    Write { kind, namespace, after, before, skip }: Write<'_>,
) -> Result<(), Problem> {
    // Changes are only checked for users with the right to make them.
    if before.is_none() && !environments.access.may_create(person, kind, namespace).await? {
        return Ok(());
    }
    // The function does not know the kind.
    if kind.paved_api().is_none() {
        return Ok(());
    }
    let step = composer::step(&environments.clients.own(), kind, &after["spec"]).await;
    let unread = |problem: &Problem| {
        let (kind, error) = (kind.name(), problem.detail());
        tracing::warn!(kind, namespace, error, "an environment was not checked");
    };
    let Ok(step) = step.inspect_err(unread) else { return Ok(()) };
    let budget = Budget::read(environments, person, namespace, &step).await;
    if skip && budget.is_none() {
        return Ok(());
    }
    let title =
        format!("{} {}", kind.name(), after["metadata"]["name"].as_str().unwrap_or_default());
    let before = before.map(|before| as_document(&after, before));
    let verdict = move || -> Result<(), Problem> {
        if !skip {
            rejection(&after, before.as_ref(), &step)?;
        }
        let error = budget.and_then(|budget| budget.refusal(&after, before.as_ref(), &step));
        error.map_or(Ok(()), |error| {
            Err(Problem::refused(&format!("{title} is rejected: "), vec![error]))
        })
    };
    environments.composer.compose(verdict).await?
}

/// The errors of a document that its existing environment does not have.
fn rejection(after: &Value, before: Option<&Value>, step: &Step) -> Result<(), Rejected> {
    let Some(before) = before else { return Composed::new(after, None, step).map(drop) };
    let mut now = after.clone();
    now["spec"] = before["spec"].clone();
    let Err(rejected) = Composed::new(after, Some(before), step) else { return Ok(()) };
    let known = Composed::new(&now, Some(before), step).err();
    rejected.beyond(known.as_ref()).map_or(Ok(()), Err)
}
