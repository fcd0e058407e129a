//! `--check`: composes environments with the old and with the new Settings.

use std::path::Path;

use jiff::Timestamp;
use paved_render::Rejected;
use paved_render::composed::{self, Slots};
use paved_render::subject::observed::Observed;
use paved_render::subject::{Subject, kind, pipeline_step};

use crate::Console;
use crate::cli::Platform;
use crate::diff;
use crate::failure::Failure;
use crate::files::{Document, Inputs, shown};
use crate::prepare::{self, Sources};
use crate::style::{BOLD, YELLOW};

/// Shows the effect of the new Settings on every environment. An environment that cannot be
/// composed is a failure.
pub(super) fn run(
    args: &Platform,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let seen = prepare::observed(&args.observed, inputs, console)?;
    let mut failures = Vec::new();
    for document in environments(args, inputs, console)? {
        let change = Change { document: &document, seen: &seen, inputs, now: Timestamp::now() };
        match change.show(args, console) {
            Ok(()) => {}
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => failures.push(failure),
        }
    }
    prepare::tell_unused(&seen, console)?;
    Failure::combine(failures)
}

/// The claims and XRs of all files.
fn environments(
    args: &Platform,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Vec<Document>, Failure> {
    let mut environments = Vec::new();
    for path in &args.check {
        let before = environments.len();
        for document in inputs.read(path, console)? {
            match kind::find(&document.value) {
                Ok(_) => environments.push(document),
                Err(_) if pipeline_step::is_settings(&document.value) => {}
                Err(why) => writeln!(console.err, "note: {} is skipped: {why}", document.title())?,
            }
        }
        if environments.len() == before {
            return Err(Failure::Usage(format!("{} has no claim and no XR", shown(path))));
        }
    }
    Ok(environments)
}

/// An environment to compose with two Settings.
struct Change<'a> {
    document: &'a Document,
    seen: &'a Observed,
    inputs: &'a Inputs,
    now: Timestamp,
}

impl Change<'_> {
    fn show(&self, args: &Platform, console: &mut Console<'_>) -> Result<(), Failure> {
        let (title, after) = self.composed(Some(args.settings()?), true, console)?;
        let before = match self.composed(args.old.as_deref(), false, console) {
            Ok((_, before)) => before,
            Err(Failure::Fatal { message, .. }) => {
                writeln!(
                    console.err,
                    "{YELLOW}note:{YELLOW:#} {title}: without the new Settings: {message}"
                )?;
                Slots::new()
            }
            Err(other) => return Err(other),
        };
        let told = diff::compare(&before, &after)?;
        match told {
            None => writeln!(console.out, "{BOLD}{title}{BOLD:#}: nothing changes")?,
            Some(told) => writeln!(console.out, "{BOLD}{title}{BOLD:#}: {told}")?,
        }
        Ok(())
    }

    /// File, kind and name, and the resources with these Settings. Without observed resources,
    /// these are all resources up to the ready state.
    fn composed(
        &self,
        settings: Option<&Path>,
        is_first: bool,
        console: &mut Console<'_>,
    ) -> Result<(String, Slots), Failure> {
        let inputs = self.inputs.clone();
        let sources = Sources { settings: settings.map(Path::to_owned), composition: None, inputs };
        let mut subject = prepare::prepare(self.document, &sources, &[], self.seen, console)?;
        if is_first {
            prepare::tell_unobserved(&subject, self.seen, console)?;
        }
        match all_slots(&mut subject, self.now) {
            Ok(slots) => Ok((subject.title, slots)),
            Err(rejected) => Err(prepare::rejected(rejected, console)),
        }
    }
}

/// The currently composed resources. If no resource exists yet, also the resources that are
/// composed later.
fn all_slots(subject: &mut Subject, now: Timestamp) -> Result<Slots, Rejected> {
    let mut slots = composed::slots(subject, now)?;
    if subject.world.resources().is_empty() {
        // Many resources wait until others are ready.
        composed::settle(subject, now)?;
        for (slot, resource) in composed::slots(subject, now)? {
            slots.entry(slot).or_insert(resource);
        }
    }
    Ok(slots)
}
