//! Watches environments: one watch for each kind and namespace. A watch continues after a restart
//! of the API server.

use std::future::ready;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use kube::runtime::watcher::{Config, Error, Event};
use tokio::time::sleep;

use super::{Api, Cluster, Kind};

/// Objects in one page of a watch's initial list. A whole page is in memory.
const PAGE: u32 = 100;

/// Seconds that a watch stays open. Then the API server ends it, and it is reopened. Without
/// changes, the server may send no data before that. So this is less than the longest silence.
const OPEN: u32 = 90;

/// An event or an error of a watch.
pub type WatchItem = Result<Event<DynamicObject>, Error>;

/// Watches the environments of a kind, in one namespace or in all. `name` restricts the watch to
/// one. After an error, the stream returns the error and restarts with a list. So a recovery is
/// visible even if no object has changed.
pub fn watch(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
) -> impl Stream<Item = WatchItem> + Send + use<> {
    let begin = listing(kind.api(&cluster.client, namespace), name);
    anew(begin(), begin)
}

/// Like [`watch`], without the initial list: watches changes since a `version` of a list.
pub fn watch_since(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
    version: &str,
) -> impl Stream<Item = WatchItem> + Send + use<> {
    let api = kind.api(&cluster.client, namespace);
    let begin = listing(api.clone(), name);
    let params = WatchParams::default().timeout(OPEN);
    let params = match name {
        Some(name) => params.fields(&only(name)),
        None => params,
    };
    let first = changes(api, params, version.to_owned()).chain(begin()).boxed();
    anew(first, begin)
}

/// Starts watches, each with a list.
fn listing(
    api: Api<DynamicObject>,
    name: Option<&str>,
) -> impl Fn() -> BoxStream<'static, WatchItem> + Send + use<> {
    let config = Config::default().page_size(PAGE).timeout(OPEN);
    let config = match name {
        Some(name) => config.fields(&only(name)),
        None => config,
    };
    move || api.watcher(config.clone())
}

/// A field selector for the objects with this name.
fn only(name: &str) -> String {
    format!("metadata.name={name}")
}

/// The changes after a version, until the API server ends the watch.
fn changes(
    api: Api<DynamicObject>,
    params: WatchParams,
    version: String,
) -> impl Stream<Item = WatchItem> + Send {
    let opened = async move {
        let events = api.watch(&params, &version).await.map_err(Error::WatchStartFailed)?;
        Ok::<_, Error>(events.map_err(Error::WatchFailed))
    };
    stream::once(opened).try_flatten().try_filter_map(|event| {
        ready(match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                Ok(Some(Event::Apply(object)))
            }
            WatchEvent::Deleted(object) => Ok(Some(Event::Delete(object))),
            WatchEvent::Bookmark(_) => Ok(None),
            WatchEvent::Error(status) => Err(Error::WatchError(status)),
        })
    })
}

/// Restarts a stream after each error.
pub fn anew<S, K>(first: S, begin: impl Fn() -> S) -> impl Stream<Item = Result<Event<K>, Error>>
where
    S: Stream<Item = Result<Event<K>, Error>> + Unpin,
{
    struct Watching<S> {
        events: S,
        pause: Option<Duration>,
        steps: Steps,
    }
    let first = Watching { events: first, pause: None, steps: Steps::default() };
    stream::unfold((first, begin), |(mut now, begin)| async move {
        if let Some(pause) = now.pause.take() {
            sleep(pause).await;
            now.events = begin();
        }
        let event = now.events.next().await?;
        match &event {
            Err(_) => now.pause = Some(now.steps.next()),
            // Sent before any request.
            Ok(Event::Init) => {}
            Ok(_) => now.steps = Steps::default(),
        }
        Some((event, (now, begin)))
    })
}

/// Ends a watch that the caller may not open, instead of retrying it permanently.
pub fn while_allowed(
    events: impl Stream<Item = WatchItem> + Send + 'static,
) -> BoxStream<'static, WatchItem> {
    let judged = events.scan((false, false), |(listed, over), event| {
        let next = (!*over).then_some(event);
        match &next {
            Some(Ok(Event::InitDone)) => *listed = true,
            Some(Err(Error::InitialListFailed(error))) => {
                *over = !*listed && super::is_denied(error);
            }
            _ => {}
        }
        std::future::ready(next)
    });
    judged.boxed()
}

/// The API server's error in a watch error.
pub fn cause(error: Error) -> kube::Error {
    match error {
        Error::InitialListFailed(error)
        | Error::WatchStartFailed(error)
        | Error::WatchFailed(error) => error,
        Error::WatchError(status) => kube::Error::Api(status),
        Error::NoResourceVersion => {
            kube::Error::Service("the API server's response has no resource version".into())
        }
    }
}

/// The increasing delays between retries. They are at most some seconds, because users wait.
#[derive(Default)]
struct Steps {
    tries: u32,
}

impl Steps {
    fn next(&mut self) -> Duration {
        const MAX_DELAY: Duration = Duration::from_secs(5);
        let wait = Duration::from_millis(250).saturating_mul(1 << self.tries.min(8));
        self.tries += 1;
        wait.min(MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failed_watch_restarts_with_increasing_delays() {
        let begun = RefCell::new(Vec::new());
        let clock = tokio::time::Instant::now();
        let watch = || {
            begun.borrow_mut().push(clock.elapsed().as_millis());
            let last = if begun.borrow().len() < 4 {
                Err(Error::NoResourceVersion)
            } else {
                Ok(Event::InitDone)
            };
            stream::iter([Ok(Event::Init), last])
        };
        let events = anew(watch(), watch).take(8).collect::<Vec<WatchItem>>().await;
        assert_eq!(events.iter().filter(|event| event.is_err()).count(), 3);
        assert_eq!(*begun.borrow(), [0, 250, 750, 1750]);
    }
}
