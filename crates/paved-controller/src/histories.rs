//! Seeded histories of environments: the function's plan and the controller's verdict with wrong
//! clocks, lost and old requests, missing Settings, old Compositions, restores and stale reads.
//!
//! `HISTORY=SEED` replays one history.

use function_paved_road::lifecycle::{
    Age, Lifecycle, LifecycleSettings, Note, OnExpiry, Plan, Power, RENEWED_AT, RENEWED_FOR,
    Requests, STARTED_AT, STOPPED_AT, Situation, Span, Unit,
};
use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use crate::verdict::{Facts, Verdict};

/// The number of histories.
const HISTORIES: u64 = 100_000;

/// The longest time that a machine may run after its end, while the function and Crossplane run.
/// Crossplane calls within seconds after the end. A machine of an environment that is deleted at its
/// end is stopped five minutes later, if the deletion is late.
const STOPS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// The error of a fast clock of the function.
const FAST: SignedDuration = SignedDuration::from_hours(24);

/// The longest difference that clocks of users and of the function may have. A deletion may be early
/// by it.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(6);

/// Pseudo-random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn hours(&mut self, most: u64) -> Span {
        Span::For(u32::try_from(self.roll(most) + 1).unwrap_or(1), Unit::Hours)
    }
}

/// The promises to the user, by right clocks.
#[derive(Clone, Copy, Default)]
struct Promise {
    /// The end of the time to live.
    ttl_end: Option<Timestamp>,
    /// The latest end of all renewals and starts.
    granted: Option<Timestamp>,
    /// Whether the user's last request or change was a stop.
    is_stopped: bool,
}

impl Promise {
    /// The environment is not deleted before.
    fn end(self) -> Option<Timestamp> {
        self.ttl_end.max(self.granted)
    }
}

/// An environment, its objects and the clocks.
struct History {
    dice: Dice,
    seed: u64,
    log: Vec<String>,
    now: Timestamp,
    /// The error of the function's clock.
    error: SignedDuration,
    /// Whether a call under a fast clock may have noted later times.
    was_fast: bool,
    created: Timestamp,
    written: Timestamp,
    wishes: Lifecycle,
    settings: LifecycleSettings,
    has_settings: bool,
    is_old: bool,
    annotations: Map<String, Value>,
    note: Option<String>,
    announced: Option<Plan>,
    promise: Promise,
}

