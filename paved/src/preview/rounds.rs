//! `--until-ready`: Crossplane and providers are simulated in turns until the environment is ready.

use std::io;

use function_proto::v1::RunFunctionResponse;
use jiff::{SignedDuration, Timestamp};
use paved_render::function;
use paved_render::subject::Subject;
use serde_json::Value;
use simulator::core::{Applied, Rendered, World, rendered};
use simulator::provider::{Change, Pace, Provider, State};

use super::{documents, tree};
use crate::Console;
use crate::cli::{Format, Preview};
use crate::failure::Failure;
use crate::prepare;
use crate::style::harmless_name;

/// More rounds than any environment needs.
const LIMIT: usize = 200;

/// The time between two rounds, for the conditions.
const ROUND: SignedDuration = SignedDuration::from_secs(30);

/// Runs rounds until the XR is ready, and returns the documents of the last round. It is a failure
/// if the resources stop changing before the XR is ready.
pub(crate) fn run(
    subject: &mut Subject,
    args: &Preview,
    format: Format,
    console: &mut Console<'_>,
) -> Result<Vec<Value>, Failure> {
    let mut provider = Provider::new(Pace::Rounds);
    for (slot, message) in &args.fail {
        provider.fail(slot, message);
    }
    let mut answered = Vec::new();
    let mut now = Timestamp::now();
    for round in 1..=LIMIT {
        subject.world.set_now(now);
        let before = memory(&subject.world);
        let response = function::answer(&subject.world, &subject.step.input, now)
            .map_err(|why| prepare::rejected(subject.fatal(why), console))?;
        subject.check(&response).map_err(|rejected| prepare::rejected(rejected, console))?;
        let shown = rendered(&subject.world, &response)
            .map_err(|error| prepare::rejected(subject.fatal(error.to_string()), console))?;
        if round == 1 {
            super::warn(subject, &response, console)?;
            known_slots(args, &shown)?;
            for advice in function::advice(&subject.world, &subject.step.input, &response) {
                writeln!(console.err, "note: {}: {advice}", subject.title)?;
            }
        }
        let applied = subject.world.apply(&response);
        let applied = applied
            .map_err(|error| prepare::rejected(subject.fatal(error.to_string()), console))?;
        Round { number: round, applied: &applied, answered: &answered }
            .print(subject, &shown, &response, format, console)?;
        if subject.world.is_ready() {
            return Ok(if format == Format::Tree {
                Vec::new()
            } else {
                documents::select(&shown, args)
            });
        }
        answered = provider.answer(&mut subject.world);
        if memory(&subject.world) == before && !provider.is_at_work(&subject.world) {
            break;
        }
        now = now.checked_add(ROUND).unwrap_or(now);
    }
    Err(stuck(subject))
}

/// Checks that `--fail` names existing slots.
fn known_slots(args: &Preview, shown: &Rendered) -> Result<(), Failure> {
    let lines = shown.composite["status"]["resources"].as_array();
    let slots: Vec<&str> =
        lines.into_iter().flatten().filter_map(|line| line["slot"].as_str()).collect();
    match args.fail.iter().find(|(slot, _)| !slots.contains(&slot.as_str())) {
        Some((slot, _)) => Err(Failure::Usage(format!(
            "--fail {slot}: unknown slot; allowed: {}",
            slots.join(", ")
        ))),
        None => Ok(()),
    }
}

/// The state of all objects that can affect the next round. Times of conditions cannot.
fn memory(world: &World) -> Vec<Value> {
    std::iter::once(world.composite())
        .chain(world.resources().values())
        .chain(world.secrets())
        .map(timeless)
        .collect()
}

fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    object
}

fn stuck(subject: &Subject) -> Failure {
    let conditions = subject.world.composite()["status"]["conditions"].as_array();
    let message = |kind: &str| {
        let condition =
            conditions.into_iter().flatten().find(|condition| condition["type"] == kind)?;
        condition["message"].as_str().map(str::to_owned)
    };
    let message = message(function_paved_road::function::CONDITION).or_else(|| message("Ready"));
    let message = message.unwrap_or_else(|| "no more changes".to_owned());
    let message = match tree::failure(subject.world.composite()) {
        Some(found) => {
            let (headline, remediation) = (found.cause.headline(), found.cause.remediation());
            format!("{headline}. {remediation} Message: {message}")
        }
        None => message,
    };
    Failure::Stuck { what: subject.title.clone(), message }
}

/// A round to print.
struct Round<'a> {
    number: usize,
    applied: &'a Applied,
    /// The providers' answers before this round.
    answered: &'a [Change],
}

impl Round<'_> {
    /// Prints a tree, or plain lines on standard error beside the documents.
    fn print(
        &self,
        subject: &Subject,
        rendered: &Rendered,
        response: &RunFunctionResponse,
        format: Format,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        if format == Format::Tree {
            writeln!(console.out, "round {}", self.number)?;
            tree::print(subject, rendered, response, &mut console.out)?;
            return writeln!(console.out);
        }
        let status = &rendered.composite["status"];
        let text = |field: &str| harmless_name(status[field].as_str().unwrap_or_default());
        writeln!(console.err, "round {}: {} {}", self.number, text("phase"), text("progress"))?;
        for change in self.answered {
            writeln!(console.err, "  {}: {}", change.slot, harmless_name(&said(&change.state)))?;
        }
        for (what, slots) in [
            ("created", &self.applied.created),
            ("changed", &self.applied.changed),
            ("deleted", &self.applied.deleted),
        ] {
            for slot in slots {
                writeln!(console.err, "  {slot}: {what}")?;
            }
        }
        Ok(())
    }
}

fn said(state: &State) -> String {
    match state {
        State::Ready => "ready".to_owned(),
        State::Creating => "being created".to_owned(),
        State::Waiting(why) => format!("waits: {why}"),
        State::Failed(why) => format!("failed: {why}"),
    }
}
