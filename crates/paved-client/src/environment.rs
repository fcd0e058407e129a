//! An environment from its owner's view: the information on the claim or on the namespaced
//! composite. Reading it needs no other rights.

mod age;
mod diagnosis;
mod forms;
mod lifecycle;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod samples;

use std::collections::BTreeMap;

use crossplane::names::PAUSED;
use crossplane::text::{harmless, harmless_name};
use function_paved_road::apis::{self, ConnectionTarget, Info};
use function_paved_road::catalog::prices::Usd;
use function_paved_road::diagnosis::{Cause, Code};
use function_paved_road::function::CONDITION;
use function_paved_road::lifecycle::requested_at;
use function_paved_road::observe::spec_hash;
use function_paved_road::power::PowerState;
use function_paved_road::status::{Deleted, Kept, OnDeletion, ResourceStatus, is_common};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

pub use age::{age, spell, until};
pub use diagnosis::{Blocker, Diagnosis, with_causes};
pub use function_paved_road::observe::{OWNER, OWNER_LABEL};
pub use lifecycle::{Lifecycle, Price, power_word};

/// Status fields of some APIs that change only because another field changes.
const BOOKKEEPING: [&str; 2] = ["observedGeneration", "lastSyncTime"];

/// The label with the owner, or with a hash if a label cannot contain the login.
/// The prefixes of the field managers that write to an environment for Crossplane.
const CROSSPLANES: [&str; 2] = ["apiextensions.crossplane.io", "crossplane"];

/// The state of an environment or of a resource, as one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Ready.
    Good,
    /// In progress, or unknown.
    Busy,
    /// Rejected, broken or missing.
    Bad,
}

/// An environment, as last read.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct Environment {
    /// The kind of the object.
    pub kind: String,
    /// The group of the kind.
    pub group: String,
    /// The namespace. It is empty if unknown.
    pub namespace: String,
    /// The name. It is empty if unknown.
    pub name: String,
    /// The UID. It is empty if unknown.
    pub uid: String,
    /// The creation time.
    pub created: Option<Timestamp>,
    /// The time when its deletion began.
    pub deleted: Option<Timestamp>,
    /// The time of the last write by a manager other than Crossplane.
    pub edited: Option<Timestamp>,
    /// The owner from the annotation, the spec or the label.
    pub owner: Option<String>,
    /// The Composition that Crossplane selected.
    pub composition: Option<String>,
    /// The phase that the function reports: Pending, Provisioning, Ready, Failed, or an API's own
    /// phase.
    phase: String,
    /// The number of ready resources and of all resources: `4/6`.
    pub progress: String,
    /// The resources, as the status lists them.
    pub parts: Vec<ResourceStatus>,
    /// The resources that a deletion deletes and keeps. Schema revisions before 2 lack this field.
    pub on_deletion: Option<OnDeletion>,
    /// The power state; `None` in schema revisions before 3.
    pub power: Option<PowerState>,
    /// The end and the last stop; `None` in schema revisions before 3.
    pub lifecycle: Option<Lifecycle>,
    /// The estimated price; `None` if it is not known.
    pub price: Option<Price>,
    conditions: Vec<Condition>,
    /// The API's own status fields.
    pub fields: BTreeMap<String, Value>,
    paused: bool,
    /// Whether the status is for another spec, or does not follow the last request to stop or start.
    /// The function records a hash of the composed spec, and the time of the request.
    is_overdue: bool,
    generation: i64,
    /// Whether this process has just edited the environment.
    was_edited: bool,
}

/// A condition of an environment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason, in CamelCase.
    pub reason: String,
    /// The message for people.
    pub message: String,
    observed_generation: Option<i64>,
    last_transition_time: Option<Timestamp>,
}

