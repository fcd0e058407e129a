//! Events reach their receiver at least once, and never delay a deletion.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::world::{Environment, World, head, until};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use function_paved_road::status::BUDGET;
use paved_controller::{Receiver, Template};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A receiver of events. It fails at first.
struct Inbox {
    events: Mutex<Vec<Value>>,
    media_types: Mutex<BTreeSet<String>>,
    failures: AtomicUsize,
    url: http::Uri,
}

impl Inbox {
    async fn start(failures: usize) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", listener.local_addr().unwrap()).parse().unwrap();
        let inbox = Arc::new(Self {
            events: Mutex::default(),
            media_types: Mutex::default(),
            failures: failures.into(),
            url,
        });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&inbox));
        tokio::spawn(async move { axum::serve(listener, router).await });
        inbox
    }

    fn receiver(&self, template: Option<Template>) -> Receiver {
        Receiver { url: self.url.clone(), template }
    }

    /// The last words of the types of events, each with its environment.
    fn kinds(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let kind = |event: &Value| {
            let kind = event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
            format!("{kind} {}", event["data"]["name"].as_str().unwrap_or_default())
        };
        events.iter().map(kind).collect()
    }

    /// The ids of the events about a namespace over its budget, without repeats.
    fn over_budget(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let about = events
            .iter()
            .filter(|one| one["type"] == "io.crossplane.fn.paved-road.namespace.over-budget");
        let ids: BTreeSet<&str> = about.map(|one| one["id"].as_str().unwrap()).collect();
        ids.into_iter().map(str::to_owned).collect()
    }

    fn has(&self, kind: &str) -> bool {
        self.kinds().iter().any(|one| one == kind)
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: String) -> StatusCode {
    let media_type = headers["content-type"].to_str().unwrap().to_owned();
    inbox.media_types.lock().unwrap().insert(media_type);
    let fails = |left: usize| left.checked_sub(1);
    if inbox.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    inbox.events.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    StatusCode::ACCEPTED
}

fn ready(at: &str) -> Vec<Value> {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at});
    ["Ready", "Synced", "Provisioned"].map(condition).into()
}

#[tokio::test]
async fn each_transition_is_sent_as_a_cloud_event() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let mut old = Environment::new("old", json!({}));
    old.conditions = ready("2026-01-01T11:00:00Z");
    world.compose(&mut old);
    let controller = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "onExpiry": "Delete"}));
    world.compose(&mut ada);
    world.clocks.pass("5m");
    ada.conditions = ready("2026-01-01T12:05:00Z");
    world.compose(&mut ada);
    until("ready", || inbox.has("ready ada")).await;
    world.edit(&ada, |claim| {
        claim["status"]["lifecycle"]["warnedAt"] = json!("2026-01-01T12:30:00Z");
    });
    until("expiring", || inbox.has("expiring ada")).await;
    let stalled = json!({"type": "Stalled", "status": "True",
        "lastTransitionTime": "2026-01-01T12:31:00Z"});
    ada.conditions.push(stalled);
    world.compose(&mut ada);
    until("failed", || inbox.has("failed ada")).await;
    world.clocks.pass("1h");
    until("deleting", || inbox.has("deleting ada")).await;
    world.remove(&head(&ada));
    until("deleted", || inbox.has("deleted ada")).await;
    controller.stop().await;
    // A state from before the first start is not sent.
    assert!(!inbox.has("ready old"), "{:?}", inbox.kinds());
    let events = inbox.events.lock().unwrap();
    let ids = |key: &str| -> BTreeSet<&str> {
        events.iter().map(|one| one[key].as_str().unwrap()).collect()
    };
    assert_eq!(ids("id").len(), 5, "{:?}", ids("id"));
    assert_eq!(ids("type").len(), 5);
    let expected = json!({
        "specversion": "1.0",
        "id": format!("{}-ready-1767269100", events[0]["data"]["uid"].as_str().unwrap()),
        "source": "/paved-road/controller",
        "type": "io.crossplane.fn.paved-road.environment.ready",
        "subject": "team/GpuDevWorkspaceClaim/ada",
        "time": "2026-01-01T12:05:00Z",
        "datacontenttype": "application/json",
        "data": {
            "kind": "GpuDevWorkspaceClaim", "group": "platform.acme.io", "namespace": "team",
            "name": "ada", "uid": events[0]["data"]["uid"],
            "expiresAt": "2026-01-01T13:00:00Z", "deletesAt": "2026-01-01T13:00:00Z",
            "message": "GpuDevWorkspaceClaim team/ada is ready",
        },
    });
    assert_eq!(events[0], expected);
    let media_types = inbox.media_types.lock().unwrap();
    assert_eq!(media_types.iter().collect::<Vec<_>>(), ["application/cloudevents+json"]);
}

