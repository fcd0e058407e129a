//! One claim or XR, checked, and the world around it.

use function_paved_road::apis::Flavour;
use function_sdk_rust::proto::v1::{RunFunctionResponse, Severity};
use serde_json::{Value, json};
use simulator::core::{World, composite_from_claim};
use simulator::schema::{Schemas, Violation};

use super::discreet::discreet;
use super::kind::{self, Target};
use super::step::{self, Step};
use super::{observed, shown};
use crate::Console;
use crate::cli::Preview;
use crate::failure::Failure;
use crate::files::Document;

/// One claim or XR, checked, and the world around it.
pub(crate) struct Subject {
    /// File, kind and name, for messages.
    pub(crate) title: String,
    /// Namespace and name of the claim, if it is one.
    pub(crate) claim: Option<String>,
    pub(crate) step: Step,
    pub(crate) world: World,
}

impl Subject {
    /// Applies defaults, validates, makes the composite of a claim, and puts the observed world around it.
    pub(crate) fn prepare(
        document: &Document,
        args: &Preview,
        seen: &[Value],
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let title = title(document);
        let refused = |violations| Failure::Refused { what: title.clone(), violations };
        let target = kind::find(&document.value).map_err(|violation| refused(vec![violation]))?;
        let xrd = target.xrd();
        let object = checked(&document.value, &target, &xrd, seen).map_err(refused)?;
        let claim = target.is_claim.then(|| {
            let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            format!("{}/{}", part("namespace"), part("name"))
        });
        let (composite, seen) = composite(object, &target, &xrd, seen).map_err(refused)?;
        let step = step::find(&target, &document.file, args, console)?;
        for other in &step.others {
            writeln!(
                console.err,
                "note: {title}: a preview does not run {other}, another step of the Composition"
            )?;
        }
        let world = World::from_documents(composite, seen)
            .defined_by(&xrd)
            .select(&step.composition)
            .running(&step.name)
            .with_others(step.configs.clone());
        Ok(Self { title, claim, step, world })
    }

    /// A fatal failure of this subject.
    pub(crate) fn fatal(&self, message: String) -> Failure {
        Failure::Fatal { what: self.title.clone(), message }
    }

    /// Refuses a response with a fatal result; what the function warns of may be the cause.
    pub(crate) fn check(
        &self,
        response: &RunFunctionResponse,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let graded = |severity| response.results.iter().filter(move |result| result.severity() == severity);
        let Some(fatal) = graded(Severity::Fatal).next() else { return Ok(()) };
        for warning in graded(Severity::Warning) {
            writeln!(console.err, "warning: {}: {}", self.title, warning.message)?;
        }
        Err(self.fatal(fatal.message.clone()))
    }
}

fn title(document: &Document) -> String {
    let kind = document.value["kind"].as_str().unwrap_or("a document without kind");
    let name = document.value["metadata"]["name"].as_str().unwrap_or("without name");
    format!("{}: {kind} {name}", shown(&document.file))
}

/// The document with its defaults, as an API server would store it, or everything it would refuse.
fn checked(document: &Value, target: &Target, xrd: &Value, seen: &[Value]) -> Result<Value, Vec<Violation>> {
    let violation = |path: &str, message: String| Violation { path: path.to_owned(), message };
    let schemas = Schemas::new([xrd]).map_err(|error| vec![violation("", error.to_string())])?;
    let Some(definition) = schemas.of(document) else {
        let known: Vec<String> =
            schemas.iter().map(|one| format!("{} {}", one.api_version(), one.kind())).collect();
        return Err(vec![violation("apiVersion", format!("allowed: {}", known.join(", ")))]);
    };
    let mut object = document.clone();
    let in_namespace = target.is_claim || target.flavour == Flavour::Namespaced;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata").filter(|_| in_namespace) {
        metadata.entry("namespace").or_insert_with(|| json!("default"));
    }
    definition.apply_defaults(&mut object);
    let mut violations = definition.validate(&object, observed::stored(&object, seen));
    if object["metadata"]["name"].is_null() {
        violations.push(violation("metadata.name", "is missing; a string is needed".to_owned()));
        violations.sort();
    }
    if violations.is_empty() {
        return Ok(object);
    }
    Err(violations.into_iter().map(|violation| discreet(violation, &object)).collect())
}

/// The composite, and what is observed of it.
fn composite(
    mut object: Value,
    target: &Target,
    xrd: &Value,
    seen: &[Value],
) -> Result<(Value, Vec<Value>), Vec<Violation>> {
    if !target.is_claim {
        observed::recall(&mut object, seen);
        let seen = observed::of_composite(&object, seen);
        return Ok((object, seen));
    }
    if let Some(name) = observed::bound_name(&object, seen) {
        object["spec"]["resourceRef"]["name"] = json!(name);
    }
    let refused = |message: String| vec![Violation { path: String::new(), message }];
    let mut composite = composite_from_claim(&object, xrd).map_err(|error| refused(error.to_string()))?;
    observed::recall(&mut composite, seen);
    let seen = observed::of_composite(&composite, seen);
    observed::adopt_secret(&mut composite, &seen);
    Ok((composite, seen))
}
