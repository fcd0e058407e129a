//! `paved validate`: everything that is wrong with claims, XRs and Settings, without a cluster.

mod environment;
mod github;
mod json;
mod settings;
mod sort;
mod source;
mod text;
mod veil;

use std::path::{Path, PathBuf};

use serde_json::Value;
use simulator::schema::Violation;

use crate::Console;
use crate::cli::{Form, Sources, Validate};
use crate::failure::Failure;
use crate::files::{self, shown};
use crate::subject::kind;
use sort::Sort;
use source::{Located, Source, Spot};

/// Checks every document of every file, and prints all that is wrong.
pub(crate) fn run(args: &Validate, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut named = Found::default();
    for path in [&args.sources.settings, &args.sources.composition].into_iter().flatten() {
        named.look_at_settings(path, console)?;
    }
    let mut found = Found { settings_refused: !named.problems.is_empty(), ..Found::default() };
    for path in &args.files {
        found.look_into(path, &args.sources, console)?;
    }
    found.add(named);
    match args.output {
        Form::Text => text::print(&found, console)?,
        Form::Json => json::print(&found, console)?,
        Form::Github => github::print(&found, console)?,
    }
    found.verdict()
}

/// Refuses a file of Settings with everything that is wrong with it.
pub(crate) fn settings(path: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut found = Found::default();
    found.look_at_settings(path, console)?;
    text::print(&found, console)?;
    found.verdict()
}

/// Refuses a text that was just made, as it would be refused in a file.
pub(crate) fn generated(file: PathBuf, text: &str, console: &mut Console<'_>) -> Result<(), Failure> {
    let text = files::Text { file, found: false, text: text.to_owned() };
    let mut found = Found::default();
    found.look_at(Source::parse(text), &Sources::default(), console)?;
    found.notes.clear();
    found.valid.clear();
    text::print(&found, console)?;
    found.verdict()
}

/// What was found in all files.
#[derive(Default)]
struct Found {
    sources: Vec<Source>,
    problems: Vec<Problem>,
    valid: Vec<Valid>,
    skipped: Vec<Skipped>,
    /// What people should know although it is no mistake.
    notes: Vec<String>,
    /// What could not be read.
    unread: Vec<Failure>,
    /// Whether something is wrong with the Settings that count for all files.
    settings_refused: bool,
}

/// One thing that is wrong.
struct Problem {
    /// Which of the sources it is in.
    source: usize,
    spot: Spot,
    grade: Grade,
    /// Kind and name of the document.
    document: String,
    /// The field, as `spec.parameters.diskGB`; empty for a whole document.
    path: String,
    /// What was found and what is allowed.
    message: String,
}

/// Who refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// The parser: it is no YAML.
    Syntax,
    /// An API server.
    Schema,
    /// The function.
    Composition,
}

/// A document that nothing is wrong with.
struct Valid {
    source: usize,
    document: String,
}

/// A document that is none of ours.
struct Skipped {
    source: usize,
    document: String,
}

impl Grade {
    /// As other programs read it.
    fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Schema => "schema",
            Self::Composition => "composition",
        }
    }
}

impl Problem {
    /// The field and what is wrong with it.
    fn sentence(&self) -> String {
        if self.path.is_empty() { self.message.clone() } else { format!("{}: {}", self.path, self.message) }
    }
}

impl Found {
    /// Checks the documents of a file, a folder or standard input.
    fn look_into(
        &mut self,
        path: &Path,
        sources: &Sources,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let mut ours = 0;
        for text in files::texts(path, console)? {
            match text {
                Ok(text) => ours += self.look_at(Source::parse(text), sources, console)?,
                Err(failure) => self.could_not_read(failure),
            }
        }
        if ours == 0 {
            let known = kind::known().join(", ");
            let message =
                format!("{} holds no claim, no XR and no Settings; our kinds: {known}", shown(path));
            self.could_not_read(Failure::Usage(message));
        }
        Ok(())
    }

