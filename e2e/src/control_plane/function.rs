//! Our function: replicas of the real binary, behind one endpoint.

use std::{
    io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use function_paved_road::manifests;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use super::{
    pki::Authority,
    ports,
    process::{Process, Program},
    runtime::container,
    workdir::Workdir,
};

/// The size of a copy buffer, in bytes.
const CHUNK: usize = 64 * 1024;

/// A connection with this many unanswered bytes has a call in flight. A TLS handshake with the
/// client's certificate sends fewer bytes in a row. Crossplane's calls send more once resources are
/// composed.
const CALL: usize = 4 * 1024;

/// Replicas of the function behind one address.
///
/// Like a Service, connections go to the replicas in turn and skip replicas that do not answer.
/// Crossplane keeps one connection with its streams. When a replica dies, its unanswered calls are
/// lost, and the next calls go to another replica.
pub struct Function {
    /// Host and port, for the revision's status.
    pub endpoint: String,
    /// The program of the replicas.
    pub binary: PathBuf,
    /// The replicas, to stop and start.
    pub replicas: Vec<Arc<Process>>,
    strike: Arc<Strike>,
    task: JoinHandle<()>,
}

/// The order to kill the next replica with a call in flight. The answer is this replica's number.
/// An order without a receiver is void.
type Strike = Mutex<Option<oneshot::Sender<usize>>>;

impl Function {
    /// Starts `count` replicas of a binary. Their processes are named `<name>-0` and so on.
    pub async fn start(
        workdir: &Workdir,
        authority: &Authority,
        binary: &Path,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        let start = Instant::now();
        let certificates = workdir.subfolder(&format!("{name}-server"))?;
        authority.sign(["127.0.0.1", "localhost"])?.write(&certificates)?;
        let variables =
            container(manifests::FUNCTION)?["env"].as_array().cloned().unwrap_or_default();
        let (mut replicas, mut backends) = (Vec::new(), Vec::new());
        for number in 0..count {
            let port = ports::free()?;
            let program = Program::new(format!("{name}-{number}"), binary)
                .arg(format!("--address=127.0.0.1:{port}"))
                .arg("--metrics-address=")
                .env("TLS_SERVER_CERTS_DIR", certificates.display().to_string());
            let program = variables.iter().try_fold(program, |program, variable| {
                let (name, value) = (variable["name"].as_str(), variable["value"].as_str());
                let (name, value) =
                    name.zip(value).with_context(|| format!("{variable} has no value"))?;
                anyhow::Ok(program.env(name, value))
            })?;
            replicas.push(workdir.start(program)?);
            backends.push(port);
        }
        for (replica, port) in replicas.iter().zip(&backends) {
            replica.ready(Duration::from_secs(30), async || ports::answers(*port).await).await?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free()?)).await?;
        let endpoint = listener.local_addr()?.to_string();
        let strike = Arc::<Strike>::default();
        let backends = replicas.iter().cloned().zip(backends).collect();
        let task = tokio::spawn(balance(listener, backends, strike.clone()));
        workdir.tell(&format!("{name}, {count} replicas"), start);
        Ok(Self { endpoint, binary: binary.to_owned(), replicas, strike, task })
    }

    /// Kills the next replica with a call in flight, before the client receives the first byte of
    /// the answer. Waits for the kill and returns the replica.
    pub async fn strike(&self) -> Result<&Process> {
        let (order, struck) = oneshot::channel();
        *self.strike.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        let number = struck.await.context("the function's proxy has ended")?;
        Ok(&self.replicas[number])
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn balance(listener: TcpListener, backends: Vec<(Arc<Process>, u16)>, strike: Arc<Strike>) {
    let next = Arc::new(AtomicUsize::new(0));
    let backends: Arc<[_]> = backends.into();
    // An error concerns only one connection.
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (backends, next, strike) = (backends.clone(), next.clone(), strike.clone());
        tokio::spawn(async move {
            for _ in 0..backends.len() {
                let number = next.fetch_add(1, Ordering::Relaxed) % backends.len();
                let (replica, port) = &backends[number];
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await {
                    // Client and server may close the connection at any time.
                    let _ = lead(client, server, || struck(&strike, number, replica)).await;
                    return;
                }
            }
        });
    }
}

/// Copies bytes between a client and a server until either closes the connection, or `struck` kills
/// the server during a call.
async fn lead(
    mut client: TcpStream,
    mut server: TcpStream,
    struck: impl Fn() -> bool,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let unanswered = AtomicUsize::new(0);
    let up = async {
        let mut bytes = vec![0; CHUNK];
        loop {
            let count = from_client.read(&mut bytes).await?;
            if count == 0 {
                return io::Result::Ok(());
            }
            to_server.write_all(&bytes[..count]).await?;
            unanswered.fetch_add(count, Ordering::Relaxed);
        }
    };
    let down = async {
        let mut bytes = vec![0; CHUNK];
        loop {
            let count = from_server.read(&mut bytes).await?;
            if count == 0 || unanswered.swap(0, Ordering::Relaxed) >= CALL && struck() {
                return io::Result::Ok(());
            }
            to_client.write_all(&bytes[..count]).await?;
        }
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

/// Kills a replica if an order exists whose sender still waits.
fn struck(strike: &Strike, number: usize, replica: &Process) -> bool {
    let order = strike.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(order) = order.filter(|order| !order.is_closed()) else { return false };
    replica.kill();
    // The receiver may be gone.
    let _ = order.send(number);
    true
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    /// Both ends of a connection.
    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn killed_function_leaves_a_call_without_an_answer() {
        let ((mut client, inlet), (outlet, mut server)) = (connection().await, connection().await);
        let led = tokio::spawn(lead(inlet, outlet, || true));
        let (mut asked, mut answer) = (vec![1; CALL], Vec::new());
        // A few bytes are not a call.
        client.write_all(b"hello").await.unwrap();
        server.read_exact(&mut asked[..5]).await.unwrap();
        server.write_all(b"welcome").await.unwrap();
        client.read_exact(&mut asked[..7]).await.unwrap();
        assert_eq!(&asked[..7], b"welcome");
        client.write_all(&asked).await.unwrap();
        server.read_exact(&mut asked).await.unwrap();
        server.write_all(b"answer").await.unwrap();
        led.await.unwrap().unwrap();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty(), "{answer:?}");
    }

    #[tokio::test]
    async fn cancelled_order_kills_no_replica() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::new("replica", Path::new("/bin/sh")).args(["-c", "exec sleep 60"]);
        let replica = Process::start(program, folder.path(), folder.path()).unwrap();
        let (order, waits) = oneshot::channel();
        drop(waits);
        assert!(!struck(&Mutex::new(Some(order)), 7, &replica) && replica.is_running());
        let (order, mut waits) = oneshot::channel();
        assert!(struck(&Mutex::new(Some(order)), 7, &replica) && !replica.is_running());
        assert_eq!(waits.try_recv().unwrap(), 7);
    }
}
