//! `/api/v1/preview`: what a claim would become, composed in this process with the cluster's own Composition and Settings.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use function_sdk_rust::proto::v1::Severity;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;
use simulator::core::{SLOT, rendered};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::changes::Document;
use super::write::Draft;
use crate::cluster::{Api, Cluster, Kind, compositions};
use crate::failure::Failure;
use crate::function;
use crate::portal::Portal;
use crate::portal::extract::Json;
use crate::portal::live::Part;
use crate::portal::problem::{Problem, Refusals, Unfit};
use crate::portal::who::SignedIn;
use crate::subject::Stored;
use crate::subject::discreet::without_secrets;
use crate::subject::step::{CONFIG, CONFIG_VERSION, Step, is_our_config};

/// How many claims are composed at once: it takes a processor each.
const AT_ONCE: usize = 2;

/// The places where claims are composed.
pub(in crate::portal) struct Preview {
    places: Arc<Semaphore>,
}

impl Default for Preview {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// What a claim would become.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::portal) struct Previewed {
    /// The Composition that would be taken.
    composition: String,
    /// Everything that it will be made of, sooner or later.
    parts: Vec<Part>,
    /// What is made at once, slot by slot, without secrets.
    resources: Vec<Resource>,
    /// What the function has to say of it.
    notes: Vec<String>,
}

/// A resource that would be made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::portal) struct Resource {
    /// Its permanent name in the environment.
    slot: String,
    kind: String,
    /// The object, without secrets.
    #[schema(value_type = Object)]
    manifest: Value,
}

/// What a claim would become; nothing is made.
///
/// The API server is not asked: what it would refuse is found by its schema.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewEnvironment", tag = "environments", request_body = Document,
    responses((status = 200, description = "What it would become.", body = Previewed), Refusals, Unfit))]
pub(in crate::portal) async fn preview(
    State(portal): State<Arc<Portal>>,
    SignedIn(person): SignedIn,
    Json(document): Json<Value>,
) -> Result<Answer<Previewed>, Problem> {
    let draft = Draft::of(&portal, &person, document, None).await?;
    // What the platform's settings make of a claim is for those who may make one.
    if !portal.access.may_create(&person, &draft.kind, &draft.namespace).await? {
        let (kind, namespace) = (draft.kind.name(), &draft.namespace);
        return Err(Problem::forbidden(format!("You may not create {kind} in namespace {namespace}.")));
    }
    let step = step(&portal.clients.own(), &draft).await?;
    let places = Arc::clone(&portal.preview.places);
    let place = places.acquire_owned().await.map_err(|_| Problem::bad_request("The portal stops."))?;
    let document = draft.document();
    // It goes on where nobody waits for it any more, and keeps its place until it is done.
    let composed = tokio::task::spawn_blocking(move || {
        let _place = place;
        compose(&document, step)
    });
    let composed = composed.await;
    composed.unwrap_or_else(|_| Err(Problem::bad_request("This claim cannot be composed."))).map(Answer)
}

/// The step of the Composition that the API server would choose, with its Settings.
async fn step(cluster: &Cluster, draft: &Draft) -> Result<Step, Problem> {
    let all = compositions(cluster).await.map_err(|failure| unreadable(&failure))?;
    let all = all.ok_or_else(|| {
        Problem::forbidden("The portal may not read Compositions, so it cannot say what a claim becomes.")
    })?;
    let spec = draft.object.get("spec").cloned().unwrap_or_default();
    let suited = all.iter().find(|one| one.serves(&draft.kind) && one.suits(&spec));
    let suited = suited.ok_or_else(|| no_composition(&draft.kind))?;
    let mut step = Step::of(suited.document()).map_err(|failure| unreadable(&failure))?;
    step.configs = configs(cluster).await?;
    Ok(step)
}

fn no_composition(kind: &Kind) -> Problem {
    let detail = format!("No Composition here makes such a {}.", kind.name());
    Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// The EnvironmentConfigs with Settings of ours.
async fn configs(cluster: &Cluster) -> Result<Vec<Value>, Problem> {
    let (group, version) = CONFIG_VERSION.split_once('/').unwrap_or_default();
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: CONFIG_VERSION.to_owned(),
        kind: CONFIG.to_owned(),
        plural: "environmentconfigs".to_owned(),
    };
    let api = Api::of(&cluster.client, None, &resource);
    let list = match api.list(&kube::api::ListParams::default()).await {
        Ok(list) => list.items,
        // A cluster without the kind has no Settings there.
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

fn unreadable(failure: &Failure) -> Problem {
    tracing::warn!(%failure, "a claim cannot be previewed");
    Problem::new(http::StatusCode::BAD_GATEWAY, "The cluster's Compositions cannot be read just now.")
}

/// Composes a claim. The random numbers are nobody's: what is generated is not shown.
fn compose(document: &Value, step: Step) -> Result<Previewed, Problem> {
    let title = format!(
        "{} {}",
        document["kind"].as_str().unwrap_or_default(),
        document["metadata"]["name"].as_str().unwrap_or_default()
    );
    let refused = |violations| Problem::violations(&title, violations);
    let fatal = |message: String| Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, message);
    let composition = step.composition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let stored = Stored::of(document, &[]).map_err(|violation| refused(vec![violation]))?;
    if !stored.violations.is_empty() {
        return Err(refused(stored.violations));
    }
    let others = step.others.clone();
    let composite = stored.composite(&[]).map_err(refused)?;
    let subject = stored.among(composite, step, title.clone());
    let response = function::answer(&subject.world, &subject.step.input, Timestamp::now()).map_err(fatal)?;
    let of = |severity| response.results.iter().filter(move |result| result.severity() == severity);
    if let Some(message) = function::fatal(&response) {
        return Err(fatal(message));
    }
    let shown = rendered(&subject.world, &response).map_err(|error| fatal(error.to_string()))?;
    let lines = shown.composite["status"]["resources"].as_array().cloned().unwrap_or_default();
    let resource = |mut manifest: Value| {
        without_secrets(&mut manifest);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (slot, kind) = (text(&manifest["metadata"]["annotations"][SLOT]), text(&manifest["kind"]));
        Resource { slot, kind, manifest }
    };
    let steps = others
        .into_iter()
        .map(|other| format!("A preview does not run {other}, another step of the Composition."));
    Ok(Previewed {
        composition,
        parts: lines.into_iter().filter_map(|line| serde_json::from_value(line).ok()).collect(),
        resources: shown.resources.into_iter().map(resource).collect(),
        notes: steps.chain(of(Severity::Warning).map(|result| result.message.clone())).collect(),
    })
}
