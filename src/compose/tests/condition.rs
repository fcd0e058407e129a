use std::time::Duration;

use serde_json::{Value, json};

use super::{Test, disk, legacy, object, observed, ready, slots};
use crate::check::MAX_MESSAGE_LEN;
use crate::compose::Composer;
use crate::error::Error;
use crate::observe::spec_hash;
use crate::status::{Answer, Phase};

fn disks(cx: &mut Composer<'_>) -> Result<(), Error> {
    ["a", "b", "c"].iter().try_for_each(|slot| cx.managed(*slot, disk("here")).add().map(|_| ()))
}

fn refused(message: &str) -> Value {
    observed(&[("Synced", "False", "ReconcileError", message), ("Ready", "False", "Creating", "")])
}

/// Sets `status.resources` of an earlier call: slot, reason, since.
fn before(mut test: Test, lines: &[(&str, &str, &str)]) -> Test {
    let line = |(slot, reason, since): &(&str, &str, &str)| json!({"slot": slot, "kind": "Disk", "ready": false, "reason": reason, "since": since});
    test.xr["status"]["resources"] = lines.iter().map(line).collect();
    test
}

fn line(answer: &Answer, slot: &str) -> Value {
    let lines = answer.status["resources"].as_array().unwrap();
    lines.iter().find(|line| line["slot"] == slot).unwrap().clone()
}

#[test]
fn resource_in_creation_is_named_before_waiting_ones() {
    let answer = legacy().with("a", ready()).compose(|cx| {
        disks(cx)?;
        cx.managed("0", disk("here")).needs(false, "an image").add().map(|_| ())
    });
    let answer = answer.unwrap();
    assert_eq!((answer.reason(), answer.phase), ("Creating", Phase::Provisioning));
    assert_eq!(answer.message(), "b (Disk): is being created (2 more not ready)");
    assert_eq!(answer.status["progress"], "1/4");
    assert_eq!(answer.requeue, Duration::from_secs(30));
}

#[test]
fn all_ready_is_available() {
    let answer =
        legacy().with("a", ready()).with("b", ready()).with("c", ready()).compose(disks).unwrap();
    assert_eq!((answer.reason(), answer.phase), ("Available", Phase::Ready));
    assert_eq!(answer.message(), "all 3 resources are ready");
    assert_eq!(answer.status["progress"], "3/3");
    assert_eq!(answer.requeue, Duration::from_mins(10));
}

#[test]
fn earliest_failure_is_named_with_its_message() {
    let test = legacy()
        .with("a", refused("quota"))
        .with("b", ready())
        .with("c", refused("no such image, RequestID: 1234-5678-90ab"));
    let lines = [("a", "Failed", "2026-11-21T08:00:02Z"), ("c", "Failed", "2026-11-21T08:00:01Z")];
    let answer = before(test, &lines).compose(disks).unwrap();
    assert_eq!((answer.reason(), answer.phase), ("Failed", Phase::Failed));
    assert_eq!(answer.message(), "c (Disk): no such image");
    assert_eq!(line(&answer, "a")["since"], "2026-11-21T08:00:02Z");
    assert_eq!(answer.requeue, Duration::from_secs(30));
}

#[test]
fn a_providers_words_are_scrubbed_and_cut() {
    let mut test = legacy().with(
        "a",
        refused(&format!("login with hunter2hunter2 refused: {}", "ü".repeat(MAX_MESSAGE_LEN))),
    );
    test.details.insert("password".to_owned(), b"hunter2hunter2".to_vec());
    let answer = test.compose(disks).unwrap();
    assert!(
        answer.message().starts_with("a (Disk): login with [redacted] refused: ü"),
        "{}",
        answer.message()
    );
    assert!(answer.message().ends_with('…'));
    assert!(answer.message().len() <= MAX_MESSAGE_LEN, "{} bytes", answer.message().len());
    assert!(line(&answer, "a")["message"].as_str().unwrap().len() <= MAX_MESSAGE_LEN);
}

#[test]
fn a_time_changes_only_with_readiness_or_reason() {
    let lines =
        [("a", "Creating", "2026-11-21T08:00:00Z"), ("b", "Creating", "2026-11-21T08:00:00Z")];
    let answer = before(legacy().with("b", refused("quota")), &lines).compose(disks).unwrap();
    assert_eq!(line(&answer, "a")["since"], "2026-11-21T08:00:00Z");
    assert_eq!(line(&answer, "b")["since"], "2026-11-21T09:00:00Z");
    assert_eq!(line(&answer, "c")["since"], "2026-11-21T09:00:00Z");
}

#[test]
fn resource_rejected_by_the_api_server_is_reported() {
    let mut test = legacy().with("a", ready()).with("b", ready());
    test.xr["spec"]["resourceRefs"] = json!([
        {"kind": "Disk", "name": "a-name"}, {"kind": "Disk", "name": "b-name"}, {"kind": "Disk", "name": "c-name"},
    ]);
    let answer = test.compose(disks).unwrap();
    assert_eq!(answer.reason(), "Waiting");
    assert_eq!(
        answer.message(),
        "c (Disk): the API server has not accepted this Disk. Check the events of XThing \
         thing-x1, and that the provider is installed"
    );
    assert_eq!(line(&answer, "c")["reason"], "NotAccepted");
}

/// Sets the schema revision that has causes.
fn revised(mut test: Test) -> Test {
    test.settings.schema_revision = Some(2);
    test
}

