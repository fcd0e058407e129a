//! Power: stops the resources of an environment, or starts them again, as the plan says. The
//! resources are those that the API composed or, for a rejected spec, the observed ones.

mod preserved;
mod switch;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use switch::MACHINE_LIMIT;

use crate::compose::{Absent, Composer, Desired, Draft, Secrets};
use crate::error::Error;
use crate::observe::Observation;
use crate::plan::{Active, Plan};
use crate::pricing::{self, Price};
use crate::value::Object;
use switch::Switch;

/// Power state of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum PowerState {
    /// All resources run.
    Running,
    /// All resources that can be stopped are stopped.
    Stopped,
    /// Something is being started.
    Starting,
    /// Something is being stopped.
    Stopping,
    /// The state is not known.
    Unknown,
}

/// The power of an environment with a lifecycle.
pub(crate) struct Power {
    pub state: PowerState,
    /// The request to start that is still open.
    pub opened: Option<Timestamp>,
    /// The longest time until the next call.
    pub wakes_in: Option<Duration>,
    /// The estimated price; `None` if it is not known.
    pub price: Option<Price>,
}

/// The complete composition of a call.
pub struct Composed<'o> {
    pub(crate) observation: &'o Observation<'o>,
    pub(crate) plan: Plan,
    pub(crate) desired: BTreeMap<String, Desired>,
    pub(crate) waiting: BTreeMap<String, Absent>,
    pub(crate) connection: BTreeMap<String, Vec<u8>>,
    pub(crate) secrets: Secrets,
    pub(crate) unpublished: bool,
    pub(crate) dated: Option<&'static str>,
    /// The API's own status. Empty after a rejection.
    pub(crate) status: Object,
    /// The error that rejects the spec or the Settings. The composition then preserves the observed
    /// resources.
    pub(crate) rejection: Option<Error>,
    power: Option<Power>,
}

impl<'o> Composed<'o> {
    /// Completes a draft.
    ///
    /// # Errors
    /// The error of the draft. [`Error::WouldDelete`] if an existing resource of ours was neither
    /// composed nor removed by name. An environment with resources to stop does not wait until its
    /// spec is valid: its composition is complete, with a rejection.
    pub fn new(draft: Draft<'o>, plan: Plan) -> Result<Self, Error> {
        let Draft { mut composer, outcome } = draft;
        let completed = outcome.and_then(|status| {
            let price = plan.active().and_then(|active| estimate(active, &composer));
            let power = Switch::apply(&mut composer, &plan, price, false)?;
            composer.account_for_everything()?;
            Ok((status, power))
        });
        match completed {
            Ok((status, power)) => Ok(Self::from_parts(composer, plan, power, status)),
            Err(error) => Self::rejected(composer, plan.rejected(), error),
        }
    }

    fn rejected(mut composer: Composer<'o>, plan: Plan, error: Error) -> Result<Self, Error> {
        if !plan.stops_what_exists(&composer) {
            return Err(error);
        }
        preserved::preserve(&mut composer);
        let noted = plan.active().and_then(|active| active.plan.note.price.clone());
        let power = Switch::apply(&mut composer, &plan, noted, true)?;
        let preserved = Self::from_parts(composer, plan, power, Object::new());
        Ok(Self { rejection: Some(error), ..preserved })
    }

    fn from_parts(
        composer: Composer<'o>,
        plan: Plan,
        power: Option<Power>,
        status: Object,
    ) -> Self {
        Self {
            observation: composer.observation,
            plan,
            desired: composer.desired,
            waiting: composer.waiting,
            connection: composer.connection,
            secrets: composer.secrets,
            unpublished: composer.unpublished,
            dated: composer.dated,
            status,
            rejection: None,
            power,
        }
    }

    /// The power, and the lifecycle that it follows. `None` without a lifecycle.
    pub(crate) fn power(&self) -> Option<(&Power, &Active)> {
        self.power.as_ref().zip(self.plan.active())
    }

    /// The power state, if it is known whether the environment is to run.
    pub(crate) fn power_state(&self) -> Option<PowerState> {
        self.power.as_ref().map(|power| power.state)
    }

    /// The note for the environment's first resource, as text.
    pub(crate) fn note(&self) -> Option<String> {
        let (power, active) = self.power()?;
        let mut note = active.plan.note.clone();
        note.opened = power.opened;
        note.price.clone_from(&power.price);
        note.write()
    }
}

/// Estimates the price of the environment. A stopped one keeps the price that it had while it ran.
fn estimate(active: &Active, composer: &Composer<'_>) -> Option<Price> {
    let earlier = active.plan.note.price.as_ref();
    let runs = active.plan.stop.is_none() || earlier.is_none();
    pricing::price(composer.objects(), &composer.settings.pricing, earlier, runs).ok()
}
