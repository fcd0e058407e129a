//! The client. It retries while the API server is busy, but only briefly, so that users do not
//! think that it hangs.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;

/// The first and the longest pause between retries, and the number of retries. They take some
/// seconds in total. Watches continue afterwards and log that they do.
const MIN_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(2);
const TRIES: u32 = 5;

/// The maximum number of queued requests.
const QUEUE: usize = 1024;

/// A client that retries after responses 429, 503 and 504. It waits as long as the server demands.
/// Without `default_retry` in the configuration, it does not retry. The library's own retries would
/// continue silently for minutes.
pub(super) fn client(mut config: Config) -> kube::Result<Client> {
    let tries = std::mem::replace(&mut config.default_retry, false);
    let builder = ClientBuilder::try_from(config)?;
    if !tries {
        return Ok(builder.build());
    }
    Ok(builder.with_layer(&BufferLayer::new(QUEUE)).with_layer(&retries()).build())
}

fn retries() -> RetryLayer<RetryPolicy> {
    RetryLayer::new(RetryPolicy::new(MIN_DELAY, MAX_DELAY, TRIES, true).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::future::ready;

    use http::{Request, Response};
    use kube::client::Body;
    use tokio::time::Instant;
    use tower::{BoxError, Layer, Service, service_fn};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn busy_server_is_asked_again_for_some_seconds() {
        let (requests, begin) = (Cell::new(0), Instant::now());
        let busy = service_fn(|_: Request<Body>| {
            requests.set(requests.get() + 1);
            let busy = Response::builder().status(503).body(Body::empty()).unwrap();
            ready(Ok::<_, BoxError>(busy))
        });
        let response = retries().layer(busy).call(Request::new(Body::empty())).await.unwrap();
        assert_eq!((response.status().as_u16(), requests.get()), (503, 1 + TRIES));
        assert!(begin.elapsed() < MAX_DELAY * TRIES, "{:?}", begin.elapsed());
    }
}
