//! A real S3 API on loopback: moto, from PyPI.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::http::{HeaderMap, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use regex_lite::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::python::{MOTO, program};

/// The bucket of the environment.
pub const BUCKET: &str = "acme-mfe-shop-0123abcd";

/// The number of keys in a page of S3's list.
const PAGE: u16 = 1000;

/// The process that forks a server for each test.
static FORKS: LazyLock<Mutex<Forks>> = LazyLock::new(|| Mutex::new(Forks::start()));

struct Forks {
    // The process ends with this process, which closes its standard input.
    _process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Forks {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/s3.py");
        let mut process = Command::new(program(MOTO, "python").unwrap())
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { _process: process, orders, answers }
    }

    fn order(&mut self, order: &Value) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Starts a server. Returns its port and process ID.
    fn fork(&mut self, folder: &Path, page: u16) -> (u16, u32) {
        self.order(&json!({"folder": folder, "page": page}));
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let (port, process) = answer.trim().split_once(' ').expect("moto does not start");
        (port.parse().unwrap(), process.parse().unwrap())
    }
}

/// A server. It stops when it is dropped.
pub struct S3 {
    process: u32,
    pub url: String,
    folder: TempDir,
}

/// A successful answer of the server.
pub struct Answer {
    pub headers: HeaderMap,
    body: String,
}

impl Answer {
    /// The texts of all elements with that name.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let element = Regex::new(&format!("<{name}>([^<]*)</{name}>")).unwrap();
        element.captures_iter(&self.body).map(|found| found[1].to_owned()).collect()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        FORKS.lock().unwrap().order(&json!({"stop": self.process}));
    }
}

impl S3 {
    /// Starts a server with an empty bucket.
    pub async fn start() -> Self {
        Self::with_pages_of(PAGE).await
    }

    /// The same, with this number of keys in a page.
    pub async fn with_pages_of(keys: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, process) = FORKS.lock().unwrap().fork(folder.path(), keys);
        let url = format!("http://127.0.0.1:{port}");
        let s3 = Self { process, url, folder };
        s3.create(BUCKET).await;
        s3.requests();
        s3
    }

    /// Creates a bucket.
    pub async fn create(&self, bucket: &str) {
        self.ask("PUT", "s3", &format!("/{bucket}"), "").await;
    }

    /// Sends a request. The server finds the service by the signature's scope, and does not check
    /// the signature.
    pub async fn ask(&self, method: &str, service: &str, target: &str, body: &str) -> Answer {
        let scope = format!("test/20240101/us-east-1/{service}/aws4_request");
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{target}", self.url))
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}, Signature=0"))
            .body(Full::<Bytes>::from(body.to_owned()))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (head, body) = client.request(request).await.unwrap().into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(head.status.is_success(), "{method} {target}: {} {body}", head.status);
        Answer { headers: head.headers, body }
    }

    /// The requests since the last call, in the order of arrival: `PUT /bucket/key`.
    pub fn requests(&self) -> Vec<String> {
        let path = self.folder.path().join("requests");
        let all = fs::read_to_string(&path).unwrap();
        // The server appends to the file, so it does not write the removed text again.
        fs::OpenOptions::new().write(true).truncate(true).open(path).unwrap();
        all.lines().map(str::to_owned).collect()
    }

    /// Rejects requests of this method whose path and query contain this text.
    pub fn refuse(&self, method: &str, path: &str, status: u16, code: &str) {
        let rule = json!({"method": method, "path": path, "status": status, "code": code});
        let part = self.folder.path().join("part");
        fs::write(&part, rule.to_string()).unwrap();
        fs::rename(part, self.folder.path().join("refusal")).unwrap();
    }

    /// Stops rejecting requests.
    pub fn allow(&self) {
        fs::remove_file(self.folder.path().join("refusal")).unwrap();
    }

    /// The headers of an object.
    pub async fn head(&self, key: &str) -> HeaderMap {
        self.ask("HEAD", "s3", &format!("/{BUCKET}/{key}"), "").await.headers
    }

    /// All keys of the bucket.
    pub async fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        loop {
            let after = keys.last().map(|key| format!("&start-after={key}")).unwrap_or_default();
            let target = format!("/{BUCKET}?list-type=2{after}");
            let page = self.ask("GET", "s3", &target, "").await.texts("Key");
            if page.is_empty() {
                return keys;
            }
            keys.extend(page);
        }
    }

    /// The IDs of incomplete uploads.
    pub async fn open_uploads(&self) -> Vec<String> {
        self.ask("GET", "s3", &format!("/{BUCKET}?uploads"), "").await.texts("UploadId")
    }
}
