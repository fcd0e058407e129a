//! The composite's conditions and the recorded events.

use std::collections::BTreeMap;

use crossplane::Scope;
use crossplane::json::{at, set, text};
use function_proto::structs;
use function_proto::v1::{
    Ready, Resource, Result as FunctionResult, RunFunctionResponse, Severity as Grade, Status,
    Target,
};
use serde_json::{Value, json};

use super::World;
use super::compose::Prepared;

/// Crossplane's own conditions. A function cannot set these.
const SYSTEM: [&str; 5] = ["Ready", "Synced", "Healthy", "UpToDate", "Responsive"];

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information only.
    Normal,
    /// A problem.
    Warning,
}

/// An event that Crossplane records on the XR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The severity.
    pub severity: Severity,
    /// One word: `ComposeResources`.
    pub reason: String,
    /// The description of the event.
    pub message: String,
}

/// The first fatal result of a response.
pub(super) fn fatal(response: &RunFunctionResponse) -> Option<&FunctionResult> {
    response.results.iter().find(|result| result.severity() == Grade::Fatal)
}

/// The composite's conditions, including the condition Responsive.
pub(super) fn with_responsive(world: &World) -> Value {
    let mut conditions = Conditions::from_world(world);
    conditions.mark(world, "Responsive", "True", "WatchCircuitClosed", "");
    conditions.0.into()
}

/// The XR's status after a response was applied.
pub(super) fn composed(
    world: &World,
    response: &RunFunctionResponse,
    prepared: &BTreeMap<String, Prepared>,
) -> Value {
    let desired = response.desired.as_ref().and_then(|desired| desired.composite.as_ref());
    let resource = desired
        .and_then(|composite| composite.resource.clone())
        .map(structs::object)
        .unwrap_or_default();
    let mut status = resource.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions = Conditions::from_world(world);
    conditions.mark(world, "Responsive", "True", "WatchCircuitClosed", "");
    let for_claim = conditions.take(world, response);
    conditions.mark(world, "Synced", "True", "ReconcileSuccess", "");
    let unready: Vec<&str> = prepared
        .iter()
        .filter(|(_, resource)| !resource.ready)
        .map(|(slot, _)| slot.as_str())
        .collect();
    let stated = desired.map_or(Ready::Unspecified, Resource::ready);
    match stated {
        Ready::True => conditions.mark(world, "Ready", "True", "Available", ""),
        Ready::False => conditions.mark(world, "Ready", "False", "Creating", ""),
        Ready::Unspecified if unready.is_empty() => {
            conditions.mark(world, "Ready", "True", "Available", "");
        }
        Ready::Unspecified => {
            let message = format!("Unready resources: {}", some(&unready));
            conditions.mark(world, "Ready", "False", "Creating", &message);
        }
    }
    set(&mut status, &["conditions"], conditions.0.into());
    if world.scope == Scope::LegacyCluster && !for_claim.is_empty() {
        set(&mut status, &["claimConditionTypes"], json!(for_claim));
    }
    status
}

