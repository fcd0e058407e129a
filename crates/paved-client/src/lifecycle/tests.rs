#![allow(clippy::unwrap_used)]
use function_paved_road::lifecycle::{
    Lifecycle as Wishes, LifecycleSettings, Note, Plan, Situation, Stop, Unit,
};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cluster::samples::kinds;
use crate::environment::samples::ready;

const NOW: &str = "2026-01-01T12:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn span(text: &str) -> Span {
    text.parse().unwrap()
}

/// A workspace that expires in two hours.
fn workspace() -> Value {
    let mut object = ready();
    object["status"]["power"] = json!("Running");
    object["status"]["lifecycle"] = json!({"expiresAt": "2026-01-01T14:00:00Z"});
    object
}

/// The same, stopped two hours ago for this reason.
fn stopped(reason: &str) -> Value {
    let mut object = workspace();
    object["status"]["power"] = json!("Stopped");
    object["status"]["lifecycle"]["stoppedAt"] = json!("2026-01-01T10:00:00Z");
    object["status"]["lifecycle"]["stopReason"] = json!(reason);
    object
}

fn annotated(mut object: Value, name: &str, value: &str) -> Value {
    object["metadata"]["annotations"][name] = json!(value);
    object
}

fn subject(object: &Value) -> Subject {
    subject_of("gpuws", object)
}

fn subject_of(kind: &str, object: &Value) -> Subject {
    let kind = kinds().called(kind).unwrap().remove(0);
    let object = serde_json::from_value(object.clone()).unwrap();
    Subject::new(Found { kind, object, listed: None }, time("2026-01-01T12:00:00.7Z"))
}

#[test]
fn renewal_ends_after_its_length() {
    let renewal = subject(&workspace()).renew(Expiry::After(span("4h"))).unwrap();
    let change = Some(Change::Renew { at: time(NOW), span: span("4h") });
    let expires_at = time("2026-01-01T16:00:00Z");
    assert_eq!(renewal, Renewal { change, expires_at, capped_by: None });
}

#[test]
fn renewal_until_a_time_ends_at_that_time() {
    // More seconds than a span can have: the span has minutes, and begins before now.
    for end in ["2026-01-02T12:00:01Z", "2026-01-20T15:30:01Z", "2026-09-01T00:00:00Z"] {
        let renewal = subject(&workspace()).renew(Expiry::At(time(end))).unwrap();
        assert_eq!(renewal.expires_at, time(end));
        let Some(Change::Renew { at, span }) = renewal.change else { panic!("{renewal:?}") };
        assert!(at <= time(NOW));
        assert_eq!(end_of(at, span), Some(time(end)));
    }
    for end in [NOW, "2025-01-01T00:00:00Z"] {
        let refusal = subject(&workspace()).renew(Expiry::At(time(end))).unwrap_err();
        assert_eq!(refusal, Refusal::NotAhead(time(end)));
    }
}

#[test]
fn maximum_shortens_a_renewal() {
    let mut object = workspace();
    object["status"]["lifecycle"]["maximum"] = json!("1d");
    for expiry in [Expiry::After(span("2w")), Expiry::At(time("2026-02-01T00:00:00Z"))] {
        let renewal = subject(&object).renew(expiry).unwrap();
        assert_eq!(renewal.capped_by, Some(span("1d")));
        assert_eq!(renewal.expires_at, time("2026-01-02T12:00:00Z"));
        let change = Some(Change::Renew { at: time(NOW), span: span("1d") });
        assert_eq!(renewal.change, change);
    }
    let renewal = subject(&object).renew(Expiry::Maximum).unwrap();
    assert_eq!((renewal.capped_by, renewal.expires_at), (None, time("2026-01-02T12:00:00Z")));
    assert_eq!(subject(&workspace()).renew(Expiry::Maximum), Err(Refusal::NoMaximum));
}

