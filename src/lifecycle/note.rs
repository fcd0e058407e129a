//! Decisions that an environment keeps.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{LifecycleSettings, OnExpiry, Power, Span, TtlFrom};
use crate::pricing::Price;

/// The annotation on an environment's first resource that has the note.
pub const NOTE: &str = "paved-road.fn.crossplane.io/lifecycle";

/// Decisions that an environment keeps, as JSON in an annotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// The time to live in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// The source of the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_from: Option<TtlFrom>,
    /// The start of the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The earliest expiry after a change of the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The action in force at the end of the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// The time in force from a stop by expiry to the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_stopped_for: Option<Span>,
    /// The earliest deletion after a change of the action or of the retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes_not_before: Option<Timestamp>,
    /// The defaults of the environment.
    pub defaults: Defaults,
    /// The last renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Grant>,
    /// The last start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Grant>,
    /// The last change of `spec.lifecycle.power`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerChange>,
    /// The latest requests that were obeyed. A note of an older release has none.
    #[serde(skip_serializing_if = "Obeyed::is_empty")]
    pub obeyed: Obeyed,
    /// The latest start, by request or by a change of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// The time of the request to start that is still open: see
    /// [`Plan::opened`](super::Plan::opened).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Timestamp>,
    /// Whether the environment was to be stopped in the last call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// The time from which an environment that was stopped by its expiry is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired_at: Option<Timestamp>,
    /// Fingerprint of the sentences about ignored annotations, which are reported once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// The estimated price, which later list prices must not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// Defaults of Settings, as they were when the environment was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Defaults {
    /// Time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Action at the end of the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Time from a stop by expiry to the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_stopped_for: Option<Span>,
}

/// The latest requests to start and to stop that were obeyed. They hold although their annotations
/// are lost: an absent annotation is not a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Obeyed {
    /// Time of the latest request to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// Time of the latest request to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Timestamp>,
}

impl Obeyed {
    /// Whether no request was obeyed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The time of the latest request.
    pub fn latest(&self) -> Option<Timestamp> {
        self.started.max(self.stopped)
    }
}

/// A request that moved the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The time of the request.
    pub at: Timestamp,
    /// The earliest expiry after the request.
    pub until: Timestamp,
}

/// A change of the wanted power state in the claim.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerChange {
    /// The wanted power state.
    pub to: Power,
    /// The time when the function saw the change.
    pub at: Timestamp,
    /// The latest request to stop or start at that time. Later requests come after the change, even
    /// if a clock was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
}

impl Note {
    /// Whether an earlier call obeyed a request to start at this time, or a later one. The note of an
    /// older release has the time of the latest start only, also of a start by the claim.
    pub(super) fn has_started(&self, at: Timestamp) -> bool {
        Some(at) <= self.obeyed.started || Some(at) == self.started
    }

    /// Whether an earlier call obeyed a request to stop at this time, or a later one. The note of an
    /// older release says only that the environment was stopped.
    pub(super) fn has_stopped(&self, at: Timestamp) -> bool {
        Some(at) <= self.obeyed.stopped || self.stopping && self.obeyed.is_empty()
    }

    /// Whether an earlier call granted a renewal at this time, or a later one.
    pub(super) fn has_renewed(&self, at: Timestamp) -> bool {
        self.renewal.is_some_and(|renewal| at <= renewal.at)
    }

    /// Reads the annotation.
    ///
    /// # Errors
    /// The reason why the text is not a note.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the annotation. `None` if the note is empty.
    pub fn write(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        serde_json::to_string(self).ok()
    }
}

impl Defaults {
    /// The defaults of a new environment. A maximum forbids an environment without an end, so it is
    /// the default of a time to live, too.
    pub fn from_settings(settings: &LifecycleSettings) -> Self {
        Self {
            ttl: settings.ttl.or(settings.maximum),
            on_expiry: settings.on_expiry,
            keep_stopped_for: settings.keep_stopped_for,
        }
    }
}
