//! What only the control plane can do, for a browser's specifications: they ask for it by HTTP, on
//! loopback.
//!
//! | request | what it does |
//! |---|---|
//! | `PUT /rules/{environment}/{kind}` | from here on clouds treat the environment's parts of that kind by this [`Rule`] |
//! | `DELETE /rules/{environment}/{kind}` | … and from here on as usual |
//! | `DELETE`, `PUT /processes/{name}` | stops a process of the control plane, and starts it again |
//! | `PUT /environments/{name}` | waits until Crossplane hears what becomes of it |
//! | `GET /environments` | the names of those that there are in the stage's namespace |

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

/// Answers for as long as it is held.
pub struct ControlApi {
    /// Where it is asked.
    pub url: String,
    task: JoinHandle<()>,
}

impl ControlApi {
    /// Begins to answer, for this stage.
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

/// Why something was not done, as whoever asked for it is told.
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

/// A rule for each flavour: they label what is composed otherwise.
fn rule_names(environment: &str, kind: &str) -> [String; 2] {
    ["claims", "direct"].map(|flavour| format!("{environment}-{kind}-{flavour}"))
}

/// Whatever it was that was started again: when this answers, the API server does.
async fn start(State(fixture): State<Fixture>, Path(name): Path<String>) -> Result<(), Failure> {
    fixture.plane.process(&name)?.start_again()?;
    let end = Instant::now() + TIMEOUT;
    while fixture.plane.client().apiserver_version().await.is_err() {
        if Instant::now() > end {
            return Err(anyhow!("the API server does not answer again").into());
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
    // Whatever waits for something to be so borrows it, and stays in its thread.
    let here = Handle::current();
    let heard = move || {
        here.block_on(async {
            let all = fixture.environments().await?;
            let found = all.iter().find(|environment| environment.name() == name);
            found.with_context(|| format!("there is no {name}"))?.heard(&fixture.admin).await
        })
    };
    Ok(spawn_blocking(heard).await.map_err(Error::from)??)
}

async fn environments(State(fixture): State<Fixture>) -> Result<Json<Vec<String>>, Failure> {
    let all = fixture.environments().await?;
    Ok(Json(all.iter().map(|environment| environment.name().to_owned()).collect()))
}
