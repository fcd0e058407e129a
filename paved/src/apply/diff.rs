//! What changes: in the claim, as the API server would keep it, and in what is composed of it, by a
//! preview.

use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::tidy;
use paved_render::composed;
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

/// Prints the changes of a step; nothing where there are none. What cannot be compared is said:
/// that ends nothing.
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
    write!(console.out, "{changes}")?;
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

/// Of an environment that exists, the changes of its resources once they are ready; of a new one,
/// the resources that it will have. Clouds are simulated: that takes no rights beyond the claim.
fn composed(step: &Step, source: &Source, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(rehearsed) = &step.rehearsed else { return Ok(()) };
    if let Source::Unknown(why) = source {
        return Err(Failure::Usage(why.clone()));
    }
    let title = step.title();
    let now = Timestamp::now();
    let Some(live) = &step.live else {
        let subject = source.subject(step, rehearsed, &Observed::default(), console)?;
        let parts = composed::parts(&subject, now);
        let parts = parts.map_err(|rejected| prepare::rejected(rejected, console))?;
        writeln!(console.out, "{BOLD}{title}{BOLD:#}: {} resources", parts.len())?;
        for (slot, kind) in parts {
            writeln!(console.out, "{GREEN}+ {slot}{GREEN:#} {DIM}{kind}{DIM:#}")?;
        }
        return Ok(());
    };
    let settled = |subject: &mut Subject| {
        composed::settle(subject, now)?;
        composed::slots(subject, now)
    };
    let mut subject = source.subject(step, live, &Observed::default(), console)?;
    let before = settled(&mut subject).map_err(|rejected| prepare::rejected(rejected, console))?;
    let mut subject = source.subject(step, rehearsed, &documents(&subject), console)?;
    let after = settled(&mut subject).map_err(|rejected| prepare::rejected(rejected, console))?;
    match diff::compare(&before, &after)? {
        None => writeln!(console.out, "{BOLD}{title}{BOLD:#}: its resources do not change")?,
        Some(told) => writeln!(console.out, "{BOLD}{title}{BOLD:#}: resources: {told}")?,
    }
    Ok(())
}

/// All that is there, as files would have it.
fn documents(subject: &Subject) -> Observed {
    let world = &subject.world;
    let all =
        std::iter::once(world.composite()).chain(world.resources().values()).chain(world.secrets());
    Observed::new(all.cloned().collect())
}