#[tokio::test]
async fn warning_of_a_stopped_environment_names_its_deletion() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let mut ada = Environment::new("ada", json!({"ttl": "1h", "keepStoppedFor": "1d"}));
    world.compose(&mut ada);
    let _controller = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    world.clocks.pass("1h");
    world.compose(&mut ada);
    until("stopped", || inbox.has("stopped ada")).await;
    world.edit(&ada, |claim| {
        claim["status"]["lifecycle"]["warnedAt"] = json!("2026-01-02T11:00:00Z");
    });
    until("expiring", || inbox.has("expiring ada")).await;
    let events = inbox.events.lock().unwrap();
    assert_eq!(
        events.last().unwrap()["data"]["message"],
        "GpuDevWorkspaceClaim team/ada is stopped, and is deleted at 2026-01-02T13:00:00Z. To \
         start it, run: paved start gpudevworkspaceclaim/ada -n team"
    );
}

#[tokio::test]
async fn missing_settings_are_sent_with_one_id() {
    let world = World::new().await;
    world.remove_settings();
    let inbox = Inbox::start(0).await;
    let _controller = world.start_notifying("a", inbox.receiver(None));
    until("an event", || inbox.has("missing ")).await;
    world.clocks.pass("5m");
    world.settle().await;
    let events = inbox.events.lock().unwrap();
    let ids: BTreeSet<&str> = events.iter().filter_map(|event| event["id"].as_str()).collect();
    assert_eq!(ids.len(), 1, "{events:?}");
    let message = events[0]["data"]["message"].as_str().unwrap();
    assert!(message.contains("EnvironmentConfig paved-road is missing"), "{message}");
}

#[tokio::test]
async fn failed_delivery_is_tried_again_and_delays_no_deletion() {
    let world = World::new().await;
    let inbox = Inbox::start(usize::MAX).await;
    let _controller = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    let mut ada = Environment::new("ada", json!({"ttl": "30m", "onExpiry": "Delete"}));
    ada.conditions = ready("2026-01-01T12:00:01Z");
    world.compose(&mut ada);
    world.clocks.pass("30m");
    until("a deletion", || world.is_deleted(&ada)).await;
    assert_eq!(inbox.kinds(), Vec::<String>::new());
    inbox.failures.store(2, Ordering::SeqCst);
    until("both events", || inbox.has("ready ada") && inbox.has("deleting ada")).await;
}

