//! The function as a separate process.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use serde_json::Value;
use tempfile::NamedTempFile;

/// A running function. It is killed when dropped.
pub struct Process {
    child: Child,
    log: NamedTempFile,
}

impl Process {
    /// Starts the function on free ports, without TLS.
    pub fn start(flags: &[&str]) -> Self {
        Self::logging("info", flags)
    }

    /// Starts the function on free ports, with the certificates of a directory.
    pub fn with_tls(directory: &Path) -> Self {
        Self::started("info", &["--tls-certs-dir", directory.to_str().unwrap()])
    }

    /// Starts it without TLS, with a log level.
    pub fn logging(level: &str, flags: &[&str]) -> Self {
        Self::started(level, &[&["--insecure"], flags].concat())
    }

    fn started(level: &str, flags: &[&str]) -> Self {
        let log = NamedTempFile::new().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_function"))
            .args(["--address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"])
            .args(flags)
            .env("RUST_LOG", level)
            .stderr(File::create(log.path()).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// The address of the gRPC server.
    pub async fn address(&self) -> String {
        self.logged("serving FunctionRunnerService", "address").await
    }

    /// The address of the metrics server.
    pub async fn metrics_address(&self) -> String {
        self.logged("serving metrics", "address").await
    }

    /// All lines of the log so far, as text.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Waits for a log line and returns its fields.
    pub async fn line(&self, message: &str) -> Value {
        for _ in 0..500 {
            let log = self.log();
            let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line["fields"]["message"] == message) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {message:?} in the log:\n{}", self.log());
    }

    async fn logged(&self, message: &str, field: &str) -> String {
        self.line(message).await["fields"][field].as_str().unwrap().to_owned()
    }

    /// The maximum memory until now, in KiB.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        assert!(
            Command::new("kill")
                .args(["-TERM", &self.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits until the process ends.
    pub async fn ended(&mut self) -> ExitStatus {
        for _ in 0..500 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the process still runs:\n{}", self.log());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
