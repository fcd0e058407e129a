//! A connection to a client. The client must start its protocol in time, and read its responses in
//! time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::limits::Limits;

/// The start of HTTP/2. While received bytes are a prefix of it, hyper waits without a limit.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Adds time limits to another acceptor.
#[derive(Clone)]
pub(super) struct Timed<A> {
    pub(super) acceptor: A,
    pub(super) limits: Limits,
}

impl<A, I, S> Accept<I, S> for Timed<A>
where
    A: Accept<I, S, Future: Send + 'static>,
{
    type Stream = Line<A::Stream>;
    type Service = A::Service;
    type Future = BoxFuture<'static, io::Result<(Line<A::Stream>, A::Service)>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let limits = self.limits;
        let accepted = self.acceptor.accept(stream, service);
        accepted.map_ok(move |(stream, service)| (Line::new(stream, &limits), service)).boxed()
    }
}

/// A connection.
pub(super) struct Line<S> {
    stream: S,
    /// The missing part of a possible start of HTTP/2, and the deadline.
    beginning: Option<(&'static [u8], Pin<Box<Sleep>>)>,
    /// The deadline for the client to read pending bytes.
    stuck: Option<Pin<Box<Sleep>>>,
    /// The maximum time without the client reading a byte.
    patience: Duration,
}

impl<S> Line<S> {
    fn new(stream: S, limits: &Limits) -> Self {
        let beginning = Some((PREFACE, Box::pin(sleep(limits.request_head))));
        Self { stream, beginning, stuck: None, patience: limits.stalled_client }
    }

    /// Checks the result of a write. It is an error if the client read no byte for too long.
    fn sent<T>(&mut self, cx: &mut Context<'_>, sent: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.stuck = None;
            return sent;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        stuck.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut line.stream).poll_read(cx, buf);
        let Some((missing, until)) = &mut line.beginning else { return read };
        if read.is_pending() {
            return until.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        match missing.strip_prefix(&buf.filled()[before..]) {
            Some(rest) if !rest.is_empty() => *missing = rest,
            _ => line.beginning = None,
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let line = self.get_mut();
        let sent = Pin::new(&mut line.stream).poll_write(cx, buf);
        line.sent(cx, sent)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let line = self.get_mut();
        let sent = Pin::new(&mut line.stream).poll_write_vectored(cx, bufs);
        line.sent(cx, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        let sent = Pin::new(&mut line.stream).poll_flush(cx);
        line.sent(cx, sent)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        let sent = Pin::new(&mut line.stream).poll_shutdown(cx);
        line.sent(cx, sent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_without_a_complete_preface_is_disconnected() {
        let limits = Limits::default();
        for said in ["", "PRI ", "PRI * HTTP/2.0\r\n"] {
            let (mut client, server) = duplex(64);
            let (mut line, began) = (Line::new(server, &limits), Instant::now());
            client.write_all(said.as_bytes()).await.unwrap();
            let mut heard = Vec::new();
            let error = line.read_to_end(&mut heard).await.unwrap_err();
            assert_eq!(
                (error.kind(), heard.as_slice()),
                (io::ErrorKind::TimedOut, said.as_bytes())
            );
            let took = began.elapsed();
            let limit = limits.request_head;
            assert!(took >= limit && took < limit * 2, "{said:?}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_may_pause_after_its_protocol_is_known() {
        let limits = Limits::default();
        for said in ["G", "PRINT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let (mut client, server) = duplex(64);
            let mut line = Line::new(server, &limits);
            client.write_all(said.as_bytes()).await.unwrap();
            let mut heard = vec![0; said.len()];
            line.read_exact(&mut heard).await.unwrap();
            assert!(
                timeout(limits.request_head * 2, line.read_u8()).await.is_err(),
                "{said:?} ends"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_reads_no_data_is_disconnected() {
        let limits = Limits::default();
        let (_client, server) = duplex(16);
        let (mut line, began) = (Line::new(server, &limits), Instant::now());
        line.write_all(&[0; 16]).await.unwrap();
        assert_eq!(line.write_all(&[0]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let took = began.elapsed();
        let stalled = limits.stalled_client;
        assert!(took >= stalled && took < stalled * 2, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_reads_slowly_stays_connected() {
        let limits = Limits::default();
        let (mut client, server) = duplex(16);
        let mut line = Line::new(server, &limits);
        let slow = async {
            for _ in 0..4 {
                sleep(limits.stalled_client * 2 / 3).await;
                client.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(line.write_all(&[0; 20]), slow);
        written.unwrap();
    }
}
