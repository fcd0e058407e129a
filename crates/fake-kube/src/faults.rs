//! Faults of the API server that tests can inject.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Injected faults. Initially there are none.
pub struct Faults {
    inner: Mutex<Inner>,
    /// The number of times that watches were cut.
    cuts: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    down: bool,
    silent: bool,
    unlisted: BTreeSet<String>,
    withdrawn: BTreeSet<String>,
    quotas: Vec<(String, String)>,
    failures: Vec<Failure>,
}

/// An error instead of the answer to a request.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The verb of the request in Kubernetes' authorization, for example `delete`.
    pub verb: &'static str,
    /// The end of the request's path. It is empty for all paths.
    pub path: String,
    /// The HTTP status.
    pub code: u16,
    /// The message.
    pub message: &'static str,
    /// Whether the request is carried out before it is answered.
    pub is_executed: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self { inner: Mutex::default(), cuts: watch::channel(0).0 }
    }
}

impl Faults {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `true` answers every request with 503 and ends all watches. `false` restores normal
    /// operation.
    pub fn set_down(&self, down: bool) {
        self.inner().down = down;
        if down {
            self.cut_watches();
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.inner().down
    }

    /// Accepts requests without ever answering them. Open watches continue.
    pub fn fall_silent(&self) {
        self.inner().silent = true;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.inner().silent
    }

    /// Omits a group from discovery, like an API server that has just started. The group is still
    /// served.
    pub fn unlist(&self, group: &str) {
        self.inner().unlisted.insert(group.to_owned());
    }

    /// Stops serving a group.
    pub fn withdraw(&self, group: &str) {
        self.inner().withdrawn.insert(group.to_owned());
    }

    pub(crate) fn is_withdrawn(&self, group: &str) -> bool {
        self.inner().withdrawn.contains(group)
    }

    pub(crate) fn is_listed(&self, group: &str) -> bool {
        let inner = self.inner();
        !(inner.unlisted.contains(group) || inner.withdrawn.contains(group))
    }

    /// Rejects new objects with a name that starts with `prefix`, with the message of a quota.
    pub fn exceed_quota(&self, prefix: &str, message: &str) {
        self.inner().quotas.push((prefix.to_owned(), message.to_owned()));
    }

    pub(crate) fn exceeded_quota(&self, name: &str) -> Option<String> {
        let inner = self.inner();
        let exceeded = inner.quotas.iter().find(|(prefix, _)| name.starts_with(prefix));
        exceeded.map(|(_, message)| message.clone())
    }

    /// Answers requests with an error, until `mend` is called.
    pub fn fail(&self, failure: Failure) {
        self.inner().failures.push(failure);
    }

    /// Answers all requests again.
    pub fn mend(&self) {
        self.inner().failures.clear();
    }

    pub(crate) fn failure(&self, verb: &str, path: &str) -> Option<Failure> {
        let is_meant = |one: &&Failure| one.verb == verb && path.ends_with(&one.path);
        self.inner().failures.iter().find(is_meant).cloned()
    }

    /// Ends all watches.
    pub fn cut_watches(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Changes whenever watches are cut.
    pub(crate) fn cuts(&self) -> watch::Receiver<u64> {
        self.cuts.subscribe()
    }
}
