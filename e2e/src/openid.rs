//! An OpenID provider on loopback, and a person's browser that signs in there.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use xtask::{node, workspace};

/// npm's `oidc-provider`, which runs until it is dropped.
pub struct Provider {
    _process: Child,
    /// The provider writes to this pipe occasionally, and would end without a reader.
    _output: Lines<BufReader<ChildStdout>>,
    /// Its URL.
    pub issuer: String,
}

impl Provider {
    /// Starts a provider that accepts these redirect URLs.
    pub async fn start(redirects: &[String]) -> Result<Self> {
        let home = workspace::root().join("e2e/openid");
        let installed = home.clone();
        tokio::task::spawn_blocking(move || node::install(&installed)).await??;
        let mut process = Command::new("node")
            .arg("provider.mjs")
            .args(redirects)
            .current_dir(home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting node")?;
        let out = process.stdout.take().context("the provider's output")?;
        let mut output = BufReader::new(out).lines();
        let issuer = output.next_line().await.context("reading the provider's issuer")?;
        let issuer = issuer.context("the provider has ended")?;
        Ok(Self { _process: process, _output: output, issuer })
    }
}

/// An open WebSocket, until it is dropped.
pub struct Heard {
    _process: Child,
    file: NamedTempFile,
}

impl Heard {
    /// The messages so far, in their order. Frames are short and plain, so the received bytes
    /// contain their texts.
    pub fn told(&self) -> Result<Vec<Value>> {
        let heard = std::fs::read(self.file.path()).context("reading curl's output")?;
        let heard = String::from_utf8_lossy(&heard).into_owned();
        let texts = heard.split_inclusive('}').filter_map(|text| text.get(text.find('{')?..));
        Ok(texts.filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}

/// A person's browser: curl, which keeps cookies in a file.
pub struct Browser {
    folder: TempDir,
    /// The origin of its pages.
    origin: String,
}

impl Browser {
    /// A browser without any cookies, for pages of this origin.
    pub fn new(origin: &str) -> Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir().context("making a folder")?,
            origin: origin.to_owned(),
        })
    }

    /// Signs in to a portal as `NAME.GROUP`. The provider asks for a login, then for consent.
    pub async fn sign_in(&self, portal: &str, who: &str) -> Result<()> {
        let page = self.curl(&["--location", &format!("{portal}/auth/sign-in")]).await?;
        let login = format!("login={who}");
        let asked =
            ["--location", "--data", "prompt=login", "--data", &login, "--data", "password=any"];
        let page = self.curl(&[&asked[..], &[form(&page)?]].concat()).await?;
        self.curl(&["--location", "--data", "prompt=consent", form(&page)?]).await.map(drop)
    }

    /// Sends a request to a portal, as its own pages would. Returns the status and the body.
    pub async fn ask(
        &self,
        method: &str,
        portal: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        self.ask_with(&[], method, portal, path, body).await
    }

    /// The same with these headers.
    pub async fn ask_with(
        &self,
        headers: &[&str],
        method: &str,
        portal: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let (origin, url) = (format!("Origin: {}", self.origin), format!("{portal}{path}"));
        let text = body.to_string();
        let mut args =
            vec!["--request", method, "--header", &origin, "--write-out", "\n%{http_code}", &url];
        if !body.is_null() {
            args.extend(["--header", "Content-Type: application/json", "--data", &text]);
        }
        args.extend(headers.iter().flat_map(|header| ["--header", *header]));
        let answer = self.curl(&args).await?;
        let (body, status) = answer.rsplit_once('\n').context("curl printed no status")?;
        Ok((
            status.parse().context("curl's status")?,
            serde_json::from_str(body).unwrap_or_default(),
        ))
    }

    /// Opens the stream of changes, to read it line by line.
    pub fn watch(&self, portal: &str) -> Result<Changes> {
        let mut command = self.command(&["--no-buffer", &format!("{portal}/api/v1/watch")]);
        let mut process = command.kill_on_drop(true).spawn().context("starting curl")?;
        let out = process.stdout.take().context("curl's output")?;
        Ok(Changes { _process: process, lines: BufReader::new(out).lines() })
    }

    /// Opens a portal's WebSocket.
    pub fn listen(&self, portal: &str, path: &str) -> Result<Heard> {
        let (origin, url) = (format!("Origin: {}", self.origin), format!("{portal}{path}"));
        let mut command = self.command(&["--http1.1", "--no-buffer", &url]);
        for header in [
            origin.as_str(),
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: cGF2ZWQgcm9hZCBlMmUgIQ==",
        ] {
            command.args(["--header", header]);
        }
        let file = tempfile::NamedTempFile::new().context("making a file")?;
        command.stdout(file.reopen()?);
        let process = command.kill_on_drop(true).spawn().context("starting curl")?;
        Ok(Heard { _process: process, file })
    }

    async fn curl(&self, args: &[&str]) -> Result<String> {
        let output = self.command(args).output().await.context("starting curl")?;
        ensure!(
            output.status.success(),
            "curl {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self, args: &[&str]) -> Command {
        let jar = self.folder.path().join("cookies");
        let mut command = Command::new("curl");
        command
            .args(["--disable", "--silent", "--show-error", "--noproxy", "*", "--cookie-jar"])
            .arg(&jar);
        command.arg("--cookie").arg(jar).args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The target of a page's form.
fn form(page: &str) -> Result<&str> {
    let action = page.split("action=\"").nth(1).and_then(|rest| rest.split('"').next());
    action.with_context(|| format!("no form in this page:\n{page}"))
}

/// A stream of changes.
pub struct Changes {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Changes {
    /// The next event: its name and its data.
    pub async fn next(&mut self) -> Result<(String, Value)> {
        let mut name = String::new();
        loop {
            let line = self.lines.next_line().await?.context("the stream has ended")?;
            match line.split_once(": ") {
                Some(("event", event)) => event.clone_into(&mut name),
                Some(("data", data)) => return Ok((name, serde_json::from_str(data)?)),
                _ => {}
            }
        }
    }
}
