//! provider-kubernetes and provider-helm: the real programs, each with its own service account. For
//! one scenario, the real provider-sql too.

use std::{path::Path, sync::Arc, time::Duration, time::Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use tokio::time::sleep;
use xtask::tools;

use super::{
    NAMESPACE,
    cluster::Cluster,
    ports,
    postgres::Postgres,
    process::Program,
    proxy::Proxy,
    runtime::{Runtime, container},
    workdir::Workdir,
};

const START_TIMEOUT: Duration = Duration::from_mins(2);

/// How often providers check resources without events. The interval is so long that no scenario
/// passes because of it.
const POLL: &str = "--poll=10m";

/// Starts both providers, and creates provider configs named `default` for them.
pub async fn start(
    workdir: &Arc<Workdir>,
    cluster: &Cluster,
    proxy: &Proxy,
    runtime: &Runtime,
) -> Result<()> {
    let start = Instant::now();
    for account in ["provider-kubernetes", "provider-helm"] {
        bound(cluster, account).await?;
    }
    let certificates = workdir.subfolder("provider-kubernetes-server")?;
    runtime.authority().sign(["127.0.0.1"])?.write(&certificates)?;
    let health = ports::free()?;
    let kubernetes = Program::new("provider-kubernetes", &workdir.tools.provider_kubernetes)
        .arg(format!("--health-probe-bind-addr=127.0.0.1:{health}"))
        .env("TLS_SERVER_CERTS_DIR", certificates.display().to_string());
    let helm = Program::new("provider-helm", &workdir.tools.provider_helm);
    for program in [kubernetes, helm] {
        let container = container(&program.name)?;
        let flags = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let program = program.args(flags).arg(POLL);
        let account = cluster.account(NAMESPACE, &program.name).await?;
        configs(cluster, &program.name, &account).await?;
        workdir.start(outward(program.env("KUBECONFIG", account.display().to_string()), proxy))?;
    }
    workdir.tell("provider-kubernetes, provider-helm", start);
    Ok(())
}

/// The login of provider-sql on its PostgreSQL server.
pub const SQL_ADMINISTRATOR: &str = "crossplane";

/// Starts the real provider-sql with the service account of the fake providers, which has the same
/// rights on its kinds. Its login on the server is [`SQL_ADMINISTRATOR`], and its provider configs
/// are named `default`. The server has no TLS.
pub async fn start_sql(
    workdir: &Arc<Workdir>,
    cluster: &Cluster,
    postgres: &Postgres,
) -> Result<()> {
    let start = Instant::now();
    let password = postgres.administrator(SQL_ADMINISTRATOR).await?;
    let secret = "postgresql";
    let config = |group: &str, kind: &str| -> Value {
        json!({
            "apiVersion": format!("{group}/v1alpha1"),
            "kind": kind,
            "metadata": {"name": "default"},
            "spec": {
                "defaultDatabase": "postgres",
                "sslMode": "disable",
                "credentials": {
                    "source": "PostgreSQLConnectionSecret",
                    "connectionSecretRef": {"namespace": NAMESPACE, "name": secret},
                },
            },
        })
    };
    let credentials = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": NAMESPACE},
        "stringData": {
            "endpoint": "127.0.0.1",
            "port": postgres.port.to_string(),
            "username": SQL_ADMINISTRATOR,
            "password": password,
        },
    });
    let configs = [
        credentials,
        config("postgresql.sql.crossplane.io", "ProviderConfig"),
        config("postgresql.sql.m.crossplane.io", "ClusterProviderConfig"),
    ];
    cluster.apply(&configs).await?;
    let account = cluster.account(NAMESPACE, "fake-providers").await?;
    let path = tokio::task::spawn_blocking(|| tools::path(&tools::PROVIDER_SQL)).await??;
    let program = Program::new("provider-sql", &path)
        .args([POLL, "--metrics-bind-address=0"])
        .env("KUBECONFIG", account.display().to_string());
    workdir.start(program)?;
    workdir.tell("provider-sql", start);
    Ok(())
}

/// Routes a program's outgoing connections through the proxy.
fn outward(program: Program, proxy: &Proxy) -> Program {
    program
        .env("HTTPS_PROXY", &proxy.url)
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("SSL_CERT_FILE", proxy.trusted.display().to_string())
}

/// Waits until the RBAC manager has bound a provider's rights to its service account.
pub async fn bound(cluster: &Cluster, account: &str) -> Result<()> {
    let start = Instant::now();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client.clone());
    loop {
        let found = bindings.list(&ListParams::default()).await?.into_iter().any(|binding| {
            let given = binding.role_ref.name.starts_with("crossplane:provider:");
            given
                && binding
                    .subjects
                    .unwrap_or_default()
                    .iter()
                    .any(|subject| subject.name == account)
        });
        if found {
            return Ok(());
        }
        if start.elapsed() > START_TIMEOUT {
            bail!("the RBAC manager has given no rights to {account}");
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// Creates the provider configs for claims and for namespaced composites, with the provider's own
/// kubeconfig. In a pod, they would use the pod's identity.
async fn configs(cluster: &Cluster, provider: &str, kubeconfig: &Path) -> Result<()> {
    let kubeconfig = std::fs::read_to_string(kubeconfig).context("the provider's kubeconfig")?;
    let family = provider.trim_start_matches("provider-");
    let config = |group: &str, version: &str, kind: &str| -> Value {
        json!({
            "apiVersion": format!("{group}/{version}"),
            "kind": kind,
            "metadata": {"name": "default"},
            "spec": {"credentials": {
                "source": "Secret",
                "secretRef": {"namespace": NAMESPACE, "name": provider, "key": "kubeconfig"},
            }},
        })
    };
    let version = if family == "helm" { "v1beta1" } else { "v1alpha1" };
    cluster
        .apply(&[
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": provider, "namespace": NAMESPACE},
                "stringData": {"kubeconfig": kubeconfig},
            }),
            config(&format!("{family}.crossplane.io"), version, "ProviderConfig"),
            config(&format!("{family}.m.crossplane.io"), version, "ClusterProviderConfig"),
        ])
        .await
}
