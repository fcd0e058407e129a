//! The changes of a claim as the API server would store it, and of its composed resources in a
//! preview.

use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::tidy;
use paved_render::composed::{self, Slots};
use paved_render::subject::Subject;
use paved_render::subject::observed::Observed;
use serde_json::Value;

use super::composition::Source;
use super::plan::Step;
use crate::Console;
use crate::diff::{self, between};
use crate::documents::yaml;
use crate::failure::Failure;
use crate::prepare;
use crate::style::{BOLD, DIM, GREEN, YELLOW};

/// Prints the changes of a step, if there are any. A failed comparison prints a note and does not
/// end the command.
pub(super) fn print(
    step: &Step,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let before = step.live.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let after = step.rehearsed.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let changes = between(&step.title(), &before, &after);
    if changes.is_empty() {
        return Ok(());
    }
    console.out.whole(|out| write!(out, "{changes}"))?;
    match composed(step, source, console) {
        Ok(()) => Ok(()),
        Err(Failure::Output(error)) => Err(Failure::Output(error)),
        Err(refused @ Failure::Fatal { .. }) => {
            writeln!(
                console.err,
                "{YELLOW}warning{YELLOW:#}: in a preview, the composition rejects {refused}"
            )?;
            Ok(())
        }
        Err(why) => {
            writeln!(console.err, "note: {}: its resources are not compared: {why}", step.title())?;
            Ok(())
        }
    }
}

/// An object without its status and the API server's fields, as a user writes it.
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

/// For an existing environment, prints the changes of its resources in their ready state. For a new
/// environment, prints its future resources. Clouds are simulated, so the user needs only the right
/// to write the claim.
fn composed(step: &Step, source: &Source, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(rehearsed) = &step.rehearsed else { return Ok(()) };
    if let Source::Unknown(why) = source {
        return Err(Failure::Usage(why.clone()));
    }
    let title = step.title();
    let now = Timestamp::now();
    let Some((before, after)) = settled(step, source, console)? else {
        let subject = source.subject(step, rehearsed, &Observed::default(), console)?;
        let parts = composed::parts(&subject, now);
        let parts = parts.map_err(|rejected| prepare::rejected(rejected, console))?;
        writeln!(console.out, "{BOLD}{title}{BOLD:#}: {} resources", parts.len())?;
        for (slot, kind) in parts {
            writeln!(console.out, "{GREEN}+ {slot}{GREEN:#} {DIM}{kind}{DIM:#}")?;
        }
        return Ok(());
    };
    match diff::compare(&before, &after)? {
        None => writeln!(console.out, "{BOLD}{title}{BOLD:#}: its resources do not change")?,
        Some(told) => {
            console.out.whole(|out| writeln!(out, "{BOLD}{title}{BOLD:#}: resources: {told}"))?;
        }
    }
    Ok(())
}

/// The resources of an existing environment in their ready state, before and after the change.
/// `None` for a new environment.
pub(super) fn settled(
    step: &Step,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<Option<(Slots, Slots)>, Failure> {
    let (Some(live), Some(rehearsed)) = (&step.live, &step.rehearsed) else { return Ok(None) };
    let now = Timestamp::now();
    let settled = |subject: &mut Subject| {
        composed::settle(subject, now)?;
        composed::slots(subject, now)
    };
    let mut subject = source.subject(step, live, &Observed::default(), console)?;
    let before = settled(&mut subject).map_err(|rejected| prepare::rejected(rejected, console))?;
    let mut subject = source.subject(step, rehearsed, &documents(&subject), console)?;
    let after = settled(&mut subject).map_err(|rejected| prepare::rejected(rejected, console))?;
    Ok(Some((before, after)))
}

/// All objects of the world, as documents from files.
fn documents(subject: &Subject) -> Observed {
    let world = &subject.world;
    let all =
        std::iter::once(world.composite()).chain(world.resources().values()).chain(world.secrets());
    Observed::new(all.cloned().collect())
}
