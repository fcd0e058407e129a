//! Bodies of requests. The bodies in memory are limited, by their bytes and by their values, for
//! all users and for each user. Handlers take a [`Body`], and read it after the checks that do not
//! need it. A test rejects other ways to read a body.

mod values;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::extract::json;
use super::identity::Person;
use super::limits::Limits;
use super::problem::Problem;

/// The maximum length of a body, in bytes.
pub(super) const LARGEST: usize = 1 << 20;

/// How many of the largest bodies one user may have in memory.
const PER_PERSON: usize = 4;

/// How many bodies may be read at the same time, if each has the maximum length.
const READ: usize = 16;

/// How many bodies may be processed at the same time, if each has the maximum number of values: of
/// all users, and of one user. A map with one text takes up to 900 bytes, and handlers make several
/// copies, so such a body takes up to 70 MiB.
const PARSED: usize = 2;
const PARSED_PER_PERSON: usize = 1;

/// The unit of the limits in bytes. A semaphore counts to less than the bytes of all bodies on
/// 32-bit systems.
const KIB: usize = 1024;

/// A body that is not read yet.
pub(super) struct Body {
    request: Request,
    bodies: Arc<Bodies>,
}

/// A body, with its permit. The permit must live as long as the value and its copies.
pub(super) struct Received<T> {
    pub(super) value: T,
    /// Dropping it makes room for other bodies.
    _permit: Permit,
}

/// The bodies in memory.
pub(super) struct Bodies {
    all: Share,
    /// The shares of the users with bodies in memory.
    people: Mutex<HashMap<(String, String), Weak<Share>>>,
    /// The maximum time to wait for room.
    patience: Duration,
}

/// Room for bodies.
struct Share {
    kib: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

/// The room of one body.
struct Permit {
    own: Arc<Share>,
    permits: Vec<OwnedSemaphorePermit>,
}

impl<S: Send + Sync> FromRequest<S> for Body
where
    Arc<Bodies>: FromRef<S>,
{
    type Rejection = Problem;

    /// Rejects other media types. A form on another site could send those without a preflight
    /// request.
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        Ok(Self { request, bodies: FromRef::from_ref(state) })
    }
}

impl Body {
    /// Reads and parses the body. Waits until there is room for it.
    ///
    /// # Errors
    /// No room within the time limit, or a body that is too large, incomplete or invalid.
    pub(super) async fn read<T: DeserializeOwned>(
        self,
        person: &Person,
    ) -> Result<Received<T>, Problem> {
        let deadline = Instant::now() + self.bodies.patience;
        let length = content_length(self.request.headers()).unwrap_or(LARGEST);
        let mut permit = match self.bodies.enter(person, length, deadline).await {
            Ok(permit) => permit,
            Err(problem) => {
                discard(self.request).await;
                return Err(problem);
            }
        };
        let bytes =
            Bytes::from_request(self.request, &()).await.map_err(|error| unreadable(&error))?;
        let count = values::count(&bytes)?;
        // The time of a slow client does not count.
        let deadline = Instant::now() + self.bodies.patience;
        self.bodies.unfold(&mut permit, count, deadline).await?;
        Ok(Received { value: json(&bytes)?, _permit: permit })
    }
}

impl Bodies {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { all: Share::of(READ, PARSED), people: Mutex::default(), patience: limits.body_room }
    }

    /// Makes room for the bytes of a body.
    async fn enter(
        &self,
        person: &Person,
        length: usize,
        deadline: Instant,
    ) -> Result<Permit, Problem> {
        let own = self.share(person);
        let kib = length.min(LARGEST).div_ceil(KIB).max(1);
        let mut permits = Vec::new();
        for (semaphore, problem) in [(&own.kib, yours as fn() -> Problem), (&self.all.kib, busy)] {
            permits.push(turn(semaphore, kib, deadline).await.ok_or_else(problem)?);
        }
        Ok(Permit { own, permits })
    }

    /// Makes room for the values of a body.
    async fn unfold(
        &self,
        permit: &mut Permit,
        count: usize,
        deadline: Instant,
    ) -> Result<(), Problem> {
        let own = Arc::clone(&permit.own);
        for (semaphore, problem) in
            [(&own.values, yours as fn() -> Problem), (&self.all.values, busy)]
        {
            permit.permits.push(turn(semaphore, count, deadline).await.ok_or_else(problem)?);
        }
        Ok(())
    }

    /// The share of a user. A user with several tokens counts as one user.
    fn share(&self, person: &Person) -> Arc<Share> {
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        people.retain(|_, share| share.strong_count() > 0);
        let key = (person.issuer().to_owned(), person.username().to_owned());
        if let Some(share) = people.get(&key).and_then(Weak::upgrade) {
            return share;
        }
        let share = Arc::new(Share::of(PER_PERSON, PARSED_PER_PERSON));
        people.insert(key, Arc::downgrade(&share));
        share
    }
}

impl Share {
    /// Room for the bytes and the values of so many of the largest bodies.
    fn of(read: usize, parsed: usize) -> Self {
        Self {
            kib: Arc::new(Semaphore::new(read * LARGEST / KIB)),
            values: Arc::new(Semaphore::new(parsed * values::MOST)),
        }
    }
}

/// Waits for room. `None` after the deadline.
async fn turn(
    semaphore: &Arc<Semaphore>,
    count: usize,
    deadline: Instant,
) -> Option<OwnedSemaphorePermit> {
    let count = u32::try_from(count).ok()?;
    timeout_at(deadline, Arc::clone(semaphore).acquire_many_owned(count)).await.ok()?.ok()
}

