//! Errors as text for users: the affected line with a mark below.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Problem, Report, redact};
use crate::Console;
use crate::failure::Failure;
use crate::files::{Source, shown};
use crate::style::{DIM, GREEN, harmless};

/// The width in columns if standard output is not a terminal.
const WIDTH: usize = 80;

/// The maximum length of a mark in bytes. Of a longer value, only the start is marked.
const MAX_MARKED_BYTES: usize = 50;

/// Prints a line for each valid document, then the notes, then the errors.
pub(super) fn print(found: &Report, console: &mut Console<'_>) -> Result<(), Failure> {
    for valid in &found.valid {
        let file = file(&found.sources[valid.source]);
        writeln!(console.out, "{file}: {} is {GREEN}valid{GREEN:#}", valid.document)?;
    }
    console.out.flush()?;
    for note in notes(found) {
        writeln!(console.err, "{DIM}note:{DIM:#} {note}")?;
    }
    let width = console.terminal.as_ref().map_or(WIDTH, |terminal| (terminal.size)().1);
    let renderer = Renderer::styled().term_width(width.max(WIDTH / 2));
    for problem in found.in_order() {
        let report = group(&found.sources[problem.source], problem);
        writeln!(console.err, "{}\n", renderer.render(&[report]))?;
    }
    Ok(())
}

/// Notes for the user. Skipped documents have one line for each file.
pub(super) fn notes(found: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, source) in found.sources.iter().enumerate() {
        let skipped = found.skipped.iter().filter(|skipped| skipped.source == index);
        let names: Vec<&str> = skipped.map(|skipped| skipped.document.as_str()).collect();
        if !names.is_empty() {
            notes.push(format!(
                "{}: skipped, not a Paved Road kind: {}",
                file(source),
                names.join(", ")
            ));
        }
    }
    notes.extend(found.notes.iter().cloned());
    notes
}

/// A file's name for messages.
pub(super) fn file(source: &Source) -> String {
    harmless(&shown(&source.file)).replace('\n', " ")
}

/// The message, and the line with a mark below.
fn group<'a>(source: &Source, problem: &Problem) -> Group<'a> {
    let title = Level::ERROR.primary_title(harmless(&problem.sentence()));
    if redact::hides(source, problem) {
        let place = Origin::path(file(source)).line(source.line(problem.spot.bytes.start).0);
        return title.element(place.char_column(source.column(problem.spot.bytes.start)));
    }
    let mut group =
        title.element(marked(source, &problem.spot.bytes, AnnotationKind::Primary, None));
    if let Some(used) = &problem.spot.used {
        group = group.element(marked(source, used, AnnotationKind::Context, Some("used here")));
    }
    group
}

fn marked<'a>(
    source: &Source,
    bytes: &Range<usize>,
    kind: AnnotationKind,
    label: Option<&'static str>,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let (number, line, text) = redact::line(source, bytes.start);
    let start = bytes.start.clamp(line.start, line.end) - line.start;
    let end =
        (bytes.end.clamp(line.start, line.end) - line.start).clamp(start, start + MAX_MARKED_BYTES);
    let annotation = kind.span(start..text.floor_char_boundary(end)).label(label);
    Snippet::source(text).line_start(number).path(file(source)).annotation(annotation)
}