#[test]
fn later_expiry_needs_no_renewal() {
    let renewal = subject(&workspace()).renew(Expiry::After(span("1h"))).unwrap();
    assert_eq!((renewal.change, renewal.expires_at), (None, time("2026-01-01T14:00:00Z")));
    // A renewal that the status does not have yet counts too.
    let object = annotated(workspace(), RENEWED_AT, "2026-01-01T11:59:58Z");
    let object = annotated(object, RENEWED_FOR, "8h");
    let renewal = subject(&object).renew(Expiry::After(span("4h"))).unwrap();
    assert_eq!((renewal.change, renewal.expires_at), (None, time("2026-01-01T19:59:58Z")));
}

#[test]
fn request_is_later_than_earlier_requests_of_faster_clocks() {
    let fast = "2026-01-01T12:03:00Z";
    let next = time("2026-01-01T12:03:01Z");
    let object = annotated(annotated(workspace(), RENEWED_AT, fast), RENEWED_FOR, "1h");
    let renewal = subject(&object).renew(Expiry::After(span("4h"))).unwrap();
    assert_eq!(renewal.change, Some(Change::Renew { at: next, span: span("4h") }));
    let object = annotated(workspace(), STARTED_AT, fast);
    assert_eq!(subject(&object).stop(), Ok(Some(Change::Stop(next))));
    let object = annotated(stopped("Requested"), STOPPED_AT, fast);
    assert_eq!(subject(&object).start(), Ok(Change::Start(next)));
    // The function ignores a time that is too far ahead.
    let object = annotated(stopped("Requested"), STOPPED_AT, "2026-01-01T13:00:00Z");
    assert_eq!(subject(&object).start(), Ok(Change::Start(time(NOW))));
}

#[test]
fn stopped_environment_is_not_stopped_again() {
    for (reason, stops) in [
        ("Requested", false),
        ("Expired", false),
        ("Idle", false),
        ("Interrupted", true),
        ("Unknown", true),
    ] {
        let change = subject(&stopped(reason)).stop().unwrap();
        assert_eq!(change.is_some(), stops, "{reason}");
    }
    let starts = annotated(stopped("Requested"), STARTED_AT, "2026-01-01T11:59:59Z");
    assert!(subject(&starts).stop().unwrap().is_some(), "it is about to start");
}

#[test]
fn running_environment_is_started_again() {
    assert!(subject(&workspace()).is_running());
    // Its machine may have stopped itself meanwhile.
    assert_eq!(subject(&workspace()).start(), Ok(Change::Start(time(NOW))));
    assert!(!subject(&stopped("Expired")).is_running());
    let stops = annotated(workspace(), STOPPED_AT, "2026-01-01T11:59:59Z");
    assert!(!subject(&stops).is_running());
}

#[test]
fn keep_is_refused_by_a_maximum() {
    let mut object = workspace();
    assert_eq!(subject(&object).keep(), Ok(Some(Change::Keep)));
    object["spec"]["lifecycle"] = json!({"ttl": "never"});
    assert_eq!(subject(&object).keep(), Ok(None));
    object["status"]["lifecycle"]["maximum"] = json!("14d");
    assert_eq!(subject(&object).keep(), Err(Refusal::Maximum(span("14d"))));
}

#[test]
fn request_without_effect_is_refused() {
    let mut deleted = workspace();
    deleted["metadata"]["deletionTimestamp"] = json!(NOW);
    let paused = annotated(workspace(), crossplane::names::PAUSED, "true");
    let mut old = workspace();
    old["status"].as_object_mut().unwrap().retain(|field, _| field == "phase");
    for (kind, object, refusal) in [
        ("gpuws", &deleted, Refusal::Deleting),
        ("gpuws", &paused, Refusal::PausedClaim),
        ("environment.dev.example.org", &paused, Refusal::PausedComposite),
        ("gpuws", &old, Refusal::NoLifecycle),
    ] {
        let subject = subject_of(kind, object);
        assert_eq!(subject.renew(Expiry::After(span("4h"))), Err(refusal));
        assert_eq!(subject.stop(), Err(refusal));
        assert_eq!(subject.start(), Err(refusal));
        assert_eq!(subject.keep(), Err(refusal));
    }
    let mut endless = workspace();
    endless["status"].as_object_mut().unwrap().remove("lifecycle");
    let renewal = subject(&endless).renew(Expiry::After(span("4h")));
    assert_eq!(renewal, Err(Refusal::NoTtl));
}

