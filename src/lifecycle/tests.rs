use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::check::Fields;

const CREATED: &str = "2026-11-25T08:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a time"))
}

fn span(text: &str) -> Span {
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a span"))
}

/// An environment with calls that carry the note from one to the next.
#[derive(Clone, Default)]
struct Environment {
    wishes: Lifecycle,
    settings: LifecycleSettings,
    requests: Requests,
    note: Option<Note>,
    exists: bool,
    cannot_stop: CannotStop,
    /// The maximum in the status.
    maximum: Option<Span>,
    /// Whether the spec is rejected.
    is_rejected: bool,
    /// Whether the Settings cannot be read.
    is_unconfigured: bool,
    /// The API server's time of the latest write.
    written: Option<Timestamp>,
}

impl Environment {
    fn with_ttl(ttl: &str) -> Self {
        let wishes = Lifecycle { ttl: Some(span(ttl)), ..Lifecycle::default() };
        Self { wishes, ..Self::default() }
    }

    fn with_default_ttl(ttl: &str) -> Self {
        let settings = LifecycleSettings { ttl: Some(span(ttl)), ..LifecycleSettings::default() };
        Self { settings, ..Self::default() }
    }

    fn plan(&self, now: Timestamp) -> Plan {
        Plan::new(&Situation {
            now,
            created: Some(time(CREATED)),
            written: self.written,
            exists: self.exists,
            wishes: Some(&self.wishes).filter(|_| !self.is_rejected),
            settings: Some(&self.settings).filter(|_| !self.is_unconfigured),
            announced_maximum: self.maximum.filter(|_| self.is_unconfigured),
            requests: &self.requests,
            note: self.note.as_ref(),
            cannot_stop: self.cannot_stop,
            is_rejected: self.is_rejected,
            leaves_resources: false,
        })
    }

    /// A call of the function: its note is there in the next one.
    fn call(&mut self, now: &str) -> Plan {
        self.call_at(time(now))
    }

    fn call_at(&mut self, now: Timestamp) -> Plan {
        let plan = self.plan(now);
        self.note = plan
            .note
            .write()
            .map(|text| Note::read(&text).unwrap_or_else(|error| unreachable!("{text}: {error}")));
        self.maximum = plan.maximum;
        self.exists = true;
        plan
    }
}

#[test]
fn ttl_starts_at_the_creation() {
    let mut environment = Environment::with_ttl("8h");
    let plan = environment.call("2026-11-25T08:05:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-25T16:00:00Z")));
    assert_eq!(plan.note.ttl_from, Some(TtlFrom::Claim));
    assert_eq!((plan.stop, plan.deletes_at), (None, None));
}

#[test]
fn expired_environment_stops_and_is_deleted_after_its_retention() {
    let mut environment = Environment::with_ttl("8h");
    environment.wishes.keep_stopped_for = Some(span("14d"));
    let before = environment.call("2026-11-25T15:59:59Z");
    assert_eq!((before.stop, before.is_expired), (None, false));
    assert_eq!(before.deletes_at, Some(time("2026-12-09T16:00:00Z")));
    // Crossplane was away for a day: the retention counts from the stop.
    let after = environment.call("2026-11-26T16:00:00Z");
    assert_eq!(after.stop, Some(Stop::Expired(time("2026-11-25T16:00:00Z"))));
    assert_eq!(after.deletes_at, Some(time("2026-12-10T16:00:00Z")));
    assert_eq!(environment.call("2026-11-28T00:00:00Z").deletes_at, after.deletes_at);
}

#[test]
fn start_of_an_expired_environment_renews_it_by_its_ttl() {
    let mut environment = Environment::with_ttl("8h");
    environment.call("2026-11-25T08:05:00Z");
    assert!(environment.call("2026-11-25T17:00:00Z").stop.is_some());
    environment.requests.started = Some(time("2026-11-25T18:00:00Z"));
    let plan = environment.call("2026-11-25T18:00:10Z");
    assert_eq!(plan.stop, None);
    assert_eq!(plan.expires_at, Some(time("2026-11-26T02:00:00Z")));
    assert!(environment.call("2026-11-26T02:00:00Z").stop.is_some());
}

