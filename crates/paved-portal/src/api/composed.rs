//! Composes a claim in this process.

use crossplane::names::SLOT;
use function_paved_road::apis::gpu_workspace::{has_no_ssh_key, is_closed_to_ssh};
use function_paved_road::function::Outside;
use function_proto::v1::Severity;
use jiff::Timestamp;
use k8s_schema::Violation;
use paved_client::environment::Price;
use paved_render::function;
use paved_render::redact::without_secrets;
use paved_render::rendered;
use paved_render::subject::Stored;
use paved_render::subject::observed::Observed;
use paved_render::subject::pipeline_step::Step;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::live::Part;
use crate::problem::{FieldError, Problem};

/// The function's result for a claim.
pub(super) struct Composed {
    /// The name of the Composition.
    pub(super) composition: String,
    /// All resources, including resources that are created later.
    pub(super) parts: Vec<Part>,
    /// The resources that are created first, by slot.
    pub(super) resources: Vec<Resource>,
    /// Notes of the function.
    pub(super) notes: Vec<String>,
    /// The estimated price, if it is known.
    pub(super) price: Option<Price>,
    /// Time of the expiry in RFC 3339.
    pub(super) expires_at: Option<String>,
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    pub(super) ssh_closed: bool,
}

/// A resource that would be created.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// The slot: the permanent name of the resource in the environment.
    pub(super) slot: String,
    pub(super) kind: String,
    /// The object, without secrets.
    #[schema(value_type = Object)]
    pub(super) manifest: Value,
}

/// The reason why a claim is rejected.
pub(super) struct Rejected {
    /// The introduction of the message.
    words: String,
    fields: Vec<FieldError>,
}

impl Rejected {
    /// The rejection without the errors of another one. `None` if no error is left.
    pub(super) fn beyond(mut self, known: Option<&Self>) -> Option<Self> {
        let known = known.map_or(&[][..], |known| &known.fields);
        self.fields.retain(|field| !known.contains(field));
        (!self.fields.is_empty()).then_some(self)
    }
}

impl From<Rejected> for Problem {
    fn from(Rejected { words, fields }: Rejected) -> Self {
        Self::refused(&words, fields)
    }
}

impl Composed {
    /// Composes a claim. For a change, `before` is the existing object. The random numbers are
    /// fixed, so that generated values do not appear as differences.
    pub(super) fn new(
        document: &Value,
        before: Option<&Value>,
        step: &Step,
    ) -> Result<Self, Rejected> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let title = format!("{} {}", text(&document["kind"]), text(&document["metadata"]["name"]));
        let fatal = |fields: Vec<FieldError>| Rejected { words: String::new(), fields };
        let broken = |message: String| fatal(vec![FieldError::new(String::new(), message)]);
        let refused = |violations: Vec<Violation>| Rejected {
            words: format!("{title} is rejected: "),
            fields: violations
                .into_iter()
                .map(|one| FieldError::new(one.path, one.message))
                .collect(),
        };
        let seen = Observed::new(before.cloned().into_iter().collect());
        let stored =
            Stored::from_document(document, &seen).map_err(|violation| refused(vec![violation]))?;
        if !stored.violations.is_empty() {
            return Err(refused(stored.violations));
        }
        let (mut composite, around) = stored.composite(&Observed::default()).map_err(refused)?;
        // Rules for new environments do not concern one that has resources. Their slots suffice.
        let listed = before.and_then(|before| before.pointer("/status/resources")?.as_array());
        if let Some(listed) = listed {
            let slots = listed.iter().map(|resource| json!({"slot": resource["slot"]}));
            composite["status"] = json!({"resources": slots.collect::<Vec<_>>()});
        }
        let subject = stored.among((composite, around), step.clone(), title.clone());
        let mut random = |buffer: &mut [u8]| buffer.fill(7);
        let outside = Outside { now: Timestamp::now(), random: &mut random };
        let response =
            function::answer_with(&subject.world, &subject.step.input, outside).map_err(broken)?;
        let of =
            |severity| response.results.iter().filter(move |result| result.severity() == severity);
        let fatals: Vec<FieldError> =
            of(Severity::Fatal).map(|result| at_field(&result.message)).collect();
        if !fatals.is_empty() {
            return Err(fatal(fatals));
        }
        let shown =
            rendered(&subject.world, &response).map_err(|error| broken(error.to_string()))?;
        let status = &shown.composite["status"];
        let price = Price::from_status(status);
        let expires_at = status["lifecycle"]["expiresAt"].as_str().map(str::to_owned);
        let lines = status["resources"].as_array().cloned().unwrap_or_default();
        let parts: Vec<Part> =
            lines.into_iter().filter_map(|line| serde_json::from_value(line).ok()).collect();
        let resource = |mut manifest: Value| {
            without_secrets(&mut manifest);
            let (slot, kind) =
                (text(&manifest["metadata"]["annotations"][SLOT]), text(&manifest["kind"]));
            Resource { slot, kind, manifest }
        };
        let resources: Vec<Resource> = shown.resources.into_iter().map(resource).collect();
        let slots = parts.iter().map(|part| part.slot.as_str());
        let ssh_closed = is_closed_to_ssh(&text(&document["kind"]), slots);
        let closed = ssh_closed.then(|| "SSH is closed: no network is allowed.".to_owned());
        let keyless = has_no_ssh_key(&text(&document["kind"]), &document["spec"]);
        let keyless = keyless
            .then(|| "No SSH key: you will connect by AWS Session Manager. Add a key.".to_owned());
        let others = step.others.iter();
        let others = others.map(|other| {
            format!(
                "The preview does not include {other}, another step of the \
                 Composition."
            )
        });
        let warnings = of(Severity::Warning).map(|result| result.message.clone());
        Ok(Self {
            composition: text(&step.composition["metadata"]["name"]),
            parts,
            resources,
            notes: closed.into_iter().chain(keyless).chain(others).chain(warnings).collect(),
            price,
            expires_at,
            ssh_closed,
        })
    }
}

/// A fatal result of the function as an error of a field. If it concerns a field, its message
/// begins with the path.
fn at_field(message: &str) -> FieldError {
    let found = message.split_once(": ").filter(|(path, _)| {
        let first = path.split(['.', '[']).next();
        matches!(first, Some("spec" | "metadata")) && !path.contains(char::is_whitespace)
    });
    let (path, message) = found.unwrap_or(("", message));
    FieldError::new(path.to_owned(), message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_result_is_an_error_of_its_field() {
        for (message, field, rest) in [
            (
                "spec.parameters.instanceType: found \"x\"; allowed: y",
                "spec.parameters.instanceType",
                "found \"x\"; allowed: y",
            ),
            ("spec.backend.env[0]: is missing", "spec.backend.env[0]", "is missing"),
            ("settings.gpuWorkspace: no vpcId", "", "settings.gpuWorkspace: no vpcId"),
            ("no Settings: ask your platform team", "", "no Settings: ask your platform team"),
            ("special: x", "", "special: x"),
        ] {
            assert_eq!(
                at_field(message),
                FieldError { field: field.to_owned(), message: rest.to_owned() }
            );
        }
    }
}
