//! The portal, in this process or in a separate process, and its clients.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use paved::portal::Limits;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::api_server::ApiServer;

/// The time limit of every step. Without the limit, a failed test would wait permanently.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// New environments are created in the namespace of the user's group.
const TEMPLATE: [&str; 2] = ["--namespace-template", "team-{group}"];

/// A portal. It stops when it is dropped.
pub struct Portal {
    running: Running,
    pub address: String,
    scheme: &'static str,
    log: Log,
    client: Client<HttpsConnector<HttpConnector>, Full<bytes::Bytes>>,
}

/// The lines that a portal has logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Running {
    /// In a thread of this process. The thread ends without a message to clients when `_held` is
    /// dropped.
    Here {
        stop: Option<oneshot::Sender<()>>,
        ended: oneshot::Receiver<Result<(), String>>,
        _held: oneshot::Sender<()>,
    },
    Process(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Process(process) = self {
            _ = process.kill();
            _ = process.wait();
        }
    }
}

/// A response.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: bytes::Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}: {:?}", self.status, self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

impl Portal {
    /// Starts a portal on this cluster, with `--auth none` and the rights of the token's user.
    pub async fn alone(cluster: &ApiServer, token: &str) -> Self {
        Self::start(cluster, token, &["--auth", "none"]).await
    }

    /// Starts a portal with these flags. New environments are created in the namespace of the
    /// user's group.
    pub async fn start(cluster: &ApiServer, token: &str, flags: &[&str]) -> Self {
        Self::limited(cluster, token, flags, Limits::default()).await
    }

    /// The same, with these limits.
    pub async fn limited(cluster: &ApiServer, token: &str, flags: &[&str], limits: Limits) -> Self {
        Self::here(cluster, token, &[&TEMPLATE, flags].concat(), limits, None).await
    }

    /// Starts a portal with only these flags.
    pub async fn with(cluster: &ApiServer, token: &str, flags: &[&str]) -> Self {
        Self::here(cluster, token, flags, Limits::default(), None).await
    }

    /// Starts a portal with only these flags. Clients use TLS, and trust this certificate.
    pub async fn trusted(
        cluster: &ApiServer,
        token: &str,
        flags: &[&str],
        certificate: &CertificateDer<'static>,
    ) -> Self {
        Self::here(cluster, token, flags, Limits::default(), Some(certificate)).await
    }

