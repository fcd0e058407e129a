//! Decides whether an environment is deleted now: a pure function of the objects that were read.
//!
//! The controller computes the end from the claim, its annotations and the function's note. The
//! status must announce the same end. Both can be older than a renewal, but not in the same way.

use std::fmt;

use function_paved_road::check::{self, Fields};
use function_paved_road::error::Error;
use function_paved_road::lifecycle::{
    Age, Lifecycle, LifecycleSettings, Note, OnExpiry, Plan, Requests, Situation, leaves_resources,
};
use function_paved_road::status::LifecycleStatus;
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::Environment;
use paved_client::git::{Evidence, Tool, applier};
use paved_client::lifecycle::cannot_stop;
use paved_client::names::PAUSED;
use serde::Deserialize;

/// The objects that decide about an environment.
pub(crate) struct Facts<'a> {
    /// The object that people apply: the claim, or the namespaced composite.
    pub environment: &'a DynamicObject,
    /// The composite; the same object in the namespaced API.
    pub composite: &'a DynamicObject,
    /// The function's note.
    pub note: Option<&'a str>,
    /// Whether a Usage protects the environment or its composite.
    pub is_used: bool,
    /// The lifecycle in the Settings of the API.
    pub settings: &'a LifecycleSettings,
    /// The wall clock.
    pub now: Timestamp,
}

/// The decision about an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its end has passed.
    Delete,
    /// Its end has passed, and Git would create it again.
    Stop,
    /// Its end has not come, or it is being deleted.
    Wait,
    /// Its end has passed, and it stays.
    Hold(Hold),
}

/// Why an environment stays after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Hold {
    /// The claim or its composite is paused: Crossplane would not finish a deletion.
    Paused,
    /// A Usage protects it.
    InUse,
    /// A tool applies it repeatedly.
    Applied(Tool),
    /// A tool applies it repeatedly, and it cannot be stopped.
    GitCannotStop,
    /// The status announces another end.
    StatusDiffers,
    /// `spec.lifecycle` has a field that is rejected, or the status or the note cannot be read.
    Unreadable,
    /// The Settings are missing.
    NoSettings,
    /// The clock differs from the API server's, or lies before the creation.
    WrongClock,
    /// The composite or the resource with the note was not found.
    NotFound,
    /// The controller has no right to read or delete it.
    Denied,
    /// The API server answered a read, the deletion or the stop with an error.
    Refused,
    /// The hour's deletions are used up.
    Limit,
    /// Its deletion or its stop is in progress, or it has just changed.
    InProgress,
}

impl Hold {
    /// The label of the metric.
    pub fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::InUse => "in-use",
            Self::Applied(Tool::ArgoCd) => "argo-cd",
            Self::Applied(Tool::Flux) => "flux",
            Self::Applied(Tool::Fleet) => "fleet",
            Self::Applied(Tool::ConfigSync) => "config-sync",
            Self::Applied(Tool::Kapp) => "kapp",
            Self::Applied(Tool::Unknown) => "applied",
            Self::GitCannotStop => "git-cannot-stop",
            Self::StatusDiffers => "status-differs",
            Self::Unreadable => "unreadable",
            Self::NoSettings => "no-settings",
            Self::WrongClock => "wrong-clock",
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Limit => "limit",
            Self::InProgress => "in-progress",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Paused => "the claim or its composite is paused",
            Self::InUse => "a Usage protects it",
            Self::Applied(tool) => {
                return write!(out, "{tool} owns it, and the claim does not have onExpiry: Delete");
            }
            Self::GitCannotStop => {
                "a tool applies it from Git, it cannot be stopped, and the claim does not have \
                 onExpiry: Delete"
            }
            Self::StatusDiffers => "its status announces another end than the controller computes",
            Self::Unreadable => "its lifecycle, the function's note or the Settings are invalid",
            Self::NoSettings => "the EnvironmentConfig with the Settings is missing",
            Self::WrongClock => {
                "the controller's clock differs from the API server's, or lies before its creation"
            }
            Self::NotFound => "its composite or the resource with the function's note is missing",
            Self::Denied => "the controller's role has no right to read or delete it",
            Self::Refused => "the API server answers a request about it with an error",
            Self::Limit => "deletionsPerHour is reached",
            Self::InProgress => "its deletion or its stop is in progress",
        })
    }
}

