//! When somebody wants a command to end: Ctrl-C, or SIGTERM, by which pipelines and Kubernetes say
//! the same. A container's first process hears neither unless it listens.

use std::io;
use std::pin::{Pin, pin};

use futures::future::{Either, select};
use futures::poll;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::yield_now;

use crate::Console;
use crate::failure::Failure;

/// Completes when somebody wants this to end. From the first time that it is waited for the signals
/// end nothing by themselves.
pub(crate) async fn asked() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(select(pin!(ctrl_c()), pin!(terminate.recv())).await),
        Err(_) => drop(ctrl_c().await),
    }
}

/// Does something until then; `told` is what has become of it, if there is anything to say.
pub(crate) async fn unless_asked<T>(
    work: Pin<Box<impl Future<Output = Result<T, Failure>>>>,
    told: &str,
) -> Result<T, Failure> {
    let mut asked = pin!(asked());
    let done = match select(work, asked.as_mut()).await {
        Either::Left((done, _)) => done?,
        Either::Right(_) => return Err(Failure::Interrupted(told.to_owned())),
    };
    // What came while the work computed, and waited for nothing, is heard only now.
    yield_now().await;
    if poll!(asked).is_ready() { Err(Failure::Interrupted(told.to_owned())) } else { Ok(done) }
}

/// Hears it while there is work that should not be left half-way.
pub(crate) struct Stop {
    asked: Pin<Box<dyn Future<Output = ()>>>,
    /// Whether somebody wants this to end.
    pub(crate) is_asked: bool,
}

impl Stop {
    /// From now on.
    pub(crate) fn listen() -> Self {
        Self { asked: Box::pin(asked()), is_asked: false }
    }

    /// Does a piece of the work to its end; whoever wants to end meanwhile is told that `what` is
    /// finished first. Asked once more it is left as it is: `None`.
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
