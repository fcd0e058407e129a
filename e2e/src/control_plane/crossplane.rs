//! Crossplane itself, with the rights of its own chart.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    NAMESPACE,
    cluster::Cluster,
    metrics::Metrics,
    pki::{Authority, Certificate},
    ports,
    process::Program,
    version::CoreVersion,
    workdir::Workdir,
};

const START_TIMEOUT: Duration = Duration::from_mins(2);

/// How often Crossplane checks resources without events. The interval is longer than any scenario
/// waits, so that no scenario passes because of it.
const POLL: &str = "--poll-interval=10m";

/// A running Crossplane.
pub struct Core {
    /// The authority that signs for functions.
    pub authority: Authority,
    /// Crossplane's metrics.
    pub metrics: Metrics,
}

/// Starts Crossplane and its RBAC manager.
pub async fn start(
    workdir: &Arc<Workdir>,
    cluster: &Cluster,
    version: CoreVersion,
) -> Result<Core> {
    let begin = Instant::now();
    let source = version.source()?;
    let webhooks = ports::free()?;
    let (objects, start) = chart(workdir, version, &source, webhooks).await?;
    cluster.apply(&objects).await?;
    let account = cluster.account(NAMESPACE, "crossplane").await?.display().to_string();
    init(workdir, version, &source, &account, webhooks).await?;
    workdir.tell("crossplane init", begin);

    let begin = Instant::now();
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let (server, client) =
        (workdir.subfolder("crossplane-server")?, workdir.subfolder("crossplane-client")?);
    certificate(&secrets, "crossplane-tls-server").await?.write(&server)?;
    certificate(&secrets, "crossplane-tls-client").await?.write(&client)?;
    let (health, metrics) = (ports::free()?, ports::free()?);
    let cache = |name: &str| Ok::<_, anyhow::Error>(workdir.subfolder(name)?.display().to_string());
    let core = Program::new("crossplane", &workdir.tools.core)
        .args(start)
        .args(["--package-runtime=External", POLL])
        .arg(format!("--webhook-port={webhooks}"))
        .arg(format!("--metrics-port={metrics}"))
        .arg(format!("--health-probe-port={health}"))
        .arg(format!("--tls-server-certs-dir={}", server.display()))
        .arg(format!("--tls-client-certs-dir={}", client.display()))
        .arg(format!("--xpkg-cache-dir={}", cache("xpkg")?))
        .arg(format!("--xfn-cache-dir={}", cache("xfn")?))
        .env("KUBECONFIG", &account);
    let core = workdir.start(core)?;
    rbac_manager(workdir, cluster).await?;
    core.ready(START_TIMEOUT, async || {
        ports::answers(health).await && ports::answers(webhooks).await
    })
    .await?;
    workdir.tell("crossplane, rbac-manager", begin);
    let root = certificate(&secrets, "crossplane-root-ca").await?;
    Ok(Core {
        authority: Authority::from_pem(&root.chain, &root.key)?,
        metrics: Metrics::at(metrics)?,
    })
}

/// Renders the chart's objects except Deployments, which processes replace. Also returns the
/// arguments of Crossplane's container. The chart's Services point to the process.
async fn chart(
    workdir: &Workdir,
    version: CoreVersion,
    source: &Path,
    webhooks: u16,
) -> Result<(Vec<Value>, Vec<String>)> {
    let chart = source.join("charts/crossplane").display().to_string();
    let program =
        Program::new("helm", &workdir.tools.helm).args(["template", "crossplane", &chart]);
    let rendered = workdir.run(program.args(version.helm_flags()?)).await?;
    let mut start = None;
    let mut objects =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})];
    for object in
        serde_saphyr::from_multiple::<Value>(&rendered).context("reading Crossplane's chart")?
    {
        let is_core = object["metadata"]["name"] == "crossplane";
        match object["kind"].as_str() {
            Some("Deployment") if is_core => start = Some(arguments(&object)?),
            None | Some("Deployment") => {}
            Some("Service") => objects.push(service(&object, webhooks)),
            Some(_) => objects.push(object),
        }
    }
    for object in objects
        .iter_mut()
        .filter(|object| object["kind"] == "Secret" || object["kind"] == "ServiceAccount")
    {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    Ok((objects, start.context("Crossplane's chart has no Deployment `crossplane`")?))
}

/// The arguments of a Deployment's container.
fn arguments(deployment: &Value) -> Result<Vec<String>> {
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    serde_json::from_value(arguments).context("the arguments of Crossplane's container")
}

/// A Service that points the API server to a process on loopback, because there is no pod network.
fn service(chart: &Value, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": chart["metadata"]["name"], "namespace": NAMESPACE, "labels": chart["metadata"]["labels"]},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": port}]},
    })
}

/// Creates CRDs, certificates and webhooks, like the chart's init container. On a fresh API server,
/// the first run may fail because a new kind is not served yet.
async fn init(
    workdir: &Workdir,
    version: CoreVersion,
    source: &Path,
    kubeconfig: &str,
    webhooks: u16,
) -> Result<()> {
    let program = Program::new("crossplane-init", &workdir.tools.core)
        .args(["core", "init"])
        .args(version.init_flags().iter().copied())
        // Crossplane 1.20 ignores these two variables, and looks for both folders in its working
        // directory.
        .env("CRDS_PATH", "crds")
        .env("WEBHOOK_CONFIGS_PATH", "webhookconfigurations")
        .env("KUBECONFIG", kubeconfig)
        .env("POD_NAMESPACE", NAMESPACE)
        .env("POD_SERVICE_ACCOUNT", "crossplane")
        .env("WEBHOOK_SERVICE_NAME", "crossplane-webhooks")
        .env("WEBHOOK_SERVICE_NAMESPACE", NAMESPACE)
        .env("WEBHOOK_SERVICE_PORT", webhooks.to_string())
        .env("TLS_CA_SECRET_NAME", "crossplane-root-ca")
        .env("TLS_SERVER_SECRET_NAME", "crossplane-tls-server")
        .env("TLS_CLIENT_SECRET_NAME", "crossplane-tls-client");
    let mut last = None;
    for _ in 0..5 {
        match program.output(source).await {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
        sleep(Duration::from_secs(1)).await;
    }
    match last {
        Some(error) => Err(error.context("crossplane core init")),
        None => bail!("crossplane core init was not run"),
    }
}

async fn rbac_manager(workdir: &Workdir, cluster: &Cluster) -> Result<()> {
    let account: PathBuf = cluster.account(NAMESPACE, "rbac-manager").await?;
    let program = Program::new("crossplane-rbac-manager", &workdir.tools.core)
        .args(["rbac", "start", "--provider-clusterrole=crossplane:allowed-provider-permissions"])
        .env("KUBECONFIG", account.display().to_string());
    workdir.start(program)?;
    Ok(())
}

/// A TLS Secret. The root's Secret names no separate authority.
async fn certificate(secrets: &Api<Secret>, name: &str) -> Result<Certificate> {
    let data: BTreeMap<_, _> = secrets.get(name).await?.data.unwrap_or_default();
    let text = |key: &str| {
        let found = data.get(key).map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
        found.filter(|text| !text.is_empty())
    };
    Ok(Certificate {
        authority: text("ca.crt").unwrap_or_default(),
        chain: text("tls.crt").with_context(|| format!("no tls.crt in {name}"))?,
        key: text("tls.key").with_context(|| format!("no tls.key in {name}"))?,
    })
}
