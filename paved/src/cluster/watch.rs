//! Watching environments: one watch for each kind and namespace, which outlives restarts of the API server.

use std::time::Duration;

use futures::Stream;
use kube::api::DynamicObject;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt, watcher};

use super::{Cluster, Kind};

/// Objects of one page of the list that a watch begins with: a page is held in memory whole.
const PAGE: u32 = 100;

/// The environments of a kind, in a namespace or in all, and every change of them. `name` restricts it to one.
pub(crate) fn watch(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
) -> impl Stream<Item = Result<Event<DynamicObject>, Error>> + Send + use<> {
    let config = Config::default().page_size(PAGE);
    let config = match name {
        Some(name) => config.fields(&format!("metadata.name={name}")),
        None => config,
    };
    watcher(kind.api(&cluster.client, namespace), config).backoff(Steps::default())
}

/// The API server's error in a watch's.
pub(crate) fn cause(error: Error) -> kube::Error {
    match error {
        Error::InitialListFailed(error) | Error::WatchStartFailed(error) | Error::WatchFailed(error) => error,
        Error::WatchError(status) => kube::Error::Api(status),
        Error::NoResourceVersion => {
            kube::Error::Service("the API server's answer has no resource version".into())
        }
    }
}

/// How long to wait before the next try: longer and longer, up to some seconds. People wait for it.
#[derive(Default)]
struct Steps {
    tries: u32,
}

impl Iterator for Steps {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        const LONGEST: Duration = Duration::from_secs(5);
        let wait = Duration::from_millis(250).saturating_mul(1 << self.tries.min(8));
        self.tries += 1;
        Some(wait.min(LONGEST))
    }
}

impl Backoff for Steps {
    fn reset(&mut self) {
        self.tries = 0;
    }
}
