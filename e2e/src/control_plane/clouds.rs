//! The fake providers of clouds, as a process with its own service account.

use std::{path::Path, sync::Arc, time::Duration, time::Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use tokio::time::sleep;

use super::{
    NAMESPACE, cluster::Cluster, postgres::Postgres, process::Program, providers, workdir::Workdir,
};
use crate::fake_providers::{self, configs};

/// The name of the service account and of the process.
const NAME: &str = "fake-providers";

/// The longest time until the fake clouds have started.
const STARTING: Duration = Duration::from_mins(2);

/// Applies the provider configs. Crossplane installs the families of providers after the providers,
/// so these kinds may not exist at first.
async fn configure(cluster: &Cluster) -> Result<()> {
    let (start, configs) = (Instant::now(), configs::from_guide()?);
    loop {
        match cluster.apply(&configs).await {
            Err(error)
                if start.elapsed() < STARTING
                    && format!("{error:#}").contains("no matches for kind") =>
            {
                sleep(Duration::from_secs(1)).await;
            }
            done => return done,
        }
    }
}

/// Starts the fake providers with the rights that the RBAC manager gives to the real ones, and with
/// those of test equipment. The kubeconfig `clusters` leads to EKS clusters.
pub async fn start(
    workdir: &Arc<Workdir>,
    cluster: &Cluster,
    round: Duration,
    postgres: Option<&Postgres>,
    clusters: &Path,
) -> Result<()> {
    let start = Instant::now();
    providers::bound(cluster, NAME).await?;
    cluster.apply(&rights()).await?;
    configure(cluster).await?;
    let account = cluster.account(NAMESPACE, NAME).await?;
    let mut program = Program::new(NAME, &std::env::current_exe()?)
        .args(["fake-providers", "--kubeconfig"])
        .arg(account.display().to_string())
        .arg(format!("--round={}", round.as_secs_f64()))
        .arg(format!("--clusters={}", clusters.display()));
    if let Some(postgres) = postgres {
        program = program.env(fake_providers::POSTGRES, postgres.url());
    }
    let process = workdir.start(program)?;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    process
        .ready(STARTING, async || namespaces.get(fake_providers::NAMESPACE).await.is_ok())
        .await?;
    workdir.tell(NAME, start);
    Ok(())
}

/// Starts a PostgreSQL server. Returns none if its programs are missing. provider-sql's kinds then
/// have no provider.
pub async fn postgres(workdir: &Workdir) -> Result<Option<Postgres>> {
    let start = Instant::now();
    match Postgres::start(&workdir.logs()).await {
        Ok(postgres) => {
            workdir.tell("postgres", start);
            Ok(Some(postgres))
        }
        Err(error) => {
            eprintln!("without PostgreSQL, unified environments do not become ready: {error:#}");
            Ok(None)
        }
    }
}

/// The rights that the fake providers need beyond those of real ones: to create the namespace of
/// their clouds, to see the deletion of namespaces, and to read the installed CRDs.
fn rights() -> [serde_json::Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": [
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch"]},
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get", "list", "watch"],
            },
        ],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME}],
    });
    [role, binding]
}
