//! etcd and an API server, on free ports of loopback. No garbage collector runs: the tests check
//! owner references instead of waiting for Kubernetes to act on them.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::bench::until;

/// A cluster without nodes.
pub struct Server {
    pub client: Client,
    _processes: [Process; 2],
    // Deleted after its processes have ended.
    _folder: TempDir,
}

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts it. None if the tools are not built.
    pub async fn start() -> Option<Self> {
        let (Some(etcd), Some(api_server)) = (tool("etcd"), tool("kube-apiserver")) else {
            eprintln!("skipped: no etcd and kube-apiserver; cargo xtask tools builds them");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let [store, peer, port] = free_ports();
        let store = format!("http://127.0.0.1:{store}");
        let kubeconfig = prepare(folder.path(), port);
        let etcd = start_etcd(&etcd, folder.path(), &store, peer);
        let api_server = start_api_server(&api_server, folder.path(), &store, port);
        let config: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
        let config =
            Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        until("the API server", || async {
            client
                .apiserver_version()
                .await
                .map_err(|error| format!("{error}\n{}", log(&folder, "kube-apiserver")))
        })
        .await;
        Some(Self { client, _processes: [etcd, api_server], _folder: folder })
    }
}

/// Writes keys, tokens and the kubeconfig.
fn prepare(folder: &Path, port: u16) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let kubeconfig = kubeconfig(port);
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    fs::write(folder.join("public.pem"), key.public_key_pem()).unwrap();
    fs::write(folder.join("tokens.csv"), "token,admin,admin,system:masters").unwrap();
    fs::write(folder.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    kubeconfig
}

fn start_etcd(program: &Path, folder: &Path, store: &str, peer: u16) -> Process {
    let peer = format!("http://127.0.0.1:{peer}");
    let arguments = [
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={store}"),
        format!("--advertise-client-urls={store}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ];
    start(program, folder, "etcd", &arguments)
}

fn start_api_server(program: &Path, folder: &Path, store: &str, port: u16) -> Process {
    let fixed = [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--cert-dir=certificates",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=public.pem",
        "--service-account-signing-key-file=key.pem",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--token-auth-file=tokens.csv",
        "--disable-admission-plugins=ServiceAccount",
    ];
    let own = [format!("--etcd-servers={store}"), format!("--secure-port={port}")];
    let arguments: Vec<String> = fixed.map(str::to_owned).into_iter().chain(own).collect();
    start(program, folder, "kube-apiserver", &arguments)
}

fn start(program: &Path, folder: &Path, name: &str, arguments: &[String]) -> Process {
    let log = fs::File::create(folder.join(name).with_extension("log")).unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    Process(command.spawn().unwrap())
}

fn log(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name).with_extension("log")).unwrap_or_default()
}

/// A tool that is built already.
fn tool(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("PAVED_ROAD_TOOLS")
        .map_or_else(|| xtask::workspace::target().join("tools"), PathBuf::from);
    let is_it = |path: &PathBuf| {
        let found = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        found.strip_prefix(name).is_some_and(|rest| rest.starts_with("-v"))
    };
    fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(is_it)
}

fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

fn kubeconfig(port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {"token": "token"}}]})
}
