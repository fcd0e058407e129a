//! A real S3 API on loopback: moto, from PyPI.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::http::{HeaderMap, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use regex_lite::Regex;
use serde_json::json;
use tempfile::TempDir;
use xtask::python::{MOTO, program};

/// The bucket of the environment.
pub const BUCKET: &str = "acme-mfe-shop-0123abcd";

/// A server, for as long as it is held.
pub struct S3 {
    process: Child,
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
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl S3 {
    /// Starts one, with an empty bucket.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/s3.py");
        let mut process = Command::new(program(MOTO, "python").unwrap())
            .arg(script)
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(!port.is_empty(), "moto does not start: {log}");
        let url = format!("http://127.0.0.1:{}", port.trim());
        let s3 = Self { process, url, folder };
        s3.create(BUCKET).await;
        s3.requests();
        s3
    }

    /// Makes a bucket.
    pub async fn create(&self, bucket: &str) {
        self.ask("PUT", "s3", &format!("/{bucket}"), "").await;
    }

    /// Asks the server, which finds a service by the scope of a signature, and checks none.
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

    /// What was asked since the last time, in the order of arrival: `PUT /bucket/key`.
    pub fn requests(&self) -> Vec<String> {
        let path = self.folder.path().join("requests");
        let all = fs::read_to_string(&path).unwrap();
        // The server appends: what is cut off here is not written again.
        fs::OpenOptions::new().write(true).truncate(true).open(path).unwrap();
        all.lines().map(str::to_owned).collect()
    }

    /// Refuses requests of this method whose path and query contain this.
    pub fn refuse(&self, method: &str, path: &str, status: u16, code: &str) {
        let rule = json!({"method": method, "path": path, "status": status, "code": code});
        let part = self.folder.path().join("part");
        fs::write(&part, rule.to_string()).unwrap();
        fs::rename(part, self.folder.path().join("refusal")).unwrap();
    }

    /// Refuses nothing any more.
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

    /// The ids of uploads that are not complete.
    pub async fn open_uploads(&self) -> Vec<String> {
        self.ask("GET", "s3", &format!("/{BUCKET}?uploads"), "").await.texts("UploadId")
    }
}
