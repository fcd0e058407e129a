//! The results for all files.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use paved_render::subject::kind;

use super::classify::{self, DocumentClass};
use super::environment::Check;
use super::{Problem, Skipped, Valid, add_failure, problem, settings, settings_problems, title};
use crate::Console;
use crate::connection_secrets::{Identity, Secret, connection_secret, in_use};
use crate::failure::{Failure, Grade};
use crate::files::{Inputs, Source, shown};
use crate::prepare::Sources;
use crate::yaml::Spot;

/// The results for all files.
#[derive(Default)]
pub(super) struct Report {
    pub(super) sources: Vec<Rc<Source>>,
    pub(super) problems: Vec<Problem>,
    pub(super) valid: Vec<Valid>,
    pub(super) skipped: Vec<Skipped>,
    /// Notes for the user about facts that are not errors.
    pub(super) notes: Vec<String>,
    /// Failures to read a file.
    pub(super) unread: Vec<Failure>,
    /// Whether the Settings for all files have errors.
    pub(super) settings_refused: bool,
}

impl Report {
    /// Checks the documents of a file, a folder or standard input.
    pub(super) fn look_into(
        &mut self,
        path: &Path,
        sources: &Sources,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let mut ours = 0;
        for source in sources.inputs.sources(path, console)?.iter() {
            match source {
                Ok(source) => ours += self.look_at(source.clone(), sources, console)?,
                Err(why) => self.could_not_read(Failure::Usage(why.clone())),
            }
        }
        if ours == 0 {
            let known = kind::known().join(", ");
            let message =
                format!("{} has no claim, XR or Settings; allowed kinds: {known}", shown(path));
            self.could_not_read(Failure::Usage(message));
        }
        Ok(())
    }

    /// Checks a file, and returns the number of our documents, including misspelled and
    /// broken ones.
    pub(super) fn look_at(
        &mut self,
        source: Rc<Source>,
        sources: &Sources,
        console: &mut Console<'_>,
    ) -> Result<usize, Failure> {
        let index = self.sources.len();
        self.syntax(index, &source);
        let mut ours = source.broken.len();
        let own = settings::find_in_file(&source);
        let settings_refused = self.settings_refused
            || source
                .documents
                .iter()
                .any(|document| !settings_problems(index, &source, document).is_empty());
        for document in &source.documents {
            let name = title(&document.value);
            let check = |value| Check {
                index,
                source: &source,
                document,
                value,
                sources,
                own: &own,
                settings_refused,
            };
            let problems = match classify::classify(document, source.found) {
                DocumentClass::Foreign => {
                    self.skipped.push(Skipped { source: index, document: name });
                    continue;
                }
                DocumentClass::Wrong(violation) => {
                    let grade =
                        if document.value.is_object() { Grade::Schema } else { Grade::Syntax };
                    let mut all = vec![problem(index, &source, document, grade, violation)];
                    if let Some(meant) = kind::as_meant(&document.value) {
                        all.extend(check(&meant).run(
                            &mut self.notes,
                            &mut self.unread,
                            console,
                        )?);
                    }
                    all
                }
                DocumentClass::Settings(part) => {
                    let warnings = settings::warnings(document, part);
                    self.notes.extend(warnings.into_iter().map(|told| format!("{name}: {told}")));
                    settings::check(index, &source, document, part)
                }
                DocumentClass::Environment => {
                    check(&document.value).run(&mut self.notes, &mut self.unread, console)?
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

    /// Checks only the Settings in a file.
    pub(super) fn look_at_settings(
        &mut self,
        path: &Path,
        inputs: &Inputs,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        for source in inputs.sources(path, console)?.iter() {
            let source = source.clone().map_err(Failure::Usage)?;
            let index = self.sources.len();
            self.syntax(index, &source);
            for document in &source.documents {
                self.problems.extend(settings_problems(index, &source, document));
            }
            self.sources.push(source);
        }
        Ok(())
    }

    /// Adds results of other files. A file that is already known is not reported twice.
    pub(super) fn add(&mut self, other: Self) {
        let mut problems = other.problems;
        for (index, source) in other.sources.into_iter().enumerate() {
            let (own, rest): (Vec<Problem>, Vec<Problem>) =
                problems.into_iter().partition(|problem| problem.source == index);
            problems = rest;
            if self.sources.iter().all(|known| known.file != source.file) {
                let index = self.sources.len();
                self.problems
                    .extend(own.into_iter().map(|problem| Problem { source: index, ..problem }));
                self.sources.push(source);
            }
        }
    }

    /// Rejects a connection Secret that an earlier document uses too. Crossplane would write only
    /// one of them.
    pub(super) fn compare(&mut self) {
        let mut users: BTreeMap<Secret, Identity> = BTreeMap::new();
        for (index, source) in self.sources.clone().iter().enumerate() {
            for document in &source.documents {
                let Some((secret, user)) = connection_secret(&document.value) else { continue };
                let other = users.entry(secret.clone()).or_insert_with(|| user.clone());
                if *other == user {
                    continue;
                }
                let violation = in_use(&secret, &format!("{} {}", other.0, other.2));
                self.valid.retain(|valid| {
                    valid.source != index || valid.document != title(&document.value)
                });
                self.problems.push(problem(index, source, document, Grade::Composition, violation));
            }
        }
    }

    /// Adds a failure to read, but each failure only once.
    pub(super) fn could_not_read(&mut self, failure: Failure) {
        add_failure(&mut self.unread, failure);
    }

    fn syntax(&mut self, index: usize, source: &Source) {
        let broken = source.broken.iter().map(|broken| Problem {
            source: index,
            spot: Spot { bytes: broken.bytes.clone(), used: None },
            grade: Grade::Syntax,
            document: String::new(),
            path: String::new(),
            message: format!("invalid YAML: {}", broken.message),
        });
        self.problems.extend(broken);
    }

    /// The problems in the order of the files and lines.
    pub(super) fn in_order(&self) -> Vec<&Problem> {
        let mut problems: Vec<&Problem> = self.problems.iter().collect();
        problems.sort_by_key(|problem| (problem.source, problem.spot.bytes.start));
        problems
    }

    /// Returns a failure if there are errors. The most severe error determines the exit code.
    pub(super) fn into_result(self) -> Result<(), Failure> {
        let count = self.problems.len();
        let mut failures = self.unread;
        if let Some(by) = self.problems.iter().map(|problem| problem.grade).max() {
            let plural = if count == 1 { "" } else { "s" };
            failures.push(Failure::Invalid { count: format!("{count} error{plural}"), by });
        }
        Failure::combine(failures)
    }
}
