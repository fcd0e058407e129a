//! A short-lived cache of the API server's answers. Concurrent equal questions cause one request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::problem::Problem;

/// The caller that sends the request holds the lock.
type Turn = tokio::sync::Mutex<()>;

/// Answers by their questions.
pub(super) struct TtlCache<Q, A> {
    /// Lifetime of an answer.
    ttl: Duration,
    /// Time to wait for an equal question that another caller asks.
    wait: Duration,
    /// The largest number of cached answers.
    capacity: usize,
    known: Mutex<HashMap<Q, (A, Instant)>>,
    /// The questions with a request in progress.
    turns: Mutex<HashMap<Q, Weak<Turn>>>,
}

impl<Q: Clone + Eq + Hash, A: Clone> TtlCache<Q, A> {
    pub(super) fn new(ttl: Duration, wait: Duration, capacity: usize) -> Self {
        Self { ttl, wait, capacity, known: Mutex::default(), turns: Mutex::default() }
    }

    /// The cached answer, unless it has expired.
    pub(super) fn known(&self, question: &Q) -> Option<A> {
        locked(&self.known)
            .get(question)
            .filter(|(_, since)| since.elapsed() < self.ttl)
            .map(|(answer, _)| answer.clone())
    }

    /// Keeps an answer.
    pub(super) fn keep(&self, question: Q, answer: A) {
        let mut known = locked(&self.known);
        if known.len() >= self.capacity {
            known.retain(|_, (_, since)| since.elapsed() < self.ttl);
        }
        if known.len() >= self.capacity {
            known.clear();
        }
        known.insert(question, (answer, Instant::now()));
    }

    /// Returns the cached answer, the answer to a concurrent equal question, or the result of
    /// `ask`. A failure is returned only to the caller that asked: the next caller asks again.
    pub(super) async fn get_or_ask(
        &self,
        question: &Q,
        ask: impl Future<Output = Result<A, Problem>>,
    ) -> Result<A, Problem> {
        if let Some(answer) = self.known(question) {
            return Ok(answer);
        }
        let turn = self.turn(question);
        let _held = timeout(self.wait, turn.lock()).await.map_err(|_| Problem::silent())?;
        if let Some(answer) = self.known(question) {
            return Ok(answer);
        }
        let answer = ask.await?;
        self.keep(question.clone(), answer.clone());
        Ok(answer)
    }

    /// The lock for a question. It exists while a caller waits for the answer.
    fn turn(&self, question: &Q) -> Arc<Turn> {
        let mut turns = locked(&self.turns);
        if let Some(turn) = turns.get(question).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::<Turn>::default();
        turns.insert(question.clone(), Arc::downgrade(&turn));
        turn
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::StatusCode;
    use futures::FutureExt as _;
    use futures::future::{join_all, pending};
    use tokio::task::yield_now;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// Asks fifty times at once. Returns the number of requests and of answers.
    async fn at_once(
        answers: &TtlCache<&str, bool>,
        answer: Result<bool, Problem>,
    ) -> (usize, usize) {
        let asked = AtomicUsize::new(0);
        let all = (0..50).map(|_| {
            answers.get_or_ask(&"question", async {
                asked.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
                answer.clone()
            })
        });
        let answered = join_all(all).await.into_iter().flatten().count();
        (asked.load(Ordering::Relaxed), answered)
    }

    #[tokio::test]
    async fn simultaneous_questions_are_asked_once() {
        let answers = TtlCache::new(LONG, LONG, 10);
        assert_eq!(at_once(&answers, Ok(false)).await, (1, 50));
        assert_eq!(at_once(&answers, Ok(false)).await, (0, 50), "the answer is cached");
        let old = TtlCache::new(Duration::ZERO, LONG, 10);
        assert_eq!(at_once(&old, Ok(true)).await, (50, 50), "expired answers are not returned");
    }

    #[tokio::test]
    async fn failure_is_not_cached() {
        let failure = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Not now.");
        assert_eq!(at_once(&TtlCache::new(LONG, LONG, 10), Err(failure)).await, (50, 0));
    }

    #[tokio::test]
    async fn cancelled_question_releases_its_turn() {
        let answers = TtlCache::new(LONG, LONG, 10);
        assert!(answers.get_or_ask(&"question", pending()).now_or_never().is_none());
        assert!(answers.get_or_ask(&"question", async { Ok(true) }).await.unwrap());
        answers.turn(&"another");
        assert_eq!(locked(&answers.turns).len(), 1, "finished questions are removed");
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let answers = TtlCache::new(LONG, LONG, 10);
        (0..100).for_each(|number| answers.keep(number, ()));
        assert!(locked(&answers.known).len() <= 10);
        assert!(answers.known(&99).is_some());
    }
}
