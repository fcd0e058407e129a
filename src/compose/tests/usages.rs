use serde_json::json;

use super::{Test, disk, legacy, namespaced, object, ready, slots};
use crate::compose::Composer;
use crate::error::Error;

fn both(cx: &mut Composer<'_>) -> Result<(), Error> {
    cx.managed("group", disk("here")).add()?;
    cx.managed("machine", disk("here")).add()?;
    cx.usage("group", "machine")
}

/// Like [`both`], but the machine waits.
fn one(cx: &mut Composer<'_>) -> Result<(), Error> {
    cx.managed("group", disk("here")).add()?;
    cx.managed("machine", disk("here")).needs(false, "an image").add()?;
    cx.usage("group", "machine")
}

#[test]
fn a_usage_refers_to_both_ends_by_name() {
    for (test, group, xr, version) in [
        (legacy(), "apiextensions.crossplane.io/v1beta1", "thing-x1", "ec2.aws.upbound.io/v1beta2"),
        (namespaced(), "protection.crossplane.io/v1beta1", "thing", "ec2.aws.m.upbound.io/v1beta1"),
    ] {
        let answer = test.compose(both).unwrap();
        let end = |slot: &str| json!({"apiVersion": version, "kind": "Disk", "resourceRef": {"name": format!("{xr}-{slot}-abcde")}});
        let usage = object(&answer, "usage-group-by-machine");
        assert_eq!(usage["apiVersion"], group);
        assert_eq!(usage["kind"], "Usage");
        assert_eq!(
            usage["spec"],
            json!({"of": end("group"), "by": end("machine"), "replayDeletion": true})
        );
        for slot in ["group", "machine"] {
            assert_eq!(object(&answer, slot)["metadata"]["name"], end(slot)["resourceRef"]["name"]);
        }
    }
}

#[test]
fn usage_refers_to_the_observed_name() {
    let answer = legacy().with("group", ready()).compose(both).unwrap();
    assert_eq!(
        object(&answer, "usage-group-by-machine")["spec"]["of"]["resourceRef"]["name"],
        "group-name"
    );
    assert_eq!(object(&answer, "group")["metadata"]["name"], "group-name");
}

#[test]
fn a_usage_waits_for_both_ends() {
    let answer = legacy().compose(one).unwrap();
    assert_eq!(slots(&answer), ["group"]);
    assert_eq!(
        object(&answer, "group")["metadata"]["name"],
        "thing-x1-group-abcde",
        "the name for later references"
    );
    assert_eq!(answer.status["progress"], "0/2", "Usages are not counted");
}

#[test]
fn usage_is_kept_while_a_manually_deleted_end_waits() {
    let before = legacy().compose(both).unwrap();
    let usage = object(&before, "usage-group-by-machine");
    let answer = running(usage.clone()).compose(one).unwrap();
    assert_eq!(object(&answer, "usage-group-by-machine"), usage);
}

fn running(usage: serde_json::Value) -> Test {
    let mut test = legacy().with("group", ready());
    test.observed.push((
        "usage-group-by-machine".to_owned(),
        usage,
        std::collections::BTreeMap::new(),
    ));
    test
}

#[test]
fn resource_of_a_desired_usage_is_never_retired() {
    let refused = legacy().with("group", ready()).compose(|cx| {
        both(cx)?;
        cx.remove("group")
    });
    let message = refused.err().unwrap().to_string();
    assert!(
        message.starts_with("slot `group` is protected by a Usage and cannot be removed"),
        "{message}"
    );
}

#[test]
fn resource_of_an_observed_usage_is_never_retired() {
    let usage =
        object(&legacy().with("group", ready()).compose(both).unwrap(), "usage-group-by-machine");
    let refused = running(usage).compose(|cx| {
        cx.remove("usage-group-by-machine")?;
        cx.remove("group")
    });
    let message = refused.err().unwrap().to_string();
    assert!(
        message.starts_with("slot `group` is protected by a Usage and cannot be removed"),
        "{message}"
    );
}

#[test]
fn usage_and_user_can_be_retired() {
    let before = legacy().with("group", ready()).compose(both).unwrap();
    let test = running(object(&before, "usage-group-by-machine")).with("machine", ready());
    let answer = test
        .compose(|cx| {
            cx.managed("group", disk("here")).add()?;
            cx.remove("usage-group-by-machine")?;
            cx.remove("machine")
        })
        .unwrap();
    assert_eq!(slots(&answer), ["group"]);
}
