use std::time::Duration;

use serde_json::{Value, json};

use super::{Test, disk, legacy, observed, ready};
use crate::check::MAX_MESSAGE_LEN;
use crate::compose::Composer;
use crate::error::Error;
use crate::reason::Reason;
use crate::status::{Condition, Phase, STALLED};

fn one(cx: &mut Composer<'_>) -> Result<(), Error> {
    cx.managed("a", disk("here")).add().map(|_| ())
}

fn refused(message: &str) -> Value {
    observed(&[("Synced", "False", "ReconcileError", message), ("Ready", "False", "Creating", "")])
}

/// A disk that its provider has rejected since a time. The current time is 09:00:00.
fn failed_since(since: &str, message: &str) -> Test {
    let mut test = legacy().with("a", refused(message));
    test.xr["status"]["resources"] =
        json!([{"slot": "a", "kind": "Disk", "ready": false, "reason": "Failed", "since": since}]);
    test
}

#[test]
fn failed_resource_stalls_after_fifteen_minutes() {
    for (since, stalled, next) in
        [("08:45:01", false, 1), ("08:45:00", true, 30), ("07:00:00", true, 30)]
    {
        let test = failed_since(&format!("2026-11-21T{since}Z"), "VcpuLimitExceeded: quota");
        let answer = test.compose(one).unwrap();
        let message =
            "a (Disk) has failed for more than 15 minutes: VcpuLimitExceeded: quota".to_owned();
        let expected = Condition::new(STALLED, true, &Reason::ResourceFailed, message);
        assert_eq!(answer.condition(STALLED), stalled.then_some(&expected), "{since}");
        // Crossplane calls again when the time has passed.
        assert_eq!((answer.phase, answer.requeue), (Phase::Failed, Duration::from_secs(next)));
    }
}

#[test]
fn failure_that_just_began_or_has_no_time_does_not_stall() {
    assert_eq!(legacy().with("a", refused("quota")).compose(one).unwrap().condition(STALLED), None);
    for odd in ["", "yesterday", "2026-11-21T10:00:00Z"] {
        assert_eq!(
            failed_since(odd, "quota").compose(one).unwrap().condition(STALLED),
            None,
            "{odd}"
        );
    }
}

#[test]
fn stalled_message_is_scrubbed_and_cut() {
    let mut test = failed_since(
        "2026-11-21T08:00:00Z",
        &format!("hunter2hunter2 {}", "x".repeat(MAX_MESSAGE_LEN)),
    );
    test.details.insert("password".to_owned(), b"hunter2hunter2".to_vec());
    let answer = test.compose(one).unwrap();
    let message = &answer.condition(STALLED).unwrap().message;
    assert!(message.len() <= MAX_MESSAGE_LEN && !message.contains("hunter2"), "{message}");
}

#[test]
fn recovery_resets_only_a_stored_condition() {
    let mut test = legacy().with("a", ready());
    assert_eq!(test.compose(one).unwrap().condition(STALLED), None);
    for status in ["True", "Unknown", "False"] {
        test.xr["status"]["conditions"] = json!([{"type": "Stalled", "status": status}]);
        let answer = test.compose(one).unwrap();
        let stalled = answer.condition(STALLED).unwrap();
        assert_eq!((stalled.is_true, stalled.reason.as_str()), (false, "Recovered"), "{status}");
    }
}
