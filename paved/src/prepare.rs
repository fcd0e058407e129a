//! Environments from files, prepared for a preview.

pub(crate) mod settings;
mod sources;

use std::path::PathBuf;

use k8s_schema::Violation;
use paved_render::Rejected;
use paved_render::redact::as_written;
use paved_render::subject::observed::Observed;
use paved_render::subject::{Stored, Subject};
use serde_json::Value;

use crate::Console;
use crate::failure::Failure;
use crate::files::{Document, Inputs};
use crate::style::harmless_name;
pub(crate) use sources::Sources;

/// The maximum number of documents that a note names.
const NAMED: usize = 5;

/// The documents of all files and folders, as the observed state.
pub(crate) fn observed(
    paths: &[PathBuf],
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Observed, Failure> {
    let mut seen = Vec::new();
    for path in paths {
        for document in inputs.read(path, console)? {
            let title = document.title();
            seen.push((document.value, title));
        }
    }
    Ok(Observed::titled(seen))
}

/// Applies defaults, validates the document, makes the composite of a claim, and adds the observed
/// resources. `own` are the Settings in the document's file.
pub(crate) fn prepare(
    document: &Document,
    sources: &Sources,
    own: &[Value],
    seen: &Observed,
    console: &mut Console<'_>,
) -> Result<Subject, Failure> {
    let refused = |violations: Vec<Violation>| {
        let written = |violation| as_written(violation, &document.written);
        let violations = violations.into_iter().map(written).collect();
        Failure::Refused { what: document.title(), violations }
    };
    let known = settings::flavour(&document.value, &document.file, sources, console)?;
    let stored = Stored::in_flavour(&document.value, seen, known)
        .map_err(|violation| refused(vec![violation]))?;
    if !stored.violations.is_empty() {
        return Err(refused(stored.violations));
    }
    if let Some(ignored) = stored.target.ignored_namespace(&document.value) {
        writeln!(console.err, "note: {}: {ignored}", document.title())?;
    }
    let composite = stored.composite(seen).map_err(refused)?;
    let step = settings::find(&stored.target, &document.file, sources, own, console)?;
    for other in &step.others {
        writeln!(
            console.err,
            "note: {}: the preview does not include {}, another step of the Composition",
            document.title(),
            harmless_name(other)
        )?;
    }
    Ok(stored.among(composite, step, document.title()).written(document.written.clone()))
}

/// Prints a note if no observed resource belongs to this environment.
pub(crate) fn tell_unobserved(
    subject: &Subject,
    seen: &Observed,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if !seen.is_empty() && subject.world.resources().is_empty() {
        writeln!(console.err, "note: {}: no observed resources", subject.title)?;
    }
    Ok(())
}

/// Prints a note about observed documents that belong to none of the environments.
pub(crate) fn tell_unused(seen: &Observed, console: &mut Console<'_>) -> Result<(), Failure> {
    let unused = seen.unused();
    if unused.is_empty() {
        return Ok(());
    }
    let more = unused.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let named = unused[..unused.len().min(NAMED)].join(", ");
    writeln!(console.err, "note: observed, but not part of these environments: {named}{more}")?;
    Ok(())
}

/// Prints the warnings of a rejected environment, and returns the failure.
pub(crate) fn rejected(rejected: Rejected, console: &mut Console<'_>) -> Failure {
    let Rejected { what, message, warnings } = rejected;
    for warning in warnings {
        if let Err(error) = writeln!(console.err, "warning: {what}: {}", harmless_name(&warning)) {
            return Failure::Output(error);
        }
    }
    Failure::Fatal { what, message }
}
