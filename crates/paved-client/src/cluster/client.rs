//! The client: it asks again where the API server is only busy, but not for so long that people
//! think it hangs.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;

/// The pauses between tries, the first and the longest; and how often it is tried again: some
/// seconds in all. Watches go on after that too, and say so.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(2);
const TRIES: u32 = 5;

/// Requests that may wait for their turn.
const QUEUE: usize = 1024;

/// Answers 429, 503 and 504 are tried again, in the server's own time where it names one, unless
/// the configuration forbids it. The library's own way would go on for minutes without a word.
pub(super) fn client(mut config: Config) -> kube::Result<Client> {
    let tries = std::mem::replace(&mut config.default_retry, false);
    let builder = ClientBuilder::try_from(config)?;
    if !tries {
        return Ok(builder.build());
    }
    let again = RetryPolicy::new(FIRST, LONGEST, TRIES, true).unwrap_or_default();
    Ok(builder.with_layer(&BufferLayer::new(QUEUE)).with_layer(&RetryLayer::new(again)).build())
}
