//! `paved connect`: connections to machines, clusters and databases from the user's machine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready, waiting};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// A cluster with an environment, and a home folder for the user.
struct Seat {
    cluster: Cluster,
    home: TempDir,
}

struct Ran {
    code: i32,
    told: String,
}

impl Ran {
    fn is(self, code: i32, words: &[&str]) -> String {
        assert_eq!(self.code, code, "{}", self.told);
        for word in words {
            assert!(self.told.contains(word), "{word:?} is missing: {}", self.told);
        }
        self.told
    }
}

impl Seat {
    async fn with(environment: Value, details: &[(&str, &str)]) -> Self {
        let data: serde_json::Map<_, _> =
            details.iter().map(|(key, value)| ((*key).to_owned(), encoded(value).into())).collect();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "conn"}, "data": data});
        let path = |name: &str| format!("/api/v1/namespaces/team/secrets/{name}");
        let others = ["conn", "shop-unified-environment"].map(|name| (path(name), secret.clone()));
        let others = others.each_ref().map(|(path, secret)| (path.as_str(), secret.clone()));
        let cluster =
            Cluster::with(environment, if details.is_empty() { &[] } else { others.as_slice() })
                .await;
        Self { cluster, home: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
        let (flags, words) =
            args.split_at(args.iter().position(|arg| *arg == "--").unwrap_or(args.len()));
        command
            .args(["connect", "shop", "--kubeconfig"])
            .arg(self.cluster.kubeconfig())
            .args(flags)
            .args(words);
        // Only programs that a test installs can be found.
        command.env_clear().env("HOME", self.home.path()).env("PATH", self.home.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn connect(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().await.unwrap();
        let told =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        Ran { code: output.status.code().unwrap(), told }
    }

    /// Installs a program.
    fn program(&self, name: &str, script: &str) {
        let path = self.home.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.home.path().join(".kube/config")
    }
}

fn encoded(text: &str) -> String {
    serde_json::to_value(k8s_openapi::ByteString(text.into())).unwrap().as_str().unwrap().to_owned()
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn workspace(status: Value) -> Value {
    ready(
        "GpuDevWorkspaceClaim",
        json!({"parameters": {"owner": "ada", "region": "eu-west-1"}}),
        status,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_reached_by_ssh_under_its_own_name() {
    let status = json!({"instanceId": "i-0abc", "publicIp": "127.0.0.1", "connection": "ssh developer@127.0.0.1"});
    let seat = Seat::with(workspace(status), &[]).await;
    let told = seat.connect(&["--print"]).await.is(0, &[]);
    assert_eq!(told, "ssh -o HostKeyAlias=i-0abc developer@127.0.0.1\n");
    let link = seat.connect(&["--print=vscode"]).await.is(0, &["after `paved ssh config`"]);
    let url = "vscode://vscode-remote/ssh-remote+shop.team.paved/home/developer\n";
    assert!(link.starts_with(url), "{link}");
    let told = seat.connect(&["--print", "-L", "8888"]).await.is(0, &[]);
    assert_eq!(
        told,
        "ssh -o HostKeyAlias=i-0abc -N -o ExitOnForwardFailure=yes -L \
         127.0.0.1:8888:localhost:8888 developer@127.0.0.1\n"
    );
    let told = seat.connect(&["--print", "--ssm"]).await.is(0, &[]);
    assert_eq!(told, "aws ssm start-session --target i-0abc --region eu-west-1\n");
    for flag in ["--export", "--print=url"] {
        let words = ["are for databases: GpuDevWorkspaceClaim shop has none"];
        seat.connect(&[flag]).await.is(1, &words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_key_and_network_are_printed_with_the_next_step() {
    let line = "aws ssm start-session --target i-0abc --region eu-west-1";
    let status = json!({"instanceId": "i-0abc", "connection": line});
    let key = "note: spec.parameters.sshPublicKeys has no key";
    let network = "note: no network may connect by SSH";
    let mut shop = workspace(status);
    let told = Seat::with(shop.clone(), &[]).await.connect(&["--print"]).await;
    let told = told.is(0, &[line, key, "--ssh-key", network, "spec.parameters.allowedCidrs"]);
    assert!(told.starts_with(line), "{told}");
    shop["status"]["resources"] = json!([{"slot": "ssh-203.0.113.0/24", "kind": "Rule",
        "ready": true, "since": "2026-01-01T10:00:00Z"}]);
    let told = Seat::with(shop.clone(), &[]).await.connect(&["--print"]).await.is(0, &[key]);
    assert!(!told.contains(network), "{told}");
    shop["spec"]["parameters"]["sshPublicKeys"] = json!(["ssh-ed25519 AAAA"]);
    shop["status"]["resources"] = json!([]);
    let told = Seat::with(shop, &[]).await.connect(&["--print"]).await.is(0, &[network]);
    assert!(!told.contains(key), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_without_a_public_address_uses_the_aws_cli() {
    let line = "aws ssm start-session --target i-0abc --region eu-west-1";
    let seat =
        Seat::with(workspace(json!({"instanceId": "i-0abc", "connection": line})), &[]).await;
    seat.connect(&[]).await.is(1, &["aws is not installed", "Session Manager plugin"]);

    seat.program("aws", "printf '%s\\n' \"$@\"\nexit 7");
    let told =
        seat.connect(&["--", "nvidia-smi", "-L"]).await.is(7, &["AWS-StartInteractiveCommand"]);
    for part in ["/var/lib/paved/ready", "nvidia-smi -L", "sudo -Hu developer"] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    let told = seat.connect(&["--unprepared"]).await.is(7, &["start-session\n--target\ni-0abc"]);
    assert!(!told.contains("/var/lib/paved"), "{told}");

    // A session succeeds whether or not its command fails. The script itself reports the exit code.
    seat.program(
        "aws",
        "all=\"$*\"; mark=${all#*echo }; mark=${mark%%\\$\\?*}\nprintf 'Starting\\r\\n1 failed\\r\\n%s3\\r\\nExiting\\r\\n' \"$mark\"",
    );
    let told = seat.connect(&["--", "pytest"]).await.is(3, &["1 failed\r\nExiting"]);
    assert!(!told.contains("paved-exit"), "{told}");
    seat.program("aws", "echo Starting");
    seat.connect(&["--", "pytest"])
        .await
        .is(4, &["Starting", "ended the session before the command finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unprepared_connect_does_not_wait_for_an_answer() {
    // This address never answers.
    let line = "ssh developer@203.0.113.7";
    let status = json!({"instanceId": "i-0abc", "publicIp": "203.0.113.7", "connection": line});
    let seat = Seat::with(workspace(status), &[]).await;
    seat.program("ssh", "exit 7");
    let told = ["ssh -o HostKeyAlias=i-0abc developer@203.0.113.7"];
    seat.connect(&["--unprepared", "--timeout", "1s"]).await.is(7, &told);
}

#[tokio::test(flavor = "multi_thread")]
async fn ssh_uses_the_address_of_the_connection_field() {
    let (v4, v6) = ("203.0.113.7", "2001:db8::7");
    for (address, other) in [(v4, v6), (v6, v4)] {
        let line = format!("ssh developer@{address}");
        let status =
            json!({"instanceId": "i-0abc", "publicIp": v4, "ipv6Address": v6, "connection": line});
        let seat = Seat::with(workspace(status), &[]).await;
        seat.program("ssh", "exit 7");
        let login = format!("developer@{address}");
        let told =
            seat.connect(&["--unprepared", "--timeout", "1s"]).await.is(7, &[login.as_str()]);
        assert!(!told.contains(other), "{told}");
    }
}

const DATABASE: [(&str, &str); 5] = [
    ("endpoint", "db.example.org:5432"),
    ("port", "5432"),
    ("username", "shop"),
    ("password", "it's @ secret"),
    ("database", "shop-db"),
];

#[tokio::test(flavor = "multi_thread")]
async fn password_is_printed_on_request() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let seat = Seat::with(ready("EnvironmentClaim", spec, json!({})), &DATABASE).await;
    let line = "psql 'host=db.example.org port=5432 user=shop dbname=shop-db sslmode=require'";
    let masked = "postgresql://shop:****@db.example.org:5432/shop-db?sslmode=require\n";
    let words = [line, masked, "--show-secrets to print the password"];
    let told = seat.connect(&[]).await.is(0, &words);
    assert!(!told.contains("secret'") && !told.contains("it's"), "{told}");
    seat.connect(&["--show-secrets"]).await.is(0, &[r"PGPASSWORD='it'\''s @ secret' psql"]);
    let told = seat.connect(&["--print"]).await.is(0, &[]);
    assert_eq!(told, format!("{line}\n"));
    assert_eq!(seat.connect(&["--print=url"]).await.is(0, &[]), masked);
    let told = seat.connect(&["--print=url", "--show-secrets"]).await.is(0, &[]);
    assert!(told.starts_with("postgresql://shop:it%27s%20%40%20secret@db."), "{told}");

    let exported = seat.connect(&["--export"]).await.is(0, &[]);
    let script =
        format!("{exported}printf '%s|%s|%s' \"$PGHOST\" \"$PGPASSWORD\" \"$DATABASE_URL\"");
    let output = Command::new("sh").args(["-c", &script]).output().await.unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "db.example.org|it's @ secret|postgresql://shop:it%27s%20%40%20secret@db.example.org:5432/shop-db?sslmode=require"
    );
    seat.connect(&["--export=dotenv"])
        .await
        .is(0, &["\nPGPASSWORD=it's @ secret\n", "PGDATABASE=shop-db\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_details_are_read_from_the_secret_of_each_api() {
    let direct = ready("UnifiedEnvironment", json!({"crossplane": {}}), json!({}));
    Seat::with(direct.clone(), &DATABASE).await.connect(&[]).await.is(0, &["psql"]);
    Seat::with(direct, &[])
        .await
        .connect(&[])
        .await
        .is(4, &["does not have the Secret shop-unified-environment"]);
    let bare = ready("EnvironmentClaim", json!({}), json!({}));
    Seat::with(bare, &DATABASE)
        .await
        .connect(&[])
        .await
        .is(1, &["Set spec.writeConnectionSecretToRef.name"]);
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let half = Seat::with(ready("EnvironmentClaim", spec, json!({})), &DATABASE[..3]).await;
    half.connect(&[]).await.is(4, &["Secret conn has no password nor db_password yet"]);
}

/// Connects to an environment that becomes ready once the program waits for it. Returns standard
/// output and standard error.
async fn connect_early(seat: &Seat, args: &[&str], environment: Value) -> (String, String) {
    let mut run = seat.command(args).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut err = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("Provisioning") {
            seat.cluster.becomes(environment.clone());
        }
        err.extend([line.as_str(), "\n"]);
    }
    let output = run.wait_with_output().await.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    (out, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn program_reads_only_the_requested_output() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let environment = ready("EnvironmentClaim", spec, json!({}));
    for (args, lines, begin) in [
        (&["--export"][..], 7, "export "),
        (&["--export=dotenv"], 7, ""),
        (&["--print"], 1, "psql "),
    ] {
        let seat = Seat::with(waiting(environment.clone()), &DATABASE).await;
        let (out, err) = connect_early(&seat, args, environment.clone()).await;
        assert_eq!(out.lines().count(), lines, "{out}");
        assert!(out.lines().all(|line| line.starts_with(begin) && line.contains('=')), "{out}");
        assert!(err.contains("Provisioning") && err.contains("is ready after"), "{err}");
        assert!(!err.contains("secret"), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spec_written_during_the_wait_is_used() {
    let environment = ready("UnifiedEnvironment", json!({"crossplane": {}}), json!({}));
    let fresh = waiting(ready("UnifiedEnvironment", json!({}), json!({})));
    let seat = Seat::with(fresh, &DATABASE).await;
    let (out, _) = connect_early(&seat, &[], environment).await;
    assert!(out.contains("psql "), "{out}");
}

/// A kubeconfig as a provider writes it, with a short-lived token.
fn kubeconfig(server: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": server, "certificate-authority-data": "Q0E="}}],
        "users": [{"name": "x", "user": {"token": "short-lived"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]})
    .to_string()
}

fn virtual_environment(status: Value) -> Value {
    ready("Environment", json!({"writeConnectionSecretToRef": {"name": "conn"}}), status)
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_cluster_uses_the_login_of_its_cloud() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let eks = "https://0A.gr7.eu-west-1.eks.amazonaws.com";
    let cluster = json!([{"slot": "cluster", "kind": "Cluster", "externalName": "shop-x", "ready": true,
        "since": "2026-01-01T10:00:00Z"}]);
    for (environment, server, command, argument, needed) in [
        (
            ready("ApplicationEnvironment", spec, json!({"gkeEndpoint": "203.0.113.7"})),
            "https://203.0.113.7",
            "gke-gcloud-auth-plugin",
            "",
            "roles/container.developer",
        ),
        (
            virtual_environment(json!({"type": "eks", "endpoint": eks, "resources": cluster})),
            eks,
            "aws",
            "shop-x",
            "aws eks create-access-entry",
        ),
        (
            virtual_environment(json!({"type": "aks", "endpoint": "https://x.azmk8s.io:443"})),
            "https://x.azmk8s.io:443",
            "kubelogin",
            "azurecli",
            "Azure Kubernetes Service RBAC Writer",
        ),
    ] {
        let seat = Seat::with(environment, &[("kubeconfig", &kubeconfig(server))]).await;
        seat.connect(&[]).await.is(
            0,
            &[
                "is context paved/team/shop in",
                "kubectl --context paved/team/shop get pods",
                needed,
            ],
        );
        let written = read(&seat.config());
        assert_eq!(written["clusters"][0]["cluster"]["server"], server);
        let exec = &written["users"][0]["user"]["exec"];
        assert_eq!(exec["command"], command);
        assert!(
            argument.is_empty() || exec["args"].as_array().unwrap().contains(&argument.into()),
            "{exec}"
        );
        assert!(!written.to_string().contains("short-lived"), "{written}");
        assert_eq!(fs::metadata(seat.config()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_token_is_not_sent_to_a_server_named_only_in_a_secret() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let cluster = json!([{"slot": "cluster", "kind": "Cluster", "externalName": "shop-x", "ready": true,
        "since": "2026-01-01T10:00:00Z"}]);
    let status = |kind: &str, endpoint: &str| json!({"type": kind, "endpoint": endpoint, "resources": cluster});
    let eks = "https://0A.gr7.eu-west-1.eks.amazonaws.com";
    for (environment, server) in [
        (
            ready("ApplicationEnvironment", spec, json!({"gkeEndpoint": "203.0.113.7"})),
            "https://evil.example",
        ),
        (virtual_environment(status("gke", "https://203.0.113.77")), "https://evil.example"),
        (virtual_environment(status("eks", eks)), "https://evil.example"),
        (
            virtual_environment(status("eks", eks)),
            "https://0A.gr7.eu-west-1.eks.amazonaws.com:8443",
        ),
        (
            virtual_environment(status("aks", "https://x.azmk8s.io:443")),
            "https://x.azmk8s.io.evil.example",
        ),
    ] {
        let seat = Seat::with(environment, &[("kubeconfig", &kubeconfig(server))]).await;
        seat.connect(&[]).await.is(4, &["has a Secret with the server", server, "cloud token"]);
        assert!(!seat.config().exists(), "{server}");
    }
    let unknown = virtual_environment(json!({"type": "gke"}));
    let seat = Seat::with(unknown, &[("kubeconfig", &kubeconfig("https://evil.example"))]).await;
    seat.connect(&[]).await.is(4, &["its status has no endpoint"]);
}

/// The Secret and the status agree, because one person forged both.
#[tokio::test(flavor = "multi_thread")]
async fn cloud_token_is_not_sent_outside_of_its_cloud() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let named = |name: &str| {
        json!([{"slot": "cluster", "kind": "Cluster", "externalName": name, "ready": true,
            "since": "2026-01-01T10:00:00Z"}])
    };
    let eks = "https://0A.gr7.eu-west-1.eks.amazonaws.com";
    for (kind, server, name) in [
        ("eks", "https://evil.example/?.eu-west-1.eks.amazonaws.com", "prod"),
        ("eks", "https://evil.example/.eu-west-1.eks.amazonaws.com", "prod"),
        ("eks", "https://203.0.113.7", "prod"),
        ("eks", eks, "prod --profile admin"),
        ("eks", eks, "--profile"),
        ("aks", "https://x.azmk8s.io.evil.example", "prod"),
        ("aks", "https://evil.example/x.azmk8s.io", "prod"),
        ("gke", "https://evil.example", "prod"),
        ("gke", "https://203.0.113.7/path", "prod"),
    ] {
        let environment = virtual_environment(
            json!({"type": kind, "endpoint": server, "resources": named(name)}),
        );
        let seat = Seat::with(environment, &[("kubeconfig", &kubeconfig(server))]).await;
        let words = if server == eks {
            "valid name of the cluster"
        } else {
            "in status.endpoint. Allowed:"
        };
        seat.connect(&[]).await.is(4, &[words]);
        assert!(!seat.config().exists(), "{server}");
    }
    let forged = ready("ApplicationEnvironment", spec, json!({"gkeEndpoint": "evil.example"}));
    let seat = Seat::with(forged, &[("kubeconfig", &kubeconfig("https://evil.example"))]).await;
    seat.connect(&[]).await.is(4, &["has https://evil.example in status.gkeEndpoint"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_makes_no_variable_line_or_parameter_of_its_own() {
    let spec = json!({"writeConnectionSecretToRef": {"name": "conn"}});
    let environment = ready("EnvironmentClaim", spec, json!({}));
    let with = |key: &'static str, value: &'static str| {
        DATABASE.map(|(known, own)| (known, if known == key { value } else { own }))
    };
    for (key, value) in [
        ("endpoint", "h\nNODE_OPTIONS=--require=/x.js"),
        ("password", "p\nLD_PRELOAD=/x.so"),
        ("password", "p\u{202e}x"),
        ("username", "u\r::error::x"),
        ("database", "d\n::stop-commands::x"),
        ("port", "5432\nA=b"),
    ] {
        let seat = Seat::with(environment.clone(), &with(key, value)).await;
        for flags in [&["--export=dotenv"][..], &["--export"], &["--print"], &[]] {
            let told = seat.connect(flags).await.is(4, &[&format!("control character in {key}")]);
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
    for (key, value) in [
        ("endpoint", "db.example.org/x?host=evil"),
        ("endpoint", "user@evil"),
        ("endpoint", "db host=evil"),
        ("port", "5432 host=evil"),
    ] {
        let seat = Seat::with(environment.clone(), &with(key, value)).await;
        seat.connect(&["--export"]).await.is(4, &["a host name or IP address"]);
    }
    let seat = Seat::with(environment.clone(), &with("password", "::x")).await;
    seat.connect(&["--export=dotenv"]).await.is(0, &["\nPGPASSWORD=::x\n"]);
    let seat = Seat::with(environment.clone(), &with("password", "a##[b##v'c")).await;
    seat.connect(&["--export=dotenv"]).await.is(4, &["PGPASSWORD", "--export=shell"]);
    let told = seat.connect(&["--export"]).await.is(0, &[]);
    let read = format!("{told}\nprintf %s \"$PGPASSWORD\"");
    let read = Command::new("sh").args(["-c", &read]).output().await.unwrap();
    assert_eq!(String::from_utf8(read.stdout).unwrap(), "a##[b##v'c");
    let seat = Seat::with(environment, &with("database", r"x' sslmode=disable host=evil \")).await;
    let told = seat.connect(&["--print"]).await.is(0, &[]);
    let read = Command::new("sh")
        .args(["-c", &format!("set -- {told}\nprintf %s \"$2\"")])
        .output()
        .await
        .unwrap();
    let conninfo = String::from_utf8(read.stdout).unwrap();
    let name = r"dbname='x\' sslmode=disable host=evil \\'";
    assert_eq!(conninfo, format!("host=db.example.org port=5432 user=shop {name} sslmode=require"));
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_name_that_is_another_path_is_not_asked_for() {
    for name in ["../../kube-system/secrets/admin", "x?watch=1", "x\n::error::y"] {
        let spec = json!({"writeConnectionSecretToRef": {"name": name}});
        let seat = Seat::with(ready("EnvironmentClaim", spec, json!({})), &DATABASE).await;
        let told = seat.connect(&[]).await.is(1, &["found the name"]);
        assert_eq!(told.lines().filter(|line| !line.starts_with("  ")).count(), 1, "{told}");
        let asked = seat.cluster.asked();
        assert!(!asked.iter().any(|request| request.contains("secrets")), "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_workspace_prints_only_words_and_addresses() {
    let line = "ssh developer@127.0.0.1";
    for status in [
        json!({"instanceId": "i-0abc", "publicIp": "127.0.0.1\n::error::x", "connection": line}),
        json!({"instanceId": "i-0abc", "publicIp": "-oProxyCommand=x", "connection": line}),
        json!({"instanceId": "i-0\u{1b}[2J", "publicIp": "127.0.0.1", "connection": line}),
    ] {
        let seat = Seat::with(workspace(status), &[]).await;
        let told = seat.connect(&["--print"]).await.is(4, &["its status has no valid"]);
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_context_of_the_same_name_is_kept() {
    let environment =
        virtual_environment(json!({"type": "aks", "endpoint": "https://x.azmk8s.io:443"}));
    let seat = Seat::with(environment, &[("kubeconfig", &kubeconfig("https://x.azmk8s.io"))]).await;
    fs::create_dir(seat.home.path().join(".kube")).unwrap();
    let theirs = kubeconfig("https://theirs").replace("\"x\"", "\"paved/team/shop\"");
    fs::write(seat.config(), &theirs).unwrap();
    seat.connect(&[]).await.is(1, &["paved/team/shop in contexts belongs to another cluster"]);
    assert_eq!(fs::read_to_string(seat.config()).unwrap(), theirs);
    seat.connect(&["--context-name", "shop"]).await.is(0, &["is context shop in"]);
    seat.connect(&["--context-name", "shop"]).await.is(0, &[]);
    assert_eq!(read(&seat.config())["current-context"], "paved/team/shop", "it is unchanged");
    seat.connect(&["--replace"]).await.is(0, &[]);
    assert_eq!(read(&seat.config())["clusters"].as_array().unwrap().len(), 2);
    let own = seat.home.path().join("own");
    let told = seat.connect(&["--into", own.to_str().unwrap(), "--print"]).await.is(0, &[]);
    let kubectl =
        format!("kubectl --kubeconfig {} --context paved/team/shop get pods -A\n", own.display());
    assert!(told.ends_with(&format!(" && {kubectl}")) && !own.exists(), "{told}");
    let told = seat.connect(&["--print"]).await.is(0, &[]);
    assert_eq!(told, "kubectl --context paved/team/shop get pods -A\n", "the context exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_command_of_a_cluster_works_as_pasted() {
    let environment =
        virtual_environment(json!({"type": "aks", "endpoint": "https://x.azmk8s.io:443"}));
    let seat = Seat::with(environment, &[("kubeconfig", &kubeconfig("https://x.azmk8s.io"))]).await;
    let told = seat.connect(&["--print"]).await.is(0, &["--namespace team"]);
    assert!(!seat.config().exists(), "--print writes no file");
    let path = format!("{}:/usr/bin:/bin", seat.home.path().display());
    seat.program("paved", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_paved")));
    seat.program("kubectl", "echo \"kubectl $*\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &told]).env_clear().env("HOME", seat.home.path()).env("PATH", path);
    let output = shell.output().await.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    assert!(out.ends_with("kubectl --context paved/team/shop get pods -A\n"), "{out}");
    assert_eq!(read(&seat.config())["contexts"][0]["name"], "paved/team/shop");

    // The context of a forwarded cluster exists only while the forwarding runs.
    let status = json!({"type": "vcluster", "url": "https://preview-x.host.svc", "endpoint": "https://preview-x.host.svc:443"});
    let details = kubeconfig("https://preview-x.host.svc:443");
    let seat = Seat::with(virtual_environment(status), &[("kubeconfig", &details)]).await;
    let told = seat.connect(&["--print"]).await.is(0, &["paved connect shop"]);
    assert!(!told.contains("kubectl"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn virtual_cluster_is_reached_through_its_load_balancer() {
    let status = json!({"type": "vcluster", "url": "https://preview-x.host.svc", "endpoint": "https://203.0.113.9"});
    let details = kubeconfig("https://preview-x.host.svc:443");
    let seat = Seat::with(virtual_environment(status), &[("kubeconfig", &details)]).await;
    seat.connect(&[]).await.is(0, &["is context paved/team/shop"]);
    let cluster = read(&seat.config())["clusters"][0]["cluster"].clone();
    assert_eq!(
        (&cluster["server"], &cluster["tls-server-name"]),
        (&json!("https://203.0.113.9"), &json!("preview-x.host.svc"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn virtual_cluster_without_an_address_is_not_written() {
    let details = kubeconfig("https://preview-x.host.svc:443");
    for endpoint in [Value::Null, "".into()] {
        let status =
            json!({"type": "vcluster", "url": "https://preview-x.host.svc", "endpoint": endpoint});
        let seat = Seat::with(virtual_environment(status), &[("kubeconfig", &details)]).await;
        seat.connect(&[]).await.is(4, &["its status has no endpoint"]);
        assert!(!seat.config().exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_cluster_inside_is_forwarded_until_ctrl_c() {
    let status = |name: &str| json!({"type": "vcluster", "url": format!("https://{name}.host.svc"), "endpoint": format!("https://{name}.host.svc:443")});
    let details = kubeconfig("https://preview-x.host.svc:443");
    let seat =
        Seat::with(virtual_environment(status("preview-x")), &[("kubeconfig", &details)]).await;
    // These variables of a pipeline's job do not make it a pod of the target cluster.
    let mut command = seat.command(&[]);
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "443");
    let mut run = command.spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("press Ctrl-C to stop") {}
    let cluster = read(&seat.config())["clusters"][0]["cluster"].clone();
    assert_eq!(cluster["tls-server-name"], "preview-x.host.svc");
    let address = cluster["server"].as_str().unwrap().strip_prefix("https://").unwrap().to_owned();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        tokio::time::timeout(Duration::from_secs(30), stream.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&answer, b"HELLO");
    }
    Command::new("kill").args(["-INT", &run.id().unwrap().to_string()]).status().await.unwrap();
    let last = lines.next_line().await.unwrap().unwrap();
    assert!(
        last.starts_with("forwarding stopped. Removed context paved/team/shop from "),
        "{last}"
    );
    assert_eq!(run.wait().await.unwrap().code(), Some(0));
    assert_eq!(read(&seat.config())["contexts"], json!([]));

    let seat = Seat::with(virtual_environment(status("other")), &[("kubeconfig", &details)]).await;
    seat.connect(&[]).await.is(
        6,
        &[
            "could not forward to pod other-0 in namespace host",
            "get and create \
            pods/portforward",
        ],
    );
    assert!(!seat.config().exists(), "an unreachable cluster is not written");
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_pool_cannot_be_connected_to() {
    let seat = Seat::with(ready("StockPool", json!({"replicas": 1}), json!({})), &[]).await;
    seat.connect(&[])
        .await
        .is(1, &["StockPool shop: a StockPool has no machine, cluster or database to connect to"]);
}
