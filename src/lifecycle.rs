//! The lifecycle of an environment: when it ends, and whether it runs.
//!
//! A [`Plan`] is a pure function of the claim's wishes, the Settings, the requests in annotations,
//! the clock and a [`Note`]. The note is an annotation on the environment's first resource. It
//! keeps decisions that later Settings or a later clock must not change: the start of the ttl, the
//! defaults that the environment was made with, and granted renewals. Status may be lost, so no
//! decision depends on it.

mod note;
mod plan;
mod requests;
mod span;
#[cfg(test)]
mod tests;

use std::fmt;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::check::{Fields, Refused};
use crate::error::FieldError;

pub use note::{NOTE, Note};
pub use plan::{Plan, Situation, Stop};
pub use requests::{
    Age, RENEWED_AT, RENEWED_FOR, REQUESTS, Requests, SKEW, STARTED_AT, STOPPED_AT, requested_at,
};
pub use span::{Span, Unit};

/// The schema revision that brought the lifecycle. Compositions of older revisions carry no field of
/// it. The end of an environment with a note stays.
pub const SINCE: u32 = 3;

/// When an environment ends, and whether it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.keepStoppedFor) || !has(self.onExpiry) || self.onExpiry != 'Delete'")
        .message("found onExpiry: Delete beside keepStoppedFor; allowed: Stop, or no keepStoppedFor, \
                  because Delete deletes at once")
)]
pub struct Lifecycle {
    /// Time to live, for example 8h or 14d, or never. The time starts when the environment is
    /// created or when this value changes. Default and maximum: Settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Action at the end of the time to live. Default: Settings, otherwise Stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Time from a stop by expiry to the deletion, for example 14d, or never. Default: Settings,
    /// otherwise never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_stopped_for: Option<Span>,
    /// Power state that the user wants.
    #[serde(default)]
    pub power: Power,
}

/// Defaults and limits of the lifecycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LifecycleSettings {
    /// Time to live of environments with a claim without one, for example 8h. Default: the maximum,
    /// otherwise never. A change applies to new environments only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Longest time to live that a claim or a renewal may ask for. A maximum forbids never. A
    /// change applies to new environments and to renewals. Default: no maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Span>,
    /// Action at the end of the time to live. Default: Stop. A change applies to new environments
    /// only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Time from a stop by expiry to the deletion. Default: never. A change applies to new
    /// environments only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_stopped_for: Option<Span>,
}

/// Action at the end of the time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnExpiry {
    /// Stop the environment. Its disks and databases stay; an instance store is lost.
    Stop,
    /// Delete the environment with its data.
    Delete,
}

/// Power state that the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Power {
    /// The environment runs.
    #[default]
    Running,
    /// The environment is stopped. Its disks and databases stay; an instance store is lost.
    Stopped,
}

/// Source of a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TtlFrom {
    /// The claim has a time to live.
    Claim,
    /// The Settings had a default when the environment was created.
    Settings,
}

/// The reason why an API cannot stop; `None` if it can.
pub type CannotStop = Option<&'static str>;

impl Lifecycle {
    /// Checks the fields below `path`, for example `spec.lifecycle`, under the maximum of Settings.
    /// A time to live that `note` has accepted stays valid under a lower maximum.
    pub fn check(
        &self,
        path: &str,
        maximum: Option<Span>,
        note: Option<&Note>,
        cannot_stop: CannotStop,
        leaves_resources: bool,
        fields: &mut Fields,
    ) {
        if leaves_resources && self.on_expiry == Some(OnExpiry::Delete) {
            let allowed = "Stop, because a deletion with deletionPolicy: Orphan leaves the \
                           resources running in the cloud";
            fields.refuse(format!("{path}.onExpiry"), Refused::new("Delete", allowed));
        }
        let is_accepted = note.is_some_and(|note| note.ttl == self.ttl);
        if let Some(ttl) = self.ttl.filter(|_| !is_accepted) {
            fields.check(format!("{path}.ttl"), within(ttl, maximum));
        }
        if let Some(reason) = cannot_stop {
            if self.power == Power::Stopped {
                let refused = Refused::new("Stopped", format!("Running, because {reason}"));
                fields.refuse(format!("{path}.power"), refused);
            }
            if self.on_expiry == Some(OnExpiry::Stop) {
                let allowed = format!(
                    "no value, which only marks the environment as expired, or Delete, because \
                     {reason}"
                );
                let refused = Refused::new("Stop", allowed);
                fields.refuse(format!("{path}.onExpiry"), refused);
            }
        }
        check_deletion(path, self.on_expiry, self.keep_stopped_for, fields);
    }