    /// Starts a portal in a thread of this process. A separate thread has a separate log.
    async fn here(
        cluster: &ApiServer,
        token: &str,
        flags: &[&str],
        limits: Limits,
        certificate: Option<&CertificateDer<'static>>,
    ) -> Self {
        let flags: Vec<String> = Self::flags(cluster, token)
            .into_iter()
            .chain(flags.iter().map(|&flag| flag.into()))
            .collect();
        let log = Log::default();
        let kept = log.clone();
        let (listens, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let (held, dropped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = match paved::portal::start(&flags, &limits, move || kept.clone()).await
                {
                    Ok(server) => server,
                    Err(message) => return drop(listens.send(Err(message))),
                };
                _ = listens.send(Ok(server.address().to_string()));
                let stop = async move {
                    if stopped.await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    end = server.serve(stop) => drop(ends.send(end)),
                    _ = dropped => {}
                }
            });
            runtime.shutdown_background();
        });
        let address = address.await.unwrap().unwrap_or_else(|message| panic!("{message}"));
        let running = Running::Here { stop: Some(stop), ended, _held: held };
        Self::ready(running, address, log, certificate).await
    }

    /// The same as `start`, in a separate process.
    pub async fn process(cluster: &ApiServer, token: &str, flags: &[&str]) -> Self {
        // A low limit of open files, as on some nodes.
        let mut process = Command::new("sh")
            .args(["-c", "ulimit -S -n 64 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_paved")])
            .arg("portal")
            .args(Self::flags(cluster, token))
            .args(TEMPLATE)
            .args(flags)
            .env_remove("KUBECONFIG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = Log::default();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the portal ends before it listens").unwrap();
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            writeln!(log, "{line}").unwrap();
            if told["message"] == "listening" {
                break told["address"].as_str().unwrap().to_owned();
            }
            assert!(!line.starts_with("error"), "{line}");
        };
        let mut kept = log.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| writeln!(kept, "{line}").unwrap());
        });
        Self::ready(Running::Process(process), address, log, None).await
    }

    /// The flags of every portal.
    fn flags(cluster: &ApiServer, token: &str) -> Vec<String> {
        let kubeconfig = cluster.kubeconfig(token).display().to_string();
        ["--listen", "127.0.0.1:0", "--kubeconfig", &kubeconfig].map(str::to_owned).to_vec()
    }

    /// Waits until the portal is ready.
    async fn ready(
        running: Running,
        address: String,
        log: Log,
        certificate: Option<&CertificateDer<'static>>,
    ) -> Self {
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let portal = Self { running, address, scheme, log, client: client(certificate) };
        portal.until("/readyz", |answer| answer.status == 200).await;
        portal
    }

    /// The log so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.0.lock().unwrap()).into_owned()
    }

    /// Waits until the log has this text.
    pub async fn until_logged(&self, text: &str) {
        self.until("/healthz", |_| self.log().contains(text)).await;
    }

    /// The largest resident size of a portal in a process of its own, in KiB.
    pub fn peak_memory(&self) -> u64 {
        let Running::Process(process) = &self.running else { panic!("not a process") };
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Stops the portal, and waits for its end. Returns the exit code.
    pub async fn stop(&mut self) -> i32 {
        match &mut self.running {
            Running::Here { stop, ended, .. } => {
                stop.take().unwrap().send(()).unwrap();
                let end = timeout(TIMEOUT, ended).await.expect("no end in time").unwrap();
                end.map_or(1, |()| 0)
            }
            Running::Process(process) => {
                let id = process.id().to_string();
                Command::new("kill").args(["-TERM", &id]).status().unwrap();
                for _ in 0..500 {
                    if let Some(status) = process.try_wait().unwrap() {
                        return status.code().unwrap_or(-1);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                panic!("the portal does not stop");
            }
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<bytes::Bytes>,
    ) -> Request<Full<bytes::Bytes>> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = Request::builder().method(method).uri(self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Full::new(body.into())).unwrap()
    }

    /// Sends a request with a body of any kind.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<bytes::Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = timeout(TIMEOUT, body.collect()).await.unwrap().unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Sends a request, and returns the response before its end.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<bytes::Bytes>,
    ) -> Response<hyper::body::Incoming> {
        let request = self.request(method, path, headers, body);
        timeout(TIMEOUT, self.client.request(request)).await.expect("no answer in time").unwrap()
    }

    /// Sends GET with this user's token, or without a token if it is empty.
    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.json("GET", token, path, &Value::Null).await
    }

    /// Sends JSON with this user's token.
    pub async fn json(&self, method: &str, token: &str, path: &str, body: &Value) -> Answer {
        let authorization = format!("Bearer token-{token}");
        let mut headers = vec![("content-type", "application/json")];
        if !token.is_empty() {
            headers.push(("authorization", &authorization));
        }
        self.send(
            method,
            path,
            &headers,
            if body.is_null() { String::new() } else { body.to_string() },
        )
        .await
    }

    /// Repeats the request until the answer fits.
    pub async fn until(&self, path: &str, fits: impl Fn(&Answer) -> bool) -> Answer {
        self.until_as("", path, fits).await
    }

    /// The same, with this user's token.
    pub async fn until_as(
        &self,
        token: &str,
        path: &str,
        fits: impl Fn(&Answer) -> bool,
    ) -> Answer {
        let mut last = None;
        for _ in 0..500 {
            let answer = self.get(token, path).await;
            if fits(&answer) {
                return answer;
            }
            last = Some(answer);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{path} never fits: {:?}\n{}", last.map(|answer| answer.body), self.log());
    }

    /// Opens a stream of events.
    pub async fn events(&self, headers: &[(&str, &str)]) -> Events {
        let response = self.open("GET", "/api/v1/watch", headers, "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { body: response.into_body(), text: String::new(), last: String::new() }
    }

    /// Opens a WebSocket.
    pub async fn socket(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<WebSocketStream<TcpStream>, Error> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(&self.address).await.unwrap();
        timeout(TIMEOUT, tokio_tungstenite::client_async(request, stream))
            .await
            .unwrap()
            .map(|(socket, _)| socket)
    }
}

fn client(
    certificate: Option<&CertificateDer<'static>>,
) -> Client<HttpsConnector<HttpConnector>, Full<bytes::Bytes>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificate.cloned());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
    Client::builder(TokioExecutor::new()).build(connector)
}

/// A stream of events.
pub struct Events {
    body: hyper::body::Incoming,
    text: String,
    /// The ID of the last event with an ID.
    pub last: String,
}

/// An event's name and data.
pub type Event = (String, Value);

impl Events {
    /// The next event except heartbeats. `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while !self.text.contains("\n\n") {
                let frame = timeout(TIMEOUT, self.body.frame()).await.expect("no event in time")?;
                if let Some(data) = frame.ok()?.data_ref() {
                    self.text.push_str(std::str::from_utf8(data).unwrap());
                }
            }
            let end = self.text.find("\n\n").unwrap();
            let event: String = self.text.drain(..end + 2).collect();
            let fields: BTreeMap<String, String> = event
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_owned(), value.trim_start().to_owned()))
                .collect();
            if let Some(id) = fields.get("id") {
                self.last.clone_from(id);
            }
            let name = fields.get("event").cloned().unwrap_or_default();
            if name != "heartbeat" && !name.is_empty() {
                return Some((name, serde_json::from_str(&fields["data"]).unwrap()));
            }
        }
    }

    /// All events before `synced`: the names of the events and of the environments.
    pub async fn synced(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        loop {
            let (name, data) = self.next().await.expect("the stream ends");
            if name == "synced" {
                return all;
            }
            all.push((name, data["name"].as_str().unwrap_or_default().to_owned()));
        }
    }

    /// The name of the next event and of its environment.
    pub async fn told(&mut self) -> (String, String) {
        let (name, data) = self.next().await.expect("the stream ends");
        (name, data["name"].as_str().unwrap_or_default().to_owned())
    }
}