#[test]
fn cause_of_an_unready_resource_is_in_its_line() {
    let test = revised(legacy())
        .with("a", ready())
        .with("b", refused("api error VcpuLimitExceeded: your current vCPU limit of 0"));
    let answer = test.compose(|cx| {
        disks(cx)?;
        cx.managed("0", disk("here")).needs(false, "an image").add().map(|_| ())
    });
    let answer = answer.unwrap();
    let quota = json!({"code": "QuotaExceeded", "params": {"quota": "vCPUs"}});
    assert_eq!(
        line(&answer, "0")["cause"],
        json!({"code": "WaitsFor", "params": {"for": "an image"}})
    );
    assert_eq!(line(&answer, "b")["cause"], quota);
    for slot in ["a", "c"] {
        assert_eq!(line(&answer, slot).get("cause"), None, "{slot} is ready or is being created");
    }
}

#[test]
fn cause_of_a_silent_provider_is_its_provider_config() {
    let lines = [("a", "Creating", "2026-11-21T08:58:00Z")];
    let answer = before(revised(legacy()).with("a", observed(&[])), &lines).compose(disks).unwrap();
    let params = json!({"config": "default", "kind": "ProviderConfig", "group": "aws.upbound.io"});
    assert_eq!(
        line(&answer, "a")["cause"],
        json!({"code": "ProviderConfigMissing", "params": params})
    );
    let message = line(&answer, "a")["message"].to_string();
    assert!(message.contains("ProviderConfig default (aws.upbound.io)"), "{message}");
}

#[test]
fn cause_has_no_secret_and_is_not_in_older_schemas() {
    let test = |revision| {
        let mut test =
            legacy().with("a", refused("exceeded quota: hunter2hunter2, requested: pods=1"));
        test.details.insert("password".to_owned(), b"hunter2hunter2".to_vec());
        test.settings.schema_revision = revision;
        line(&test.compose(disks).unwrap(), "a")
    };
    assert_eq!(test(Some(2))["cause"]["params"]["quota"], "[redacted]");
    assert_eq!(test(Some(1)).get("cause"), None);
}

#[test]
fn resource_without_a_reference_is_being_created() {
    let mut test = legacy().with("a", ready()).with("b", ready());
    test.xr["spec"]["resourceRefs"] =
        json!([{"kind": "Disk", "name": "a-name"}, {"kind": "Disk", "name": "b-name"}]);
    assert_eq!(line(&test.compose(disks).unwrap(), "c")["reason"], "Creating");
}

#[test]
fn the_sentence_is_news_only_once() {
    let mut test = legacy();
    let first = test.compose(disks).unwrap();
    assert_eq!(first.events.len(), 1);
    test.xr["status"]["conditions"] =
        json!([{"type": "Provisioned", "reason": first.reason(), "message": first.message()}]);
    assert_eq!(test.compose(disks).unwrap().events, []);
    test.xr["status"]["conditions"][0]["message"] = json!("something else");
    assert_eq!(test.compose(disks).unwrap().events.len(), 1);
}

#[test]
fn status_fields_that_the_schema_does_not_know_yet_are_left_out() {
    for (revision, late) in
        [(None, None), (Some(1), None), (Some(2), Some("b")), (Some(3), Some("b"))]
    {
        let mut test = legacy();
        test.settings.schema_revision = revision;
        let status = test.compose(|_| Ok(())).unwrap().status;
        assert_eq!(status["early"], "a");
        assert_eq!(status.get("late").and_then(Value::as_str), late, "{revision:?}");
    }
}

#[test]
fn spec_hash_in_the_status_matches_the_claims_spec() {
    let mut test = legacy();
    let told = |test: &Test| test.compose(|_| Ok(())).unwrap().status.get("specHash").cloned();
    test.xr["spec"]["size"] = json!(2.0);
    assert_eq!(told(&test), None, "a preview has no stored spec");
    test.xr["metadata"]["generation"] = json!(7);
    let first = told(&test).unwrap();
    let claim = json!({"size": 2, "none": null, "resourceRef": {"name": "thing-x1"}, "compositeDeletePolicy": "Foreground"});
    assert_eq!(first, spec_hash(&claim));
    test.xr["spec"]["size"] = json!(3);
    assert_ne!(told(&test), Some(first));
}

#[test]
fn a_resource_under_deletion_is_not_ready() {
    let mut going = ready();
    going["metadata"]["deletionTimestamp"] = json!("2026-11-21T08:59:00Z");
    let answer = legacy()
        .with("a", going)
        .compose(|cx| cx.managed("a", disk("here")).add().map(|_| ()))
        .unwrap();
    assert_eq!(slots(&answer), ["a"]);
    assert!(!answer.resources["a"].1);
    assert_eq!(answer.message(), "a (Disk): is being deleted");
    assert_eq!(object(&answer, "a")["metadata"]["deletionTimestamp"], Value::Null);
}

#[test]
fn release_without_a_chart_fails_while_others_wait() {
    let release = json!({
        "apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release", "metadata": {},
        "spec": {"forProvider": {"namespace": "a"}},
        "status": {"conditions": [
            {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "failed to install release: chart \"app\" version \"9\" not found"},
            {"type": "Ready", "status": "False", "reason": "Creating"},
        ]},
    });
    let answer = legacy().with("app", release).compose(|cx| {
        cx.managed("app", crate::models::helm::Release::default()).add()?;
        cx.managed("later", disk("here")).needs(false, "something").add().map(|_| ())
    });
    let answer = answer.unwrap();
    assert_eq!((answer.phase, answer.reason()), (Phase::Failed, "Failed"));
}
