//! Budgets of namespaces: an environment with a price above the rest of the budget is rejected
//! before it is sent to the API server.

use function_paved_road::catalog::prices::Usd;
use kube::api::DynamicObject;
use paved_client::budget::{Ledger, Planned};
use paved_client::cluster::Kind;
use paved_client::environment::tidy;
use paved_render::subject::pipeline_step::Step;
use serde_json::Value;

use super::composed::Composed;
use super::composer;
use super::environments::Environments;
use crate::identity::Person;
use crate::problem::{FieldError, Problem};

/// The budget of a namespace, and the environments that the user sees there.
pub(super) struct Budget {
    hourly: Usd,
    ledger: Ledger,
}

impl Budget {
    /// Reads a budget. `None` if the namespace has none, or if it cannot be read: a budget is no
    /// reason to reject a request that the API server may answer.
    pub(super) async fn read(
        environments: &Environments,
        person: &Person,
        namespace: &str,
        step: &Step,
    ) -> Option<Self> {
        let hourly = step.settings()?.common.budget.of(namespace)?;
        let seen = environments.visible(person, |entry| entry.key.namespace == namespace).await;
        let unread = |problem: &Problem| not_checked(namespace, problem);
        let seen = seen.inspect_err(unread).ok()?;
        let holders = seen.iter().filter_map(|entry| entry.view.holder.clone()).collect();
        Some(Self { hourly, ledger: Ledger::new(namespace, holders) })
    }

    /// The error of an environment that does not fit.
    pub(super) fn refusal(
        mut self,
        after: &Value,
        before: Option<&Value>,
        step: &Step,
    ) -> Option<FieldError> {
        let mut price = |document: &Value| Composed::new(document, None, step).ok()?.price;
        let checked = self.ledger.check(self.hourly, Planned { after, before }, &mut price);
        checked.err().map(|error| FieldError::new(error.path, error.message))
    }
}

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
}

/// Rejects a document if its price exceeds the budget of its namespace. A user without the right to
/// write the document gets the API server's answer instead.
pub(super) async fn check(
    environments: &Environments,
    person: &Person,
    Write { kind, namespace, after, before }: Write<'_>,
) -> Result<(), Problem> {
    let access = &environments.access;
    let may_write = match before {
        Some(_) => access.may_change(person, kind, namespace).await?,
        None => access.may_create(person, kind, namespace).await?,
    };
    if !may_write {
        return Ok(());
    }
    let unread = |problem: &Problem| not_checked(namespace, problem);
    let step = composer::step(&environments.clients.own(), kind, &after["spec"]).await;
    let Ok(step) = step.inspect_err(unread) else { return Ok(()) };
    let Some(budget) = Budget::read(environments, person, namespace, &step).await else {
        return Ok(());
    };
    let title =
        format!("{} {}", kind.name(), after["metadata"]["name"].as_str().unwrap_or_default());
    let before = before.map(|before| as_document(&after, before));
    // A full queue does not reject the document.
    let Ok(waits) = environments.composer.enter().inspect_err(unread) else { return Ok(()) };
    let refusal = move || {
        let _held = waits;
        budget.refusal(&after, before.as_ref(), &step)
    };
    match environments.composer.compose(refusal).await? {
        Some(error) => Err(Problem::refused(&format!("{title} is rejected: "), vec![error])),
        None => Ok(()),
    }
}

/// The existing object, with the apiVersion and the kind of its document.
pub(super) fn as_document(after: &Value, before: &DynamicObject) -> Value {
    let mut document = tidy(before);
    for field in ["apiVersion", "kind"] {
        document[field] = after[field].clone();
    }
    document
}

fn not_checked(namespace: &str, problem: &Problem) {
    tracing::warn!(namespace, error = problem.detail(), "the budget was not checked");
}
