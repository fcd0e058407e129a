//! The control plane's actions for a browser's specifications, which request them by HTTP on
//! loopback.
//!
//! | request | action |
//! |---|---|
//! | `PUT /rules/{environment}/{kind}` | sets a [`Rule`] for an environment's resources of a kind |
//! | `DELETE /rules/{environment}/{kind}` | removes this rule |
//! | `DELETE`, `PUT /processes/{name}` | stops a control plane process, and starts it again |
//! | `PUT /environments/{name}` | waits until Crossplane receives events of the environment |
//! | `GET /environments` | the names of the environments in the fixture's namespace |

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use crossplane::names;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use crate::eventually::TIMEOUT;
use crate::fake_providers::faults::Rule;
use crate::fixture::Fixture;

/// An HTTP server, which runs until it is dropped.
pub struct ControlApi {
    /// Its URL.
    pub url: String,
    task: JoinHandle<()>,
}

impl ControlApi {
    /// Starts the server for this fixture.
    pub async fn start(fixture: Fixture) -> Result<Self> {
        let routes = Router::new()
            .route("/rules/{environment}/{kind}", put(set_rule).delete(withdraw_rule))
            .route("/processes/{name}", put(start).delete(stop))
            .route("/environments", get(environments))
            .route("/environments/{name}", put(heard))
            .with_state(fixture);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening")?;
        let url = format!("http://{}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                eprintln!("the remote control has ended: {error}");
            }
        });
        Ok(Self { url, task })
    }
}

impl Drop for ControlApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An action's error, as its client receives it.
struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("{:#}", self.0)).into_response()
    }
}

async fn set_rule(
    State(fixture): State<Fixture>,
    Path((environment, kind)): Path<(String, String)>,
    Json(rule): Json<Rule>,
) -> Result<(), Failure> {
    let [claims, direct] = rule_names(&environment, &kind);
    let rule = Rule { kind: Some(kind), ..rule };
    let labels = [
        (names::CLAIM_NAMESPACE, fixture.namespace.clone()),
        (names::CLAIM_NAME, environment.clone()),
    ];
    let labels = labels.map(|(label, value)| (label.to_owned(), value)).into();
    fixture.rule(&claims, &Rule { labels, ..rule.clone() }).await?;
    let labels = [(names::COMPOSITE.to_owned(), environment)].into();
    let namespace = Some(fixture.namespace.clone());
    Ok(fixture.rule(&direct, &Rule { namespace, labels, ..rule }).await?)
}

async fn withdraw_rule(
    State(fixture): State<Fixture>,
    Path((environment, kind)): Path<(String, String)>,
) -> Result<(), Failure> {
    for name in rule_names(&environment, &kind) {
        fixture.no_rule(&name).await?;
    }
    Ok(())
}

/// A rule for claims and a rule for namespaced composites, which label their resources differently.
fn rule_names(environment: &str, kind: &str) -> [String; 2] {
    ["claims", "direct"].map(|flavour| format!("{environment}-{kind}-{flavour}"))
}

/// Returns when the API server answers, after the start of any process.
async fn start(State(fixture): State<Fixture>, Path(name): Path<String>) -> Result<(), Failure> {
    fixture.plane.process(&name)?.start_again()?;
    let end = Instant::now() + TIMEOUT;
    while fixture.plane.client().apiserver_version().await.is_err() {
        if Instant::now() > end {
            return Err(anyhow!("the API server did not respond again").into());
        }
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn stop(State(fixture): State<Fixture>, Path(name): Path<String>) -> Result<(), Failure> {
    fixture.plane.process(&name)?.stop().await;
    Ok(())
}

async fn heard(State(fixture): State<Fixture>, Path(name): Path<String>) -> Result<(), Failure> {
    // A wait for a condition borrows this condition, so it must stay in its thread.
    let here = Handle::current();
    let heard = move || {
        here.block_on(async {
            let all = fixture.environments().await?;
            let found = all.iter().find(|environment| environment.name() == name);
            found.with_context(|| format!("{name} does not exist"))?.heard(&fixture.admin).await
        })
    };
    Ok(spawn_blocking(heard).await.map_err(Error::from)??)
}

async fn environments(State(fixture): State<Fixture>) -> Result<Json<Vec<String>>, Failure> {
    let all = fixture.environments().await?;
    Ok(Json(all.iter().map(|environment| environment.name().to_owned()).collect()))
}
