//! Budgets of namespaces: an environment with a price above the rest of the budget is rejected
//! before it is sent to the API server.

use function_paved_road::catalog::prices::Usd;
use kube::api::DynamicObject;
use paved_client::budget::{Ledger, Planned};
use paved_client::environment::tidy;
use paved_render::subject::pipeline_step::Step;
use serde_json::Value;

use super::composed::Composed;
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
