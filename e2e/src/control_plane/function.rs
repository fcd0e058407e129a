//! Our function: replicas of the real binary, behind one endpoint.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{
    ground::Ground,
    pki::Authority,
    ports,
    process::{Process, Program},
};

/// Replicas of the function, and the one address at which they are reached.
///
/// Connections are given to the replicas in turn, past those that do not answer, as a Service does; core keeps one connection
/// and its streams, so a replica that dies takes the calls that it was answering with it, and the next go to another.
pub struct Function {
    /// Host and port, for the revision's status.
    pub endpoint: String,
    /// The program.
    pub binary: PathBuf,
    /// The replicas, to be stopped and started.
    pub replicas: Vec<Arc<Process>>,
    traffic: Arc<Traffic>,
    task: JoinHandle<()>,
}

/// Which replica was asked last, and how many connections each has had.
#[derive(Default)]
struct Traffic {
    last: AtomicUsize,
    connections: Vec<AtomicUsize>,
}

impl Function {
    /// Starts `count` replicas of a binary; their processes are called `<name>-0` and so on.
    pub async fn start(
        ground: &Ground,
        authority: &Authority,
        binary: &Path,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        let start = Instant::now();
        let certificates = ground.subfolder(&format!("{name}-server"))?;
        authority.sign(["127.0.0.1", "localhost"])?.write(&certificates)?;
        let (mut replicas, mut backends) = (Vec::new(), Vec::new());
        for number in 0..count {
            let port = ports::free()?;
            let program = Program::new(format!("{name}-{number}"), binary)
                .arg(format!("--address=127.0.0.1:{port}"))
                .arg("--metrics-address=")
                .env("TLS_SERVER_CERTS_DIR", certificates.display().to_string());
            replicas.push(ground.start(program)?);
            backends.push(port);
        }
        for (replica, port) in replicas.iter().zip(&backends) {
            replica.ready(Duration::from_secs(30), async || ports::answers(*port).await).await?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free()?)).await?;
        let endpoint = listener.local_addr()?.to_string();
        let connections = backends.iter().map(|_| AtomicUsize::default()).collect();
        let traffic = Arc::new(Traffic { connections, ..Traffic::default() });
        let task = tokio::spawn(balance(listener, backends, traffic.clone()));
        ground.tell(&format!("{name}, {count} replicas"), start);
        Ok(Self { endpoint, binary: binary.to_owned(), replicas, traffic, task })
    }

    /// The index of the replica that was connected to last: it answers, as core keeps a connection.
    pub fn serving(&self) -> usize {
        self.traffic.last.load(Ordering::Relaxed)
    }

    /// How often each replica was connected to.
    pub fn connections(&self) -> Vec<usize> {
        self.traffic.connections.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn balance(listener: TcpListener, backends: Vec<u16>, traffic: Arc<Traffic>) {
    let next = Arc::new(AtomicUsize::new(0));
    // An error is that of one connection.
    loop {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let (backends, next, traffic) = (backends.clone(), next.clone(), traffic.clone());
        tokio::spawn(async move {
            for _ in 0..backends.len() {
                let number = next.fetch_add(1, Ordering::Relaxed) % backends.len();
                if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, backends[number])).await {
                    traffic.last.store(number, Ordering::Relaxed);
                    traffic.connections[number].fetch_add(1, Ordering::Relaxed);
                    // Either side may end it as it likes.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                    return;
                }
            }
        });
    }
}
