//! The resources that an environment composes, by slot, and their changes.

use std::collections::BTreeMap;

use crossplane::names::SLOT;
use function_paved_road::function::Outside;
use function_proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::{Rendered, rendered};
use simulator::provider::{Pace, Provider};

use crate::redact::without_secrets;
use crate::subject::Subject;
use crate::{Rejected, function};

/// The maximum number of iterations. No environment needs as many.
const LIMIT: usize = 200;

/// The resource of each slot, without secrets.
pub type Slots = BTreeMap<String, Value>;

/// The resources that the function composes for the current state.
pub fn slots(subject: &Subject, now: Timestamp) -> Result<Slots, Rejected> {
    let mut slots = Slots::new();
    for mut resource in render(subject, now)?.resources {
        let slot =
            resource["metadata"]["annotations"][SLOT].as_str().unwrap_or_default().to_owned();
        without_secrets(&mut resource);
        slots.insert(slot, resource);
    }
    Ok(slots)
}

/// Slot and kind of all resources that will be composed over time.
pub fn parts(subject: &Subject, now: Timestamp) -> Result<Vec<(String, String)>, Rejected> {
    let composite = render(subject, now)?.composite;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = composite["status"]["resources"].as_array().into_iter().flatten();
    Ok(lines.map(|line| (text(&line["slot"]), text(&line["kind"]))).collect())
}

/// The status of the composite after the first call of the function.
pub fn status(subject: &Subject, now: Timestamp) -> Result<Value, Rejected> {
    Ok(render(subject, now)?.composite["status"].take())
}

fn render(subject: &Subject, now: Timestamp) -> Result<Rendered, Rejected> {
    let response = answer(subject, now)?;
    rendered(&subject.world, &response).map_err(|error| subject.fatal(error.to_string()))
}

/// The random numbers are always the same, so that generated values do not appear as changes.
fn answer(subject: &Subject, now: Timestamp) -> Result<RunFunctionResponse, Rejected> {
    let mut random = |buffer: &mut [u8]| buffer.fill(7);
    let outside = Outside { now, random: &mut random };
    let response = function::answer_with(&subject.world, &subject.step.input, outside)
        .map_err(|message| subject.fatal(message))?;
    subject.check(&response)?;
    Ok(response)
}

/// Alternates between Crossplane and the fake clouds until the objects no longer change.
pub fn settle(subject: &mut Subject, now: Timestamp) -> Result<(), Rejected> {
    let mut provider = Provider::new(Pace::Instant);
    for _ in 0..LIMIT {
        let response = answer(subject, now)?;
        let applied =
            subject.world.apply(&response).map_err(|error| subject.fatal(error.to_string()))?;
        let is_still = [applied.created, applied.changed, applied.deleted].concat().is_empty();
        if provider.answer(&mut subject.world).is_empty() && is_still {
            break;
        }
    }
    Ok(())
}