fn busy() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "The portal is processing too many large requests. Try again in a moment.",
    )
}

fn yours() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "The portal is processing too many of your requests. Wait for their responses, and try \
         again.",
    )
}

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or_default().to_ascii_lowercase();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let fits = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if fits {
        return Ok(());
    }
    let detail = format!("content-type: found {essence:?}; allowed: application/json");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// The length of a body, if the client states it. A request with a longer body is incomplete.
pub(super) fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Receives a body and drops it. A client that still sends its body might not read the response.
async fn discard(request: Request) {
    let mut body = Limited::new(request.into_body(), LARGEST);
    while let Some(Ok(_)) = body.frame().await {}
}

fn unreadable(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return too_large();
    }
    Problem::new(StatusCode::BAD_REQUEST, "The body is incomplete.")
}

/// The body is larger than the portal's limit.
pub(super) fn too_large() -> Problem {
    let detail = format!("body: too large; allowed: at most {LARGEST} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt as _;
    use serde_json::{Value, json};
    use tokio::task::unconstrained;

    use super::*;

    fn bodies() -> Arc<Bodies> {
        Arc::new(Bodies::new(&Limits::default()))
    }

    fn body(bodies: &Arc<Bodies>, text: String) -> Body {
        let request = Request::builder().header(header::CONTENT_LENGTH, text.len());
        Body { request: request.body(text.into()).unwrap(), bodies: Arc::clone(bodies) }
    }

    fn person(name: &str) -> Person {
        Person::for_tests(name, &[])
    }

    /// A body of the maximum length.
    fn long() -> String {
        let text = json!("x".repeat(LARGEST - 2)).to_string();
        assert_eq!(text.len(), LARGEST);
        text
    }

    /// A body with the maximum number of values.
    fn wide() -> String {
        json!(vec![0; values::MOST - 1]).to_string()
    }

    fn fill(bodies: &Arc<Bodies>, name: &str, text: &str) -> Vec<Received<Value>> {
        let mut bodies_read = Vec::new();
        let person = person(name);
        loop {
            let read = body(bodies, text.to_owned()).read(&person);
            match unconstrained(read).now_or_never() {
                Some(received) => bodies_read.push(received.unwrap()),
                None => return bodies_read,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn person_has_room_for_some_of_the_largest_bodies() {
        for (text, most) in [(long(), PER_PERSON), (wide(), PARSED_PER_PERSON)] {
            let bodies = bodies();
            let mut received = fill(&bodies, "ada", &text);
            assert_eq!(received.len(), most);
            let late = body(&bodies, text.clone()).read::<Value>(&person("ada")).await;
            let problem = late.map(drop).unwrap_err();
            assert_eq!(problem.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(problem.detail().contains("too many of your requests"), "{problem:?}");
            assert!(body(&bodies, text.clone()).read::<Value>(&person("bob")).await.is_ok());
            received.pop();
            assert!(body(&bodies, text).read::<Value>(&person("ada")).await.is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_people_share_the_room_of_the_portal() {
        for (text, most) in [(long(), READ), (wide(), PARSED)] {
            let bodies = bodies();
            let mut received = Vec::new();
            for number in 0..most {
                received.extend(fill(&bodies, &format!("person-{number}"), &text));
            }
            assert_eq!(received.len(), most);
            let late = body(&bodies, text).read::<Value>(&person("late")).await;
            let problem = late.map(drop).unwrap_err();
            assert!(problem.detail().contains("too many large requests"), "{problem:?}");
            let small = body(&bodies, "{}".to_owned()).read::<Value>(&person("late")).await;
            assert!(small.is_err(), "a small body waits too");
            received.clear();
            assert!(body(&bodies, long()).read::<Value>(&person("late")).await.is_ok());
            assert_eq!(bodies.people.lock().unwrap().len(), 1, "other shares are removed");
        }
    }

    #[tokio::test]
    async fn many_small_bodies_of_a_person_fit() {
        let bodies = bodies();
        let small = json!({"spec": {"replicas": 2}}).to_string();
        let mut received = Vec::new();
        for _ in 0..1_000 {
            let ada = person("ada");
            let read = body(&bodies, small.clone()).read::<Value>(&ada);
            received.push(unconstrained(read).now_or_never().unwrap().unwrap());
        }
    }

    /// This test fails for a handler that reads a body in another way.
    #[test]
    fn bodies_are_read_in_one_place() {
        // Each word reads or extracts a body. Tests at the end of a file may use it. Another test
        // rejects axum's Json.
        let words = [
            "axum::Form",
            "extract::Form",
            "Multipart",
            "RawForm",
            "RawBody",
            "Bytes::from_request",
            "String::from_request",
            "to_bytes(",
            "into_body(",
            "into_data_stream(",
            ": Bytes",
            "BytesMut",
            "body: String",
            "): String",
        ];
        // The first is this module, and the others read responses of other servers.
        let allowed = ["src/bodies.rs", "src/oidc/http_client.rs"];
        let mut files = 0;
        crate::answer::each_source(&mut |path, text| {
            files += 1;
            let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
            let is_allowed = allowed.iter().any(|file| path.ends_with(file));
            for word in words {
                assert!(is_allowed || !code.contains(word), "{}: {word}", path.display());
            }
            for line in code.lines().filter(|line| line.starts_with("use axum::")) {
                let is_other = line
                    .split(|letter: char| !letter.is_alphanumeric())
                    .any(|word| ["Json", "Form", "Multipart", "RawForm"].contains(&word));
                assert!(!is_other, "{}: {line}", path.display());
            }
        });
        assert!(files > 50, "{files}");
    }
}
