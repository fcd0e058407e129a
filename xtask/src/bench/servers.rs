//! The servers under load, as separate processes.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tonic::transport::{Channel, Endpoint};

use super::cpus;

/// The kind of a server.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The function.
    Function,
    /// The no-op on the SDK's server.
    NoOp,
}

/// A running server. It is killed when dropped.
pub(super) struct Server {
    process: Child,
    address: SocketAddr,
}

/// Memory of a process in KiB: its current value and its maximum.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) now: u64,
    pub(super) peak: u64,
}

/// The folder of the release binaries.
pub(super) fn folder() -> PathBuf {
    crate::workspace::target().join("release")
}

impl Server {
    /// Starts a server, optionally on one core, and waits until it listens.
    pub(super) async fn start(kind: Kind, cpu: Option<usize>, flags: &[&str]) -> Result<Self> {
        // If another process takes the port before the server does, the start fails.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let program = folder().join(match kind {
            Kind::Function => "function",
            Kind::NoOp => "xtask",
        });
        let mut command = match cpu {
            Some(cpu) => cpus::pinned(cpu, &program),
            None => cpus::everywhere(&program),
        };
        match kind {
            Kind::Function => command.args([
                "--insecure",
                "--metrics-address=",
                "--address",
                &address.to_string(),
            ]),
            Kind::NoOp => command.args(["bench", "--serve-no-op", &address.to_string()]),
        };
        let process =
            command.args(flags).stderr(Stdio::null()).spawn().context("starting a server")?;
        let server = Self { process, address };
        server.connect().await?;
        Ok(server)
    }

    /// A new connection, with windows that do not slow down the client.
    pub(super) async fn connect(&self) -> Result<Channel> {
        let endpoint = Endpoint::new(format!("http://{}", self.address))?
            .initial_stream_window_size(8 * 1024 * 1024)
            .initial_connection_window_size(64 * 1024 * 1024);
        for _ in 0..200 {
            if let Ok(channel) = endpoint.connect().await {
                return Ok(channel);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("nothing listens on {}", self.address)
    }

    /// The memory of the server.
    pub(super) fn memory(&self) -> Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .context("the process has ended")?;
            Ok::<u64, anyhow::Error>(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok(Memory { now: field("VmRSS:")?, peak: field("VmHWM:")? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