#[test]
fn latest_request_decides() {
    let mut environment = Environment::default();
    environment.call("2026-11-25T08:05:00Z");
    environment.wishes.power = Power::Stopped;
    let stopped = environment.call("2026-11-25T09:00:00Z");
    assert_eq!(stopped.stop, Some(Stop::Requested(time("2026-11-25T09:00:00Z"))));
    environment.requests.started = Some(time("2026-11-25T10:00:00Z"));
    assert_eq!(environment.call("2026-11-25T10:00:00Z").stop, None);
    environment.requests.stopped = Some(time("2026-11-25T11:00:00Z"));
    assert!(environment.call("2026-11-25T11:00:00Z").stop.is_some());
    environment.wishes.power = Power::Running;
    assert_eq!(environment.call("2026-11-25T12:00:00Z").stop, None);
}

#[test]
fn running_environment_without_a_note_has_no_end_until_its_user_sets_one() {
    let mut environment = Environment::with_default_ttl("1h");
    environment.exists = true;
    assert_eq!(environment.call("2026-11-25T20:00:00Z").expires_at, None);
    environment.wishes.ttl = Some(span("2h"));
    let plan = environment.call("2026-11-25T20:00:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-25T22:00:00Z")));
}

#[test]
fn maximum_is_the_default_of_an_environment_without_a_ttl() {
    let maximum = Some(span("7d"));
    let settings = LifecycleSettings { maximum, ..LifecycleSettings::default() };
    let mut environment = Environment { settings, ..Environment::default() };
    let plan = environment.call("2026-11-25T08:05:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-12-02T08:00:00Z")));
    assert_eq!(plan.note.ttl_from, Some(TtlFrom::Settings));
}

#[test]
fn change_never_moves_the_expiry_closer_than_thirty_minutes() {
    let mut environment = Environment::with_ttl("8h");
    environment.call("2026-11-25T08:05:00Z");
    environment.wishes.ttl = Some(span("10m"));
    let plan = environment.call("2026-11-25T12:00:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-25T12:30:00Z")));
}

#[test]
fn environment_that_cannot_stop_is_only_marked() {
    let mut environment = Environment::with_ttl("8h");
    environment.cannot_stop = Some("a vcluster cannot be stopped");
    environment.wishes.keep_stopped_for = Some(span("1d"));
    environment.call("2026-11-25T08:05:00Z");
    let plan = environment.call("2026-11-26T08:00:00Z");
    assert_eq!((plan.stop, plan.deletes_at, plan.is_expired), (None, None, true));
    environment.wishes.on_expiry = Some(OnExpiry::Delete);
    let plan = environment.call("2026-11-26T08:00:00Z");
    assert_eq!(plan.deletes_at, Some(time("2026-11-26T08:30:00Z")));
}

#[test]
fn clock_before_the_creation_stops_nothing() {
    let mut environment = Environment::with_ttl("8h");
    environment.call("2026-11-25T08:05:00Z");
    environment.requests.renewed = None;
    let plan = environment.plan(time("2020-01-01T00:00:00Z"));
    assert_eq!((plan.stop, plan.is_expired), (None, false));
}

#[test]
fn rejected_spec_and_unreadable_settings_leave_the_note_in_force() {
    let mut environment = Environment::with_default_ttl("8h");
    environment.settings.keep_stopped_for = Some(span("1d"));
    environment.settings.on_expiry = Some(OnExpiry::Delete);
    environment.wishes.on_expiry = Some(OnExpiry::Stop);
    environment.wishes.keep_stopped_for = Some(span("90d"));
    environment.call("2026-11-25T08:05:00Z");
    environment.wishes = Lifecycle::default();
    environment.is_rejected = true;
    environment.is_unconfigured = true;
    let plan = environment.call("2026-11-25T17:00:00Z");
    assert_eq!(plan.stop, Some(Stop::Expired(time("2026-11-25T16:00:00Z"))));
    assert_eq!(plan.deletes_at, Some(time("2027-02-23T17:00:00Z")));
}

#[test]
fn unreadable_settings_keep_their_last_maximum() {
    let mut environment = Environment::with_ttl("8h");
    environment.settings.maximum = Some(span("2d"));
    environment.call("2026-11-25T08:05:00Z");
    environment.is_unconfigured = true;
    environment.requests.renewed = Some((time("2026-11-25T09:00:00Z"), Span::Never));
    let plan = environment.call("2026-11-25T09:00:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-27T09:00:00Z")));
}

#[test]
fn environment_that_waited_for_longer_than_its_ttl_gets_thirty_minutes() {
    let mut environment = Environment::with_ttl("8h");
    let plan = environment.call("2026-11-29T12:00:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-29T12:30:00Z")));
}

