//! Decides whether an environment is deleted now: a pure function of the objects that were read.
//!
//! The controller computes the end from the claim, its annotations and the function's note. The
//! status must announce the same end. Both can be older than a renewal, but not in the same way.

use std::fmt;

use function_paved_road::check::{self, Fields};
use function_paved_road::compose::LifecycleStatus;
use function_paved_road::error::Error;
use function_paved_road::lifecycle::{
    Age, Lifecycle, LifecycleSettings, Note, OnExpiry, Plan, Requests, Situation, leaves_resources,
};
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::Environment;
use paved_client::lifecycle::cannot_stop;
use paved_client::names::{FLUX, IN_USE, PAUSED, git_tool};
use serde::Deserialize;

/// The objects that decide about an environment.
pub(crate) struct Facts<'a> {
    /// The object that people apply: the claim, or the namespaced composite.
    pub environment: &'a DynamicObject,
    /// The composite; the same object in the namespaced API.
    pub composite: &'a DynamicObject,
    /// The function's note.
    pub note: Option<&'a str>,
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
    /// Argo CD owns it.
    ArgoCd,
    /// Flux owns it.
    Flux,
    /// Argo CD or Flux owns it, and it cannot be stopped.
    GitCannotStop,
    /// The status announces another end.
    StatusDiffers,
    /// `spec.lifecycle` has a field that is rejected, or the status or the note cannot be read.
    Unreadable,
    /// The clock lies before the creation.
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
            Self::ArgoCd => "argo-cd",
            Self::Flux => "flux",
            Self::GitCannotStop => "git-cannot-stop",
            Self::StatusDiffers => "status-differs",
            Self::Unreadable => "unreadable",
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
            Self::ArgoCd => "Argo CD owns it, and the claim does not have onExpiry: Delete",
            Self::Flux => "Flux owns it, and the claim does not have onExpiry: Delete",
            Self::GitCannotStop => {
                "Argo CD or Flux owns it, it cannot be stopped, and the claim does not have \
                 onExpiry: Delete"
            }
            Self::StatusDiffers => "its status announces another end than the controller computes",
            Self::Unreadable => "its lifecycle, the function's note or the Settings are invalid",
            Self::WrongClock => "the clock lies before its creation",
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
        if both.iter().any(|object| label(object, IN_USE).is_some()) {
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
    fn by_owner(&self, planned: &Planned) -> Result<Verdict, Hold> {
        let Some(owner) = git_owner(self.environment) else { return Ok(Verdict::Delete) };
        if planned.own == Some(OnExpiry::Delete) {
            return Ok(Verdict::Delete);
        }
        match planned.plan.stop {
            _ if !planned.can_stop => Err(Hold::GitCannotStop),
            None => Ok(Verdict::Stop),
            Some(_) => Err(owner),
        }
    }
}

/// A plan, and the action at the end that the claim itself asks for.
struct Planned {
    plan: Plan,
    own: Option<OnExpiry>,
    can_stop: bool,
}

/// The label for objects that Argo CD tracks before its version 3. Charts write the label too.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The annotation of `helm install` on its objects.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// The tool that creates an environment again from Git.
fn git_owner(object: &DynamicObject) -> Option<Hold> {
    if let Some(tool) = git_tool(&object.metadata) {
        return Some(if tool == FLUX { Hold::Flux } else { Hold::ArgoCd });
    }
    let is_release =
        label(object, HELM_RELEASE).is_some() || annotation(object, HELM_RELEASE).is_some();
    (label(object, INSTANCE).is_some() && !is_release).then_some(Hold::ArgoCd)
}

fn annotation<'o>(object: &'o DynamicObject, name: &str) -> Option<&'o str> {
    object.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn label<'o>(object: &'o DynamicObject, name: &str) -> Option<&'o str> {
    object.metadata.labels.as_ref()?.get(name).map(String::as_str)
}
