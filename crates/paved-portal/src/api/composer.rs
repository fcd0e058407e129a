//! The queue for composing claims in this process, and the Compositions and Settings for it.

use std::fmt::Display;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster, Kind, compositions};
use paved_render::subject::pipeline_step::{CONFIG, CONFIG_VERSION, Step, is_our_config};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Answer;
use crate::problem::Problem;

/// The maximum number of concurrent compositions. Each needs a processor.
const CONCURRENCY: usize = 2;

/// The maximum number of waiting requests. Each keeps its document in memory, which takes a
/// multiple of its length.
const WAITING: usize = 8;

/// The queue for composing claims.
pub(crate) struct Composer {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Composer {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { places: places(CONCURRENCY), waiting: places(CONCURRENCY + WAITING) }
    }
}

impl Composer {
    /// Enters the queue. Dropping the permit leaves it.
    pub(super) fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let detail = "The portal is composing too many previews. Try again in a moment.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Composes and serializes the response in a separate thread. If the client disconnects, this
    /// continues, and keeps its permit until the end.
    pub(super) async fn answer<T: Serialize>(
        &self,
        waits: OwnedSemaphorePermit,
        compose: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let answer = move || {
            let _held = waits;
            compose().map(|made| Answer(made).into_response())
        };
        self.compose(answer).await?
    }

    /// Composes in a separate thread, after the compositions of other requests.
    pub(super) async fn compose<T: Send + 'static>(
        &self,
        compose: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Problem::bad_request("The portal is shutting down."))?;
        let composed = tokio::task::spawn_blocking(move || {
            let _held = place;
            compose()
        });
        composed.await.map_err(|_| {
            Problem::bad_request(
                "The preview failed unexpectedly. Ask your platform team to read the log of the \
                 portal.",
            )
        })
    }
}

/// The step of the Composition that Crossplane would select, with its Settings.
///
/// # Errors
/// The cluster does not answer, or has no Composition for the environment.
pub(super) async fn step(cluster: &Cluster, kind: &Kind, spec: &Value) -> Result<Step, Problem> {
    let all = compositions(cluster).await.map_err(|failure| unreadable(&failure))?;
    let all = all.ok_or_else(|| {
        Problem::forbidden(
            "The portal cannot show a preview, because it may not read Compositions.",
        )
    })?;
    let suited = all.iter().find(|one| one.serves(kind) && one.suits(spec));
    let suited = suited.ok_or_else(|| no_composition(kind))?;
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
