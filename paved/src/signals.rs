//! The user's request to stop: Ctrl-C, or SIGTERM from pipelines and Kubernetes. The first process
//! of a container gets neither signal without a handler.

use std::io;
use std::pin::{Pin, pin};

use futures::future::{Either, select};
use futures::poll;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::yield_now;

use crate::Console;
use crate::failure::Failure;

/// Completes on a request to stop. After the first wait, the signals no longer end the process on
/// their own.
pub(crate) async fn asked() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(select(pin!(ctrl_c()), pin!(terminate.recv())).await),
        Err(_) => drop(ctrl_c().await),
    }
}

/// Runs `work` until a request to stop. `told` is the message's text about the state at that time,
/// or empty.
pub(crate) async fn unless_asked<T>(
    work: Pin<Box<impl Future<Output = Result<T, Failure>>>>,
    told: &str,
) -> Result<T, Failure> {
    let mut asked = pin!(asked());
    let done = match select(work, asked.as_mut()).await {
        Either::Left((done, _)) => done?,
        Either::Right(_) => return Err(Failure::Interrupted(told.to_owned())),
    };
    // A signal during a computation without a wait is noticed only now.
    yield_now().await;
    if poll!(asked).is_ready() { Err(Failure::Interrupted(told.to_owned())) } else { Ok(done) }
}

/// Notices the request during work that must not stop half-way.
pub(crate) struct Stop {
    asked: Pin<Box<dyn Future<Output = ()>>>,
    /// Whether the user has requested a stop.
    pub(crate) is_asked: bool,
}

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self { asked: Box::pin(asked()), is_asked: false }
    }

    /// Completes a piece of work. On a request to stop, a note says that `what` completes first. A
    /// second request aborts the work: `None`.
    pub(crate) async fn finish<T>(
        &mut self,
        work: impl Future<Output = T>,
        what: &str,
        console: &mut Console<'_>,
    ) -> io::Result<Option<T>> {
        let mut work = pin!(work);
        loop {
            match select(work.as_mut(), self.asked.as_mut()).await {
                Either::Left((done, _)) => return Ok(Some(done)),
                Either::Right(_) if self.is_asked => return Ok(None),
                Either::Right(_) => {
                    *self = Self { asked: Box::pin(asked()), is_asked: true };
                    writeln!(console.err, "note: finishing {what}; press Ctrl-C again to abort")?;
                }
            }
        }
    }
}
