//! The output of `crossplane composition render -x -r`.

use function_proto::v1::RunFunctionResponse;
use serde_json::{Value, json};

use super::compose::{self, ComposeError};
use super::{Severity, World, status};
use crossplane::json::{at, overlay, set};

/// The documents in the output of render, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The XR as given, with the new status and references.
    pub composite: Value,
    /// The resources that Crossplane would apply, by slot.
    pub resources: Vec<Value>,
    /// The events that Crossplane would record, as `kind: Result`.
    pub results: Vec<Value>,
}

impl Rendered {
    /// All documents: the composite, the resources, the results.
    pub fn documents(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.composite).chain(&self.resources).chain(&self.results)
    }
}

/// The output of render for a response to this world, field by field. Condition times are
/// 2024-01-01T00:00:00Z. For a fatal response, render prints no documents, while the results here
/// are the events that Crossplane would record.
pub fn rendered(world: &World, response: &RunFunctionResponse) -> Result<Rendered, ComposeError> {
    let prepared = compose::prepare(world, response)?;
    let mut composite = world.given.clone();
    let mut after = json!({"status": status::composed(world, response, &prepared)});
    let path: Vec<&str> = world.machinery().iter().copied().chain(["resourceRefs"]).collect();
    let objects = prepared.values().map(|resource| &resource.object);
    set(&mut after, &path, compose::references(objects, world.namespace().is_some()));
    overlay(&mut composite, &after);
    set_times(&mut composite);
    let results = status::events(world, response, &prepared);
    let results = results.into_iter().map(|event| {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        json!({
            "apiVersion": "render.crossplane.io/v1beta1", "kind": "Result",
            "severity": severity, "reason": event.reason, "message": event.message,
        })
    });
    let results = results.collect();
    let resources = prepared.into_values().map(|resource| {
        let mut object = resource.object;
        set_times(&mut object);
        object
    });
    Ok(Rendered { composite, resources: resources.collect(), results })
}

/// Render gives every condition the same time, so that its output is stable.
fn set_times(object: &mut Value) {
    if at(object, &["status", "conditions"]).is_some_and(Value::is_array) {
        let conditions = object["status"]["conditions"].as_array_mut().into_iter().flatten();
        for condition in conditions.filter(|condition| condition.is_object()) {
            condition["lastTransitionTime"] = json!("2024-01-01T00:00:00Z");
        }
    }
}
