//! What is composed of an environment, slot by slot, and how that changes.

use std::collections::{BTreeMap, BTreeSet};

use crossplane::names::SLOT;
use function_paved_road::function::Outside;
use function_sdk_rust::proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::{Rendered, rendered};
use simulator::provider::{Pace, Provider};

use crate::Console;
use crate::changes::between;
use crate::discreet::without_secrets;
use crate::documents::yaml;
use crate::failure::Failure;
use crate::function;
use crate::subject::Subject;

/// More turns than any environment needs.
const LIMIT: usize = 200;

/// Each slot's resource as YAML, without secrets.
pub(crate) type Slots = BTreeMap<String, String>;

/// What the function composes now.
pub(crate) fn slots(subject: &Subject, now: Timestamp, console: &mut Console<'_>) -> Result<Slots, Failure> {
    let mut slots = Slots::new();
    for mut resource in render(subject, now, console)?.resources {
        let slot = resource["metadata"]["annotations"][SLOT].as_str().unwrap_or_default().to_owned();
        without_secrets(&mut resource);
        slots.insert(slot, yaml(&resource)?);
    }
    Ok(slots)
}

/// Slot and kind of all that will be composed sooner or later.
pub(crate) fn parts(
    subject: &Subject,
    now: Timestamp,
    console: &mut Console<'_>,
) -> Result<Vec<(String, String)>, Failure> {
    let composite = render(subject, now, console)?.composite;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = composite["status"]["resources"].as_array().into_iter().flatten();
    Ok(lines.map(|line| (text(&line["slot"]), text(&line["kind"]))).collect())
}

fn render(subject: &Subject, now: Timestamp, console: &mut Console<'_>) -> Result<Rendered, Failure> {
    let response = answer(subject, now, console)?;
    rendered(&subject.world, &response).map_err(|error| subject.fatal(error.to_string()))
}

/// The random numbers are the same each time: what is generated is no change.
fn answer(
    subject: &Subject,
    now: Timestamp,
    console: &mut Console<'_>,
) -> Result<RunFunctionResponse, Failure> {
    let mut random = |buffer: &mut [u8]| buffer.fill(7);
    let outside = Outside { now, random: &mut random };
    let response = function::answer_with(&subject.world, &subject.step.input, outside)
        .map_err(|message| subject.fatal(message))?;
    subject.check(&response, console)?;
    Ok(response)
}

/// Lets core and the clouds of a preview take turns until no more changes.
pub(crate) fn settle(
    subject: &mut Subject,
    now: Timestamp,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut provider = Provider::new(Pace::Instant);
    for _ in 0..LIMIT {
        let response = answer(subject, now, console)?;
        let applied = subject.world.apply(&response).map_err(|error| subject.fatal(error.to_string()))?;
        let is_still = [applied.created, applied.changed, applied.deleted].concat().is_empty();
        if provider.answer(&mut subject.world).is_empty() && is_still {
            break;
        }
    }
    Ok(())
}

/// `1 new, 2 changed, 0 gone`, and the changes line by line; `None` where there are none.
pub(crate) fn compare(before: &Slots, after: &Slots) -> Option<String> {
    let slots: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let none = String::new();
    let (mut told, [mut new, mut changed, mut gone]) = (String::new(), [0, 0, 0]);
    for slot in slots {
        let difference = between(slot, before.get(slot).unwrap_or(&none), after.get(slot).unwrap_or(&none));
        match (before.contains_key(slot), after.contains_key(slot)) {
            _ if difference.is_empty() => {}
            (false, _) => new += 1,
            (true, false) => gone += 1,
            (true, true) => changed += 1,
        }
        told.push_str(&difference);
    }
    (!told.is_empty()).then(|| format!("{new} new, {changed} changed, {gone} gone\n{told}"))
}
