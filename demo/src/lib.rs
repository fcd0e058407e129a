//! The portal with a fake cluster: a Kubernetes API in memory ([`fake_kube`]). The module
//! `crossplane` simulates Crossplane, the providers and their clouds. It uses the models of the
//! crate `simulator`, and the function in the same process.
//!
//! `paved demo` serves the portal in front of it. Every caller on loopback has all rights.

pub mod crossplane;
mod files;
mod platform;
mod recipes;
pub mod seed;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use fake_kube::access::{Access, User};
use fake_kube::{Cluster, Server};
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use self::crossplane::Crossplane;
use recipes::Recipes;

/// The user of every request.
pub const USER: &str = "ada";

/// The default namespace.
pub const NAMESPACE: &str = "team-vision";

/// A fake cluster. Dropping it stops the cluster.
pub struct Demo {
    /// The address of its API.
    pub address: SocketAddr,
    server: Server,
    _tasks: JoinSet<()>,
}

impl Demo {
    /// Starts a cluster on a free port of loopback. At pace 1 each resource takes some seconds. At
    /// 0.1 it takes a tenth of that time.
    pub async fn start(pace: f64, seeds: &[seed::Seed]) -> Result<Self> {
        let recipes = Arc::new(Recipes::load()?);
        let user = User::new(USER, &["system:masters", "system:authenticated"]);
        let cluster = Arc::new(Cluster::new(recipes.kinds()?, Access::open(user)));
        let mut crossplane = Crossplane::new(&cluster, &recipes, pace)?;
        seed::plant(seeds, &cluster, &recipes, &mut crossplane, pace)?;
        let server = Server::start(cluster).await.context("starting the fake cluster")?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { run(crossplane, pace).await });
        Ok(Self { address: server.address, server, _tasks: tasks })
    }

    /// Writes a kubeconfig for the cluster.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        let kubeconfig = self.server.kubeconfig("demo", NAMESPACE, &json!({}));
        std::fs::write(path, kubeconfig.to_string())
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// Runs Crossplane and the clouds permanently.
async fn run(mut crossplane: Crossplane, pace: f64) {
    const TICK: Duration = Duration::from_millis(500);
    let mut ticks = tokio::time::interval(TICK.mul_f64(pace.clamp(0.02, 1.0)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ticked = tokio::task::spawn_blocking(move || {
            crossplane.tick(Timestamp::now());
            crossplane
        });
        match ticked.await {
            Ok(back) => crossplane = back,
            Err(error) => return eprintln!("the fake Crossplane has stopped: {error}"),
        }
    }
}
