//! A reader of changes. It sees only the environments that its user may see.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval};

use super::resume_token::{ResumeToken, StateHash};
use super::store::{Live, Start};
use super::{Action, Change, Entry};
use crate::access::Access;
use crate::identity::Person;
use crate::kinds::Catalog;
use crate::limits::Limits;
use crate::problem::Problem;
use crate::session::Sessions;
use crate::stream_limits::{End, StreamPermit, Streams};

/// The maximum number of namespaces without an environment that a resumed reader may review.
const ASIDE: usize = 32;

/// The changes of the cluster, and the permissions and sessions that decide the readers of each
/// change.
#[derive(Clone)]
pub(crate) struct Feed {
    pub(crate) live: Arc<Live>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) access: Arc<Access>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) sessions: Option<Arc<Sessions>>,
    pub(crate) limits: Limits,
}

/// A reader.
pub(crate) struct Reader {
    feed: Feed,
    person: Arc<Person>,
    changes: broadcast::Receiver<Arc<Change>>,
    /// The events to send.
    queue: VecDeque<Next>,
    /// The position of the client.
    id: ResumeToken,
    /// The user's permissions: the answer for each kind and namespace, and its time.
    sees: HashMap<(String, String), (bool, Instant)>,
    beat: tokio::time::Interval,
    /// Whether old answers are to be renewed.
    due: bool,
    _permit: StreamPermit,
}

/// The next event.
pub(crate) enum Next {
    /// A list of this many environments follows. Environments known before are void.
    Snapshot(usize),
    /// An environment in the list.
    Present(Arc<Entry>),
    /// The end of the list. Changes follow.
    Synced,
    Change(Arc<Change>),
    /// The connection is alive.
    Beat,
    End(End),
}