fn length(span: Span) -> SignedDuration {
    span.length().unwrap_or(SignedDuration::from_hours(1_000_000))
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let now: Timestamp = "2026-11-25T08:00:00Z".parse().unwrap_or_default();
        let ttl = dice.hours(48);
        let on_expiry = [None, Some(OnExpiry::Stop), Some(OnExpiry::Delete)];
        let on_expiry = on_expiry[usize::try_from(dice.roll(3)).unwrap_or(0)];
        let wishes = Lifecycle {
            ttl: Some(ttl),
            on_expiry,
            keep_stopped_for: (on_expiry != Some(OnExpiry::Delete)).then(|| dice.hours(48)),
            power: Power::Running,
        };
        let end = now.checked_add(length(ttl)).ok();
        Self {
            dice,
            seed,
            log: Vec::new(),
            now,
            error: SignedDuration::ZERO,
            was_fast: false,
            created: now,
            written: now,
            wishes,
            settings: LifecycleSettings {
                maximum: Some(Span::For(96, Unit::Hours)),
                ..LifecycleSettings::default()
            },
            has_settings: true,
            is_old: false,
            annotations: Map::new(),
            note: None,
            announced: None,
            promise: Promise { ttl_end: end, ..Promise::default() },
        }
    }

    fn play(&mut self) {
        self.call();
        for _ in 0..16 {
            let step = self.dice.roll(14);
            self.log.push(format!("{} step {step} error {}", self.now, self.error));
            self.step(step);
            self.call();
            if self.is_deleted() {
                return;
            }
        }
    }

    fn step(&mut self, step: u64) {
        let minutes = i64::try_from(self.dice.roll(900)).unwrap_or(0) + 1;
        self.pass(SignedDuration::from_mins(minutes));
        match step {
            0 => self.request(STOPPED_AT),
            1 => self.request(STARTED_AT),
            2 => {
                let span = self.dice.hours(48);
                self.annotations.insert(RENEWED_FOR.to_owned(), span.to_string().into());
                self.annotations.insert(RENEWED_AT.to_owned(), self.now.to_string().into());
                self.prolong(span);
                self.write();
            }
            3 if !self.is_old => {
                let ttl = self.dice.hours(48);
                if self.wishes.ttl != Some(ttl) {
                    self.wishes.ttl = Some(ttl);
                    self.promise.ttl_end = self.now.checked_add(length(ttl)).ok();
                }
                self.write();
            }
            4 if !self.is_old => {
                let is_stopped = self.wishes.power == Power::Running;
                self.wishes.power = if is_stopped { Power::Stopped } else { Power::Running };
                self.promise.is_stopped = is_stopped;
                if let Some(ttl) = self.wishes.ttl.filter(|_| !is_stopped) {
                    self.prolong(ttl);
                }
                self.write();
            }
            // Git or `kubectl replace` removes all requests.
            5 => self.lose_requests(),
            // A backup or a copied file brings an old request back.
            6 => {
                let old = self.created - SignedDuration::from_hours(200);
                let name = [STOPPED_AT, STARTED_AT][usize::try_from(minutes % 2).unwrap_or(0)];
                self.annotations.insert(name.to_owned(), old.to_string().into());
                self.write();
            }
            7 => self.error = FAST,
            8 => self.error = -FAST,
            9 | 10 => self.error = SignedDuration::ZERO,
            11 => self.has_settings = !self.has_settings,
            12 => self.is_old = !self.is_old,
            // A restore: a new composite with the resources of the old one.
            13 => {
                self.created = self.now;
                self.write();
            }
            _ => {}
        }
    }

    /// Time passes. Crossplane calls also at the latest time at which the machine must be stopped.
    fn pass(&mut self, time: SignedDuration) {
        let until = self.now + time;
        if let Some(due) = self.due().filter(|due| (self.now..until).contains(due)) {
            self.now = due;
            self.call();
        }
        self.now = until;
    }

    /// The time at which the machine must be stopped.
    fn due(&self) -> Option<Timestamp> {
        let ahead = if self.was_fast { FAST } else { SignedDuration::ZERO };
        self.promise.end().map(|end| end + ahead + STOPS_WITHIN)
    }

    fn request(&mut self, name: &str) {
        self.annotations.insert(name.to_owned(), self.now.to_string().into());
        self.promise.is_stopped = name == STOPPED_AT;
        if let Some(ttl) = self.wishes.ttl.filter(|_| name == STARTED_AT) {
            self.prolong(ttl);
        }
        self.write();
    }

    fn lose_requests(&mut self) {
        self.annotations.clear();
        self.write();
    }

    /// A renewal or a start. A longer end stays.
    fn prolong(&mut self, span: Span) {
        let until = self.now.checked_add(length(span)).ok();
        self.promise.granted = self.promise.granted.max(until);
    }

    /// The API server writes the composite, with its own time.
    fn write(&mut self) {
        self.written = self.now;
    }

    /// The function's call, as in `src/plan.rs`.
    fn call(&mut self) {
        let clock = self.now + self.error;
        self.was_fast |= self.error.is_positive();
        let note = self.note.as_deref().and_then(|text| Note::read(text).ok());
        let requests = self.requests(clock.max(self.written), note.as_ref());
        let announced = self.announced.as_ref();
        let plan = Plan::new(&Situation {
            now: clock,
            created: Some(self.created),
            written: Some(self.written),
            exists: note.is_some(),
            wishes: Some(&self.wishes).filter(|_| !self.is_old),
            settings: Some(&self.settings).filter(|_| self.has_settings),
            is_rejected: false,
            announced_maximum: announced.and_then(|plan| plan.maximum),
            requests: &requests,
            note: note.as_ref(),
            cannot_stop: None,
            leaves_resources: false,
        });
        self.note = plan.note.write();
        let is_news = announced.is_none_or(|before| {
            (before.stop, before.expires_at, before.deletes_at, before.is_expired)
                != (plan.stop, plan.expires_at, plan.deletes_at, plan.is_expired)
        });
        if is_news {
            self.write();
        }
        self.look(&plan);
        self.announced = Some(plan);
    }

    fn requests(&self, clock: Timestamp, note: Option<&Note>) -> Requests {
        let age = Age { created: Some(self.created), is_claimed: true };
        let annotation = |name: &str| self.annotations.get(name).and_then(Value::as_str);
        Requests::read(annotation, clock).within(age, note)
    }

    /// The machine stops at its end, and starts only on request.
    ///
    /// Under a wrong clock of the function, the end is not checked. A fast clock also notes times
    /// that are later by its error. These notes stay, so the end is later by the same time.
    fn look(&self, plan: &Plan) {
        if self.promise.is_stopped {
            assert!(plan.stop.is_some(), "a start without a request: {}", self.described(plan));
        }
        if !self.error.is_zero() {
            return;
        }
        let is_over = self.due().is_some_and(|due| due <= self.now);
        assert!(
            !is_over || plan.stop.is_some(),
            "a machine runs after its end: {}",
            self.described(plan)
        );
    }

    fn described(&self, plan: &Plan) -> String {
        format!(
            "HISTORY={} at {} (created {}), {plan:?}, annotations {:?}\n{}",
            self.seed,
            self.now,
            self.created,
            self.annotations,
            self.log.join("\n")
        )
    }

    /// The verdicts of two leaders. One of them reads the composite before Crossplane has copied the
    /// claim's last annotations.
    fn is_deleted(&mut self) -> bool {
        // The status of an older schema revision announces no end. Without Settings, a controller
        // makes no deletion.
        if self.is_old || !self.has_settings {
            return false;
        }
        let Some(plan) = self.announced.clone() else { return false };
        if plan.deletes_at.is_none_or(|at| at > self.now) {
            return false;
        }
        let claim = self.object(&plan);
        let mut stale = claim.clone();
        stale.metadata.annotations = None;
        let deletes = |composite: &DynamicObject| {
            let facts = Facts {
                environment: &claim,
                composite,
                note: self.note.as_deref(),
                is_used: false,
                settings: &self.settings,
                now: self.now,
            };
            facts.evaluate() == Verdict::Delete
        };
        let is_deleted = deletes(&claim) || deletes(&stale);
        let is_early = self.promise.end().is_some_and(|end| self.now + TOLERANCE < end);
        assert!(!(is_deleted && is_early), "an early deletion: {}", self.described(&plan));
        is_deleted
    }

    fn object(&self, plan: &Plan) -> DynamicObject {
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let object = json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": "ada", "namespace": "team", "annotations": self.annotations,
                "creationTimestamp": self.created.to_string()},
            "spec": {"claimRef": {"name": "ada"}, "lifecycle": self.wishes},
            "status": {"power": "Running", "lifecycle": {"expiresAt": text(plan.expires_at),
                "deletesAt": text(plan.deletes_at)}},
        });
        serde_json::from_value(object).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

#[test]
fn histories_delete_nothing_early_and_start_nothing_without_a_request() {
    let seed = std::env::var("HISTORY").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seeds = seed.map_or(0..HISTORIES, |seed| seed..seed + 1);
    let mut deletions = 0_u32;
    for seed in seeds.clone() {
        let mut history = History::new(seed);
        history.play();
        deletions += u32::from(history.is_deleted());
    }
    // The model reaches the verdict.
    assert!(deletions > 0 || seeds.end - seeds.start == 1);
}
