//! One reader of changes: it sees what the person may see, and nothing of what they may not.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval};

use super::{Action, Change, Entry, Key};
use crate::portal::Portal;
use crate::portal::access::TTL;
use crate::portal::owner::hash;
use crate::portal::problem::Problem;
use crate::portal::streams::Slot;
use crate::portal::who::Person;

/// How often a reader hears that the line still stands.
const BEAT: Duration = Duration::from_secs(15);

/// How long a reader goes on with what the API server said last of what it may see, while that does not answer.
const STALE: Duration = Duration::from_mins(2);

/// How long the API server may be away without a word: it restarts sooner.
const AWAY: Duration = Duration::from_secs(10);

/// A reader.
pub(in crate::portal) struct Reader {
    portal: Arc<Portal>,
    person: Arc<Person>,
    changes: broadcast::Receiver<Arc<Change>>,
    /// What is still to be told.
    queue: VecDeque<Next>,
    /// Everything up to here has been read.
    sequence: u64,
    /// What the person may see: the answer for each kind and namespace, and when it was given.
    sees: HashMap<(String, String), (bool, Instant)>,
    /// What the person could see at the beginning.
    scope: String,
    beat: tokio::time::Interval,
    /// Whether what is old is to be asked again.
    due: bool,
    _slot: Slot,
}

/// What comes next.
pub(in crate::portal) enum Next {
    /// Everything follows that there is, so many: what was known before is void.
    Snapshot(usize),
    /// One of those.
    Present(Arc<Entry>),
    /// That was everything; changes follow.
    Synced,
    Change(Arc<Change>),
    /// The line still stands.
    Beat,
    End(End),
}

/// Why a stream ends. The reader is told, and comes back if it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::portal) enum End {
    /// It was too slow.
    Slow,
    /// The person may see more or less than before.
    AccessChanged,
    /// The API server does not say what the person may see.
    Unavailable,
    SignedOut,
    /// The session's time is over.
    Expired,
    /// The portal stops.
    Shutdown,
}

impl End {
    pub(in crate::portal) fn word(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::AccessChanged => "access-changed",
            Self::Unavailable => "unavailable",
            Self::SignedOut => "signed-out",
            Self::Expired => "expired",
            Self::Shutdown => "shutdown",
        }
    }
}

