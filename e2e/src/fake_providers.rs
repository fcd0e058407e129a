//! The fake providers for clouds that cannot run here. They treat managed resources as the real
//! providers do.
//!
//! The clouds are fake ([`state`]). PostgreSQL is a real server. The simulator's models, which
//! previews also use, define each kind: its ids, status, secrets, references and refusals. This
//! module adds time and existing resources. All its state is in the cluster, so it may be killed
//! and started at any moment.

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

/// The namespace of the fake providers' own objects: external resources, and rules for the clouds.
pub const NAMESPACE: &str = "fake-providers-system";

/// The variable with the URL of the PostgreSQL server, including its password. Every user can read
/// a command line.
pub const POSTGRES: &str = "FAKE_PROVIDERS_POSTGRES";

/// Options of the fake providers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Duration of one round of a kind's model. A cluster takes four rounds. With zero, all
    /// resources are ready at once.
    pub round: Duration,
    /// How often a resource without changes is checked.
    pub poll: Duration,
    /// How soon a failed or waiting resource is retried.
    pub retry: Duration,
    /// The PostgreSQL server, as a superuser's connection string. Without it, its kinds have no
    /// provider.
    pub postgres: Option<String>,
    /// The kubeconfig, without an address, of the cluster behind all EKS clusters. Without it, EKS
    /// clusters have no API server.
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

/// An obstacle in the reconciliation of a resource.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The external system refused, with this message.
    #[error("{0}")]
    Refused(String),
    /// The provider does not write to the object.
    #[error("the provider is silent")]
    Silent,
    /// The provider is busy with another operation on the same resource.
    #[error("{0}")]
    Busy(String),
    /// A request to the API server failed.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// Any other error.
    #[error(transparent)]
    Broken(#[from] anyhow::Error),
}

/// Runs the fake providers with the flags of the command line, until an interrupt.
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
    serde_json::from_slice(&content)
        .with_context(|| format!("{} is not valid JSON", path.display()))
}

/// Runs the providers of all our managed resources, cluster-scoped and namespaced, until the future
/// is dropped. The provider of a kind starts when the kind's CRD exists.
pub async fn run(client: Client, options: Options) -> anyhow::Result<()> {
    make_namespace(&client).await?;
    let cloud = Arc::new(Cloud::open(client.clone()).await?);
    let (rules, faults) = watch::channel(Faults::default());
    tokio::select! {
        () = cloud.follow() => bail!("the watch of the clouds has ended"),
        () = faults::follow(client.clone(), rules) => bail!("the watch of the rules has ended"),
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

/// The field manager of all writes.
const MANAGER: &str = "fake-providers";

/// The parameters of all writes.
fn written() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// A number of seconds, up to a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("found {text:?}; allowed: 0 to 86400 seconds")),
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
