//! One claim or XR, checked, and the world around it.

pub(crate) mod kind;
pub(crate) mod observed;
pub(crate) mod placeholder;
mod readable;
mod sources;
pub(crate) mod step;

use function_paved_road::apis::Flavour;
use function_sdk_rust::proto::v1::{RunFunctionResponse, Severity};
use k8s_schema::{Schemas, Violation};
use serde_json::{Value, json};
use simulator::core::{World, composite_from_claim};

use crate::Console;
use crate::discreet::{as_written, discreet};
use crate::failure::Failure;
use crate::files::Document;
use crate::function;
use crate::paint::harmless_name;
use crate::yaml::Written;
use kind::Target;
use observed::{Observed, Whose};
pub(crate) use sources::Sources;
use step::Step;

/// One claim or XR, checked, and the world around it.
pub(crate) struct Subject {
    /// File, kind and name, for messages.
    pub(crate) title: String,
    /// Namespace and name of the claim, if it is one.
    pub(crate) claim: Option<String>,
    pub(crate) step: Step,
    pub(crate) world: World,
    /// How the document's numbers are written.
    written: Written,
}

/// A claim or an XR with its defaults, as an API server would store it.
pub(crate) struct Stored {
    pub(crate) target: Target,
    pub(crate) object: Value,
    /// Everything that an API server would refuse, without secrets.
    pub(crate) violations: Vec<Violation>,
    xrd: Value,
}

impl Subject {
    /// Applies defaults, validates, makes the composite of a claim, and puts the observed world around it. `own` are the
    /// Settings that stand in the document's file.
    pub(crate) fn prepare(
        document: &Document,
        sources: &Sources,
        own: &[Value],
        seen: &Observed,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let refused = |violations: Vec<Violation>| {
            let written = |violation| as_written(violation, &document.written);
            let violations = violations.into_iter().map(written).collect();
            Failure::Refused { what: document.title(), violations }
        };
        let known = step::flavour(&document.value, &document.file, sources, console)?;
        let stored =
            Stored::in_flavour(&document.value, seen, known).map_err(|violation| refused(vec![violation]))?;
        if !stored.violations.is_empty() {
            return Err(refused(stored.violations));
        }
        if let Some(ignored) = stored.target.ignored_namespace(&document.value) {
            writeln!(console.err, "note: {}: {ignored}", document.title())?;
        }
        let composite = stored.composite(seen).map_err(refused)?;
        let step = step::find(&stored.target, &document.file, sources, own, console)?;
        for other in &step.others {
            writeln!(
                console.err,
                "note: {}: the preview does not include {}, another step of the Composition",
                document.title(),
                harmless_name(other)
            )?;
        }
        let subject = stored.among(composite, step, document.title());
        Ok(Self { written: document.written.clone(), ..subject })
    }

    /// Says that nothing of what is observed belongs to this environment.
    pub(crate) fn tell_unobserved(&self, seen: &Observed, console: &mut Console<'_>) -> Result<(), Failure> {
        if !seen.is_empty() && self.world.resources().is_empty() {
            writeln!(console.err, "note: {}: no observed resources", self.title)?;
        }
        Ok(())
    }

    /// A fatal failure of this subject.
    pub(crate) fn fatal(&self, message: String) -> Failure {
        Failure::Fatal { what: self.title.clone(), message }
    }

    /// Refuses a response with fatal results; what the function warns of may be the cause.
    pub(crate) fn check(
        &self,
        response: &RunFunctionResponse,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let Some(fatal) = function::fatal(response, &self.written) else { return Ok(()) };
        for warning in response.results.iter().filter(|result| result.severity() == Severity::Warning) {
            writeln!(console.err, "warning: {}: {}", self.title, harmless_name(&warning.message))?;
        }
        Err(self.fatal(fatal))
    }
}

/// A composite, and what is observed of it.
pub(crate) type Surrounded = (Value, Vec<Value>);

impl Stored {
    /// Applies defaults and checks; the one violation of a document of which nothing more can be said.
    pub(crate) fn of(document: &Value, seen: &Observed) -> Result<Self, Violation> {
        Self::in_flavour(document, seen, None)
    }

    /// The same where somebody knows the flavour of a kind that the document leaves open.
    pub(crate) fn in_flavour(
        document: &Value,
        seen: &Observed,
        known: Option<Flavour>,
    ) -> Result<Self, Violation> {
        let target = kind::find_in(document, known)?;
        let xrd = target.xrd();
        let violation = |path: &str, message: String| Violation { path: path.to_owned(), message };
        let schemas = Schemas::new([&xrd]).map_err(|error| violation("", error.to_string()))?;
        let Some(definition) = schemas.of(document) else {
            let known: Vec<String> =
                schemas.iter().map(|one| format!("{} {}", one.api_version(), one.kind())).collect();
            return Err(violation("apiVersion", format!("allowed: {}", known.join(", "))));
        };
        let mut object = document.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            if target.is_namespaced() {
                metadata.entry("namespace").or_insert_with(|| json!("default"));
            } else {
                // As an API server does with what is cluster-scoped.
                metadata.remove("namespace");
            }
        }
        definition.apply_defaults(&mut object);
        let stored = seen.stored(&whose(&target, &object));
        let mut violations = definition.validate(&object, stored);
        if object["metadata"]["name"].is_null() {
            violations.push(violation("metadata.name", "is missing; allowed: a string".to_owned()));
            violations.sort();
        }
        let violations = violations.into_iter().map(|violation| discreet(violation, &object)).collect();
        Ok(Self { target, object, violations, xrd })
    }

    /// Makes of the spec what the function can read, so that what a schema refuses hides nothing of what the function does.
    pub(crate) fn make_readable(&mut self) {
        let Ok(schemas) = Schemas::new([&self.xrd]) else { return };
        if let Some(definition) = schemas.of(&self.object) {
            readable::make(&mut self.object["spec"], &definition.schema()["properties"]["spec"]);
        }
    }

    /// The composite, which core makes of a claim, and what is observed of it.
    pub(crate) fn composite(&self, seen: &Observed) -> Result<Surrounded, Vec<Violation>> {
        let mut object = self.object.clone();
        let whose = whose(&self.target, &self.object);
        if self.target.is_claim {
            if object["spec"]["resourceRef"]["name"].is_null()
                && let Some(name) = seen.bound_name(&whose)
            {
                object["spec"]["resourceRef"]["name"] = json!(name);
            }
            let refused = |message: String| vec![Violation { path: String::new(), message }];
            object = composite_from_claim(&object, &self.xrd).map_err(|error| refused(error.to_string()))?;
        }
        let around = seen.surround(&mut object, &whose);
        Ok((object, around))
    }

    /// The composite in its world, where a step composes it.
    pub(crate) fn among(&self, (composite, seen): Surrounded, step: Step, title: String) -> Subject {
        let claim = self.target.is_claim.then(|| {
            let part = |key: &str| self.object["metadata"][key].as_str().unwrap_or_default();
            format!("{}/{}", part("namespace"), part("name"))
        });
        let world = World::from_documents(composite, seen)
            .defined_by(&self.xrd)
            .select(&step.composition)
            .running(&step.name)
            .with_others(step.configs.clone());
        Subject { title, claim, step, world, written: Written::new() }
    }
}

/// What tells a claim or a composite from every other.
fn whose<'a>(target: &'a Target, object: &'a Value) -> Whose<'a> {
    let part = |key: &str| object["metadata"][key].as_str();
    Whose { target, namespace: part("namespace"), name: part("name").unwrap_or_default() }
}