    /// The fields below `path` that have no effect, with the reason and the next step. `note` has
    /// the time to live and the action in force.
    pub fn without_effect(
        &self,
        path: &str,
        note: &Note,
        cannot_stop: CannotStop,
    ) -> Vec<FieldError> {
        let ends = note.ttl.and_then(Span::length).is_some();
        let endless = match self.ttl.or(note.ttl) {
            Some(Span::Never) => (
                "the time to live is never",
                "Set a duration in spec.lifecycle.ttl, or remove the field",
            ),
            _ => (
                "the environment has no time to live",
                "Set spec.lifecycle.ttl, or remove the field",
            ),
        };
        let of_action = (!ends).then_some(endless);
        let of_retention = match (note.on_expiry, cannot_stop) {
            _ if !ends => Some(endless),
            (Some(OnExpiry::Delete), _) if self.on_expiry.is_none() => Some((
                "Settings delete the environment at its end",
                "Set onExpiry: Stop, or remove the field",
            )),
            (_, Some(reason)) => Some((reason, "Remove the field")),
            _ => None,
        };
        let field = |name: &str, found: Option<String>, why: Option<(&str, &str)>| {
            let (found, (reason, step)) = found.zip(why)?;
            let message = format!("found {found:?}, which has no effect, because {reason}. {step}");
            Some(FieldError { path: format!("{path}.{name}"), message })
        };
        let action = self.on_expiry.map(|action| action.to_string());
        let kept = self.keep_stopped_for.map(|kept| kept.to_string());
        let fields =
            [field("onExpiry", action, of_action), field("keepStoppedFor", kept, of_retention)];
        fields.into_iter().flatten().collect()
    }
}

/// Whether the deletion of an environment with this spec leaves its resources in the cloud.
pub fn leaves_resources(spec: &Value) -> bool {
    spec.pointer("/parameters/deletionPolicy").is_some_and(|policy| policy == "Orphan")
}

impl LifecycleSettings {
    /// Checks the fields below `path`, for example `settings.gpuWorkspace.lifecycle`.
    pub fn check(&self, path: &str, fields: &mut Fields) {
        if let Some(ttl) = self.ttl {
            fields.check(format!("{path}.ttl"), within(ttl, self.maximum));
        }
        if self.maximum == Some(Span::Never) {
            let refused = Refused::new("never", "a duration, or no maximum at all");
            fields.refuse(format!("{path}.maximum"), refused);
        }
        check_deletion(path, self.on_expiry, self.keep_stopped_for, fields);
    }

    /// The fields below `path` that have an effect on few environments only: the action without a
    /// time to live. A claim may have one.
    pub fn without_effect(&self, path: &str) -> Vec<FieldError> {
        let ends = self.ttl.or(self.maximum).and_then(Span::length).is_some();
        let action = self.on_expiry.map(|action| ("onExpiry", action.to_string()));
        let kept = self.keep_stopped_for.map(|kept| ("keepStoppedFor", kept.to_string()));
        let warn = |(name, found): (&str, String)| FieldError {
            path: format!("{path}.{name}"),
            message: format!(
                "found {found:?}, which has no effect on environments without a ttl in their claim, \
                 because these Settings have no ttl. Set a ttl or a maximum, or remove the field"
            ),
        };
        [action, kept].into_iter().flatten().filter(|_| !ends).map(warn).collect()
    }
}

impl fmt::Display for OnExpiry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// A span that is no longer than the maximum.
fn within(span: Span, maximum: Option<Span>) -> Result<(), Refused> {
    match maximum {
        Some(maximum) if span.exceeds(maximum) => Err(Refused::new(
            &span.to_string(),
            format!("at most {maximum}, the maximum in Settings"),
        )),
        _ => Ok(()),
    }
}

/// A deletion at the end makes a retention impossible.
fn check_deletion(
    path: &str,
    on_expiry: Option<OnExpiry>,
    keep_stopped_for: Option<Span>,
    fields: &mut Fields,
) {
    if let (Some(OnExpiry::Delete), Some(kept)) = (on_expiry, keep_stopped_for) {
        let found = format!("\"Delete\" beside keepStoppedFor: {kept}");
        let allowed = "Stop, or no keepStoppedFor, because Delete deletes at once".to_owned();
        fields.refuse(format!("{path}.onExpiry"), Refused { found, allowed });
    }
}