#[test]
fn change_of_action_or_retention_never_moves_the_deletion_closer_than_thirty_minutes() {
    let mut environment = Environment::with_ttl("8h");
    environment.call("2026-11-25T08:05:00Z");
    environment.call("2026-11-25T16:00:00Z");
    let mut shorter = environment.clone();
    shorter.wishes.keep_stopped_for = Some(span("1h"));
    let mut deleted = environment;
    deleted.wishes.on_expiry = Some(OnExpiry::Delete);
    for mut changed in [shorter, deleted] {
        let plan = changed.call("2026-11-28T12:00:00Z");
        assert_eq!(plan.deletes_at, Some(time("2026-11-28T12:30:00Z")));
        // It is not started for its deletion.
        assert!(plan.stop.is_some());
        assert_eq!(changed.call("2026-11-28T12:29:00Z").deletes_at, plan.deletes_at);
    }
}

#[test]
fn request_to_stop_counts_no_retention_twice() {
    let mut environment = Environment::with_ttl("8h");
    environment.wishes.keep_stopped_for = Some(span("14d"));
    environment.call("2026-11-25T08:05:00Z");
    // Crossplane was away for a day.
    let stopped = environment.call("2026-11-26T16:00:00Z");
    environment.requests.stopped = Some(time("2026-11-27T09:00:00Z"));
    let plan = environment.call("2026-11-27T09:00:00Z");
    assert_eq!(plan.stop, Some(Stop::Requested(time("2026-11-27T09:00:00Z"))));
    assert_eq!(plan.deletes_at, stopped.deletes_at);
}

#[test]
fn request_after_a_change_of_power_wins_even_if_a_clock_was_wrong() {
    let mut environment = Environment::default();
    environment.call("2026-11-25T08:05:00Z");
    environment.wishes.power = Power::Stopped;
    environment.call("2026-11-25T09:00:00Z");
    environment.wishes.power = Power::Running;
    // The function's clock is a year ahead.
    assert_eq!(environment.call("2027-11-25T10:00:00Z").stop, None);
    environment.requests.stopped = Some(time("2026-11-25T11:00:00Z"));
    assert!(environment.call("2026-11-25T11:00:00Z").stop.is_some());
    environment.requests.started = Some(time("2026-11-25T12:00:00Z"));
    assert_eq!(environment.call("2026-11-25T12:00:00Z").stop, None);
    // The function's clock is behind the clock of the last request.
    environment.wishes.power = Power::Stopped;
    environment.call("2026-11-25T11:58:00Z");
    environment.wishes.power = Power::Running;
    assert_eq!(environment.call("2026-11-25T11:59:00Z").stop, None);
}

#[test]
fn warnings_fit_into_the_ttl_and_come_once() {
    let mut environment = Environment::with_ttl("8h");
    let plan = environment.call("2026-11-25T08:05:00Z");
    assert_eq!(plan.warning(time("2026-11-25T13:59:59Z"), None), None);
    let at_two_hours = time("2026-11-25T14:00:00Z");
    assert_eq!(plan.warning(at_two_hours, None), Some(SignedDuration::from_hours(2)));
    assert_eq!(plan.warning(time("2026-11-25T14:10:00Z"), Some(at_two_hours)), None);
    let half_an_hour = plan.warning(time("2026-11-25T15:31:00Z"), Some(at_two_hours));
    assert_eq!(half_an_hour, Some(SignedDuration::from_mins(30)));
    assert_eq!(plan.warning(time("2026-11-25T16:00:00Z"), None), None);
}

#[test]
fn stopped_environment_is_warned_only_of_its_deletion() {
    let near = time("2026-11-25T15:00:00Z");
    for (on_expiry, warned) in [(OnExpiry::Stop, false), (OnExpiry::Delete, true)] {
        let mut environment = Environment::with_ttl("8h");
        environment.wishes.on_expiry = Some(on_expiry);
        environment.wishes.power = Power::Stopped;
        let plan = environment.call("2026-11-25T08:05:00Z");
        assert_eq!(plan.is_expiring(near), warned, "{on_expiry:?}");
        assert_eq!(plan.warning(near, None).is_some(), warned, "{on_expiry:?}");
    }
}