impl Environment {
    /// Reads an object. Missing or malformed fields count as unknown.
    pub fn from_object(object: &DynamicObject) -> Self {
        let (metadata, data) = (&object.metadata, &object.data);
        let (api_version, kind) = object
            .types
            .as_ref()
            .map_or(("", ""), |types| (types.api_version.as_str(), types.kind.as_str()));
        let text = |path: &str| data.pointer(path).and_then(Value::as_str).map(harmless);
        let status = data.get("status").and_then(Value::as_object);
        let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str);
        let label = || metadata.labels.as_ref()?.get(OWNER_LABEL);
        let owner = || text("/spec/parameters/owner").or_else(|| text("/spec/owner"));
        let lifecycle = Lifecycle::from_data(data);
        let of_another_spec =
            text("/status/specHash").is_some_and(|composed| composed != spec_hash(&data["spec"]));
        let before_a_request =
            lifecycle.as_ref().is_some_and(|seen| seen.requested_at < requested_at(annotation));
        let parts =
            lenient::<ResourceStatus>(data, "/status/resources").map(harmless_part).collect();
        Self {
            kind: kind.to_owned(),
            group: crossplane::api_version::group(api_version).to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleted: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            edited: edited(object),
            owner: annotation(OWNER)
                .map(harmless_name)
                .or_else(owner)
                .or_else(|| label().map(|label| harmless_name(label))),
            composition: text("/spec/compositionRef/name")
                .or_else(|| text("/spec/crossplane/compositionRef/name")),
            phase: text("/status/phase").unwrap_or_default(),
            progress: text("/status/progress").unwrap_or_default(),
            parts: with_causes(parts, apis::for_environment_kind(kind).map(|api| api.info().name)),
            on_deletion: data
                .pointer("/status/onDeletion")
                .and_then(|plan| OnDeletion::deserialize(plan).ok())
                .map(harmless_plan),
            power: lifecycle::power(data),
            lifecycle,
            price: Price::from_status(&data["status"]),
            conditions: lenient::<Condition>(data, "/status/conditions")
                .map(harmless_condition)
                .collect(),
            fields: status
                .into_iter()
                .flatten()
                .filter(|(field, _)| !is_common(field) && !BOOKKEEPING.contains(&field.as_str()))
                .filter(|(field, value)| forms::is_valid(field, value))
                .map(|(field, value)| (field.clone(), value.clone()))
                .collect(),
            paused: annotation(PAUSED).is_some_and(|value| value == "true"),
            is_overdue: of_another_spec || before_a_request,
            generation: metadata.generation.unwrap_or_default(),
            was_edited: false,
        }
    }

    /// The result of an apply, compared with the object before. The environment counts as edited if
    /// its generation changed, even within the same second.
    pub fn applied(object: &DynamicObject, before: Option<&DynamicObject>) -> Self {
        let was_edited =
            before.is_some_and(|before| before.metadata.generation != object.metadata.generation);
        Self { was_edited, ..Self::from_object(object) }
    }

    /// The same environment with its current state.
    pub fn now(&self, object: &DynamicObject) -> Self {
        Self { was_edited: self.was_edited, ..Self::from_object(object) }
    }

    /// The kind, namespace and name, for messages.
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    fn holds(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// The condition with which the function rejects the spec or the Settings.
    pub fn refused(&self) -> Option<&Condition> {
        self.condition(CONDITION)
            .filter(|ours| ours.status == "False" && Code::rejection(&ours.reason).is_some())
    }

    /// Whether Crossplane and the function both report ready for this spec. Crossplane alone is not
    /// enough: a claim is synced as soon as its composite has the spec, even if that cannot be
    /// composed.
    pub fn is_ready(&self) -> bool {
        let all = ["Ready", "Synced", CONDITION].iter().all(|kind| self.holds(kind));
        all && self.deleted.is_none() && !self.paused && !self.is_overdue
    }

    /// Whether the environment is ready, and is neither stopped nor being stopped or started.
    pub fn is_running(&self) -> bool {
        use PowerState::{Starting, Stopped, Stopping};
        self.is_ready() && !matches!(self.power, Some(Stopped | Stopping | Starting))
    }

    /// The price of an hour that counts in the budget of its namespace: of a stopped environment
    /// the price while stopped.
    pub fn counted_price(&self) -> Option<Usd> {
        self.price.as_ref()?.now(self.power).parse().ok()
    }

    /// Whether the annotation `crossplane.io/paused` stops its reconciliation.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the function has composed the environment at least once.
    pub fn is_composed(&self) -> bool {
        !self.phase.is_empty()
    }

    /// Whether Crossplane has observed the newest spec. Otherwise the status is for an older one.
    pub fn is_current(&self) -> bool {
        self.condition("Synced").is_some_and(|synced| {
            synced.observed_generation.is_none_or(|observed| observed >= self.generation)
        })
    }

    /// Whether the status may still be for an older spec although Crossplane has observed the
    /// newest. A claim's status is copied from its composite with a delay. An edit during a
    /// composite's reconcile counts as observed when that reconcile ends. `now` is this machine's
    /// clock, which may differ from the cluster's by some seconds.
    pub fn may_lag(&self, now: Timestamp) -> bool {
        const RECENT: i64 = 60;
        // Crossplane also writes to a composite without an edit. That repeats a refusal of the
        // older spec with a new date.
        const REPEATED: i64 = 5;
        let is_edit = |edited: &Timestamp| self.was_edited || self.created != Some(*edited);
        let Some(edited) = self.edited.filter(is_edit) else { return false };
        let refused_since = self.refused().and_then(|refused| refused.last_transition_time);
        let recently = now.as_second() - edited.as_second() < RECENT;
        recently
            && refused_since.is_none_or(|since| since.as_second() <= edited.as_second() + REPEATED)
    }

    /// The state in one word.
    pub fn word(&self) -> &str {
        if self.deleted.is_some() {
            return "Deleting";
        }
        if let Some(refused) = self.refused() {
            return &refused.reason;
        }
        if self.paused {
            return "Paused";
        }
        match self.phase.as_str() {
            "" => "Pending",
            // The environment still works, but does not match its spec.
            "Ready" | "ScaledToZero" | "Stopped"
                if !self.is_ready() && self.hindrance().is_some() =>
            {
                "OutOfSync"
            }
            phase => phase,
        }
    }

    /// The state as one symbol.
    pub fn mark(&self) -> Mark {
        match self.word() {
            "Failed" => Mark::Bad,
            _ if self.refused().is_some() => Mark::Bad,
            _ if self.is_ready() => Mark::Good,
            _ => Mark::Busy,
        }
    }

    /// The condition with the reason why Crossplane cannot compose it, if any.
    fn hindrance(&self) -> Option<&Condition> {
        let conditions =
            ["Synced", "Responsive"].into_iter().filter_map(|kind| self.condition(kind));
        conditions
            .into_iter()
            .find(|condition| condition.status == "False" && !condition.message.is_empty())
    }

    /// The state in one sentence: the resources that it waits for, a failure, or a problem of
    /// Crossplane.
    pub fn sentence(&self) -> &str {
        if self.deleted.is_some() {
            return "is being deleted";
        }
        if self.paused {
            return "reconciliation is paused by the annotation crossplane.io/paused";
        }
        let told = self
            .hindrance()
            .or_else(|| self.condition(CONDITION))
            .or_else(|| self.condition("Ready"));
        told.map_or("", |condition| &condition.message)
    }

    /// The static information on its API.
    pub(crate) fn api(&self) -> Option<&'static Info> {
        apis::for_environment_kind(&self.kind).map(function_paved_road::apis::AnyApi::info)
    }

    /// The address at which users reach it. A stopped machine keeps its private address, but does
    /// not answer there.
    pub fn endpoint(&self) -> Option<String> {
        let Info { endpoints, connection_targets, .. } = self.api()?;
        let is_machine = connection_targets.contains(&ConnectionTarget::Machine);
        if is_machine && self.power == Some(PowerState::Stopped) {
            return None;
        }
        endpoints.iter().find_map(|field| self.fields.get(*field)?.as_str()).map(harmless)
    }

    /// The command that connects from this machine, if the endpoint is an address inside the
    /// cluster.
    pub fn connect(&self) -> Option<String> {
        let endpoint = self.endpoint()?;
        let host = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, rest)| rest);
        let host = host.split([':', '/']).next().unwrap_or_default();
        let is_inside = [".svc", ".cluster.local"].iter().any(|end| host.ends_with(end));
        let command =
            || harmless_name(&format!("paved connect {} -n {}", self.name, self.namespace));
        (is_inside && self.kind == "Environment").then(command)
    }

    /// The number of ready resources, and of existing ones. Neither number decreases during a
    /// creation.
    pub fn made(&self) -> (usize, usize) {
        let ready = self.parts.iter().filter(|part| part.ready).count();
        let exist = self
            .parts
            .iter()
            .filter(|part| part.external_name.is_some() || part.name.is_some())
            .count();
        (ready, exist)
    }
}

