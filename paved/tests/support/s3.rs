//! A real S3 API on loopback: moto, from PyPI.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::python::{MOTO, program};

/// The bucket of the environment.
pub const BUCKET: &str = "acme-mfe-shop-0123abcd";

/// How many keys S3 lists in a page.
const PAGE: u16 = 1000;

/// The process that forks a server for each test.
static FORKS: LazyLock<Mutex<Forks>> = LazyLock::new(|| Mutex::new(Forks::start()));

struct Forks {
    // It ends with this process, which closes its standard input.
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

    /// The port and the process of a new server.
    fn fork(&mut self, folder: &Path, page: u16) -> (u16, u32) {
        self.order(&json!({"folder": folder, "page": page}));
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let (port, process) = answer.trim().split_once(' ').expect("moto does not start");
        (port.parse().unwrap(), process.parse().unwrap())
    }
}

/// A server, for as long as it is held.
pub struct S3 {
    process: u32,
    pub url: String,
    folder: TempDir,
    pub client: Client,
}

impl Drop for S3 {
    fn drop(&mut self) {
        FORKS.lock().unwrap().order(&json!({"stop": self.process}));
    }
}

impl S3 {
    /// Starts one, with an empty bucket.
    pub async fn start() -> Self {
        Self::with_pages_of(PAGE).await
    }

    /// The same, which lists so many keys in a page.
    pub async fn with_pages_of(keys: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, process) = FORKS.lock().unwrap().fork(folder.path(), keys);
        let url = format!("http://127.0.0.1:{port}");
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .endpoint_url(&url)
            .force_path_style(true)
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .build();
        let client = Client::from_conf(config);
        let s3 = Self { process, url, folder, client };
        s3.create(BUCKET).await;
        s3.requests();
        s3
    }

    /// Makes a bucket.
    pub async fn create(&self, bucket: &str) {
        self.client.create_bucket().bucket(bucket).send().await.unwrap();
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

    /// What the bucket says of an object.
    pub async fn head(&self, key: &str) -> HeadObjectOutput {
        self.client.head_object().bucket(BUCKET).key(key).send().await.unwrap()
    }

    /// All keys of the bucket.
    pub async fn keys(&self) -> Vec<String> {
        let mut pages = self.client.list_objects_v2().bucket(BUCKET).into_paginator().send();
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            keys.extend(
                page.unwrap().contents.unwrap_or_default().into_iter().filter_map(|one| one.key),
            );
        }
        keys
    }
}
