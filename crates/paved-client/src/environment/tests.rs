#![allow(clippy::unwrap_used)]
use function_paved_road::lifecycle::{STARTED_AT, STOPPED_AT};
use serde_json::json;

use super::samples::{
    creating, environment, half_made, ready, refused_leaf, set, uncomposed, unsynced,
};
use super::*;

#[test]
fn owner_is_read_from_annotation_then_spec_then_label() {
    let mut object = ready();
    object["metadata"]["labels"] = json!({"owner": "4f2a"});
    assert_eq!(environment(&object).owner.as_deref(), Some("ada@acme.io"));
    object["spec"] = json!({"specName": "g1.1"});
    assert_eq!(environment(&object).owner.as_deref(), Some("4f2a"));
    object["metadata"]["annotations"] =
        json!({"paved-road.fn.crossplane.io/owner": "ada\u{1b}[31m\n@acme.io"});
    let owner = environment(&object).owner.unwrap();
    assert!(
        owner.starts_with("ada")
            && owner.ends_with("@acme.io")
            && !owner.contains(['\u{1b}', '\n']),
        "{owner:?}"
    );
}

#[test]
fn cluster_with_an_address_inside_names_the_command_that_connects() {
    for (kind, endpoint, connects) in [
        ("Environment", "https://preview-x.team-preview.svc:443", true),
        ("Environment", "https://preview-x.team-preview.svc.cluster.local", true),
        ("Environment", "https://203.0.113.9", false),
        ("Environment", "https://x.svc.example.org", false),
        ("StockPool", "https://preview-x.team-preview.svc:443", false),
    ] {
        let object = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": kind,
            "metadata": {"name": "preview", "namespace": "team"}, "status": {"endpoint": endpoint}});
        let seen = environment(&object);
        let command = connects.then_some("paved connect preview -n team");
        assert_eq!(seen.connect().as_deref(), command, "{kind} {endpoint}");
    }
}

#[test]
fn stopped_machine_has_no_endpoint() {
    let mut object = ready();
    object["status"]["connection"] = Value::Null;
    object["status"]["publicIp"] = Value::Null;
    object["status"]["privateIp"] = json!("10.0.1.7");
    assert_eq!(environment(&object).endpoint().as_deref(), Some("10.0.1.7"));
    object["status"]["power"] = json!("Stopped");
    assert_eq!(environment(&object).endpoint(), None);
}

#[test]
fn environment_is_ready_only_with_all_conditions() {
    let all = environment(&ready());
    assert!(all.is_ready() && all.is_current());
    assert_eq!(
        (all.word(), all.mark(), all.endpoint().as_deref()),
        ("Ready", Mark::Good, Some("ssh developer@203.0.113.7"))
    );
    for kind in ["Ready", "Synced", "Provisioned"] {
        let mut object = ready();
        set(&mut object, kind, "False", "Some", "");
        assert!(!environment(&object).is_ready(), "{kind}");
    }
}

#[test]
fn ready_environment_with_a_failed_compose_is_out_of_sync() {
    let mut object = ready();
    set(&mut object, "Synced", "False", "ReconcileError", "cannot select a Composition");
    let seen = environment(&object);
    assert_eq!(
        (seen.word(), seen.mark(), seen.sentence()),
        ("OutOfSync", Mark::Busy, "cannot select a Composition")
    );
    object["status"]["phase"] = json!("Provisioning");
    assert_eq!(environment(&object).word(), "Provisioning");
}

#[test]
fn an_invalid_spec_wins_over_the_phase_and_deletion_over_all() {
    let mut object = ready();
    set(&mut object, "Provisioned", "False", "InvalidSpec", "spec.x: found y");
    let invalid = environment(&object);
    assert_eq!(
        (invalid.word(), invalid.mark(), invalid.sentence()),
        ("InvalidSpec", Mark::Bad, "spec.x: found y")
    );
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
    assert_eq!(environment(&object).word(), "Deleting");
}

#[test]
fn a_newer_spec_makes_the_status_old() {
    let mut object = ready();
    object["metadata"]["generation"] = json!(3);
    assert!(!environment(&object).is_current());
    object["status"]["conditions"] = json!([]);
    assert!(!environment(&object).is_current(), "Crossplane has not observed it yet");
}

