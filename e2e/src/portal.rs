//! The portal as a team runs it: two replicas with the rights of the chart's service account.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use xtask::chart::helm::KUBERNETES;
use xtask::package::chart;
use xtask::{tools, workspace};

use crate::control_plane::ports;
use crate::openid::{Browser, Provider};
use crate::stage::{Stage, eventually};

/// The chart's release.
const RELEASE: &str = "paved-portal";

/// What the chart makes that counts here: its Deployment would need images and nodes that run them.
const RIGHTS: [&str; 5] = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// Two replicas, for as long as this is held.
pub struct Portal {
    _provider: Provider,
    _folder: TempDir,
    /// Each has a URL of its own here, as no proxy stands before them.
    pub replicas: Vec<Replica>,
}

/// One process.
pub struct Replica {
    _process: Child,
    /// How it is reached.
    pub url: String,
}

impl Portal {
    /// Starts them: for these people, `NAME.GROUP` each, whose groups are named like the namespaces that are theirs.
    pub async fn start(stage: &Stage, people: &[String]) -> Result<Self> {
        let ports = [ports::free()?, ports::free()?];
        let urls = ports.map(|port| format!("http://127.0.0.1:{port}"));
        let provider = Provider::start(&urls.each_ref().map(|url| format!("{url}/auth/callback"))).await?;
        rights(stage, people).await?;
        let folder = tempfile::tempdir().context("making a folder")?;
        let kubeconfig = kubeconfig(stage, &folder).await?;
        let key = folder.path().join("key");
        std::fs::write(&key, "a key for the sessions of one run of tests").context("writing a key")?;
        let mut replicas = Vec::new();
        for url in urls {
            let address = url.trim_start_matches("http://");
            let log =
                std::fs::File::create(stage.plane.ground().logs().join(format!("portal-{address}.log")))?;
            let mut command = Command::new(workspace::built("paved")?);
            command.args(["portal", "--listen", address, "--public-url", &url, "--oidc-client-id", "portal"]);
            command.args(["--oidc-issuer", &provider.issuer, "--namespace-template", "{group}"]);
            command.args(["--oidc-scopes", "groups", "--oidc-username-claim", "sub"]);
            command.arg("--session-key-file").arg(&key).arg("--kubeconfig").arg(&kubeconfig);
            command.env_remove("KUBECONFIG").stdin(Stdio::null()).stderr(log).kill_on_drop(true);
            replicas.push(Replica { _process: command.spawn().context("starting the portal")?, url });
        }
        let portal = Self { _provider: provider, _folder: folder, replicas };
        for replica in &portal.replicas {
            replica.is_ready().await?;
        }
        Ok(portal)
    }
}

impl Replica {
    async fn is_ready(&self) -> Result<()> {
        let browser = Browser::new()?;
        eventually("the portal is ready", async || {
            let answer = browser.ask("GET", &self.url, "/readyz", &Value::Null).await;
            Ok(answer.is_ok_and(|(status, _)| status == 200).then_some(()))
        })
        .await
    }
}

/// What the chart gives its service account.
async fn rights(stage: &Stage, people: &[String]) -> Result<()> {
    let quoted = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(",");
    let users = quoted(&mut people.iter().cloned());
    let groups = quoted(&mut people.iter().filter_map(|who| who.split('.').nth(1)).map(str::to_owned));
    let values = chart::folder().join("ci/minimal-values.yaml");
    let mut command = Command::new(tools::path(&tools::HELM)?);
    command
        .args(["template", RELEASE, "--kube-version", KUBERNETES])
        .arg(chart::folder())
        .arg("--values")
        .arg(values);
    command.args(["--namespace", &stage.namespace, "--set", &format!("impersonation.users={{{users}}}")]);
    command.args(["--set", &format!("impersonation.groups={{{groups}}}")]);
    let output = command.output().await.context("starting helm")?;
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    for document in text.split("\n---") {
        let mut object: Value = serde_saphyr::from_str(document).context("reading what helm rendered")?;
        if RIGHTS.iter().any(|kind| object["kind"] == *kind) {
            if !object["kind"].as_str().unwrap_or_default().starts_with("Cluster") {
                object["metadata"]["namespace"] = stage.namespace.as_str().into();
            }
            stage.objects.apply(&object).await?;
        }
    }
    Ok(())
}

/// How the portal reaches the cluster: by a token of its service account.
async fn kubeconfig(stage: &Stage, folder: &TempDir) -> Result<PathBuf> {
    let token = ["create", "token", RELEASE, "--duration=2h", "-n", &stage.namespace];
    let token = stage.admin.run(&token).await?;
    let text = std::fs::read_to_string(stage.plane.kubeconfig()).context("reading a kubeconfig")?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).context("reading a kubeconfig")?;
    kubeconfig["users"][0]["user"]["token"] = token.trim().into();
    kubeconfig["contexts"][0]["context"]["namespace"] = stage.namespace.as_str().into();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).context("writing a kubeconfig")?;
    Ok(path)
}