#[test]
fn environment_can_be_stopped_before_it_is_composed() {
    let mut object = workspace();
    object["status"] = json!({});
    assert_eq!(subject(&object).stop(), Ok(Some(Change::Stop(time(NOW)))));
    let renewal = subject(&object).renew(Expiry::After(span("4h")));
    assert_eq!(renewal, Err(Refusal::NoLifecycle));
}

#[test]
fn type_of_a_virtual_environment_decides_whether_it_can_be_stopped() {
    let stop = |spec: Value, status_type: Value| {
        let mut object = workspace();
        object["kind"] = json!("Environment");
        object["spec"] = spec;
        object["status"]["type"] = status_type;
        subject_of("environment.dev.example.org", &object).stop()
    };
    let virtual_cluster = Refusal::CannotStop("a virtual cluster cannot be stopped");
    assert_eq!(
        stop(json!({"parameters": {"type": "vcluster"}}), Value::Null),
        Err(virtual_cluster)
    );
    assert!(stop(json!({"parameters": {"type": "aks"}}), json!("aks")).is_err());
    assert!(stop(json!({"parameters": {"type": "gke"}}), json!("gke")).is_ok());
    // Settings have chosen the type.
    for spec in [json!({"parameters": {}}), json!({})] {
        assert!(stop(spec.clone(), json!("eks")).is_ok());
        assert_eq!(stop(spec, json!("vcluster")), Err(virtual_cluster));
    }
}

#[test]
fn fast_clock_is_noticed() {
    let mut object = workspace();
    object["metadata"]["managedFields"] =
        json!([{"manager": MANAGER, "operation": "Update", "time": NOW}]);
    let object = serde_json::from_value(object).unwrap();
    assert_eq!(clock_ahead(&object, time("2026-01-01T12:05:00Z")), None);
    assert_eq!(clock_ahead(&object, time("2026-01-01T12:10:00Z")).as_deref(), Some("10m"));
}

/// An environment of the function, in seconds after its creation.
struct World {
    wishes: Wishes,
    settings: LifecycleSettings,
    annotations: Value,
    note: Option<Note>,
}

impl World {
    fn new(ttl: Option<u32>, maximum: Option<u32>) -> Self {
        let minutes = |count: u32| Span::For(count, Unit::Minutes);
        let ttl = ttl.map(|ttl| maximum.map_or(ttl, |maximum| ttl.min(maximum)));
        let wishes = Wishes { ttl: ttl.map(minutes), ..Wishes::default() };
        let settings =
            LifecycleSettings { maximum: maximum.map(minutes), ..LifecycleSettings::default() };
        let mut world = Self { wishes, settings, annotations: json!({}), note: None };
        world.note = Some(world.plan(0).note);
        world
    }

    fn time(second: i64) -> Timestamp {
        time(NOW) + SignedDuration::from_secs(second)
    }

    /// The plan of the function at this time.
    fn plan(&self, second: i64) -> Plan {
        let now = Self::time(second);
        let requests = Requests::read(|name| self.annotations[name].as_str(), now);
        assert!(requests.ignored.is_empty(), "{:?}", requests.ignored);
        Plan::new(&Situation {
            now,
            created: Some(Self::time(0)),
            written: None,
            exists: self.note.is_some(),
            wishes: Some(&self.wishes),
            settings: Some(&self.settings),
            announced_maximum: None,
            requests: &requests,
            note: self.note.as_ref(),
            cannot_stop: None,
            is_rejected: false,
            leaves_resources: false,
        })
    }