#[test]
fn deletion_of_a_stopped_environment_is_announced() {
    let mut environment = Environment::with_ttl("8h");
    environment.wishes.keep_stopped_for = Some(span("14d"));
    let expiry = environment.call("2026-11-25T08:05:00Z").expires_at;
    let plan = environment.call("2026-11-25T16:00:00Z");
    assert_eq!(plan.deletes_at, Some(time("2026-12-09T16:00:00Z")));
    assert_eq!(plan.warning(time("2026-12-07T15:59:59Z"), expiry), None);
    let two_days = time("2026-12-07T16:00:00Z");
    assert_eq!(plan.warning(two_days, expiry), Some(SignedDuration::from_hours(48)));
    assert_eq!(plan.warning(time("2026-12-08T16:00:00Z"), Some(two_days)), None);
    let late = time("2026-12-09T15:45:00Z");
    assert_eq!(plan.warning(late, Some(two_days)), Some(SignedDuration::from_mins(30)));
}

#[test]
fn wrong_fields_name_the_allowed_values() {
    let wishes = Lifecycle {
        ttl: Some(Span::Never),
        on_expiry: Some(OnExpiry::Stop),
        power: Power::Stopped,
        ..Lifecycle::default()
    };
    let maximum = Some(span("14d"));
    let mut fields = Fields::default();
    let cannot_stop = Some("a vcluster cannot be stopped");
    wishes.check("spec.lifecycle", maximum, None, cannot_stop, false, &mut fields);
    let told: Vec<String> = fields.refused().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "spec.lifecycle.ttl: found \"never\"; allowed: at most 14d, the maximum in Settings",
            "spec.lifecycle.power: found \"Stopped\"; allowed: Running, because a vcluster cannot \
             be stopped",
            "spec.lifecycle.onExpiry: found \"Stop\"; allowed: no value, which only marks the \
             environment as expired, or Delete, because a vcluster cannot be stopped",
        ]
    );
}

#[test]
fn deletion_with_a_retention_in_one_place_is_an_error() {
    let allowed = "allowed: Stop, or no keepStoppedFor, because Delete deletes at once";
    for kept in ["14d", "never"] {
        let (on_expiry, keep_stopped_for) = (Some(OnExpiry::Delete), Some(span(kept)));
        let wishes = Lifecycle { on_expiry, keep_stopped_for, ..Lifecycle::default() };
        let settings =
            LifecycleSettings { on_expiry, keep_stopped_for, ..LifecycleSettings::default() };
        let (mut claim, mut platform) = (Fields::default(), Fields::default());
        wishes.check("spec.lifecycle", None, None, None, false, &mut claim);
        settings.check("settings.stockPool.lifecycle", &mut platform);
        for (fields, path) in [(claim, "spec"), (platform, "settings.stockPool")] {
            let told: Vec<String> = fields.refused().iter().map(ToString::to_string).collect();
            let error = format!(
                "{path}.lifecycle.onExpiry: found \"Delete\" beside keepStoppedFor: {kept}; {allowed}"
            );
            assert_eq!(told, [error]);
        }
    }
}

/// The warnings of a new environment, as paths and messages.
fn warnings(environment: &Environment) -> Vec<String> {
    let note = environment.plan(time(CREATED)).note;
    let told = environment.wishes.without_effect("spec.lifecycle", &note, environment.cannot_stop);
    told.iter().map(ToString::to_string).collect()
}

#[test]
fn field_without_effect_is_named_with_the_next_step() {
    let with = |ttl: Option<&str>, on_expiry, kept: Option<&str>| Environment {
        wishes: Lifecycle {
            ttl: ttl.map(span),
            on_expiry,
            keep_stopped_for: kept.map(span),
            ..Lifecycle::default()
        },
        ..Environment::default()
    };
    let no_ttl = "which has no effect, because the environment has no time to live. Set \
                  spec.lifecycle.ttl, or remove the field";
    let retention = format!("spec.lifecycle.keepStoppedFor: found \"7d\", {no_ttl}");
    assert_eq!(warnings(&with(None, None, Some("7d"))), [retention]);
    let action = format!("spec.lifecycle.onExpiry: found \"Delete\", {no_ttl}");
    assert_eq!(warnings(&with(None, Some(OnExpiry::Delete), None)), [action]);
    for (on_expiry, kept) in [(Some(OnExpiry::Stop), None), (None, Some("7d"))] {
        let told = warnings(&with(Some("never"), on_expiry, kept));
        assert!(told[0].contains("because the time to live is never. Set a duration"), "{told:?}");
        assert_eq!(warnings(&with(Some("8h"), on_expiry, kept)), [""; 0]);
    }
    let mut stopless = with(Some("8h"), None, Some("7d"));
    stopless.cannot_stop = Some("a virtual cluster cannot be stopped");
    let told = warnings(&stopless);
    assert!(told[0].ends_with("because a virtual cluster cannot be stopped. Remove the field"));
    let mut deleted = with(None, None, Some("7d"));
    deleted.settings.ttl = Some(span("8h"));
    assert_eq!(warnings(&deleted), [""; 0]);
    deleted.settings.on_expiry = Some(OnExpiry::Delete);
    let told = warnings(&deleted);
    assert!(told[0].contains("Settings delete the environment at its end. Set onExpiry: Stop"));
}

