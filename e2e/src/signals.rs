//! Signals that end this program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal to end, from Ctrl-C, `kill` or a closed terminal.
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
