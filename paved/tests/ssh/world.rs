//! A cluster with workspaces, a user's home folder and servers of OpenSSH.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const SSHD: &str = "/usr/sbin/sshd";
pub const ID: &str = "i-0abc";

/// A cluster with workspaces in the namespace `team`, and a home folder.
pub struct World {
    pub cluster: Arc<Cluster>,
    pub home: TempDir,
    _server: Server,
    /// Answers requests while tests wait for programs.
    runtime: tokio::runtime::Runtime,
}

impl World {
    pub fn with(objects: &[&Value]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let kind = |kind: &str| {
            let plural = format!("{}s", kind.to_lowercase());
            let names = json!({"kind": kind, "plural": plural, "categories": ["claim", "paved"]});
            Kind::from_names("platform.acme.io", "v1alpha1", &names, true)
        };
        let kinds = [kind("GpuDevWorkspaceClaim"), kind("Environment")];
        let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), Vec::new());
        let access = Access::open(User::new("ada", &[]));
        let cluster = Arc::new(Cluster::new(kinds, access));
        let server = runtime.block_on(Server::start(Arc::clone(&cluster))).unwrap();
        let home = tempfile::tempdir().unwrap();
        let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
        fs::create_dir(home.path().join(".kube")).unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        fs::write(home.path().join(".kube/config"), kubeconfig).unwrap();
        let world = Self { cluster, home, _server: server, runtime };
        for object in objects {
            world.put(object);
        }
        world
    }

    pub fn put(&self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        let key = kind.key(text("namespace"), text("name"));
        self.cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
    }

    /// Runs the workspace once a client has requested its start.
    pub fn start_on_request(&self, running: Value) {
        let (cluster, kinds) = (Arc::clone(&self.cluster), &self.cluster.kinds);
        let text = |field: &str| running["metadata"][field].as_str().unwrap();
        let key = kinds.for_object(&running).unwrap().key(text("namespace"), text("name"));
        self.runtime.spawn(async move {
            let annotation = function_paved_road::lifecycle::STARTED_AT;
            loop {
                let now = cluster.store.get(&key).unwrap();
                if let Some(time) = now["metadata"]["annotations"][annotation].as_str() {
                    let mut object = Value::clone(&now);
                    object["status"] = running["status"].clone();
                    object["status"]["lifecycle"]["requestedAt"] = json!(time);
                    cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }

    /// The number of changes so far.
    pub fn writes(&self) -> usize {
        let requests = self.cluster.requests();
        // Each action is also recorded as an Event.
        let is_record = |path: &str| path.ends_with("/events") || path.contains("review");
        let is_write = |one: &fake_kube::Request| one.method != "GET" && !is_record(&one.path);
        requests.into_iter().filter(is_write).count()
    }

    /// A command with the user's home folder. `bin` in it comes first in `PATH`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = self.home.path().join("bin");
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", bin.display()))
            .env("SHELL", "/bin/sh")
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    pub fn paved(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(env!("CARGO_BIN_EXE_paved")).args(args).output().unwrap())
    }

    pub fn config_path(&self) -> PathBuf {
        self.home.path().join(".ssh/config")
    }

    pub fn config(&self) -> String {
        fs::read_to_string(self.config_path()).unwrap()
    }

    /// Installs a program for the user.
    pub fn program(&self, name: &str, script: &str) {
        let path = self.home.path().join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Accepts the server's key for the instance.
    pub fn accept(&self, server: &Sshd) {
        let line = format!("{ID} {}\n", server.host_key());
        fs::create_dir_all(self.home.path().join(".ssh")).unwrap();
        fs::write(self.home.path().join(".ssh/known_hosts"), line).unwrap();
    }

    /// The flags of OpenSSH's programs. They read the user's home folder from the system's
    /// database, so the configuration is a flag.
    pub fn flags(&self, server: &Sshd) -> Vec<String> {
        let config = self.config_path();
        ["-F".to_owned(), config.display().to_string()]
            .into_iter()
            .chain(["-i".to_owned(), server.path("id").display().to_string()])
            .chain(
                ["IdentitiesOnly=yes", "BatchMode=yes"]
                    .iter()
                    .flat_map(|option| ["-o".to_owned(), (*option).to_owned()]),
            )
            .chain(["-o".to_owned(), format!("User={}", user())])
            .collect()
    }

    pub fn ssh(&self, server: &Sshd, args: &[&str]) -> Ran {
        let mut command = self.command("setsid");
        Ran::of(&command.arg("-w").arg("ssh").args(self.flags(server)).args(args).output().unwrap())
    }
}

/// The user of this process, and of the servers.
pub fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Checks the exit code, and the words in both outputs.
    pub fn is(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        let told = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(told.contains(word), "{word:?} is missing: {self:?}");
        }
        self
    }
}

/// A workspace that runs, with this address.
pub fn workspace(name: &str, address: &str) -> Value {
    let conditions = ["Synced", "Ready", "Provisioned"].map(
        |kind| json!({"type": kind, "status": "True", "reason": "Available", "observedGeneration": 1}),
    );
    json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": name, "namespace": "team", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T10:00:00Z"},
        "spec": {"parameters": {"region": "eu-west-1", "sshPublicKeys": ["ssh-ed25519 AAAA"]}},
        "status": {"phase": "Ready", "progress": "1/1", "power": "Running", "conditions": conditions,
            "lifecycle": {}, "instanceId": ID, "publicIp": address,
            "connection": format!("ssh developer@{address}")},
    })
}

