//! One validated claim or XR, and the simulated world around it.

mod coerce;
pub mod kind;
pub mod observed;
pub mod pipeline_step;
pub mod placeholder;

use function_paved_road::apis::Flavour;
use function_proto::v1::{RunFunctionResponse, Severity};
use k8s_schema::{Schemas, Violation};
use serde_json::{Value, json};
use simulator::core::{World, composite_from_claim};

use crate::redact::redacted;
use crate::{Rejected, Written, function};
use kind::Target;
use observed::{Observed, Whose};
use pipeline_step::Step;

/// One validated claim or XR, and the simulated world around it.
pub struct Subject {
    /// The file, kind and name, for messages.
    pub title: String,
    /// The namespace and name of the claim. `None` for a composite.
    pub claim: Option<String>,
    /// The step of the Composition that composes it.
    pub step: Step,
    /// The composite and its observed resources.
    pub world: World,
    /// The document's numbers as written.
    written: Written,
}

/// A claim or an XR with its defaults, as an API server would store it.
pub struct Stored {
    /// The API and the type of the document.
    pub target: Target,
    /// The document with its defaults.
    pub object: Value,
    /// All violations for which an API server would reject the document, without secrets.
    pub violations: Vec<Violation>,
    xrd: Value,
}

impl Subject {
    /// A fatal failure of this subject.
    pub fn fatal(&self, message: String) -> Rejected {
        Rejected { what: self.title.clone(), message, warnings: Vec::new() }
    }

    /// The same subject with the numbers as written in its file.
    pub fn written(self, written: Written) -> Self {
        Self { written, ..self }
    }

    /// Rejects a response with fatal results. The function's warnings are included, because they
    /// may describe the cause.
    pub fn check(&self, response: &RunFunctionResponse) -> Result<(), Rejected> {
        let Some(fatal) = function::fatal(response, &self.written) else { return Ok(()) };
        let warnings =
            response.results.iter().filter(|result| result.severity() == Severity::Warning);
        let warnings = warnings.map(|warning| warning.message.clone()).collect();
        Err(Rejected { warnings, ..self.fatal(fatal) })
    }
}

/// A composite and its observed resources.
pub type Surrounded = (Value, Vec<Value>);

impl Stored {
    /// Applies defaults and validates. Fails with one violation if the document cannot be checked
    /// further.
    pub fn from_document(document: &Value, seen: &Observed) -> Result<Self, Violation> {
        Self::in_flavour(document, seen, None)
    }

    /// The same, where the caller knows whether an ambiguous kind is in the claims API or the
    /// namespaced API.
    pub fn in_flavour(
        document: &Value,
        seen: &Observed,
        known: Option<Flavour>,
    ) -> Result<Self, Violation> {
        let target = kind::find_in(document, known)?;
        let xrd = target.xrd();
        let violation = |path: &str, message: String| Violation { path: path.to_owned(), message };
        let schemas = Schemas::new([&xrd]).map_err(|error| violation("", error.to_string()))?;
        let Some(definition) = schemas.for_object(document) else {
            let known: Vec<String> =
                schemas.iter().map(|one| format!("{} {}", one.api_version(), one.kind())).collect();
            return Err(violation("apiVersion", format!("allowed: {}", known.join(", "))));
        };
        let mut object = document.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            if target.is_namespaced() {
                metadata.entry("namespace").or_insert_with(|| json!("default"));
            } else {
                // An API server does the same for cluster-scoped kinds.
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
        let violations =
            violations.into_iter().map(|violation| redacted(violation, &object)).collect();
        Ok(Self { target, object, violations, xrd })
    }

    /// Makes the spec readable for the function. Otherwise the schema's violations would hide the
    /// function's.
    pub fn make_readable(&mut self) {
        let Ok(schemas) = Schemas::new([&self.xrd]) else { return };
        if let Some(definition) = schemas.for_object(&self.object) {
            coerce::make(&mut self.object["spec"], &definition.schema()["properties"]["spec"]);
        }
    }

    /// The composite, which Crossplane creates from a claim, and its observed resources.
    pub fn composite(&self, seen: &Observed) -> Result<Surrounded, Vec<Violation>> {
        let mut object = self.object.clone();
        let whose = whose(&self.target, &self.object);
        if self.target.is_claim {
            if object["spec"]["resourceRef"]["name"].is_null()
                && let Some(name) = seen.bound_name(&whose)
            {
                object["spec"]["resourceRef"]["name"] = json!(name);
            }
            let refused = |message: String| vec![Violation { path: String::new(), message }];
            object = composite_from_claim(&object, &self.xrd)
                .map_err(|error| refused(error.to_string()))?;
        }
        let around = seen.surround(&mut object, &whose);
        Ok((object, around))
    }

    /// The subject with its composite and world, composed by a step.
    pub fn among(&self, (composite, seen): Surrounded, step: Step, title: String) -> Subject {
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

/// The identity of a claim or composite.
fn whose<'a>(target: &'a Target, object: &'a Value) -> Whose<'a> {
    let part = |key: &str| object["metadata"][key].as_str();
    Whose { target, namespace: part("namespace"), name: part("name").unwrap_or_default() }
}
