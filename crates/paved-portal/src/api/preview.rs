//! `/api/v1/preview` and `…/{name}/preview`: the result of a new claim or of a change. The portal
//! composes it in this process with the cluster's own Composition and Settings.

mod difference;

use axum::extract::State;
use axum::response::Response;
use paved_render::subject::pipeline_step::Step;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::budget::{Budget, as_document};
use super::changes::{Document, drafted};
use super::composed::{Composed, Resource};
use super::composer;
use super::environments::EnvironmentPath;
use super::write::{WriteRequest, Writer};
use crate::bodies::Body;
use crate::extract::Path;
use crate::live::{Part, Price};
use crate::problem::{ErrorResponses, FieldError, NotFound, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;
use difference::{ChangedResource, differences};

/// A preview of an environment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Previewed {
    /// The Composition that would be used.
    composition: String,
    /// All resources, including resources that are created later.
    parts: Vec<Part>,
    /// The resources that are created first, by slot, without secrets.
    resources: Vec<Resource>,
    /// Notes of the function.
    notes: Vec<String>,
    /// The estimated price. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    /// The error with which the portal rejects the environment, because its price exceeds the
    /// budget of the namespace. Absent if the price fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<FieldError>,
    /// Time of the expiry in RFC 3339, if the environment were created now. Absent without a time
    /// to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    ssh_closed: bool,
}

/// A preview of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewedChange {
    /// The Composition that would be used.
    composition: String,
    /// The resources that the change affects, by slot.
    changes: Vec<ChangedResource>,
    /// Notes of the function.
    notes: Vec<String>,
    /// The estimated price after the change. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    /// The error with which the portal rejects the change, because its price exceeds the budget of
    /// the namespace. Absent if the price fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<FieldError>,
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    ssh_closed: bool,
}

/// Preview an environment, without creating it.
///
/// The portal checks the schema itself, without a request to the API server.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewEnvironment", tag = "environments", request_body = Document,
    responses((status = 200, description = "The preview.", body = Previewed), ErrorResponses, UnprocessableEntity))]
pub(crate) async fn preview(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    body: Body,
) -> Result<Response, Problem> {
    let queue = &writer.environments.composer;
    let waits = queue.enter()?;
    let body = body.read(&person).await?;
    let draft = WriteRequest::from_document(&writer, &person, body.value, None).await?;
    // Only users with the right to create the claim may see the effect of the Settings.
    if !writer.environments.access.may_create(&person, &draft.kind, &draft.namespace).await? {
        let (kind, namespace) = (draft.kind.name(), &draft.namespace);
        return Err(Problem::forbidden(format!(
            "You may not create {kind} in namespace {namespace}."
        )));
    }
    let step = step(&writer, &draft).await?;
    let budget = Budget::read(&writer.environments, &person, &draft.namespace, &step).await;
    let document = draft.document();
    let made = move || {
        let mut previewed = Composed::new(&document, None, &step).map(Previewed::from)?;
        if let Some(budget) = budget {
            previewed.notes.extend(unpriced(previewed.price.as_ref()));
            previewed.over_budget = budget.refusal(&document, None, &step);
        }
        Ok(previewed)
    };
    queue.answer(waits, made).await
}

/// Preview a change of an environment, without changing it.
///
/// Takes the body of a PUT. Does not repeat errors that the current environment already has.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/preview", operation_id = "previewChange", tag = "environments", params(EnvironmentPath), request_body = Document,
    responses((status = 200, description = "The effect of the change.", body = PreviewedChange), ErrorResponses, NotFound, UnprocessableEntity))]
pub(crate) async fn change(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    body: Body,
) -> Result<Response, Problem> {
    let (kind, namespace, name) = place.read(&writer.environments.catalog)?;
    let place = (&kind, namespace, name);
    writer.environments.access.check_write(&person, "update", place).await?;
    let queue = &writer.environments.composer;
    let waits = queue.enter()?;
    let body = body.read(&person).await?;
    let (before, draft) = drafted(&writer, &person, place, body.value).await?;
    let step = step(&writer, &draft).await?;
    let budget = Budget::read(&writer.environments, &person, &draft.namespace, &step).await;
    let after = draft.document();
    let live = as_document(&after, &before);
    let mut now = after.clone();
    now["spec"] = before.data["spec"].clone();
    let made = move || {
        let now_composed = Composed::new(&now, Some(&live), &step);
        match Composed::new(&after, Some(&live), &step) {
            Ok(composed) => {
                let mut previewed = PreviewedChange::since(now_composed.ok(), composed);
                if let Some(budget) = budget {
                    previewed.notes.extend(unpriced(previewed.price.as_ref()));
                    previewed.over_budget = budget.refusal(&after, Some(&live), &step);
                }
                Ok(previewed)
            }
            Err(rejected) => match rejected.beyond(now_composed.as_ref().err()) {
                // A rejected environment cannot be composed and compared.
                None => Ok(PreviewedChange::unknown(&step)),
                Some(rejected) => Err(rejected.into()),
            },
        }
    };
    queue.answer(waits, made).await
}

impl From<Composed> for Previewed {
    fn from(composed: Composed) -> Self {
        let Composed { composition, parts, resources, notes, price, expires_at, ssh_closed } =
            composed;
        Self {
            composition,
            parts,
            resources,
            notes,
            price: price.map(Into::into),
            over_budget: None,
            expires_at,
            ssh_closed,
        }
    }
}

impl PreviewedChange {
    /// The differences from the existing environment.
    fn since(before: Option<Composed>, after: Composed) -> Self {
        let Composed { composition, resources: after, notes, price, ssh_closed, .. } = after;
        let price = price.map(Into::into);
        // The existing environment cannot be composed, so the effect of the change is unknown.
        let changes =
            before.map(|before| differences(&before.resources, &after)).unwrap_or_default();
        Self { composition, changes, notes, price, over_budget: None, ssh_closed }
    }

    /// The result for a rejected environment, if the change adds no errors.
    fn unknown(step: &Step) -> Self {
        let composition =
            step.composition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let notes = vec![
            "The current environment is rejected, so the preview cannot compare resources."
                .to_owned(),
        ];
        Self {
            composition,
            changes: Vec::new(),
            notes,
            price: None,
            over_budget: None,
            ssh_closed: false,
        }
    }
}

/// The note on an environment without a price, in a namespace with a budget.
fn unpriced(price: Option<&Price>) -> Option<String> {
    let note = "The environment has no estimated price, so it does not count in the budget.";
    price.is_none().then(|| note.to_owned())
}

/// The step of the Composition that Crossplane would select for a draft.
async fn step(writer: &Writer, draft: &WriteRequest) -> Result<Step, Problem> {
    let spec = draft.object.get("spec").unwrap_or(&Value::Null);
    composer::step(&writer.environments.clients.own(), &draft.kind, spec).await
}
