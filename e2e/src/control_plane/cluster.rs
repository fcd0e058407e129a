//! A Kubernetes API server on loopback, with its controllers.

use std::{fs, path::PathBuf, sync::Arc, time::Duration, time::Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::{
    pki::{self, Authority},
    ports,
    process::{Process, Program},
    workdir::Workdir,
};
use crate::kubeconfig::SERVER_NAME;
use crate::kubectl;

/// How long an API server may take until it is ready, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// Lifetime of a service account's token: longer than any control plane runs on a developer's
/// machine.
const TOKEN_SECONDS: i64 = 30 * 24 * 3600;

/// An API server with RBAC, and its controllers.
pub struct Cluster {
    /// The name of its folder and of its prefix in etcd. Except for `outer`, it is also the suffix
    /// of its processes' names.
    pub name: String,
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The administrator's client.
    pub client: Client,
    /// The certificate of the authority that signed the API server's certificate.
    pub authority: String,
    /// The administrator's token.
    pub token: String,
    folder: PathBuf,
    workdir: Arc<Workdir>,
}

/// Starts etcd, which can serve several clusters, and returns its port.
pub async fn etcd(workdir: &Workdir) -> Result<u16> {
    let start = Instant::now();
    let (port, peers) = (ports::free()?, ports::free()?);
    let url = format!("http://127.0.0.1:{port}");
    let program = Program::new("etcd", &workdir.tools.etcd)
        .arg(format!("--data-dir={}", workdir.subfolder("etcd")?.display()))
        .arg(format!("--listen-client-urls={url}"))
        .arg(format!("--advertise-client-urls={url}"))
        .arg(format!("--listen-peer-urls=http://127.0.0.1:{peers}"))
        .arg(format!("--initial-advertise-peer-urls=http://127.0.0.1:{peers}"))
        .arg(format!("--initial-cluster=default=http://127.0.0.1:{peers}"))
        .args(["--unsafe-no-fsync", "--quota-backend-bytes=8589934592"]);
    let process = workdir.start(program)?;
    process.ready(START_TIMEOUT, async || ports::answers(port).await).await?;
    workdir.tell("etcd", start);
    Ok(port)
}

impl Cluster {
    /// Starts an API server on an etcd, with the controllers of every cluster.
    pub async fn start(workdir: &Arc<Workdir>, name: &str, etcd: u16) -> Result<Self> {
        let start = Instant::now();
        let folder = workdir.subfolder(name)?;
        let authority = Authority::new(&format!("{name}-ca"))?;
        authority.sign(["127.0.0.1", "localhost", SERVER_NAME])?.write(&folder)?;
        pki::token_keys(&folder)?;
        let token = pki::secret();
        fs::write(folder.join("tokens.csv"), format!("{token},admin,admin,system:masters\n"))?;
        let port = ports::free()?;
        let kubeconfig = folder.join("admin.kubeconfig");
        let content = kubeconfig_of(&format!("https://127.0.0.1:{port}"), authority.pem(), &token);
        fs::write(&kubeconfig, content.to_string())?;
        let client = client(content).await?;
        let authority = authority.pem().to_owned();
        let workdir = workdir.clone();
        let cluster = Self {
            name: name.to_owned(),
            port,
            kubeconfig,
            client,
            authority,
            token,
            folder,
            workdir,
        };
        cluster.api_server(etcd).await?;
        cluster.workdir.tell(&cluster.process_name("kube-apiserver"), start);
        cluster.controller_manager().await?;
        Ok(cluster)
    }

    /// Waits until the API server answers again after a restart.
    pub async fn ready(&self, process: &Process) -> Result<()> {
        let client = &self.client;
        process.ready(START_TIMEOUT, async || is_ok(client, "/readyz").await).await
    }

    /// Writes a kubeconfig for an existing service account and returns its path.
    pub async fn account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token = self.account_token(namespace, name).await?;
        let folder = self.folder.join("accounts");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{namespace}-{name}.kubeconfig"));
        let content =
            kubeconfig_of(&format!("https://127.0.0.1:{}", self.port), &self.authority, &token);
        fs::write(&path, content.to_string())?;
        Ok(path)
    }

    /// A client of a service account.
    pub async fn account_client(&self, namespace: &str, name: &str) -> Result<Client> {
        let token = self.account_token(namespace, name).await?;
        client(kubeconfig_of(&format!("https://127.0.0.1:{}", self.port), &self.authority, &token))
            .await
    }

    /// A client that impersonates a person. The API server applies this person's rights.
    pub async fn person(&self, name: &str) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.auth_info.impersonate = Some(name.to_owned());
        Ok(Client::try_from(config)?)
    }

    /// Runs kubectl as administrator and returns its output.
    pub async fn kubectl<I: IntoIterator<Item: Into<String>>>(&self, args: I) -> Result<String> {
        let program = Program::new("kubectl", &self.workdir.tools.kubectl)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args(args)
            .env(kubectl::CACHE, kubectl::cache(&self.kubeconfig).display().to_string());
        self.workdir.run(program).await
    }

    /// Applies manifests as administrator. kubectl does not validate them, because it would
    /// download the schemas of all kinds. After new CRDs, a busy API server needs half a minute for
    /// these schemas.
    pub async fn apply(&self, manifests: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        let file = tempfile::NamedTempFile::new_in(&self.folder)?;
        fs::write(file.path(), list.to_string())?;
        let path = file.path().display().to_string();
        let args = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=paved-road-setup",
            "--validate=ignore",
        ];
        self.kubectl(args.into_iter().map(String::from).chain(["-f".to_owned(), path])).await?;
        Ok(())
    }

    /// A token of an existing service account.
    pub async fn account_token(&self, namespace: &str, name: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let spec =
            TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..Default::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let answer = answer.with_context(|| format!("a token for {namespace}/{name}"))?;
        answer.status.map(|status| status.token).context("the API server returned no token")
    }

    fn process_name(&self, component: &str) -> String {
        if self.name == super::OUTER {
            component.to_owned()
        } else {
            format!("{component}-{}", self.name)
        }
    }

    async fn api_server(&self, etcd: u16) -> Result<()> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let program =
            Program::new(self.process_name("kube-apiserver"), &self.workdir.tools.api_server)
                .arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"))
                .arg(format!("--etcd-prefix=/{}", self.name))
                .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
                .args([
                    "--endpoint-reconciler-type=none",
                    "--service-cluster-ip-range=10.96.0.0/16",
                ])
                .arg(format!("--secure-port={}", self.port))
                .arg(format!("--cert-dir={}", self.folder.display()))
                .arg(format!("--tls-cert-file={}", file("tls.crt")))
                .arg(format!("--tls-private-key-file={}", file("tls.key")))
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .arg(format!("--service-account-key-file={}", file("sa.pub")))
                .arg(format!("--service-account-signing-key-file={}", file("sa.key")))
                .arg(format!("--token-auth-file={}", file("tokens.csv")))
                .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
                // Many controllers share one machine, and no controller should wait for another.
                .args(["--enable-priority-and-fairness=false", "--max-requests-inflight=3000"])
                .arg("--max-mutating-requests-inflight=1000")
                // Use more memory to save time: garbage collection took a sixth of its time.
                .env("GOGC", "300");
        let process = self.workdir.start(program)?;
        self.ready(&process).await
    }

    /// Starts the garbage collector and the controllers of namespaces, Deployments, aggregated
    /// roles and ready nodes.
    async fn controller_manager(&self) -> Result<()> {
        let start = Instant::now();
        let port = ports::free()?;
        let name = self.process_name("kube-controller-manager");
        let program = Program::new(&name, &self.workdir.tools.controller_manager)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args(["--controllers=*,-nodeipam", "--leader-elect=false", "--bind-address=127.0.0.1"])
            .arg(format!(
                "--service-account-private-key-file={}",
                self.folder.join("sa.key").display()
            ))
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={}", self.workdir.subfolder(&name)?.display()))
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            // On a busy machine, heartbeats of fake nodes are late.
            .arg("--node-monitor-grace-period=1h");
        let process = self.workdir.start(program)?;
        process.ready(START_TIMEOUT, async || ports::answers(port).await).await?;
        self.workdir.tell(&name, start);
        Ok(())
    }

    /// Starts a scheduler, and fake nodes, which run no pods: a plain node and a node with 64 GPUs.
    pub async fn nodes(&self) -> Result<()> {
        let start = Instant::now();
        let port = ports::free()?;
        let scheduler =
            Program::new(self.process_name("kube-scheduler"), &self.workdir.tools.scheduler)
                .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
                .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
                .arg(format!("--secure-port={port}"))
                .arg(format!(
                    "--cert-dir={}",
                    self.workdir.subfolder(&self.process_name("kube-scheduler"))?.display()
                ));
        let scheduler = self.workdir.start(scheduler)?;
        let kubelets = ports::free()?;
        let kwok = Program::new(self.process_name("kwok"), &self.workdir.tools.kwok)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg("--manage-all-nodes=true")
            .arg(format!("--server-address=127.0.0.1:{kubelets}"));
        let kwok = self.workdir.start(kwok)?;
        self.apply(&[node("plain", None), node("gpu", Some(64))]).await?;
        kwok.ready(START_TIMEOUT, async || ports::answers(kubelets).await).await?;
        scheduler.ready(START_TIMEOUT, async || ports::answers(port).await).await?;
        self.workdir.tell(&format!("{}, kwok", self.process_name("kube-scheduler")), start);
        Ok(())
    }
}

/// A fake node. With GPUs, it has the taint that such nodes usually have.
fn node(name: &str, gpus: Option<u32>) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "status": {
            "allocatable": {"cpu": "512", "memory": "4Ti", "ephemeral-storage": "10Ti", "pods": "2000"},
        },
    });
    if let Some(gpus) = gpus {
        node["status"]["allocatable"]["nvidia.com/gpu"] = gpus.to_string().into();
        node["spec"] = json!({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]});
    }
    node["status"]["capacity"] = node["status"]["allocatable"].clone();
    node
}

/// A kubeconfig with a token. JSON is valid YAML.
fn kubeconfig_of(server: &str, authority: &str, token: &str) -> Value {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let authority = BASE64_STANDARD.encode(authority);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "loopback", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": "user"}}],
        "current-context": "loopback",
    })
}

async fn client(kubeconfig: Value) -> Result<Client> {
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn is_ok(client: &Client, path: &str) -> bool {
    let request = axum::http::Request::get(path).body(Vec::new());
    match request {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}
