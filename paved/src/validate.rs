//! `paved validate`: reports all errors in claims, XRs and Settings, without a cluster.

mod classify;
mod environment;
mod github;
mod json;
mod redact;
mod report;
mod settings;
mod text;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use k8s_schema::Violation;
use paved_render::redact::as_written;
use serde_json::Value;

use crate::Console;
use crate::cli::{Form, Validate};
use crate::failure::{Failure, Grade};
use crate::files::{Inputs, Source};
use crate::prepare::Sources;
use crate::yaml::{Located, Spot};
use classify::DocumentClass;
use report::Report;
pub(crate) use settings::violations;

/// Checks every document of every file, and prints all errors.
pub(crate) fn run(args: &Validate, console: &mut Console<'_>) -> Result<(), Failure> {
    let sources = Sources::from_flags(&args.sources);
    let mut named = Report::default();
    for path in [&sources.settings, &sources.composition].into_iter().flatten() {
        named.look_at_settings(path, &sources.inputs, console)?;
    }
    let mut found = Report { settings_refused: !named.problems.is_empty(), ..Report::default() };
    for path in &args.files {
        found.look_into(path, &sources, console)?;
    }
    found.compare();
    found.add(named);
    match args.output {
        Form::Text => text::print(&found, console)?,
        Form::Json => json::print(&found, console)?,
        Form::Github => github::print(&found, console)?,
    }
    found.into_result()
}

/// Rejects a file of Settings with all its errors.
pub(crate) fn settings(
    path: &Path,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut found = Report::default();
    found.look_at_settings(path, inputs, console)?;
    text::print(&found, console)?;
    found.into_result()
}

/// Checks a generated text like a file, and rejects it with all its errors.
pub(crate) fn generated(
    file: PathBuf,
    text: &str,
    sources: &Sources,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let source = Source::parse(file, false, text.to_owned());
    let mut found = Report::default();
    found.look_at(Rc::new(source), sources, console)?;
    found.notes.clear();
    found.valid.clear();
    text::print(&found, console)?;
    found.into_result()
}

/// An error in a document.
struct Problem {
    /// The index of the source.
    source: usize,
    spot: Spot,
    grade: Grade,
    /// Kind and name of the document.
    document: String,
    /// The field, for example `spec.parameters.diskGB`. Empty for a whole document.
    path: String,
    /// What was found and what is allowed.
    message: String,
}

/// A document without errors.
struct Valid {
    source: usize,
    document: String,
}

/// A document of another kind.
struct Skipped {
    source: usize,
    document: String,
}

impl Problem {
    /// The field and its error.
    fn sentence(&self) -> String {
        if self.path.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.path, self.message)
        }
    }
}

/// Returns the problems of the Settings in a document, if it has Settings.
fn settings_problems(index: usize, source: &Source, document: &Located) -> Vec<Problem> {
    match classify::classify(document, true) {
        DocumentClass::Settings(part) => settings::check(index, source, document, part),
        _ => Vec::new(),
    }
}

/// An error at the position of the field's value, or of its name if the name is wrong.
fn problem(
    index: usize,
    source: &Source,
    document: &Located,
    grade: Grade,
    violation: Violation,
) -> Problem {
    let Violation { path, message } = as_written(violation, &document.written(&source.text));
    let spot =
        if names_are_wrong(&message) { document.name_at(&path) } else { document.value_at(&path) };
    Problem { source: index, spot, grade, document: title(&document.value), path, message }
}

/// Whether a message is about a field's name, from the schema or the function.
fn names_are_wrong(message: &str) -> bool {
    message.starts_with("unknown field")
}

/// Whether one of two fields is the other, or contains it.
fn overlap(one: &str, other: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
    };
    holds(one, other) || holds(other, one)
}

/// Kind and name of a document.
fn title(document: &Value) -> String {
    let kind = document["kind"].as_str().unwrap_or("a document without kind");
    match document["metadata"]["name"].as_str() {
        Some(name) => crate::style::one_line(&crate::style::harmless(&format!("{kind} {name}"))),
        None => crate::style::one_line(&crate::style::harmless(kind)),
    }
}

/// Adds a failure to read a file, unless the list already has it.
fn add_failure(unread: &mut Vec<Failure>, failure: Failure) {
    if unread.iter().all(|known| known.to_string() != failure.to_string()) {
        unread.push(failure);
    }
}