#[test]
fn environment_ready_before_the_last_stop_or_start_is_not_ready() {
    let mut object = ready();
    let stopped_at = "2026-01-01T12:00:00.5Z";
    object["metadata"]["annotations"][STOPPED_AT] = json!(stopped_at);
    assert!(environment(&object).is_ready(), "an older schema has no power state");
    object["status"]["power"] = json!("Running");
    let seen = environment(&object);
    assert!(!seen.is_ready());
    assert!(
        matches!(&seen.blockers()[..], [Blocker::Uncomposed(why)] if why.code == Code::Overdue)
    );
    object["status"]["lifecycle"] = json!({"requestedAt": stopped_at});
    assert!(environment(&object).is_ready());
    object["metadata"]["annotations"][STARTED_AT] = json!("2026-01-01T12:00:01Z");
    assert!(!environment(&object).is_ready(), "the start is later");
}

#[test]
fn environment_ready_for_an_older_spec_is_not_ready() {
    let mut object = ready();
    object["status"]["specHash"] = json!(spec_hash(&object["spec"]));
    let seen = environment(&object);
    assert!(seen.is_ready() && seen.blockers().is_empty() && !seen.fields.contains_key("specHash"));
    object["spec"]["compositionRef"] = json!({"name": "a"});
    assert!(environment(&object).is_ready(), "Crossplane's own fields are not composed");
    object["spec"]["parameters"]["diskGB"] = json!(200);
    let seen = environment(&object);
    assert!(!seen.is_ready() && seen.is_current(), "the claim's Synced is not enough");
    assert!(
        matches!(&seen.blockers()[..], [Blocker::Uncomposed(why)] if why.code == Code::Overdue)
    );
    object["status"]["resources"] = json!([refused_leaf()]);
    assert_eq!(environment(&object).blockers(), seen.blockers(), "the newest spec was not refused");
    object["status"].as_object_mut().unwrap().remove("specHash");
    assert!(environment(&object).is_ready(), "an older function writes no hash");
}

#[test]
fn recently_edited_environment_may_have_an_older_status() {
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let mut object = ready();
    let entry = |manager: &str, time: &str, status: bool| {
        let mut entry = json!({"manager": manager, "operation": "Apply", "time": time});
        if status {
            entry["subresource"] = json!("status");
        }
        entry
    };
    let with = |object: &mut Value, entries: &[Value]| {
        object["metadata"]["managedFields"] = json!(entries);
    };
    with(&mut object, &[entry("paved", "2026-01-01T11:59:50Z", false)]);
    assert!(environment(&object).may_lag(now));
    let mut refused = object.clone();
    set(&mut refused, "Provisioned", "False", "InvalidSpec", "");
    assert!(environment(&refused).may_lag(now), "the refusal may be of an older spec");
    refused["status"]["conditions"][2]["lastTransitionTime"] = json!("2026-01-01T11:59:52Z");
    assert!(environment(&refused).may_lag(now), "the older spec may have been refused again");
    refused["status"]["conditions"][2]["lastTransitionTime"] = json!("2026-01-01T11:59:56Z");
    assert!(!environment(&refused).may_lag(now), "the newest spec was refused");
    let mut new = object.clone();
    new["metadata"]["creationTimestamp"] = json!("2026-01-01T11:59:50Z");
    assert!(!environment(&new).may_lag(now), "a new object has no older status");
    let mut before = new.clone();
    before["metadata"]["generation"] = json!(1);
    let [before, after] =
        [before, new].map(|object| serde_json::from_value::<DynamicObject>(object).unwrap());
    let edited = Environment::applied(&after, Some(&before));
    assert!(
        edited.may_lag(now) && edited.now(&after).may_lag(now),
        "edited in the second of its creation"
    );
    assert!(!Environment::applied(&after, Some(&after)).may_lag(now), "the spec is unchanged");
    assert!(!Environment::applied(&after, None).may_lag(now), "the object is new");
    with(
        &mut object,
        &[
            entry("paved", "2026-01-01T11:00:00Z", false),
            entry("apiextensions.crossplane.io/claim", "2026-01-01T11:59:59Z", false),
            entry("somebody", "2026-01-01T11:59:59Z", true),
        ],
    );
    assert!(!environment(&object).may_lag(now));
}

#[test]
fn rejected_resource_blocks_and_resource_in_creation_does_not() {
    assert!(environment(&half_made(&creating())).blockers().is_empty());
    let blockers = environment(&half_made(&refused_leaf())).blockers();
    assert_eq!(blockers.iter().map(Blocker::key).collect::<Vec<_>>(), ["instance"]);
    // A rejected change of a ready resource blocks, although the resource remains ready.
    let mut object = half_made(&refused_leaf());
    object["status"]["resources"].as_array_mut().unwrap()[1]["ready"] = json!(true);
    let blockers = environment(&object).blockers();
    assert_eq!(blockers.iter().map(Blocker::key).collect::<Vec<_>>(), ["instance"]);
    let whole = environment(&unsynced()).blockers();
    assert!(
        matches!(&whole[..], [Blocker::Whole(why, words)]
            if why.code == Code::Uncomposed && words == "cannot select a Composition"),
        "{whole:?}"
    );
    let nothing = [Blocker::Uncomposed(Cause::new(Code::Uncomposed, []))];
    assert_eq!(environment(&uncomposed()).blockers(), nothing);
}

