//! What changes: in the claim, as the API server would keep it.

use kube::api::DynamicObject;
use serde_json::Value;

use super::plan::Step;
use crate::Console;
use crate::changes::between;
use crate::documents::{tidy, yaml};
use crate::failure::Failure;

/// Prints the changes of a step; nothing where there are none.
pub(super) fn print(step: &Step, console: &mut Console<'_>) -> Result<(), Failure> {
    let before = step.live.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let after = step.rehearsed.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let changes = between(&step.title(), &before, &after);
    write!(console.out, "{changes}")?;
    Ok(())
}

/// An object without status and bookkeeping: what people write.
fn text(object: &DynamicObject) -> Result<String, Failure> {
    let mut value = tidy(object);
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for bookkeeping in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(bookkeeping);
        }
    }
    yaml(&value)
}