impl Reader {
    /// Starts with a whole list, or with the events missed since this id. Any replica may have sent
    /// that event.
    pub(crate) async fn new(
        feed: &Feed,
        person: &Arc<Person>,
        last: Option<&str>,
    ) -> Result<Self, Problem> {
        feed.live.seen_whole()?;
        let permit = feed.streams.take(person)?;
        if feed.live.unseen() > feed.limits.interrupted_streams {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The Kubernetes API does not respond.",
            ));
        }
        let mut beat = interval(feed.limits.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        let last = last.and_then(ResumeToken::read);
        let Start { entries, backlog, changes } = feed.live.start(last.is_some());
        let mut reader = Self {
            feed: feed.clone(),
            person: Arc::clone(person),
            changes,
            queue: VecDeque::new(),
            id: ResumeToken::first(&feed.live.epoch, StateHash::default()),
            sees: HashMap::new(),
            beat,
            due: false,
            _permit: permit,
        };
        feed.access.ask_ahead(person, entries.iter().map(|entry| entry.place())).await?;
        let mut visible: Vec<Arc<Entry>> = Vec::new();
        for beside in entries.chunk_by(|one, next| one.key.place() == next.key.place()) {
            if reader.may_see(&beside[0]).await? {
                visible.extend_from_slice(beside);
            }
        }
        let now = visible.iter().fold(StateHash::default(), |known, entry| known.with(entry.known));
        let sees = reader.sees.clone();
        let missed = match &last {
            Some(id) => reader.missed(id.known, now, &backlog).await,
            None => None,
        };
        if let (Some(id), Some(missed)) = (last, missed) {
            reader.id = id;
            reader.queue.extend(missed.into_iter().map(Next::Change));
        } else {
            // A failed resume leaves no permissions to watch.
            reader.sees = sees;
            reader.id = ResumeToken::first(&feed.live.epoch, now);
            reader.queue.push_back(Next::Snapshot(visible.len()));
            reader.queue.extend(visible.into_iter().map(Next::Present));
        }
        reader.queue.push_back(Next::Synced);
        Ok(reader)
    }

    /// The events that lead from the client's state to the current one. It reverts changes, one
    /// after another, until the state matches. `None` if no remembered state matches. Possible
    /// reasons: the client was away for too long, its permissions have changed, or the replicas saw
    /// changes in different orders. Also `None` if this needs too many access reviews, or a review
    /// gets no answer. The client then gets a whole list, which needs no review.
    async fn missed(
        &mut self,
        known: StateHash,
        now: StateHash,
        backlog: &[Arc<Change>],
    ) -> Option<VecDeque<Arc<Change>>> {
        let most = self.sees.len() + ASIDE;
        let (mut there, mut missed) = (now, VecDeque::new());
        let mut earlier = backlog.iter().rev();
        while there != known {
            let change = earlier.next()?;
            if self.may_see(&change.entry).await.ok()? {
                there = there.without(change.step);
                missed.push_front(Arc::clone(change));
            }
            if self.sees.len() > most {
                return None;
            }
        }
        Some(missed)
    }

    /// The id of an event: the position of a client that has read it.
    pub(crate) fn id(&self) -> String {
        self.id.to_string()
    }

    async fn may_see(&mut self, entry: &Entry) -> Result<bool, Problem> {
        let place = (entry.key.kind.clone(), entry.key.namespace.clone());
        if let Some((sees, _)) = self.sees.get(&place) {
            return Ok(*sees);
        }
        let sees = self.feed.access.sees(&self.person, &entry.kind, &entry.key.namespace).await?;
        self.sees.insert(place, (sees, Instant::now()));
        Ok(sees)
    }

    /// Renews old answers until a review gets no answer. The stream ends if permissions have
    /// changed, or if a permission cannot be reviewed for too long. It also ends if all watches are
    /// interrupted. Otherwise the client would treat old data as current.
    async fn look_again(&mut self) -> Option<End> {
        let limits = &self.feed.limits;
        if self.feed.live.unseen() > limits.interrupted_streams {
            return Some(End::Unavailable);
        }
        let seen = self.feed.catalog.seen();
        let named: HashMap<_, _> = seen.all().iter().map(|kind| (kind.full_name(), kind)).collect();
        let old = self.sees.iter().filter(|(_, (_, since))| since.elapsed() >= limits.access);
        let old: Vec<_> = old
            .filter_map(|(place, answer)| Some((*named.get(&place.0)?, place.clone(), *answer)))
            .collect();
        // The API server would not answer other reviews either. They wait for the next beat.
        let places = old.iter().map(|(kind, place, _)| (*kind, place.1.as_str()));
        if let Err(problem) = self.feed.access.ask_ahead(&self.person, places).await {
            return old
                .iter()
                .find_map(|(.., (_, since))| without_answer(&problem, *since, limits));
        }
        for (kind, place, (before, since)) in old {
            match self.feed.access.sees(&self.person, kind, &place.1).await {
                Ok(now) if now != before => return Some(End::AccessChanged),
                Ok(now) => drop(self.sees.insert(place, (now, Instant::now()))),
                Err(problem) => return without_answer(&problem, since, limits),
            }
        }
        None
    }

    /// Waits for the next event. A cancelled wait loses no event. The end of the stream is noticed
    /// at once, even during an unanswered review.
    pub(crate) async fn next(&mut self) -> Next {
        let (feed, person) = (self.feed.clone(), Arc::clone(&self.person));
        let revoked = feed.sessions.as_ref().map(|sessions| &sessions.revoked);
        tokio::select! {
            biased;
            end = feed.streams.ended(revoked, &person) => Next::End(end),
            next = self.step() => next,
        }
    }

    /// The next event, without checking for an end of the stream from outside.
    async fn step(&mut self) -> Next {
        loop {
            if let Some(next) = self.queued().await {
                return next;
            }
            if self.due {
                let end = self.look_again().await;
                self.due = false;
                if let Some(end) = end {
                    return Next::End(end);
                }
            }
            tokio::select! {
                biased;
                _ = self.beat.tick() => {
                    // The connection is alive, even if the answers take long.
                    self.due = true;
                    return Next::Beat;
                }
                change = self.changes.recv() => match change {
                    Ok(change) => self.queue.push_back(Next::Change(change)),
                    Err(broadcast::error::RecvError::Lagged(_)) => return Next::End(End::Slow),
                    Err(broadcast::error::RecvError::Closed) => return Next::End(End::Shutdown),
                },
            }
        }
    }

    /// The waiting changes. A change leaves the queue only after the review of the user's
    /// permission.
    async fn queued(&mut self) -> Option<Next> {
        while let Some(next) = self.queue.front() {
            let Next::Change(change) = next else { return self.queue.pop_front() };
            let change = Arc::clone(change);
            // The next beat renews old answers. It comes before they expire.
            let sees = self.may_see(&change.entry).await;
            self.queue.pop_front();
            match sees {
                Ok(true) => {
                    self.id.go_on(change.step);
                    return Some(Next::Change(change));
                }
                Ok(false) => {}
                Err(_) => return Some(Next::End(End::Unavailable)),
            }
        }
        None
    }
}

/// Whether a stream ends because its permissions are unknown.
fn without_answer(problem: &Problem, since: Instant, limits: &Limits) -> Option<End> {
    if problem.status() == 401 {
        return Some(End::Expired);
    }
    (since.elapsed() > limits.stale_access).then_some(End::Unavailable)
}

impl Action {
    /// The name in a watch of Kubernetes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}
