//! The budget of the environment's namespace, as `paved controller` wrote it on the environment.

use std::fmt;

use serde_json::Value;

use super::Composition;
use crate::catalog::prices::Usd;
use crate::lifecycle::SINCE;
use crate::reason::Reason;

/// The annotation with the cost and the budget of the environment's namespace, as in
/// `41.500/40.000`: US dollars for one hour. `paved controller` writes it.
pub const BUDGET: &str = "paved-road.fn.crossplane.io/budget";

/// The condition of an environment in a namespace over its budget.
pub const OVER_BUDGET: &str = "OverBudget";

/// The cost and the budget of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The sum of the estimated prices of an hour.
    pub hourly: Usd,
    /// The budget for an hour.
    pub budget: Usd,
}

/// The condition `OverBudget`, if it has to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Its status.
    pub status: bool,
    /// Its reason.
    pub reason: Reason,
    /// Its message.
    pub message: String,
    /// Whether its status was another one before.
    pub is_news: bool,
}

impl Spending {
    /// Reads the annotation. `None` if it is not a cost and a budget.
    pub fn read(text: &str) -> Option<Self> {
        let (hourly, budget) = text.split_once('/')?;
        Some(Self { hourly: hourly.parse().ok()?, budget: budget.parse().ok()? })
    }

    /// Whether the cost is higher than the budget.
    pub fn is_over(&self) -> bool {
        self.hourly > self.budget
    }
}

impl fmt::Display for Spending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.hourly, self.budget)
    }
}

impl Composition<'_> {
    /// The condition `OverBudget`, where there is something to say or to take back.
    pub(super) fn over_budget(&self) -> Option<OverBudget> {
        if self.settings.revision() < SINCE {
            return None;
        }
        let conditions = self.xr.status.get("conditions").and_then(Value::as_array);
        let stored = conditions.into_iter().flatten().find(|one| one["type"] == OVER_BUDGET);
        let was_over = stored.is_some_and(|stored| stored["status"] == "True");
        let spending = self.xr.annotations.get(BUDGET).and_then(|text| Spending::read(text));
        match spending.filter(Spending::is_over) {
            Some(Spending { hourly, budget }) => Some(OverBudget {
                status: true,
                reason: Reason::OverBudget,
                message: format!(
                    "the environments in namespace {} cost {hourly} USD per hour, and the budget \
                     is {budget} USD per hour",
                    self.xr.user_namespace().unwrap_or_default()
                ),
                is_news: !was_over,
            }),
            None => stored.map(|_| OverBudget {
                status: false,
                reason: Reason::WithinBudget,
                message: "the namespace is within its budget".to_owned(),
                is_news: was_over,
            }),
        }
    }
}
