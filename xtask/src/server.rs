//! A server on loopback, as a process.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// A running server. Dropping it ends the process.
pub struct Server {
    process: Child,
    address: SocketAddr,
    log: NamedTempFile,
}

impl Server {
    /// Starts a program, and waits until it listens on a free port of loopback.
    ///
    /// # Errors
    /// The program ends, or does not listen within ten seconds.
    pub fn start(program: &Path, flags: &[&str]) -> Result<Self> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = NamedTempFile::new()?;
        let output = File::create(log.path())?;
        let process = Command::new(program)
            .args(flags)
            .args(["--address", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut server = Self { process, address, log };
        server.wait()?;
        Ok(server)
    }

    /// The address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The end of the log, to print below an error.
    pub fn last_words(&self) -> String {
        let log = fs::read_to_string(self.log.path()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(10)..];
        if last.is_empty() {
            String::new()
        } else {
            format!("\nthe server's log ends\n{}", last.join("\n"))
        }
    }

    fn wait(&mut self) -> Result<()> {
        let patience = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("the server ended at its start: {status}{}", self.last_words());
            }
            if Instant::now() > patience {
                bail!("the server does not listen on {}{}", self.address, self.last_words());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
