//! Errors in a claim or an XR: the API server's and the function's.

use function_paved_road::apis::Flavour;
use function_paved_road::lifecycle::REQUESTS;
use function_paved_road::patterns::is_about_pattern;
use function_paved_road::reason::Reason;
use function_proto::v1::{Result as FunctionResult, Severity};
use jiff::Timestamp;
use k8s_schema::Violation;
use paved_render::redact::fatal_violation;
use paved_render::subject::kind::Target;
use paved_render::subject::observed::Observed;
use paved_render::subject::{Stored, pipeline_step};
use paved_render::{function, regions};
use serde_json::Value;

use super::{Problem, add_failure, overlap, problem, title};
use crate::Console;
use crate::failure::{Failure, Grade};
use crate::files::Source;
use crate::prepare::{Sources, settings};
use crate::style::harmless;
use crate::yaml::Located;

/// A document to check, and its Settings.
pub(super) struct Check<'a> {
    pub(super) index: usize,
    pub(super) source: &'a Source,
    pub(super) document: &'a Located,
    /// The document's value, or its intended value.
    pub(super) value: &'a Value,
    pub(super) sources: &'a Sources,
    pub(super) own: &'a [Value],
    /// Whether the Settings have errors themselves. These errors are reported once, and not for
    /// each claim.
    pub(super) settings_refused: bool,
}

impl Check<'_> {
    /// Returns all errors. The function's errors count only if the schema has not reported them.
    pub(super) fn run(
        &self,
        notes: &mut Vec<String>,
        unread: &mut Vec<Failure>,
        console: &mut Console<'_>,
    ) -> Result<Vec<Problem>, Failure> {
        let graded = |grade| {
            move |violation| problem(self.index, self.source, self.document, grade, violation)
        };
        // An unreadable Composition is reported with its Settings.
        let known = match settings::flavour(self.value, &self.source.file, self.sources, console) {
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            known => known.unwrap_or_default(),
        };
        let mut stored = match Stored::in_flavour(self.value, &Observed::default(), known) {
            Ok(stored) => stored,
            Err(violation) => return Ok(vec![graded(Grade::Schema)(violation)]),
        };
        if let Some(ignored) = stored.target.ignored_namespace(self.value) {
            notes.push(format!("{}: {ignored}", title(self.value)));
        }
        for request in requests(self.value) {
            let warning = format!(
                "warning: {}: metadata.annotations[{request}]: found a request about an existing \
                 environment. A new environment does not obey it, and paved apply does not send \
                 it. Remove the annotation from the file",
                title(self.value)
            );
            tell(warning, notes);
        }
        let mut known = std::mem::take(&mut stored.violations);
        if !known.is_empty() && stored.object["spec"].is_object() {
            stored.make_readable();
        }
        let mut composed = match self.composed(&stored, notes, console) {
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => {
                add_failure(unread, failure);
                Vec::new()
            }
            Ok(composed) => composed,
        };
        // For a pattern, the function has the better message: it knows the offer.
        let is_text = |path: &str| {
            let pointer = format!("/{}", path.replace('.', "/"));
            self.value.pointer(&pointer).is_some_and(Value::is_string)
        };
        for known in known.iter_mut().filter(|known| is_about_pattern(&known.message)) {
            let better = composed.iter().find(|fatal| fatal.path == known.path);
            // The function does not see a number in the place of a text.
            if let Some(better) = better.filter(|_| is_text(&known.path)) {
                known.message.clone_from(&better.message);
            }
        }
        composed.retain(|fatal| !known.iter().any(|known| overlap(&known.path, &fatal.path)));
        let refused = known.into_iter().map(graded(Grade::Schema));
        Ok(refused.chain(composed.into_iter().map(graded(Grade::Composition))).collect())
    }

    /// Returns the function's errors. The function does not see a mostly malformed document.
    fn composed(
        &self,
        stored: &Stored,
        notes: &mut Vec<String>,
        console: &mut Console<'_>,
    ) -> Result<Vec<Violation>, Failure> {
        let is_one =
            stored.object["spec"].is_object() && stored.object["metadata"]["name"].is_string();
        let Some(around) = stored.composite(&Observed::default()).ok().filter(|_| is_one) else {
            return Ok(Vec::new());
        };
        let mut step =
            settings::find(&stored.target, &self.source.file, self.sources, self.own, console)?;
        if !step.given {
            tell_unknown_group(&stored.target, self.value, notes);
        }
        let mut settled = step.settled;
        if !settled || self.settings_refused {
            // Valid Settings reveal the other errors.
            step.input =
                pipeline_step::Step::example(&stored.target, &stored.object["spec"])?.input;
        }
        step.allow_missing_settings();
        let subject = stored.among(around, step, title(self.value));
        let response = match function::answer(&subject.world, &subject.step.input, Timestamp::now())
        {
            Ok(response) => response,
            Err(message) => return Ok(vec![Violation { path: String::new(), message }]),
        };
        settled &= !response.results.iter().any(|result| result.reason() == "SettingsNotFound");
        if !settled {
            let note = "no Settings found, so paved skipped the checks that need them. Pass them \
                        with --settings or --composition";
            tell(note.to_owned(), notes);
        }
        if function::is_about_settings(&response) && (!settled || self.settings_refused) {
            return Ok(Vec::new());
        }
        let composite = subject.world.composite();
        let kind = composite["kind"].as_str().unwrap_or_default();
        let is_wrong = |result: &&FunctionResult| {
            result.severity() == Severity::Fatal
                || result.reason() == Reason::OldSchemaRevision.to_string()
        };
        let wrong = response.results.iter().filter(is_wrong);
        let wrong: Vec<Violation> = wrong.map(|result| fatal_violation(&result.message)).collect();
        for warning in regions::in_spec(kind, &composite["spec"]) {
            // An error of the same field says more.
            if !wrong.iter().any(|wrong| warning.starts_with(&format!("{}: ", wrong.path))) {
                tell(format!("{}: {warning}", title(self.value)), notes);
            }
        }
        for warning in function::warnings_about_fields(&response) {
            tell(format!("warning: {}: {}", title(self.value), harmless(&warning)), notes);
        }
        Ok(wrong)
    }
}

/// The requests in the annotations of a document.
fn requests(document: &Value) -> impl Iterator<Item = &'static str> {
    let annotations = &document["metadata"]["annotations"];
    REQUESTS.into_iter().filter(|name| !annotations[*name].is_null())
}

/// A company may have our kinds in its own group. Only a Composition for the group can show this.
fn tell_unknown_group(target: &Target, document: &Value, notes: &mut Vec<String>) {
    if Flavour::ALL.iter().all(|flavour| flavour.default_group() != target.group) {
        let kind = harmless(document["kind"].as_str().unwrap_or_default());
        let note = format!(
            "the group {} is not {}, so paved skipped the checks of {kind}. Pass --composition, \
             or put composition.yaml beside the file",
            target.group,
            Flavour::ALL.map(Flavour::default_group).join(" or ")
        );
        tell(note, notes);
    }
}

/// Adds a note, but each note only once.
fn tell(note: String, notes: &mut Vec<String>) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}
