use serde_json::json;

use super::{Disk, disk, legacy, namespaced, object, ready, slots};
use crate::diagnosis::Code;
use crate::error::Error;

#[test]
fn a_resource_that_waits_is_not_created() {
    let answer = legacy()
        .compose(|cx| cx.managed("disk", disk("here")).needs(false, "an image").add().map(|_| ()))
        .unwrap();
    assert_eq!(slots(&answer), [""; 0]);
    assert_eq!(answer.reason(), "Waiting");
    assert_eq!(answer.message(), "disk (Disk): waits for an image");
    assert_eq!(answer.status["progress"], "0/1");
    assert_eq!(answer.status["phase"], "Pending");
    assert_eq!(
        answer.status["resources"],
        json!([{"slot": "disk", "kind": "Disk", "ready": false, "since": "2026-11-21T09:00:00Z",
                "reason": "Waiting", "message": "waits for an image"}])
    );
}

#[test]
fn several_unmet_needs_report_the_first() {
    let answer = legacy().compose(|cx| {
        let disk = cx.managed("disk", disk("here"));
        disk.needs(true, "nothing").needs(false, "an image").needs(false, "a key").add().map(|_| ())
    });
    assert_eq!(answer.unwrap().message(), "disk (Disk): waits for an image");
}

#[test]
fn existing_resource_stays_without_its_prerequisites() {
    let answer = legacy()
        .with("disk", ready())
        .compose(|cx| cx.managed("disk", disk("here")).needs(false, "an image").add().map(|_| ()))
        .unwrap();
    assert_eq!(slots(&answer), ["disk"]);
    assert_eq!(answer.reason(), "Available");
}

#[test]
fn omitted_resource_is_an_error_instead_of_a_deletion() {
    let refused =
        legacy().with("old", ready()).with("older", ready()).compose(|_| Ok(())).err().unwrap();
    assert_eq!(refused, Error::WouldDelete(vec!["old".to_owned(), "older".to_owned()]));
    assert_eq!(
        refused.to_string(),
        "not applied, because it would delete `old`, `older`, which exist and were not removed by \
         name. Nothing was changed. \
         This is a bug in the function; please report it"
    );
    assert_eq!(refused.code(), Code::WouldDelete);
}

#[test]
fn resource_without_our_label_may_be_omitted() {
    let mut test = legacy().with("theirs", ready());
    test.observed[0].1["metadata"]["labels"] = json!({"other": "true"});
    assert_eq!(slots(&test.compose(|_| Ok(())).unwrap()), [""; 0]);
}

#[test]
fn retired_slot_is_removed() {
    let answer = legacy().with("old", ready()).compose(|cx| cx.remove("old")).unwrap();
    assert_eq!(slots(&answer), [""; 0]);
}

#[test]
fn the_rest_of_a_list_is_retired_by_its_prefix() {
    let test = legacy().with("rule-a", ready()).with("rule-b", ready()).with("other", ready());
    let answer = test.compose(|cx| {
        cx.managed("rule-a", disk("here")).add()?;
        cx.managed("other", disk("here")).add()?;
        cx.remove_rest("rule-")
    });
    assert_eq!(slots(&answer.unwrap()), ["other", "rule-a"]);
    let answer = legacy()
        .with("rule-b", ready())
        .with("other", ready())
        .compose(|cx| cx.remove_rest("rule-"));
    assert_eq!(answer.err(), Some(Error::WouldDelete(vec!["other".to_owned()])));
}

#[test]
fn a_slot_is_composed_once() {
    let refused = legacy().compose(|cx| {
        cx.managed("disk", disk("here")).add()?;
        cx.managed("disk", disk("there")).add().map(|_| ())
    });
    let refused = refused.err().unwrap();
    assert_eq!(refused, Error::Defect("slot `disk` was composed twice".to_owned()));
}

#[test]
fn resource_has_our_label_and_returns_observed_values() {
    for test in [legacy(), namespaced()] {
        let mut seen = ready();
        seen["status"]["atProvider"] = json!({"id": "d-1", "count": "not a number"});
        let answer = test.with("disk", seen).compose(|cx| {
            let disk = cx.managed("disk", Disk::default()).add()?;
            assert_eq!(
                disk.text(|disk| disk.id.clone()).as_deref(),
                Some("d-1"),
                "a malformed field does not affect other fields"
            );
            assert_eq!(disk.get(|disk| disk.count), None);
            Ok(())
        });
        assert_eq!(
            object(&answer.unwrap(), "disk")["metadata"]["labels"],
            json!({"paved-road.fn.crossplane.io/composed": "true"})
        );
    }
}

#[test]
fn observed_slot_returns_its_api_group() {
    let answer = legacy().with("disk", ready()).compose(|cx| {
        assert_eq!((cx.group("disk"), cx.group("other")), (Some("ec2.aws.upbound.io"), None));
        cx.managed("disk", disk("here")).add().map(|_| ())
    });
    assert_eq!(slots(&answer.unwrap()), ["disk"]);
}