#[test]
fn settings_without_a_ttl_warn_of_fields_for_the_end() {
    let told = |ttl: Option<&str>, maximum: Option<&str>| {
        let settings = LifecycleSettings {
            ttl: ttl.map(span),
            maximum: maximum.map(span),
            on_expiry: Some(OnExpiry::Stop),
            keep_stopped_for: Some(span("7d")),
        };
        settings.without_effect("stockPool.lifecycle").len()
    };
    assert_eq!((told(None, None), told(Some("never"), None)), (2, 2));
    assert_eq!((told(Some("8h"), None), told(None, Some("8h"))), (0, 0));
}

#[test]
fn lost_request_stays_in_force() {
    let mut environment = Environment::default();
    environment.call("2026-11-25T08:05:00Z");
    environment.requests.stopped = Some(time("2026-11-25T09:00:00Z"));
    let stopped = environment.call("2026-11-25T09:00:01Z").stop;
    assert_eq!(stopped, Some(Stop::Requested(time("2026-11-25T09:00:00Z"))));
    environment.requests = Requests::default();
    assert_eq!(environment.call("2026-11-25T10:00:00Z").stop, stopped);
    environment.requests.started = Some(time("2026-11-25T11:00:00Z"));
    assert_eq!(environment.call("2026-11-25T11:00:01Z").stop, None);
    // The first annotation comes back from a backup.
    environment.requests =
        Requests { stopped: Some(time("2026-11-25T09:00:00Z")), ..Requests::default() };
    assert_eq!(environment.call("2026-11-25T12:00:00Z").stop, None);
}

#[test]
fn lost_start_of_an_environment_that_the_claim_stops_stays_in_force() {
    let mut environment = Environment::default();
    environment.wishes.power = Power::Stopped;
    environment.call("2026-11-25T08:05:00Z");
    environment.requests.started = Some(time("2026-11-25T09:00:00Z"));
    assert_eq!(environment.call("2026-11-25T09:00:01Z").stop, None);
    environment.requests = Requests::default();
    assert_eq!(environment.call("2026-11-25T10:00:00Z").stop, None);
    environment.wishes.power = Power::Running;
    environment.call("2026-11-25T10:10:00Z");
    environment.wishes.power = Power::Stopped;
    assert!(environment.call("2026-11-25T10:20:00Z").stop.is_some());
}

#[test]
fn note_of_an_older_release_is_read_as_before() {
    let older = r#"{"defaults":{},"started":"2026-11-25T10:00:00Z","power":
        {"to":"Stopped","at":"2026-11-25T09:00:00Z"}}"#;
    let mut environment = Environment { exists: true, ..Environment::default() };
    environment.wishes.power = Power::Stopped;
    environment.note = Some(Note::read(older).unwrap_or_else(|error| unreachable!("{error}")));
    // The requests are in the annotations only.
    assert!(environment.plan(time("2026-11-25T11:00:00Z")).stop.is_some());
    environment.requests.started = Some(time("2026-11-25T10:00:00Z"));
    assert_eq!(environment.call("2026-11-25T11:00:00Z").stop, None);
    environment.requests = Requests::default();
    assert_eq!(environment.call("2026-11-25T12:00:00Z").stop, None);
}

/// The requests of annotations with these times, read for an environment of this age.
fn within(at: &str, is_claimed: bool, note: Option<&Note>) -> Requests {
    let annotation = |name: &str| Some(if name == RENEWED_FOR { "4w" } else { at });
    let age = Age { created: Some(time(CREATED)), is_claimed };
    Requests::read(annotation, time("2026-11-25T12:00:00Z")).within(age, note)
}