impl Facts<'_> {
    /// The decision.
    pub fn evaluate(&self) -> Verdict {
        self.decide().unwrap_or_else(Verdict::Hold)
    }

    fn decide(&self) -> Result<Verdict, Hold> {
        let both = [self.environment, self.composite];
        if both.iter().any(|object| object.metadata.deletion_timestamp.is_some()) {
            return Ok(Verdict::Wait);
        }
        let Some(announced) = self.announced()? else { return Ok(Verdict::Wait) };
        if announced > self.now {
            return Ok(Verdict::Wait);
        }
        if both.iter().any(|object| annotation(object, PAUSED) == Some("true")) {
            return Err(Hold::Paused);
        }
        if self.is_used {
            return Err(Hold::InUse);
        }
        let note = self.note.ok_or(Hold::NotFound)?;
        let note = Note::read(note).map_err(|_| Hold::Unreadable)?;
        let created = self.composite.metadata.creation_timestamp.as_ref().map(|time| time.0);
        if created.is_none_or(|created| self.now < created) {
            return Err(Hold::WrongClock);
        }
        // Crossplane copies a claim to its composite with some delay, and people may write to both.
        let [planned, composed] = both.map(|source| self.plan(source, &note, created));
        let (planned, composed) = (planned?, composed?);
        for plan in [&planned.plan, &composed.plan] {
            if plan.deletes_at.map(Timestamp::as_second) != Some(announced.as_second()) {
                return Err(Hold::StatusDiffers);
            }
        }
        self.by_owner(&planned)
    }

    /// The end that the status announces.
    fn announced(&self) -> Result<Option<Timestamp>, Hold> {
        let Some(status) = self.composite.data.pointer("/status/lifecycle") else {
            return Ok(None);
        };
        let status = LifecycleStatus::deserialize(status).map_err(|_| Hold::Unreadable)?;
        let Some(text) = status.deletes_at else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Hold::Unreadable)
    }

    /// The plan as the function computes it.
    fn plan(
        &self,
        source: &DynamicObject,
        note: &Note,
        created: Option<Timestamp>,
    ) -> Result<Planned, Hold> {
        let wishes = match source.data.pointer("/spec/lifecycle") {
            None => Lifecycle::default(),
            Some(wishes) => check::typed(wishes, "spec.lifecycle").map_err(|_| Hold::Unreadable)?,
        };
        let environment = Environment::from_object(self.composite);
        let cannot_stop = cannot_stop(&environment, source);
        let mut fields = Fields::default();
        let leaves_resources = source.data.get("spec").is_some_and(leaves_resources);
        let (path, maximum) = ("spec.lifecycle", self.settings.maximum);
        wishes.check(path, maximum, Some(note), cannot_stop, leaves_resources, &mut fields);
        // The function plans with its note then. The user may want a later end.
        fields.verdict(Error::InvalidSpec).map_err(|_| Hold::Unreadable)?;
        let age =
            Age { created, is_claimed: self.composite.data.pointer("/spec/claimRef").is_some() };
        let requests =
            Requests::read(|name| annotation(source, name), self.now).within(age, Some(note));
        let plan = Plan::new(&Situation {
            now: self.now,
            created,
            written: None,
            exists: true,
            wishes: Some(&wishes),
            settings: Some(self.settings),
            announced_maximum: None,
            requests: &requests,
            note: Some(note),
            cannot_stop,
            is_rejected: false,
            leaves_resources,
        });
        Ok(Planned { plan, own: wishes.on_expiry, can_stop: cannot_stop.is_none() })
    }

    /// An environment from Git is stopped instead, unless the claim itself asks for the deletion.
    /// Charts set the label of Argo CD's too, so that label alone does not outweigh `Delete` in
    /// Settings.
    fn by_owner(&self, planned: &Planned) -> Result<Verdict, Hold> {
        let Some(applier) = applier(&self.environment.metadata) else {
            return Ok(Verdict::Delete);
        };
        let is_weak = applier.evidence == Evidence::InstanceLabel;
        let is_wanted = planned.own == Some(OnExpiry::Delete)
            || is_weak && planned.plan.note.on_expiry == Some(OnExpiry::Delete);
        if is_wanted {
            return Ok(Verdict::Delete);
        }
        match planned.plan.stop {
            _ if !planned.can_stop => Err(Hold::GitCannotStop),
            None => Ok(Verdict::Stop),
            Some(_) => Err(Hold::Applied(applier.tool)),
        }
    }
}

/// A plan, and the action at the end that the claim itself asks for.
struct Planned {
    plan: Plan,
    own: Option<OnExpiry>,
    can_stop: bool,
}

fn annotation<'o>(object: &'o DynamicObject, name: &str) -> Option<&'o str> {
    object.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}
