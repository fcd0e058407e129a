//! How we are told to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits until somebody tells us to end: by Ctrl-C, by `kill`, by closing the terminal.
pub fn told() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = term.recv() => (),
            _ = hangup.recv() => (),
        }
    })
}
