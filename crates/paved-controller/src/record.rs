//! The controller's memory of an environment. A cluster may have 10,000 environments, so a record
//! has no object in it.

use function_paved_road::catalog::prices::Usd;
use function_paved_road::status::{BUDGET, STALLED};
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::Environment;
use paved_client::git::applier;
use serde_json::Value;

/// The facts about an environment that the controller keeps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// The UID of the object that people apply.
    pub uid: Box<str>,
    /// The owner, for notifications.
    pub owner: Option<Box<str>>,
    /// The announced expiry.
    pub expires_at: Option<Timestamp>,
    /// The announced deletion.
    pub deletes_at: Option<Timestamp>,
    /// Whether a tool applies it repeatedly. It may then be stopped instead of deleted.
    pub is_applied: bool,
    /// The estimated price of an hour in its present state.
    pub hourly: Option<Usd>,
    /// The annotation with the budget.
    pub budget: Option<Box<str>>,
    /// When it came into the states that are notified.
    pub moments: Moments,
}

/// When an environment came into a state: seconds of Unix time; 0 if it is not in the state.
pub(crate) type Moments = [i64; State::ALL.len()];

/// A state that is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Ready, and running.
    Ready,
    /// A resource has failed for a while.
    Failed,
    /// Its user was warned of its end.
    Expiring,
    /// Stopped.
    Stopped,
    /// Its deletion has begun.
    Deleting,
}

impl State {
    /// All states, in the order of [`Moments`].
    pub const ALL: [Self; 5] =
        [Self::Ready, Self::Failed, Self::Expiring, Self::Stopped, Self::Deleting];

    /// The word in the type of an event.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Expiring => "expiring",
            Self::Stopped => "stopped",
            Self::Deleting => "deleting",
        }
    }
}

impl Record {
    /// Reads an object. Values that cannot be read count as absent.
    pub fn from_object(object: &DynamicObject) -> Self {
        let environment = Environment::from_object(object);
        let lifecycle = environment.lifecycle.clone().unwrap_or_default();
        let annotations = object.metadata.annotations.as_ref();
        Self {
            uid: environment.uid.as_str().into(),
            owner: environment.owner.as_deref().map(Into::into),
            expires_at: lifecycle.expires_at,
            deletes_at: lifecycle.deletes_at,
            is_applied: applier(&object.metadata).is_some(),
            hourly: environment.counted_price(),
            budget: annotations.and_then(|all| all.get(BUDGET)).map(|text| text.as_str().into()),
            moments: State::ALL.map(|state| moment(state, object, &environment).unwrap_or(0)),
        }
    }
}

/// When an environment came into a state.
fn moment(state: State, object: &DynamicObject, environment: &Environment) -> Option<i64> {
    let time = |value: &Value| Some(value.as_str()?.parse::<Timestamp>().ok()?.as_second());
    let status = &object.data["status"];
    match state {
        State::Ready if environment.is_running() => {
            time(&condition(status, "Ready")?["lastTransitionTime"])
        }
        State::Failed => time(&condition(status, STALLED)?["lastTransitionTime"]),
        State::Expiring => time(&status["lifecycle"]["warnedAt"]),
        State::Stopped if status["phase"] == "Stopped" => time(&status["lifecycle"]["stoppedAt"]),
        State::Deleting => Some(environment.deleted?.as_second()),
        State::Ready | State::Stopped => None,
    }
}

/// A condition that is true.
fn condition<'s>(status: &'s Value, kind: &str) -> Option<&'s Value> {
    let conditions = status["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == kind && one["status"] == "True")
}

impl Record {
    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.moments[State::Stopped as usize] != 0
    }

    /// Whether its deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.moments[State::Deleting as usize] != 0
    }
}
