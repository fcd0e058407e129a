//! A real S3 API on loopback: moto, from PyPI, in a virtual environment that is made once and kept under `target/`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use serde_json::json;
use tempfile::TempDir;

/// What is installed. A new version gets an environment of its own.
const MOTO: &str = "moto[server]==5.2.5";

/// The bucket of the environment.
pub const BUCKET: &str = "acme-mfe-shop-0123abcd";

/// A server, for as long as it is held.
pub struct S3 {
    process: Child,
    pub url: String,
    folder: TempDir,
    pub client: Client,
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
        let mut process = Command::new(program(MOTO, "python"))
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
            keys.extend(page.unwrap().contents.unwrap_or_default().into_iter().filter_map(|one| one.key));
        }
        keys
    }
}

/// A program of a virtual environment that has `requirement`, which is made where it is not there yet.
pub fn program(requirement: &str, name: &str) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let kept: String = requirement.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kept);
    let python = home.join("bin/python");
    let whole = home.join("whole");
    if !whole.exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", requirement]));
        fs::write(whole, "").unwrap();
    }
    home.join("bin").join(name)
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; Python 3 is needed"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