#[test]
fn request_that_is_older_than_the_environment_is_ignored() {
    for (at, is_claimed, is_valid) in [
        ("2026-11-18T08:00:00Z", true, false),
        ("2026-11-25T06:59:59Z", true, false),
        ("2026-11-25T07:00:00Z", true, true),
        ("2026-11-25T07:54:59Z", false, false),
        ("2026-11-25T07:55:00Z", false, true),
        ("2026-11-25T09:00:00Z", false, true),
    ] {
        let Requests { renewed, started, stopped, ignored } = within(at, is_claimed, None);
        let valid = [renewed.is_some(), started.is_some(), stopped.is_some()];
        assert_eq!(valid, [is_valid; 3], "{at}");
        assert_eq!(ignored.len(), if is_valid { 0 } else { 3 }, "{ignored:?}");
    }
    let told = within("2026-11-18T08:00:00Z", true, None).ignored;
    assert!(told[0].starts_with("annotation paved-road.fn.crossplane.io/renewed-at is ignored"));
    // A preview has no creation.
    let requests = Requests::read(|_| Some("2020-01-01T00:00:00Z"), time(CREATED));
    assert_eq!(requests.clone().within(Age::default(), None), requests);
}

#[test]
fn request_of_a_restored_environment_is_kept_by_its_note() {
    let mut environment = Environment::with_ttl("8h");
    let before = "2026-11-20T08:00:00Z";
    environment.requests.stopped = Some(time(before));
    environment.requests.started = Some(time(before));
    environment.requests.renewed = Some((time(before), span("4w")));
    let note = environment.plan(time("2026-11-20T08:00:01Z")).note;
    let requests = within(before, true, Some(&note));
    assert_eq!((requests.ignored.len(), requests.stopped), (0, Some(time(before))));
    let later = within("2026-11-21T08:00:00Z", true, Some(&note));
    assert_eq!((later.ignored.len(), later.stopped), (3, None));
    // The note of an older release says only that the environment was stopped.
    let older = Note { stopping: true, ..Note::default() };
    let requests = within(before, true, Some(&older));
    assert_eq!((requests.stopped, requests.started), (Some(time(before)), None));
}

#[test]
fn environment_that_is_not_deleted_in_time_is_stopped() {
    let mut environment = Environment::with_ttl("8h");
    environment.wishes.on_expiry = Some(OnExpiry::Delete);
    environment.call("2026-11-25T08:05:00Z");
    let end = time("2026-11-25T16:00:00Z");
    let plan = environment.call("2026-11-25T16:04:59Z");
    assert_eq!((plan.stop, plan.deletes_at), (None, Some(end)));
    let soon = plan.requeue(time("2026-11-25T16:04:30Z"), Duration::from_mins(10));
    assert!(soon <= Duration::from_mins(1), "{soon:?}");
    let plan = environment.call("2026-11-25T16:05:00Z");
    assert_eq!((plan.stop, plan.deletes_at), (Some(Stop::Expired(end)), Some(end)));
    environment.requests.started = Some(time("2026-11-25T17:00:00Z"));
    let plan = environment.call("2026-11-25T17:00:01Z");
    assert_eq!((plan.stop, plan.deletes_at), (None, Some(time("2026-11-26T01:00:00Z"))));
}

#[test]
fn change_under_a_slow_clock_counts_from_the_write() {
    let mut environment = Environment::default();
    environment.call("2026-11-27T08:00:00Z");
    environment.wishes.ttl = Some(span("8h"));
    environment.wishes.on_expiry = Some(OnExpiry::Delete);
    environment.written = Some(time("2026-11-28T12:00:00Z"));
    let plan = environment.call("2026-11-27T12:00:00Z");
    assert_eq!(plan.deletes_at, Some(time("2026-11-28T20:00:00Z")));
}

#[test]
fn annotations_that_cannot_be_read_are_ignored_with_a_sentence() {
    let now = time("2026-11-25T12:00:00Z");
    let annotations = |name: &str| match name {
        RENEWED_AT => Some("2026-11-25T11:00:00Z"),
        RENEWED_FOR => Some("4"),
        STARTED_AT => Some("yesterday"),
        STOPPED_AT => Some("2026-11-25T12:05:01Z"),
        _ => None,
    };
    let requests = Requests::read(annotations, now);
    assert_eq!((requests.renewed, requests.started, requests.stopped), (None, None, None));
    assert_eq!(requests.ignored.len(), 3);
}

#[test]
fn creation_in_the_future_acts_on_nothing() {
    let mut environment = Environment::with_ttl("8h");
    let plan = environment.call("2026-11-25T07:00:00Z");
    assert_eq!((plan.stop, plan.is_expired), (None, false));
    assert_eq!(plan.expires_at, Some(time("2026-11-25T16:00:00Z")), "from the creation");
    // The user's changes meanwhile count from the creation, too.
    environment.wishes.ttl = Some(span("1h"));
    let plan = environment.call("2026-11-25T07:30:00Z");
    assert_eq!(plan.expires_at, Some(time("2026-11-25T09:00:00Z")));
}

