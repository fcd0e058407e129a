//! Waiting for a condition, with a limit that suits a busy machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The longest wait on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(8);

/// Waits until `check` returns a value. The first argument describes the condition.
pub async fn eventually<T>(
    what: &str,
    mut check: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = check().await.with_context(|| what.to_owned())? {
            return Ok(found);
        }
        if Instant::now() > end {
            bail!("timed out after {} s: {what}", TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
