//! A real S3 API on loopback: moto, from PyPI.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
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
