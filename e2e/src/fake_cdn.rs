//! AWS as a pipeline sees it: moto's S3 and CloudFront, and an edge that serves the site under its
//! CloudFront address.

use std::process::Stdio;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::fs;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use xtask::python::{MOTO, program};
use xtask::workspace;

use crate::control_plane::pki::Authority;

/// Runs until it is dropped.
pub struct FakeCdn {
    _process: Child,
    folder: TempDir,
    apis: String,
}

impl FakeCdn {
    /// Starts an edge for one site. Its folder makes curl connect to this edge as CloudFront, and
    /// trust its certificate.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        let certificate = Authority::new("edge")?.sign(["*.cloudfront.net"])?;
        certificate.write(folder.path())?;
        let python = tokio::task::spawn_blocking(|| program(MOTO, "python")).await??;
        let mut process = Command::new(python)
            .arg(workspace::root().join("e2e/src/fake_cdn.py"))
            .arg(folder.path())
            .args(["tls.crt", "tls.key"].map(|file| folder.path().join(file)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting moto")?;
        let out = process.stdout.take().context("moto's output")?;
        let ports =
            BufReader::new(out).lines().next_line().await.context("reading moto's ports")?;
        let ports = ports.context("moto has ended")?;
        let (apis, edge) = ports.split_once(' ').context("moto has not printed two ports")?;
        let authority = folder.path().join("ca.crt");
        let curl =
            format!("connect-to = \"::127.0.0.1:{edge}\"\ncacert = \"{}\"\n", authority.display());
        fs::write(folder.path().join(".curlrc"), curl).await.context("writing to curl")?;
        Ok(Self { apis: format!("http://127.0.0.1:{apis}"), _process: process, folder })
    }

    /// The variables that point the AWS SDK and curl to it.
    pub fn variables(&self) -> [(&'static str, String); 6] {
        [
            ("AWS_ENDPOINT_URL", self.apis.clone()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_CONFIG_FILE", "/dev/null".to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null".to_owned()),
            ("CURL_HOME", self.folder.path().display().to_string()),
        ]
    }
}
