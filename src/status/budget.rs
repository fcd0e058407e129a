//! The budget of the environment's namespace, as `paved controller` wrote it on the environment.

use std::fmt;

use super::condition::{Condition, Event, stored};
use crate::catalog::prices::Usd;
use crate::lifecycle::SINCE;
use crate::power::Composed;
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

impl Composed<'_> {
    /// The condition `OverBudget`, if it has to be set or withdrawn. The event is the first one of
    /// a namespace over its budget.
    pub(super) fn over_budget(&self) -> (Option<Condition>, Option<Event>) {
        if self.observation.settings.revision() < SINCE {
            return (None, None);
        }
        let stored = stored(&self.observation.xr.status, OVER_BUDGET);
        let spending =
            self.observation.xr.annotations.get(BUDGET).and_then(|text| Spending::read(text));
        let Some(Spending { hourly, budget }) = spending.filter(Spending::is_over) else {
            let message = "the namespace is within its budget".to_owned();
            let condition = Condition::new(OVER_BUDGET, false, &Reason::WithinBudget, message);
            return (stored.map(|_| condition), None);
        };
        let message = format!(
            "the environments in namespace {} cost {hourly} USD per hour, and the budget is \
             {budget} USD per hour",
            self.observation.xr.user_namespace().unwrap_or_default()
        );
        let was_over = stored.is_some_and(|stored| stored["status"] == "True");
        let event = (!was_over).then(|| Event::warning(&Reason::OverBudget, message.clone()));
        (Some(Condition::new(OVER_BUDGET, true, &Reason::OverBudget, message)), event)
    }
}