#[tokio::test]
async fn next_leader_sends_what_the_last_one_could_not_with_the_same_ids() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let first = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    let mut ada = Environment::new("ada", json!({}));
    ada.conditions = ready("2026-01-01T12:01:00Z");
    world.compose(&mut ada);
    until("ada", || inbox.has("ready ada")).await;
    let noted = || {
        let lease = world.lease();
        lease["metadata"]["annotations"]["paved-road.fn.crossplane.io/notified-until"].is_string()
    };
    until("a note", noted).await;
    inbox.failures.store(usize::MAX, Ordering::SeqCst);
    let mut bob = Environment::new("bob", json!({}));
    bob.conditions = ready("2026-01-01T12:02:00Z");
    world.compose(&mut bob);
    world.settle().await;
    first.stop().await;
    inbox.failures.store(0, Ordering::SeqCst);
    let _second = world.start_notifying("b", inbox.receiver(None));
    until("bob", || inbox.has("ready bob")).await;
    let events = inbox.events.lock().unwrap();
    let ids: Vec<&str> = events
        .iter()
        .filter(|one| one["data"]["name"] == "ada")
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// An environment with a price, in a namespace with a budget of 5 US dollars.
fn priced(world: &World, name: &str, hourly: &'static str) -> Environment {
    world.configure(&json!({"budget": {"defaultHourlyUSD": "5"}}));
    Environment { hourly: Some(hourly), ..Environment::new(name, json!({})) }
}

#[tokio::test]
async fn namespace_over_its_budget_has_one_id_although_no_environment_can_be_marked() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let mut ada = priced(&world, "ada", "9");
    world.compose(&mut ada);
    world.cluster.access.set("controller", "patch", "team", false);
    let _controller = world.start_notifying("a", inbox.receiver(None));
    until("an event", || !inbox.over_budget().is_empty()).await;
    for minute in 0..3 {
        world.clocks.pass("1m");
        world.compose(&mut priced(&world, &format!("ws-{minute}"), "1"));
        world.settle().await;
    }
    assert_eq!(inbox.over_budget(), ["team-over-budget-5.000-1767268800"]);
    // A second transition is another event.
    world.remove(&head(&ada));
    world.settle().await;
    world.compose(&mut ada);
    until("another event", || inbox.over_budget().len() == 2).await;
}

#[tokio::test]
async fn namespace_over_its_budget_by_deletions_in_progress_is_not_sent() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let mut ada = priced(&world, "ada", "9");
    world.compose(&mut ada);
    world.edit(&ada, |claim| {
        claim["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    });
    world.compose(&mut priced(&world, "bob", "1"));
    let _controller = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    assert_eq!(inbox.over_budget(), Vec::<String>::new());
}

#[tokio::test]
async fn next_leader_sends_a_namespace_over_its_budget_again() {
    let world = World::new().await;
    let inbox = Inbox::start(usize::MAX).await;
    let mut ada = priced(&world, "ada", "3");
    world.compose(&mut ada);
    let first = world.start_notifying("a", inbox.receiver(None));
    world.led().await;
    let mut bob = priced(&world, "bob", "3");
    world.clocks.pass("1m");
    world.compose(&mut bob);
    until("a mark", || world.annotation(&ada, BUDGET).is_some()).await;
    first.kill();
    world.settle().await;
    world.clocks.pass("1m");
    inbox.failures.store(0, Ordering::SeqCst);
    let _second = world.start_notifying("b", inbox.receiver(None));
    until("an event", || !inbox.over_budget().is_empty()).await;
    world.settle().await;
    assert_eq!(inbox.over_budget(), ["team-over-budget-5.000-1767268860"]);
}

#[tokio::test]
async fn template_makes_the_body_of_a_chat() {
    let world = World::new().await;
    let inbox = Inbox::start(0).await;
    let receiver = inbox.receiver(Template::built_in("slack"));
    let _controller = world.start_notifying("a", receiver);
    world.led().await;
    let mut ada = Environment::new("ada", json!({}));
    ada.conditions = ready("2026-01-01T12:01:00Z");
    world.compose(&mut ada);
    until("a message", || !inbox.events.lock().unwrap().is_empty()).await;
    let text = json!({"text": "GpuDevWorkspaceClaim team/ada is ready"});
    assert_eq!(inbox.events.lock().unwrap()[0], text);
    let media_types = inbox.media_types.lock().unwrap();
    assert_eq!(media_types.iter().collect::<Vec<_>>(), ["application/json"]);
}