/// Code and slot of the diagnosis.
fn diagnosed(object: &Value) -> Option<(Code, Option<String>)> {
    environment(object).diagnosis().map(|diagnosis| (diagnosis.cause.code, diagnosis.slot))
}

#[test]
fn rejection_of_the_spec_comes_before_failed_parts() {
    let mut object = half_made(&refused_leaf());
    assert_eq!(diagnosed(&object), Some((Code::QuotaExceeded, Some("instance".to_owned()))));
    set(&mut object, "Provisioned", "False", "InvalidSpec", "spec.x: found y");
    assert_eq!(diagnosed(&object), Some((Code::InvalidSpec, None)));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
    assert_eq!(diagnosed(&object), None);
    assert_eq!(diagnosed(&ready()), None);
}

#[test]
fn cause_in_the_status_wins_over_the_table() {
    let mut leaf = refused_leaf();
    leaf["cause"] = json!({"code": "AccessDenied", "params": {"action": "a\u{1b}[2Jb"}});
    let part = environment(&half_made(&leaf)).parts.remove(1);
    assert_eq!(part.cause, Some(Cause::new(Code::AccessDenied, [("action", "a[2Jb")])));
    leaf["cause"] = json!({"code": "OfALaterRelease"});
    let part = environment(&half_made(&leaf)).parts.remove(1);
    assert_eq!(part.cause, Some(Cause::new(Code::Unknown, [])));
}

#[test]
fn waiting_environment_names_its_first_prerequisite() {
    let leaf = json!({"slot": "instance", "kind": "Instance", "ready": false, "reason": "Waiting",
        "message": "waits for an image", "since": "2026-01-01T10:00:00Z",
        "cause": {"code": "WaitsFor", "params": {"for": "an image"}}});
    let mut object = half_made(&leaf);
    assert_eq!(diagnosed(&object), None, "a resource is being created");
    set(&mut object, "Provisioned", "False", "Waiting", "instance (Instance): waits for an image");
    assert_eq!(diagnosed(&object), Some((Code::WaitsFor, Some("instance".to_owned()))));
    let now = "2026-01-01T12:00:00Z".parse().unwrap();
    assert_eq!(environment(&object).summary(now), "Waiting for an image");
}

#[test]
fn uncomposed_environment_is_a_fault_after_three_minutes() {
    let mut namespaced = unsynced();
    namespaced["status"] = json!({});
    for object in [uncomposed(), namespaced] {
        let seen = environment(&object);
        let diagnosis = seen.diagnosis().unwrap();
        assert_eq!((diagnosis.cause.code, &diagnosis.slot), (Code::Uncomposed, &None));
        let at = |time: &str| diagnosis.counts(time.parse().unwrap());
        assert!(!at("2026-01-01T10:02:59Z") && at("2026-01-01T10:03:00Z"), "{object}");
        assert_eq!(
            seen.summary("2026-01-01T10:05:00Z".parse().unwrap()),
            "Crossplane does not compose this environment"
        );
    }
}

#[test]
fn claim_without_resources_reports_its_condition_message() {
    assert_eq!(
        environment(&uncomposed()).sentence(),
        "Claim is waiting for composite resource to become Ready"
    );
}

#[test]
fn no_object_is_too_strange_to_be_shown() {
    for strange in [
        json!({"metadata": {}}),
        json!({"metadata": {"name": "a"}, "spec": 3, "status": "text"}),
        json!({"metadata": {"name": "a"}, "status": {"conditions": {}, "resources": [1, {"slot": "x"}], "phase": 7}}),
        json!({"apiVersion": "v1", "kind": "X", "metadata": {}, "status": {"conditions": [{"type": 3}, {}]}}),
    ] {
        let seen = environment(&strange);
        assert_eq!((seen.word(), seen.is_ready()), ("Pending", false), "{strange}");
        let code = seen.diagnosis().map(|diagnosis| diagnosis.cause.code);
        assert_eq!(code, Some(Code::Uncomposed), "{strange}");
    }
}

#[test]
fn control_characters_of_providers_are_removed() {
    let mut leaf = refused_leaf();
    leaf["message"] = json!("bad\u{1b}[2J");
    let seen = environment(&half_made(&leaf));
    assert_eq!(seen.parts[1].message.as_deref(), Some("bad[2J"));
}
