//! The portal as a team runs it, installed from its chart. The chart's own pods run no programs, so
//! two replicas have the rights of the chart's service account.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use function_paved_road::apis::Flavour;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use xtask::package::{Args, chart};
use xtask::{workspace, yaml};

use crate::control_plane::{charts, ports};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::openid::{Browser, Provider};

/// The chart's release, and the portal's objects.
const RELEASE: &str = "paved-portal";

/// The API version of provider-helm's kinds.
const HELM: &str = "helm.m.crossplane.io/v1beta1";

/// Two replicas, which run until this is dropped.
pub struct Portal {
    _provider: Provider,
    _folder: TempDir,
    release: Value,
    /// Each replica listens at its own URL, because the scenarios have no proxy.
    pub replicas: Vec<Replica>,
}

/// The URL that a replica uses as the portal's public URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PublicUrl {
    /// The first replica's URL. Sessions are valid at both replicas. Requests must have this
    /// origin.
    Shared,
    /// Each replica's own URL, for browsers that open its pages. Sessions are valid at one replica
    /// only.
    Own,
}

/// One process of the portal.
pub struct Replica {
    process: Child,
    /// Its URL.
    pub url: String,
}

impl Portal {
    /// Starts the replicas for these people, each named `NAME.GROUP`. Each group has the name of
    /// its namespace.
    pub async fn start(
        fixture: &Fixture,
        people: &[String],
        public_url: PublicUrl,
    ) -> Result<Self> {
        let ports = [ports::free()?, ports::free()?];
        let urls = ports.map(|port| format!("http://127.0.0.1:{port}"));
        let first = urls[0].clone();
        let provider =
            Provider::start(&urls.each_ref().map(|url| format!("{url}/auth/callback"))).await?;
        let release = install(fixture, people).await?;
        let folder = tempfile::tempdir().context("making a folder")?;
        let kubeconfig = kubeconfig(fixture, &folder).await?;
        let key = folder.path().join("key");
        std::fs::write(&key, "a key for the sessions of one run of tests")
            .context("writing a key")?;
        let mut replicas = Vec::new();
        for url in urls {
            let address = url.trim_start_matches("http://");
            let public = if public_url == PublicUrl::Shared { &first } else { &url };
            let log = std::fs::File::create(
                fixture.plane.workdir().logs().join(format!("portal-{address}.log")),
            )?;
            let mut command = Command::new(workspace::built("paved")?);
            command.args([
                "portal",
                "--listen",
                address,
                "--public-url",
                public,
                "--oidc-client-id",
                "portal",
            ]);
            command.args(["--oidc-issuer", &provider.issuer, "--namespace-template", "{group}"]);
            command.args(["--oidc-scopes", "groups", "--oidc-username-claim", "sub"]);
            command.args(["--apis", "both"]);
            command.arg("--session-key-file").arg(&key).arg("--kubeconfig").arg(&kubeconfig);
            command.env_remove("KUBECONFIG").stdin(Stdio::null()).stderr(log).kill_on_drop(true);
            replicas
                .push(Replica { process: command.spawn().context("starting the portal")?, url });
        }
        let portal = Self { _provider: provider, _folder: folder, release, replicas };
        for replica in &portal.replicas {
            replica.is_ready().await?;
        }
        Ok(portal)
    }

    /// Uninstalls the chart, and waits until its objects are gone.
    pub async fn uninstall(self, fixture: &Fixture) -> Result<()> {
        fixture.objects.delete(&self.release).await?;
        eventually("the portal's chart is uninstalled", async || {
            let roles =
                fixture.objects.list("rbac.authorization.k8s.io/v1", "ClusterRole", "").await?;
            let name = format!("{}:{RELEASE}", fixture.namespace);
            let is_left = roles.iter().any(|role| role["metadata"]["name"] == name);
            let release = fixture.objects.get(HELM, "Release", &fixture.namespace, RELEASE).await?;
            Ok((!is_left && release.is_none()).then_some(()))
        })
        .await
    }
}

impl Replica {
    /// Kills it at once, as `kill -9` does, without notice to its clients.
    pub fn kill(&self) -> Result<()> {
        let pid = self.process.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        kill_process(pid.context("the portal has ended")?, Signal::KILL).context("killing a portal")
    }

