//! A small HTTP server for health and metrics. All its resources are bounded, so that clients
//! without credentials cannot use up the memory of a process that has other work.
//!
//! A connection serves one request. At the limit of connections, a new connection closes the oldest
//! one. So a probe is answered although many clients send no request.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// The pause after the process could not accept a connection, for example for lack of files.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum size of a request's head, in bytes. It is the smallest size that hyper allows.
const HEAD_SIZE: usize = 8 * 1024;

/// Bounds of a server.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The maximum number of open connections.
    connections: usize,
    /// The time in which a client must send the head of its request.
    head: Duration,
    /// The maximum duration of a connection.
    whole: Duration,
}

const LIMITS: Limits =
    Limits { connections: 64, head: Duration::from_secs(10), whole: Duration::from_secs(30) };

/// Serves until the returned future is dropped.
pub async fn serve(listener: TcpListener, router: Router) {
    serve_within(listener, router, LIMITS).await;
}

async fn serve_within(listener: TcpListener, router: Router, limits: Limits) {
    let mut connections = Newest::new(limits.connections);
    loop {
        let stream = accept(&listener).await;
        connections.spawn(answer(stream, router.clone(), limits));
    }
}

/// The next connection. A connection that cannot be accepted is skipped.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

/// The newest tasks. At the limit, a new task aborts the oldest one. They end when this is dropped.
#[derive(Debug)]
pub struct Newest {
    limit: usize,
    tasks: JoinSet<()>,
    open: VecDeque<AbortHandle>,
}

impl Newest {
    /// At most `limit` tasks.
    pub fn new(limit: usize) -> Self {
        Self { limit, tasks: JoinSet::new(), open: VecDeque::new() }
    }

    /// Starts a task.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|one| !one.is_finished());
        if self.open.len() >= self.limit
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(self.tasks.spawn(task));
    }
}

/// Answers the request of a connection, and closes the connection.
async fn answer(stream: TcpStream, router: Router, limits: Limits) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .keep_alive(false)
        .max_buf_size(HEAD_SIZE);
    let service = TowerToHyperService::new(router);
    let answered = server.serve_connection(TokioIo::new(stream), service);
    // A client that goes away or is too slow gets no answer.
    let _ = timeout(limits.whole, answered).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::SocketAddr;
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn started(limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let large = || async { "x".repeat(64 << 20) };
        let router = Router::new().route("/", get(|| async { "fine" })).route("/large", get(large));
        tokio::spawn(serve_within(listener, router, limits));
        address
    }

    /// A connection that has sent this.
    async fn sent(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// All that the server sends until it closes the connection. A reset counts as closed.
    async fn rest(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The connections that the server has not closed.
    async fn open(streams: &mut [TcpStream]) -> usize {
        let mut open = 0;
        for stream in streams {
            let mut byte = [0];
            let read = timeout(Duration::from_millis(2), stream.read(&mut byte)).await;
            open += usize::from(read.is_err());
        }
        open
    }

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    #[tokio::test]
    async fn request_is_answered_once_and_the_connection_closed() {
        let address = started(LIMITS).await;
        let mut stream = sent(address, REQUEST).await;
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("fine"), "{answer}");
    }

    #[tokio::test]
    async fn half_open_connections_are_bounded_and_requests_still_answered() {
        let limits = Limits { connections: 8, ..LIMITS };
        let address = started(limits).await;
        let mut halves = Vec::new();
        for index in 0..200 {
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(index * 30));
            halves.push(sent(address, &head).await);
            if index % 50 == 49 {
                let answer = rest(&mut sent(address, REQUEST).await).await;
                assert!(answer.ends_with("fine"), "{index}: {answer}");
            }
        }
        assert!(open(&mut halves).await <= limits.connections);
    }

    #[tokio::test]
    async fn slow_client_is_disconnected() {
        let short = Duration::from_millis(200);
        let limits = Limits { head: short, whole: short * 3, ..LIMITS };
        let address = started(limits).await;
        for (head, limit) in [
            ("", limits.head),
            ("GET / HTTP/1.1\r\nHost:", limits.head),
            // The client reads nothing of the answer.
            ("GET /large HTTP/1.1\r\nHost: a\r\n\r\n", limits.whole),
        ] {
            let begun = Instant::now();
            let mut stream = sent(address, head).await;
            sleep(limit * 2).await;
            let heard = rest(&mut stream).await;
            assert!(!heard.ends_with('x') || heard.len() < 64 << 20, "{head:?}");
            assert!(begun.elapsed() < limit * 4, "{head:?}: {:?}", begun.elapsed());
        }
    }

    #[tokio::test]
    async fn large_head_is_rejected() {
        let address = started(LIMITS).await;
        let head = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(2 * HEAD_SIZE));
        let mut stream = sent(address, &head).await;
        assert!(!rest(&mut stream).await.contains("fine"));
    }
}