    /// The environment as a user sees it, with the status of the last call.
    fn subject(&self, status: &Plan, second: i64) -> Subject {
        let mut object = workspace();
        object["metadata"]["annotations"] = self.annotations.clone();
        object["status"]["lifecycle"] = json!({
            "expiresAt": status.expires_at,
            "maximum": status.maximum,
            "stoppedAt": status.stop.map(Stop::at),
            "stopReason": status.stop.map(|stop| match stop {
                Stop::Requested(_) => "Requested",
                Stop::Expired(_) => "Expired",
            }),
        });
        let kind = kinds().called("gpuws").unwrap().remove(0);
        let object = serde_json::from_value(object).unwrap();
        Subject::new(Found { kind, object, listed: None }, Self::time(second))
    }

    fn send(&mut self, change: Option<Change>) {
        let Some(change) = change else { return };
        let patch = change.patch();
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        for (name, value) in annotations {
            self.annotations[name] = value.clone();
        }
    }
}

proptest! {
    /// The function computes the expiry that a user is told, whether or not it saw an earlier
    /// renewal meanwhile.
    #[test]
    fn announced_expiry_is_the_real_one(
        ttl in 1_u32..5_000,
        maximum in proptest::option::of(1_u32..5_000),
        first in 1_u32..5_000,
        second in 1_u32..5_000,
        (begin, pause, delay) in (1_i64..400_000, 0_i64..400_000, 0_i64..60),
        is_seen in any::<bool>(),
    ) {
        let mut world = World::new(Some(ttl), maximum);
        let status = world.plan(begin);
        let expiry = Expiry::After(Span::For(first, Unit::Minutes));
        let renewal = world.subject(&status, begin).renew(expiry).unwrap();
        world.send(renewal.change);
        let mut status = status;
        if is_seen {
            status = world.plan(begin + delay);
            world.note = Some(status.note.clone());
            prop_assert_eq!(status.expires_at, Some(renewal.expires_at));
        }
        let now = begin + delay + pause;
        let end = Expiry::At(World::time(now + i64::from(second) * 60 - 7));
        let renewal = world.subject(&status, now).renew(end).unwrap();
        world.send(renewal.change);
        prop_assert_eq!(world.plan(now + delay).expires_at, Some(renewal.expires_at));
    }

    /// A stop stops and a start starts, although the status may be old and clocks differ by almost
    /// five minutes. Each time to live is longer than this.
    #[test]
    fn last_request_decides_on_all_clocks(
        ttl in proptest::option::of(10_u32..200),
        steps in proptest::collection::vec((any::<bool>(), 0_i64..9_000, -145_i64..145), 1..8),
        sees in any::<u8>(),
    ) {
        let mut world = World::new(ttl, None);
        let mut status = world.plan(0);
        let mut now = 600;
        for (step, (stops, pause, skew)) in steps.into_iter().enumerate() {
            now += pause;
            let subject = world.subject(&status, now + skew);
            let change = if stops { subject.stop().unwrap() } else { subject.start().ok() };
            world.send(change);
            let plan = world.plan(now);
            prop_assert_eq!(plan.stop.is_some(), stops, "{:?}", plan);
            if sees >> step & 1 == 1 {
                world.note = Some(plan.note.clone());
                status = plan;
            }
        }
    }

    /// A span covers a length, and exceeds it by less than one of its units.
    #[test]
    fn span_covers_its_length(seconds in 1_i64..99_999 * 604_800) {
        let length = SignedDuration::from_secs(seconds);
        let covering = covering(length).unwrap();
        let Span::For(amount, unit) = covering else { panic!("{covering}") };
        prop_assert!(covering.length().unwrap() >= length);
        let shorter = Span::For(amount - 1, unit).length().unwrap();
        prop_assert!(shorter < length);
        prop_assert_eq!(covering.to_string().parse(), Ok(covering));
    }
}