    /// Checks a file; gives how many of its documents are ours, or were meant to be.
    fn look_at(
        &mut self,
        source: Source,
        sources: &Sources,
        console: &mut Console<'_>,
    ) -> Result<usize, Failure> {
        let index = self.sources.len();
        self.syntax(index, &source);
        let mut ours = source.broken.len();
        let own = settings::of_file(&source);
        let settings_refused = self.settings_refused
            || source.documents.iter().any(|document| !of_settings(index, document).is_empty());
        for document in &source.documents {
            let name = title(&document.value);
            let problems = match sort::of(document, source.found) {
                Sort::Foreign => {
                    self.skipped.push(Skipped { source: index, document: name });
                    continue;
                }
                Sort::Wrong(violation) => vec![problem(index, document, Grade::Schema, violation)],
                Sort::Settings(part) => settings::check(index, document, part),
                Sort::Environment => {
                    let check = environment::Check {
                        index,
                        document,
                        file: &source.file,
                        sources,
                        own: &own,
                        settings_refused,
                    };
                    check.run(self, console)?
                }
            };
            ours += 1;
            if problems.is_empty() {
                self.valid.push(Valid { source: index, document: name });
            }
            self.problems.extend(problems);
        }
        self.sources.push(source);
        Ok(ours)
    }

    /// Checks the Settings of a file that is there for them alone. Standard input is read where they are needed.
    fn look_at_settings(&mut self, path: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
        if path == Path::new("-") {
            return Ok(());
        }
        for text in files::texts(path, console)? {
            let source = Source::parse(text?);
            let index = self.sources.len();
            self.syntax(index, &source);
            for document in &source.documents {
                self.problems.extend(of_settings(index, document));
            }
            self.sources.push(source);
        }
        Ok(())
    }

    /// Adds what was found elsewhere; a file that was among the others already is not told twice.
    fn add(&mut self, other: Self) {
        let mut problems = other.problems;
        for (index, source) in other.sources.into_iter().enumerate() {
            let (own, rest): (Vec<Problem>, Vec<Problem>) =
                problems.into_iter().partition(|problem| problem.source == index);
            problems = rest;
            if self.sources.iter().all(|known| known.file != source.file) {
                let index = self.sources.len();
                self.problems.extend(own.into_iter().map(|problem| Problem { source: index, ..problem }));
                self.sources.push(source);
            }
        }
    }

    /// Keeps a failure that nobody was told of yet.
    fn could_not_read(&mut self, failure: Failure) {
        if self.unread.iter().all(|known| known.to_string() != failure.to_string()) {
            self.unread.push(failure);
        }
    }

    fn syntax(&mut self, index: usize, source: &Source) {
        let broken = source.broken.iter().map(|broken| Problem {
            source: index,
            spot: Spot { bytes: broken.bytes.clone(), used: None },
            grade: Grade::Syntax,
            document: String::new(),
            path: String::new(),
            message: format!("no YAML: {}", broken.message),
        });
        self.problems.extend(broken);
    }

    /// Problems in the order in which they stand in the files.
    fn in_order(&self) -> Vec<&Problem> {
        let mut problems: Vec<&Problem> = self.problems.iter().collect();
        problems.sort_by_key(|problem| (problem.source, problem.spot.bytes.start));
        problems
    }

    /// Whether all of it is valid, and if not, who refuses it.
    fn verdict(self) -> Result<(), Failure> {
        let count = self.problems.len();
        let composed = self.problems.iter().any(|problem| problem.grade == Grade::Composition);
        let mut failures = self.unread;
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            failures.push(Failure::Invalid { count: format!("{count} error{plural}"), composed });
        }
        Failure::of_all(failures)
    }
}

/// What is wrong with the Settings of a document, if it has any.
fn of_settings(source: usize, document: &Located) -> Vec<Problem> {
    match sort::of(document, true) {
        Sort::Settings(part) => settings::check(source, document, part),
        _ => Vec::new(),
    }
}

/// A violation at its place: that of the name where the name is what is wrong.
fn problem(source: usize, document: &Located, grade: Grade, violation: Violation) -> Problem {
    let Violation { path, message } = violation;
    let spot = if names_are_wrong(&message) { document.name_at(&path) } else { document.value_at(&path) };
    Problem { source, spot, grade, document: title(&document.value), path, message }
}

/// Whether a message speaks of a field's name: the schema's words, and the function's.
fn names_are_wrong(message: &str) -> bool {
    message.starts_with("is not a known field") || message.starts_with("there is no such field")
}

/// Whether one of two fields is, or holds, the other.
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
        Some(name) => crate::paint::one_line(&crate::paint::harmless(&format!("{kind} {name}"))),
        None => crate::paint::one_line(&crate::paint::harmless(kind)),
    }
}