    async fn is_ready(&self) -> Result<()> {
        let browser = Browser::new(&self.url)?;
        eventually("the portal is ready", async || {
            let answer = browser.ask("GET", &self.url, "/readyz", &Value::Null).await;
            Ok(answer.is_ok_and(|(status, _)| status == 200).then_some(()))
        })
        .await
    }
}

/// Installs the chart with provider-helm, as an administrator, and waits for its replicas. Returns
/// the release.
async fn install(fixture: &Fixture, people: &[String]) -> Result<Value> {
    let namespace = fixture.namespace.as_str();
    let kubeconfig =
        std::fs::read_to_string(fixture.plane.kubeconfig()).context("reading a kubeconfig")?;
    let administrator = json!({"name": "administrator", "namespace": namespace});
    let mut values = yaml::read(&chart::folder().join("ci/minimal-values.yaml"))?.remove(0);
    let groups: Vec<_> = people.iter().filter_map(|who| who.split('.').nth(1)).collect();
    // The platform is installed already, in the default groups.
    values["group"] = Flavour::Namespaced.default_group().into();
    values["apis"] = "both".into();
    values["claimsGroup"] = Flavour::Claims.default_group().into();
    values["platform"] = json!({"enabled": false});
    values["controller"] = json!({"enabled": false});
    values["portal"]["fullnameOverride"] = RELEASE.into();
    values["portal"]["impersonation"] = json!({"users": people, "groups": groups});
    let release = json!({
        "apiVersion": HELM,
        "kind": "Release",
        "metadata": {"name": RELEASE, "namespace": namespace},
        "spec": {
            "forProvider": {
                "chart": {
                    "repository": format!("https://{}", charts::OURS),
                    "name": chart::NAME,
                    "version": chart::version(&Args::default().release),
                },
                "namespace": namespace,
                "values": values,
                "wait": true,
            },
            "providerConfigRef": {"kind": "ProviderConfig", "name": administrator["name"]},
        },
    });
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": administrator,
        "stringData": {"kubeconfig": kubeconfig},
    });
    let config = json!({
        "apiVersion": HELM,
        "kind": "ProviderConfig",
        "metadata": administrator,
        "spec": {"credentials": {
            "source": "Secret",
            "secretRef": {"name": administrator["name"], "namespace": namespace, "key": "kubeconfig"},
        }},
    });
    for object in [&secret, &config, &release] {
        fixture.objects.apply(object).await?;
    }
    eventually("the portal's chart is installed", async || {
        let release = fixture
            .objects
            .get(HELM, "Release", namespace, RELEASE)
            .await?
            .context("no release")?;
        Ok((conditions::get(&release, "Ready")["status"] == "True").then_some(()))
    })
    .await?;
    let deployment = fixture.objects.get("apps/v1", "Deployment", namespace, RELEASE).await?;
    let available = deployment.map(|deployment| deployment["status"]["availableReplicas"].clone());
    ensure!(
        available == Some(json!(2)),
        "replicas that the chart has made available: {available:?}"
    );
    for (version, kind) in
        [("policy/v1", "PodDisruptionBudget"), ("networking.k8s.io/v1", "NetworkPolicy")]
    {
        let made = fixture.objects.list(version, kind, namespace).await?;
        ensure!(made.len() == 1, "the chart has made {} of {kind}", made.len());
    }
    Ok(release)
}

/// The portal's kubeconfig, with a token of its service account.
async fn kubeconfig(fixture: &Fixture, folder: &TempDir) -> Result<PathBuf> {
    let token = ["create", "token", RELEASE, "--duration=2h", "-n", &fixture.namespace];
    let token = fixture.admin.run(&token).await?;
    let text =
        std::fs::read_to_string(fixture.plane.kubeconfig()).context("reading a kubeconfig")?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).context("reading a kubeconfig")?;
    kubeconfig["users"][0]["user"]["token"] = token.trim().into();
    kubeconfig["contexts"][0]["context"]["namespace"] = fixture.namespace.as_str().into();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).context("writing a kubeconfig")?;
    Ok(path)
}
