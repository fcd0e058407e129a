//! Waiting for a condition, with a limit that suits a busy machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The longest that anything may take on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(8);

/// Waits until `check` gives something; `what` says what was waited for.
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
            bail!("waited {} s, and still not: {what}", TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
