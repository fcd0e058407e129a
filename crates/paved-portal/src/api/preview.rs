//! `/api/v1/preview` and `…/{name}/preview`: the result of a new claim or of a change. The portal
//! composes it in this process with the cluster's own Composition and Settings.

mod composed;
mod difference;

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster, Kind, compositions};
use paved_render::subject::pipeline_step::{CONFIG, CONFIG_VERSION, Step, is_our_config};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;

use super::changes::{Document, drafted};
use super::environments::EnvironmentPath;
use super::write::{WriteRequest, Writer};
use crate::answer::Answer;
use crate::extract::{Json, Path};
use crate::live::{Part, Price};
use crate::problem::{ErrorResponses, NotFound, Problem, UnprocessableEntity};
use crate::signed_in::SignedIn;
use composed::Composed;
use difference::ChangedResource;

/// The maximum number of concurrent compositions. Each needs a processor.
const CONCURRENCY: usize = 2;

/// The maximum number of waiting requests. Each keeps its document in memory, which takes a
/// multiple of its length.
const WAITING: usize = 8;

/// The queue for composing claims.
pub(crate) struct Preview {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Preview {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { places: places(CONCURRENCY), waiting: places(CONCURRENCY + WAITING) }
    }
}

impl Preview {
    /// Enters the queue. Dropping the permit leaves it.
    fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let detail = "The portal is composing too many previews. Try again in a moment.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Composes and serializes the response in a separate thread. If the client disconnects, this
    /// continues, and keeps its permit until the end.
    async fn answer<T: Serialize>(
        &self,
        waits: OwnedSemaphorePermit,
        compose: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Problem::bad_request("The portal is shutting down."))?;
        let composed = tokio::task::spawn_blocking(move || {
            let _held = (waits, place);
            compose().map(|made| Answer(made).into_response())
        });
        composed.await.unwrap_or_else(|_| {
            Err(Problem::bad_request(
                "The preview failed unexpectedly. Ask your platform team to read the log of the \
                 portal.",
            ))
        })
    }
}

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
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    ssh_closed: bool,
}

/// A resource that would be created.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// The slot: the permanent name of the resource in the environment.
    slot: String,
    kind: String,
    /// The object, without secrets.
    #[schema(value_type = Object)]
    manifest: Value,
}

/// Preview an environment, without creating it.
///
/// The portal checks the schema itself, without a request to the API server.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewEnvironment", tag = "environments", request_body = Document,
    responses((status = 200, description = "The preview.", body = Previewed), ErrorResponses, UnprocessableEntity))]
pub(crate) async fn preview(
    State(preview): State<Arc<Preview>>,
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Json(document): Json<Value>,
) -> Result<Response, Problem> {
    let waits = preview.enter()?;
    let draft = WriteRequest::from_document(&writer, &person, document, None).await?;
    // Only users with the right to create the claim may see the effect of the Settings.
    if !writer.environments.access.may_create(&person, &draft.kind, &draft.namespace).await? {
        let (kind, namespace) = (draft.kind.name(), &draft.namespace);
        return Err(Problem::forbidden(format!(
            "You may not create {kind} in namespace {namespace}."
        )));
    }
    let step = step(&writer.environments.clients.own(), &draft).await?;
    let document = draft.document();
    let made =
        move || Composed::new(&document, None, &step).map(Previewed::from).map_err(Problem::from);
    preview.answer(waits, made).await
}

/// Preview a change of an environment, without changing it.
///
/// Takes the body of a PUT. Does not repeat errors that the current environment already has.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/preview", operation_id = "previewChange", tag = "environments", params(EnvironmentPath), request_body = Document,
    responses((status = 200, description = "The effect of the change.", body = PreviewedChange), ErrorResponses, NotFound, UnprocessableEntity))]
pub(crate) async fn change(
    State(preview): State<Arc<Preview>>,
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
    Json(document): Json<Value>,
) -> Result<Response, Problem> {
    let waits = preview.enter()?;
    let (kind, namespace, name) = place.read(&writer.environments.catalog)?;
    let (before, draft) = drafted(&writer, &person, (&kind, namespace, name), document).await?;
    if !writer.environments.access.may_change(&person, &kind, namespace).await? {
        return Err(Problem::forbidden(format!(
            "You may not change {} in namespace {namespace}.",
            kind.name()
        )));
    }
    let step = step(&writer.environments.clients.own(), &draft).await?;
    let after = draft.document();
    let mut now = after.clone();
    now["spec"] = before.data["spec"].clone();
    let made = move || {
        let now_composed = Composed::new(&now, None, &step);
        let known =
            now_composed.as_ref().err().map(|rejected| rejected.fields.clone()).unwrap_or_default();
        match Composed::new(&after, Some(&now), &step) {
            Ok(composed) => Ok(composed.since(now_composed.ok())),
            Err(mut rejected) => {
                rejected.fields.retain(|field| !known.contains(field));
                // A rejected environment cannot be composed and compared.
                if rejected.fields.is_empty() {
                    Ok(PreviewedChange::unknown(&step))
                } else {
                    Err(rejected.into())
                }
            }
        }
    };
    preview.answer(waits, made).await
}

/// The step of the Composition that Crossplane would select, with its Settings.
async fn step(cluster: &Cluster, draft: &WriteRequest) -> Result<Step, Problem> {
    let all = compositions(cluster).await.map_err(|failure| unreadable(&failure))?;
    let all = all.ok_or_else(|| {
        Problem::forbidden(
            "The portal cannot show a preview, because it may not read Compositions.",
        )
    })?;
    let spec = draft.object.get("spec").cloned().unwrap_or_default();
    let suited = all.iter().find(|one| one.serves(&draft.kind) && one.suits(&spec));
    let suited = suited.ok_or_else(|| no_composition(&draft.kind))?;
    let mut step =
        Step::from_composition(suited.document()).map_err(|failure| unreadable(&failure))?;
    step.configs = configs(cluster).await?;
    Ok(step)
}

fn no_composition(kind: &Kind) -> Problem {
    let detail = format!("This cluster has no Composition for this {}.", kind.name());
    Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// The EnvironmentConfigs with our Settings.
async fn configs(cluster: &Cluster) -> Result<Vec<Value>, Problem> {
    let (group, version) = crossplane::api_version::split(CONFIG_VERSION);
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: CONFIG_VERSION.to_owned(),
        kind: CONFIG.to_owned(),
        plural: "environmentconfigs".to_owned(),
    };
    let api = Api::for_resource(&cluster.client, None, &resource);
    let list = match api.list(&kube::api::ListParams::default()).await {
        Ok(list) => list.items,
        // A cluster without the kind has no Settings in EnvironmentConfigs.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let complete = |object: DynamicObject| {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = CONFIG_VERSION.into();
        value["kind"] = CONFIG.into();
        value
    };
    Ok(list.into_iter().map(complete).filter(is_our_config).collect())
}

fn unreadable(failure: &impl Display) -> Problem {
    tracing::warn!(%failure, "a claim cannot be previewed");
    Problem::new(
        http::StatusCode::BAD_GATEWAY,
        "The cluster's Compositions could not be read. Try again in a moment.",
    )
}