impl Reader {
    /// Begins with everything, or with what was missed since the event of this id, where this process still knows it.
    pub(in crate::portal) async fn new(
        portal: &Arc<Portal>,
        person: &Arc<Person>,
        last: Option<&str>,
    ) -> Result<Self, Problem> {
        portal.live.seen_whole()?;
        let slot = portal.streams.take(person)?;
        if portal.live.unseen() > AWAY {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The Kubernetes API does not answer just now.",
            ));
        }
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        let start = portal.live.start(None);
        let mut reader = Self {
            portal: Arc::clone(portal),
            person: Arc::clone(person),
            changes: start.changes,
            queue: VecDeque::new(),
            sequence: start.sequence,
            sees: HashMap::new(),
            scope: String::new(),
            beat,
            due: false,
            _slot: slot,
        };
        let mut visible = Vec::new();
        for entry in start.snapshot.unwrap_or_default() {
            if reader.may_see(&entry.key, &entry).await? {
                visible.push(entry);
            }
        }
        reader.scope = reader.scope();
        if let Some(start) = last.and_then(|last| reader.resumed(last)) {
            reader.changes = start.changes;
            reader.sequence = start.sequence;
            reader.queue.extend(start.missed.into_iter().map(Next::Change));
        } else {
            reader.queue.push_back(Next::Snapshot(visible.len()));
            reader.queue.extend(visible.into_iter().map(Next::Present));
        }
        reader.queue.push_back(Next::Synced);
        Ok(reader)
    }

    /// Where a reader goes on that has seen an event of this id; not where it may see something else than it did then.
    fn resumed(&self, last: &str) -> Option<super::store::Start> {
        let mut parts = last.splitn(3, '-');
        let (epoch, sequence, scope) = (parts.next()?, parts.next()?, parts.next()?);
        let known = epoch == self.portal.live.epoch && scope == self.scope;
        let start = self.portal.live.start(Some(sequence.parse().ok().filter(|_| known)?));
        start.snapshot.is_none().then_some(start)
    }

    /// The id of an event up to which everything was read.
    pub(in crate::portal) fn id(&self) -> String {
        format!("{}-{}-{}", self.portal.live.epoch, self.sequence, self.scope)
    }

    fn scope(&self) -> String {
        let seen: BTreeSet<&(String, String)> =
            self.sees.iter().filter(|(_, (sees, _))| *sees).map(|(place, _)| place).collect();
        let person = self.person.key().map(|byte| format!("{byte:02x}")).concat();
        let texts = seen.iter().flat_map(|(kind, namespace)| [kind.as_str(), namespace.as_str()]);
        hash(&std::iter::once(person.as_str()).chain(texts).collect::<Vec<_>>(), 8)
    }

    async fn may_see(&mut self, key: &Key, entry: &Entry) -> Result<bool, Problem> {
        let place = (key.kind.clone(), key.namespace.clone());
        if let Some((sees, _)) = self.sees.get(&place) {
            return Ok(*sees);
        }
        let sees = self.portal.access.sees(&self.person, &entry.kind, &key.namespace).await?;
        self.sees.insert(place, (sees, Instant::now()));
        Ok(sees)
    }

    /// Asks again for whatever is old, until something is not answered; what has changed, or cannot be asked for too long, ends the
    /// stream. So does it where no change would be seen: whoever reads would take what they have for how things stand.
    async fn look_again(&mut self) -> Option<End> {
        if self.portal.live.unseen() > AWAY {
            return Some(End::Unavailable);
        }
        let seen = self.portal.catalog.seen();
        let old: Vec<_> = self.sees.iter().filter(|(_, (_, since))| since.elapsed() >= TTL).collect();
        let old: Vec<_> = old.into_iter().map(|(place, answer)| (place.clone(), *answer)).collect();
        for (place, (before, since)) in old {
            let Some(kind) = seen.all().iter().find(|kind| kind.full_name() == place.0) else { continue };
            match self.portal.access.sees(&self.person, kind, &place.1).await {
                Ok(now) if now != before => return Some(End::AccessChanged),
                Ok(now) => drop(self.sees.insert(place, (now, Instant::now()))),
                Err(problem) if problem.status() == 401 => return Some(End::Expired),
                Err(_) if since.elapsed() > STALE => return Some(End::Unavailable),
                // Nor would the others be just now: they wait for the next beat.
                Err(_) => break,
            }
        }
        None
    }

    /// Waits for what comes next. Nothing is lost where the wait is given up. That the stream ends is heard at once, whatever the API
    /// server is asked meanwhile and does not answer.
    pub(in crate::portal) async fn next(&mut self) -> Next {
        let (portal, person) = (Arc::clone(&self.portal), Arc::clone(&self.person));
        tokio::select! {
            biased;
            end = portal.streams.ended(&portal, &person) => Next::End(end),
            next = self.step() => next,
        }
    }

    /// The same, where nothing ends the stream from outside.
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
                    // The line stands, however long the answers take.
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

    /// What waits already. A change leaves the queue only once it is known whether the person may see it.
    async fn queued(&mut self) -> Option<Next> {
        while let Some(next) = self.queue.front() {
            let Next::Change(change) = next else { return self.queue.pop_front() };
            let change = Arc::clone(change);
            // Answers that are too old are renewed with the next beat, which comes sooner than they spoil.
            let sees = self.may_see(&change.entry.key, &change.entry).await;
            self.queue.pop_front();
            self.sequence = self.sequence.max(change.sequence);
            match sees {
                Ok(true) => return Some(Next::Change(change)),
                Ok(false) => {}
                Err(_) => return Some(Next::End(End::Unavailable)),
            }
        }
        None
    }
}

impl Action {
    /// In the words of a watch of Kubernetes.
    pub(in crate::portal) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}