#[test]
fn day_of_a_daylight_saving_change_has_24_hours() {
    // Clocks in Berlin went from 02:00 to 03:00 on 2026-03-29.
    let annotations = |name: &str| match name {
        RENEWED_AT => Some("2026-03-28T12:00:00+01:00"),
        RENEWED_FOR => Some("1d"),
        _ => None,
    };
    let now = time("2026-03-28T11:00:00Z");
    let mut environment = Environment::with_ttl("1h");
    environment.requests = Requests::read(annotations, now);
    let plan = Plan::new(&Situation {
        now,
        created: Some(now),
        written: None,
        exists: false,
        wishes: Some(&environment.wishes),
        settings: Some(&environment.settings),
        announced_maximum: None,
        requests: &environment.requests,
        note: None,
        cannot_stop: None,
        is_rejected: false,
        leaves_resources: false,
    });
    assert_eq!(plan.expires_at, Some(time("2026-03-29T13:00:00+02:00")));
}

/// A step of an environment's history.
#[derive(Clone, Debug)]
enum Step {
    Wait(i64),
    Renew(u32),
    Start,
    Stop,
    Ttl(Option<u32>),
    Power(Power),
    Keep(Option<u32>),
    OnExpiry(Option<OnExpiry>),
    Reject(bool),
    LoseSettings(bool),
    DefaultTtl(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1_i64..200_000).prop_map(Step::Wait),
        (1_u32..200).prop_map(Step::Renew),
        Just(Step::Start),
        Just(Step::Stop),
        proptest::option::of(1_u32..48).prop_map(Step::Ttl),
        prop_oneof![Just(Power::Running), Just(Power::Stopped)].prop_map(Step::Power),
        proptest::option::of(1_u32..48).prop_map(Step::Keep),
        proptest::option::of(prop_oneof![Just(OnExpiry::Stop), Just(OnExpiry::Delete)])
            .prop_map(Step::OnExpiry),
        any::<bool>().prop_map(Step::Reject),
        any::<bool>().prop_map(Step::LoseSettings),
        (1_u32..200).prop_map(Step::DefaultTtl),
    ];
    vec(step, 1..20)
}