pub fn stopped(name: &str) -> Value {
    let mut object = workspace(name, "203.0.113.9");
    object["status"]["phase"] = json!("Stopped");
    object["status"]["power"] = json!("Stopped");
    object["status"]["lifecycle"] =
        json!({"stoppedAt": "2026-01-01T11:00:00Z", "stopReason": "Requested"});
    object
}

/// Whether programs must exist: in CI, a test that cannot run has failed.
pub fn is_required() -> bool {
    std::env::var("CI").is_ok_and(|ci| !ci.is_empty() && ci != "false")
}

/// Whether a test can run. Without its requirement, it fails in CI, and is skipped elsewhere.
pub fn has(requirement: bool, what: &str) -> bool {
    assert!(requirement || !is_required(), "{what}. `.ci/run` installs it");
    if !requirement {
        eprintln!("skipped: {what}");
    }
    requirement
}

/// A server of OpenSSH on port 22 of an own address, with a key for this process's user.
pub struct Sshd {
    child: Child,
    folder: TempDir,
    pub address: Ipv4Addr,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Sshd {
    /// Starts a server. `None` if this machine cannot run one.
    pub fn start() -> Option<Self> {
        static COUNT: AtomicU8 = AtomicU8::new(1);
        if !has(Path::new(SSHD).exists(), "found no sshd: apt-get install openssh-server") {
            return None;
        }
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, COUNT.fetch_add(1, Ordering::Relaxed), high, low);
        let folder = tempfile::tempdir().unwrap();
        for name in ["host", "id"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.path().join(name))
                .status();
            assert!(made.unwrap().success());
        }
        fs::copy(folder.path().join("id.pub"), folder.path().join("keys")).unwrap();
        if user() == "root" {
            // sshd of root requires this folder, which Debian's service creates.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let config = format!(
            "Port 22\nListenAddress {address}\nHostKey {0}/host\nAuthorizedKeysFile {0}/keys\n\
             PidFile none\nUsePAM no\nStrictModes no\nSubsystem sftp internal-sftp\n",
            folder.path().display()
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut child = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while TcpStream::connect(SocketAddr::from((address, 22))).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                let mut log = String::new();
                child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
                let why = format!(
                    "sshd could not listen on {address} port 22 ({status}): {log}. Run the tests \
                     as root, or set net.ipv4.ip_unprivileged_port_start"
                );
                assert!(!has(false, &why));
                return None;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { child, folder, address })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Type and key.
    pub fn host_key(&self) -> String {
        let text = fs::read_to_string(self.path("host.pub")).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// The workspace with this server.
    pub fn workspace(&self, name: &str) -> Value {
        workspace(name, &self.address.to_string())
    }
}