/// The XR's status after a failure: only conditions change. Custom conditions that the response did
/// not set become Unknown.
pub(super) fn failed(world: &World, response: &RunFunctionResponse, why: &str) -> Value {
    let mut conditions = Conditions::from_world(world);
    conditions.mark(world, "Responsive", "True", "WatchCircuitClosed", "");
    conditions.mark(
        world,
        "Synced",
        "False",
        "ReconcileError",
        &format!("cannot compose resources: {why}"),
    );
    let mut for_claim = claim_condition_types(world);
    for kind in conditions.take(world, response) {
        if !for_claim.contains(&kind) {
            for_claim.push(kind);
        }
    }
    let seen: Vec<&str> =
        response.conditions.iter().map(|condition| condition.r#type.as_str()).collect();
    let unseen = |condition: &&Value| {
        let kind = text(condition, &["type"]).unwrap_or_default();
        !SYSTEM.contains(&kind) && !seen.contains(&kind)
    };
    let unseen: Vec<Value> =
        conditions.0.iter().filter(unseen).map(|condition| condition["type"].clone()).collect();
    for kind in unseen.iter().filter_map(Value::as_str) {
        let message =
            "A fatal error occurred before the status of this condition could be determined.";
        conditions.mark(world, kind, "Unknown", "FatalError", message);
    }
    let mut status = at(&world.composite, &["status"]).cloned().unwrap_or_else(|| json!({}));
    set(&mut status, &["conditions"], conditions.0.into());
    if world.scope == Scope::LegacyCluster && !for_claim.is_empty() {
        set(&mut status, &["claimConditionTypes"], json!(for_claim));
    }
    status
}

/// The events of an applied response, in Crossplane's order. Crossplane's own events are in the
/// order of slots.
pub(super) fn events(
    world: &World,
    response: &RunFunctionResponse,
    prepared: &BTreeMap<String, Prepared>,
) -> Vec<Event> {
    let mut events: Vec<Event> = selected(world).into_iter().collect();
    events.extend(response.results.iter().map(|result| result_event(world, result)));
    for (slot, asked) in
        prepared.iter().filter_map(|(slot, resource)| Some((slot, resource.overridden.as_ref()?)))
    {
        let own = world.namespace().unwrap_or_default();
        let message = format!(
            "cannot create composed resource {slot:?} in namespace {asked:?}, using XR namespace {own:?} instead"
        );
        events.push(Event {
            severity: Severity::Warning,
            reason: "NamespaceOverridden".to_owned(),
            message,
        });
    }
    for (slot, _) in prepared.iter().filter(|(_, resource)| !resource.ready) {
        let message = format!("Composed resource {slot:?} is not yet ready");
        events.push(Event {
            severity: Severity::Normal,
            reason: "ComposeResources".to_owned(),
            message,
        });
    }
    events
}

/// The event for a newly selected Composition, if the XR did not have the reference before.
fn selected(world: &World) -> Option<Event> {
    let path: Vec<&str> = world.machinery().iter().copied().chain(["compositionRef"]).collect();
    let chosen = at(&world.composite, &path)?;
    if world.announced || at(&world.given, &path) == Some(chosen) {
        return None;
    }
    let message = format!("Successfully selected composition: {}", text(chosen, &["name"])?);
    Some(Event { severity: Severity::Normal, reason: "SelectComposition".to_owned(), message })
}

fn result_event(world: &World, result: &FunctionResult) -> Event {
    let step = format!("Pipeline step {:?}", world.step);
    let reason = result.reason.clone().filter(|reason| !reason.is_empty());
    let (severity, message) = match result.severity() {
        Grade::Normal => (Severity::Normal, format!("{step}: {}", result.message)),
        Grade::Warning | Grade::Fatal => (Severity::Warning, format!("{step}: {}", result.message)),
        Grade::Unspecified => {
            let what = "returned a result of unknown severity (assuming warning)";
            (Severity::Warning, format!("{step} {what}: {}", result.message))
        }
    };
    Event { severity, reason: reason.unwrap_or_else(|| "ComposeResources".to_owned()), message }
}

/// The same as Crossplane's `StableNAndSomeMore` with three names.
fn some(names: &[&str]) -> String {
    match names {
        [first, second, third] => format!("{first}, {second}, and {third}"),
        [first, second, third, rest @ ..] => {
            format!("{first}, {second}, {third}, and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

pub(super) fn claim_condition_types(world: &World) -> Vec<String> {
    let types = at(&world.composite, &["status", "claimConditionTypes"]).and_then(Value::as_array);
    types.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

struct Conditions(Vec<Value>);

impl Conditions {
    fn from_world(world: &World) -> Self {
        let conditions = at(&world.composite, &["status", "conditions"]).and_then(Value::as_array);
        Self(conditions.cloned().unwrap_or_default())
    }

    /// Sets one of Crossplane's own conditions, with the XR's generation.
    fn mark(&mut self, world: &World, kind: &str, status: &str, reason: &str, message: &str) {
        let generation =
            at(&world.composite, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        self.put(world, kind, status, reason, message, generation);
    }

    /// Sets a function's conditions. Returns the condition types for the claim.
    fn take(&mut self, world: &World, response: &RunFunctionResponse) -> Vec<String> {
        let mut for_claim = Vec::new();
        for condition in response
            .conditions
            .iter()
            .filter(|condition| !SYSTEM.contains(&condition.r#type.as_str()))
        {
            let status = match condition.status() {
                Status::ConditionTrue => "True",
                Status::ConditionFalse => "False",
                Status::ConditionUnknown | Status::ConditionUnspecified => "Unknown",
            };
            let message = condition.message.as_deref().unwrap_or_default();
            self.put(world, &condition.r#type, status, &condition.reason, message, 0);
            if condition.target() == Target::CompositeAndClaim
                && !for_claim.contains(&condition.r#type)
            {
                for_claim.push(condition.r#type.clone());
            }
        }
        for_claim
    }

    /// Sets a condition. An equal condition keeps its time.
    fn put(
        &mut self,
        world: &World,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
        generation: i64,
    ) {
        let mut condition = json!({
            "type": kind, "status": status, "reason": reason, "lastTransitionTime": world.now.to_string(),
        });
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
        if generation != 0 {
            condition["observedGeneration"] = json!(generation);
        }
        match self.0.iter_mut().find(|existing| existing["type"] == kind) {
            Some(existing) if same(existing, &condition) => {}
            Some(existing) => *existing = condition,
            None => self.0.push(condition),
        }
    }
}

fn same(a: &Value, b: &Value) -> bool {
    let generations = (a.get("observedGeneration"), b.get("observedGeneration"));
    let same_generation = !matches!(generations, (Some(a), Some(b)) if a != b);
    let fields = ["type", "status", "reason"];
    same_generation
        && fields.iter().all(|key| a.get(key) == b.get(key))
        && text(a, &["message"]) == text(b, &["message"])
}