/// Plays a history under a maximum of 48 hours, and calls `look` after each step.
fn play(
    steps: &[Step],
    mut look: impl FnMut(&Environment, &Plan, Timestamp, &Step) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let maximum = Some(span("48h"));
    let settings = LifecycleSettings { maximum, ..LifecycleSettings::default() };
    let mut environment = Environment { settings, ..Environment::with_ttl("8h") };
    environment.settings.maximum = maximum;
    let mut now = time(CREATED);
    environment.call_at(now);
    for step in steps {
        match step {
            Step::Wait(seconds) => now += SignedDuration::from_secs(*seconds),
            Step::Renew(hours) => {
                environment.requests.renewed = Some((now, Span::For(*hours, Unit::Hours)));
            }
            Step::Start => environment.requests.started = Some(now),
            Step::Stop => environment.requests.stopped = Some(now),
            Step::Ttl(hours) => {
                environment.wishes.ttl = hours.map(|hours| Span::For(hours, Unit::Hours));
            }
            Step::Power(power) => environment.wishes.power = *power,
            Step::Keep(hours) => {
                environment.wishes.keep_stopped_for =
                    hours.map(|hours| Span::For(hours, Unit::Hours));
            }
            Step::OnExpiry(action) => environment.wishes.on_expiry = *action,
            Step::Reject(is_rejected) => environment.is_rejected = *is_rejected,
            Step::LoseSettings(is_lost) => environment.is_unconfigured = *is_lost,
            Step::DefaultTtl(hours) => {
                environment.settings.ttl = Some(Span::For(*hours, Unit::Hours));
            }
        }
        let plan = environment.call_at(now);
        look(&environment, &plan, now, step)?;
        now += SignedDuration::from_secs(1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expiry_is_never_further_ahead_than_the_maximum(steps in steps()) {
        play(&steps, |_, plan, now, _| {
            let limit = now + SignedDuration::from_hours(48);
            prop_assert!(plan.expires_at.is_none_or(|at| at <= limit), "{:?}", plan.expires_at);
            Ok(())
        })?;
    }

    #[test]
    fn same_situation_gives_the_same_plan(steps in steps()) {
        play(&steps, |environment, plan, now, _| {
            prop_assert_eq!(&environment.plan(now), plan);
            Ok(())
        })?;
    }

    #[test]
    fn changed_default_moves_no_expiry(steps in steps()) {
        let mut before = None;
        play(&steps, |_, plan, _, step| {
            if matches!(step, Step::DefaultTtl(_)) {
                prop_assert_eq!(before.unwrap_or(plan.expires_at), plan.expires_at);
            }
            before = Some(plan.expires_at);
            Ok(())
        })?;
    }

    /// After any change by the user, a deletion is announced thirty minutes ahead.
    #[test]
    fn no_change_moves_the_deletion_closer_than_thirty_minutes(steps in steps()) {
        let mut before = None;
        play(&steps, |_, plan, now, step| {
            let soonest = now + SignedDuration::from_mins(30);
            let allowed = before.flatten().map_or(soonest, |before: Timestamp| before.min(soonest));
            if !matches!(step, Step::Wait(_)) {
                prop_assert!(plan.deletes_at.is_none_or(|at| at >= allowed), "{:?}", plan);
            }
            before = Some(plan.deletes_at);
            Ok(())
        })?;
    }

    /// The clock reads anything for a while, and then it is right again.
    #[test]
    fn wrong_clock_changes_no_expiry(readings in vec(-400_000_000_i64..400_000_000, 1..8)) {
        let mut environment = Environment::with_ttl("8h");
        environment.wishes.keep_stopped_for = Some(span("2d"));
        let right = time(CREATED) + SignedDuration::from_hours(1);
        let before = environment.call_at(right);
        for seconds in readings {
            let reading = time(CREATED) + SignedDuration::from_secs(seconds);
            let plan = environment.call_at(reading);
            prop_assert_eq!(plan.expires_at, before.expires_at);
            prop_assert!(seconds >= 0 || plan.stop.is_none(), "a clock before the creation acts");
        }
        let after = environment.call_at(right);
        prop_assert_eq!(after.stop, None);
        prop_assert_eq!((after.expires_at, after.deletes_at), (before.expires_at, before.deletes_at));
    }

    #[test]
    fn unreadable_annotation_changes_nothing(
        text in prop_oneof!["\\PC{0,30}", "[0-9TZ:+-]{0,25}"], which in 0_usize..4, passed in 0_i64..100_000,
    ) {
        let now = time(CREATED) + SignedDuration::from_secs(passed);
        let name = [RENEWED_AT, RENEWED_FOR, STARTED_AT, STOPPED_AT][which];
        let is_readable = match name {
            RENEWED_FOR => text.parse::<Span>().is_ok(),
            _ => text.parse::<Timestamp>().is_ok_and(|time| time <= now + SKEW),
        };
        prop_assume!(!is_readable);
        let annotation = |asked: &str| match asked {
            _ if asked == name => Some(text.as_str()),
            RENEWED_AT => Some(CREATED).filter(|_| name == RENEWED_FOR),
            RENEWED_FOR => Some("40h"),
            _ => None,
        };
        let mut environment = Environment::with_ttl("8h");
        environment.call_at(time(CREATED));
        let expected = environment.plan(now);
        environment.requests = Requests::read(annotation, now);
        prop_assert_eq!(environment.requests.ignored.len(), 1);
        prop_assert_eq!(environment.plan(now), expected);
    }

    #[test]
    fn crossplane_comes_back_soon_after_a_boundary(hours in 1_u32..100, passed in 0_i64..400_000) {
        let mut environment = Environment::with_ttl(&format!("{hours}h"));
        environment.wishes.keep_stopped_for = Some(span("1h"));
        let now = time(CREATED) + SignedDuration::from_secs(passed);
        let plan = environment.call_at(now);
        let usual = Duration::from_mins(10);
        let next = plan.requeue(now, usual);
        prop_assert!(next <= usual);
        let ends = [plan.expires_at, plan.deletes_at];
        for end in ends.into_iter().flatten().filter(|end| *end > now) {
            // Crossplane adds up to a tenth of the TTL.
            let late = (now + next + next / 10).duration_since(end);
            let tenth = SignedDuration::from_secs_f64(next.as_secs_f64() / 10.0);
            let remaining = end.duration_since(now);
            prop_assert!(late <= SignedDuration::from_secs(5) + tenth, "{late} late");
            prop_assert!(remaining > SignedDuration::from_mins(10) || next.as_secs() <= 60);
        }
    }
}
