//! The stand-in for providers whose clouds cannot run here: it answers for their managed resources
//! as they do.
//!
//! Clouds are pretended ([`state`]), PostgreSQL is a real server beside it. How each kind answers
//! comes from the simulator's model, which previews use too: its ids, status, secrets, references
//! and refusals. Here are time, and what exists. It keeps nothing but what is in the cluster, so
//! that it may be killed and started at any moment.

pub mod configs;
mod controllers;
pub mod faults;
mod policy;
mod postgres;
mod reconcile;
mod resource;
pub mod schema;
mod secrets;
pub mod state;
mod upjet;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use faults::{Faults, Rule};
use state::Cloud;

/// The namespace of everything that is the stand-in's own: what exists in the clouds, and how they
/// behave.
pub const NAMESPACE: &str = "fake-providers-system";

/// The variable that names the PostgreSQL server with its password: a command line is everybody's
/// to read.
pub const POSTGRES: &str = "STAND_IN_POSTGRES";

/// How the stand-in works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long the clouds take for one round of a kind's model; a cluster takes four. Zero:
    /// everything at once.
    pub round: Duration,
    /// How often a resource is looked at that nothing happened to.
    pub poll: Duration,
    /// How soon what failed, or waits, is tried again.
    pub retry: Duration,
    /// The PostgreSQL server, as a connection string with a superuser; none: its kinds are not
    /// played.
    pub postgres: Option<String>,
    /// The kubeconfig, without an address, of the cluster that is behind all of EKS'; none: nothing
    /// is behind them.
    pub clusters: Option<Value>,
}

/// Flags of the fake providers.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Kubeconfig of the cluster to run in.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: PathBuf,
    /// Create all resources immediately.
    #[arg(long, conflicts_with = "round")]
    pub instant: bool,
    /// Seconds of one round of a kind's model. A cluster takes four rounds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub round: f64,
    /// Seconds between two observations of a resource without changes.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub poll: f64,
    /// URL of the PostgreSQL server [default: none; PostgreSQL's kinds get no provider].
    #[arg(long, value_name = "URL", env = POSTGRES, hide_env_values = true)]
    pub postgres: Option<String>,
    /// Kubeconfig in JSON for EKS clusters [default: none; EKS clusters get no API server].
    #[arg(long, value_name = "FILE")]
    pub clusters: Option<PathBuf>,
}

/// What keeps a resource from going further.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The outside said no, in these words.
    #[error("{0}")]
    Refused(String),
    /// The provider writes nothing to the object.
    #[error("the provider is silent")]
    Silent,
    /// The provider is at something else with the same resource.
    #[error("{0}")]
    Busy(String),
    /// The API server did not do what it was asked.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// Anything else.
    #[error(transparent)]
    Broken(#[from] anyhow::Error),
}

/// Runs the stand-in as the command line says, until it is interrupted.
pub async fn main(args: Args) -> anyhow::Result<()> {
    let kubeconfig = Kubeconfig::read_from(&args.kubeconfig)
        .with_context(|| format!("cannot read {}", args.kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let options = Options {
        round: if args.instant { Duration::ZERO } else { Duration::from_secs_f64(args.round) },
        poll: Duration::from_secs_f64(args.poll),
        postgres: args.postgres,
        clusters: args.clusters.as_deref().map(json_file).transpose()?,
        ..Options::default()
    };
    tokio::select! {
        ended = run(Client::try_from(config)?, options) => ended,
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

fn json_file(path: &Path) -> anyhow::Result<Value> {
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&content).with_context(|| format!("{} is no JSON", path.display()))
}

/// Plays every managed resource of ours, in both flavours, until the future is dropped. A kind is
/// played from when its CRD is there.
pub async fn run(client: Client, options: Options) -> anyhow::Result<()> {
    make_namespace(&client).await?;
    let cloud = Arc::new(Cloud::open(client.clone()).await?);
    let (rules, faults) = watch::channel(Faults::default());
    tokio::select! {
        () = cloud.follow() => bail!("what exists in the clouds can no longer be followed"),
        () = faults::follow(client.clone(), rules) => bail!("the rules can no longer be followed"),
        ended = controllers::run(client.clone(), options, cloud.clone(), faults) => ended,
    }
}

async fn make_namespace(client: &Client) -> anyhow::Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let ours = PatchParams::apply(MANAGER).force();
    api.patch(NAMESPACE, &ours, &Patch::Apply(&namespace))
        .await
        .with_context(|| format!("cannot make the namespace {NAMESPACE}"))?;
    Ok(())
}

impl Default for Options {
    fn default() -> Self {
        Self {
            round: Duration::from_secs(1),
            poll: Duration::from_secs(10),
            retry: Duration::from_secs(1),
            postgres: None,
            clusters: None,
        }
    }
}

/// Who writes, as the API server notes it.
const MANAGER: &str = "fake-providers";

/// How objects are written.
fn written() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// A number of seconds, up to a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("{text:?} is no number of seconds from 0 to 86400")),
    }
}

/// SHA-256 in hexadecimal.
fn digest(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