/// Whether the provider or the API server rejected a resource.
pub fn is_refused(part: &ResourceStatus) -> bool {
    part.reason.as_deref().is_some_and(|why| ["Failed", "NotAccepted"].contains(&why))
}

/// An object without its managed fields.
pub fn tidy(object: &DynamicObject) -> Value {
    // A DynamicObject was parsed from JSON, so serializing it cannot fail.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

/// The readable entries of a list.
fn lenient<'v, T: Deserialize<'v>>(data: &'v Value, path: &str) -> impl Iterator<Item = T> {
    let list = data.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|entry| T::deserialize(entry).ok())
}

fn harmless_part(part: ResourceStatus) -> ResourceStatus {
    ResourceStatus {
        slot: harmless(&part.slot),
        kind: harmless(&part.kind),
        name: part.name.map(|name| harmless(&name)),
        external_name: part.external_name.map(|name| harmless(&name)),
        reason: part.reason.map(|reason| harmless(&reason)),
        message: part.message.map(|message| harmless(&message)),
        cause: part.cause.map(harmless_cause),
        ..part
    }
}

fn harmless_cause(Cause { code, params }: Cause) -> Cause {
    let params =
        params.into_iter().map(|(name, value)| (harmless_name(&name), harmless_name(&value)));
    Cause { code, params: params.collect() }
}

fn harmless_plan(plan: OnDeletion) -> OnDeletion {
    let text = |text: Option<String>| text.map(|text| harmless_name(&text));
    let deletes = plan.deletes.into_iter().map(|one| Deleted {
        slot: harmless_name(&one.slot),
        kind: harmless_name(&one.kind),
        name: text(one.name),
        ..one
    });
    let keeps = plan.keeps.into_iter().map(|one| Kept {
        slot: harmless_name(&one.slot),
        kind: harmless_name(&one.kind),
        name: text(one.name),
        until: text(one.until),
    });
    OnDeletion { deletes: deletes.collect(), keeps: keeps.collect() }
}

fn harmless_condition(condition: Condition) -> Condition {
    Condition {
        reason: harmless(&condition.reason),
        message: harmless(&condition.message),
        ..condition
    }
}

fn edited(object: &DynamicObject) -> Option<Timestamp> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let by_people = entries.filter(|entry| {
        let manager = entry.manager.as_deref().unwrap_or_default();
        entry.subresource.is_none() && !CROSSPLANES.iter().any(|theirs| manager.starts_with(theirs))
    });
    by_people.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

#[cfg(test)]
mod tests;
