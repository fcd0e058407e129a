//! When somebody wants a command to end: Ctrl-C, or SIGTERM, by which pipelines and Kubernetes say the same. A container's first process
//! hears neither unless it listens.

use std::pin::pin;

use futures::future::{Either, select};
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Completes when somebody wants this to end. From the first time that it is waited for the signals end nothing by themselves.
pub(crate) async fn asked() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(select(pin!(ctrl_c()), pin!(terminate.recv())).await),
        Err(_) => drop(ctrl_c().await),
    }
}

/// Does something until then; `told` is what has become of it, if there is anything to say.
pub(crate) async fn unless_asked<T>(
    work: impl Future<Output = Result<T, Failure>>,
    told: &str,
) -> Result<T, Failure> {
    match select(pin!(work), pin!(asked())).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(Failure::Interrupted(told.to_owned())),
    }
}
