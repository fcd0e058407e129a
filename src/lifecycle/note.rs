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
    /// The latest request to start that was seen.
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
