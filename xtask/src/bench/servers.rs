//! The servers under load, as processes of their own.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tonic::transport::{Channel, Endpoint};

use super::cpus;

/// Which server.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Ours.
    Function,
    /// The no-op on the SDK's server.
    NoOp,
}

/// A running server; killed when dropped.
pub(super) struct Server {
    process: Child,
    address: SocketAddr,
}

/// Memory of a process, in KiB: now, and the most it ever had.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) now: u64,
    pub(super) peak: u64,
}

/// Where the release binaries are.
pub(super) fn folder() -> PathBuf {
    crate::workspace::target().join("release")
}

impl Server {
    /// Starts a server, on one core only if one is given, and waits until it listens.
    pub(super) async fn start(kind: Kind, cpu: Option<usize>, flags: &[&str]) -> Result<Self> {
        // Whoever takes the port in between makes the start fail, not the figures wrong.
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

    /// A connection of one's own, with windows that do not hold the client back.
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

    /// How much memory it has.
    pub(super) fn memory(&self) -> Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .context("the process has gone")?;
            Ok::<u64, anyhow::Error>(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok(Memory { now: field("VmRSS:")?, peak: field("VmHWM:")? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
