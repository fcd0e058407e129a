//! Resources that the user no longer wants are removed in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Disk, disk, legacy, namespaced, object, observed, ready, slots};
use crate::compose::Composer;
use crate::error::Error;

/// A resource that would stay in the cloud. Its external name differs from its object's name.
fn orphan(namespaced: bool) -> Value {
    let mut running = observed(&[("Ready", "True", "Available", "")]);
    running["metadata"]["annotations"]["crossplane.io/external-name"] = json!("a-disk");
    if namespaced {
        running["spec"]["managementPolicies"] =
            json!(["Observe", "Create", "Update", "LateInitialize"]);
    } else {
        running["spec"]["deletionPolicy"] = json!("Orphan");
    }
    running
}

/// A config, and a disk that needs it and that the user no longer wants.
fn without_disk(cx: &mut Composer<'_>) -> Result<(), Error> {
    cx.managed("config", disk("here")).add()?;
    cx.remove_ordered::<Disk>("disk", &["config"])
}

/// The Usage of the config by the disk, in force or not. The disk is an owner until it is deleted.
fn usage(in_force: bool, is_owned: bool) -> Value {
    let end = |name: &str| json!({"apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Disk", "resourceRef": {"name": name}});
    let mut usage = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "Usage",
        "spec": {"of": end("config-name"), "by": end("disk-name")}});
    usage["status"]["conditions"] = json!([{"type": "Ready", "status": if in_force { "True" } else { "False" }, "reason": "Available"}]);
    let owners =
        json!([{"kind": "XDisk", "name": "disk-name"}, {"kind": "Disk", "name": "disk-name"}]);
    usage["metadata"]["ownerReferences"] =
        json!(&owners.as_array().unwrap()[..if is_owned { 2 } else { 1 }]);
    usage
}

#[test]
fn orphan_becomes_deletable_once_its_usage_is_in_force() {
    for in_force in [false, true] {
        for (test, is_namespaced) in [(legacy(), false), (namespaced(), true)] {
            let observed = orphan(is_namespaced);
            let test = test.with("config", ready()).with("disk", observed.clone());
            let answer = test
                .with("usage-config-by-disk", usage(in_force, true))
                .compose(without_disk)
                .unwrap();
            let kept = object(&answer, "disk");
            assert_eq!(kept["spec"]["forProvider"], json!({"region": "here"}));
            assert_eq!(kept["metadata"]["annotations"]["crossplane.io/external-name"], "a-disk");
            for policy in ["deletionPolicy", "managementPolicies"] {
                let expected = if in_force { &Value::Null } else { &observed["spec"][policy] };
                assert_eq!(&kept["spec"][policy], expected);
            }
            assert_eq!(slots(&answer), ["config", "disk", "usage-config-by-disk"]);
        }
    }
}

#[test]
fn orphan_stays_until_all_indirect_usages_are_in_force() {
    for in_force in [false, true] {
        let test =
            legacy().with("server", ready()).with("config", ready()).with("disk", orphan(false));
        let test = test.with("usage-config-by-disk", usage(true, true));
        let answer = test.with("usage-server-by-config", usage(in_force, true)).compose(|cx| {
            cx.managed("server", disk("here")).add()?;
            without_disk(cx)?;
            cx.usage("server", "config")
        });
        let policy = if in_force { Value::Null } else { json!("Orphan") };
        assert_eq!(object(&answer.unwrap(), "disk")["spec"]["deletionPolicy"], policy);
    }
}

#[test]
fn usages_in_a_cycle_are_visited_once() {
    let test = legacy().with("usage-config-by-disk", usage(true, true));
    let test = test.with("usage-disk-by-config", usage(true, true));
    let test = test.with("usage-config-by-config", usage(true, true));
    let answer = test.compose(|cx| {
        assert!(cx.is_secured("disk", &["config"]));
        Ok(())
    });
    assert!(matches!(answer, Err(Error::WouldDelete(_))), "no call composes them");
}

#[test]
fn usages_of_others_do_not_delay_a_removal() {
    let mut test = legacy().with("config", ready()).with("usage-config-by-disk", usage(true, true));
    test.observed.push(("usage-network-by-config".to_owned(), usage(false, true), BTreeMap::new()));
    let answer = test.compose(|cx| {
        assert!(cx.is_secured("disk", &["config"]));
        without_disk(cx)
    });
    assert_eq!(slots(&answer.unwrap()), ["config", "usage-config-by-disk"]);
}

#[test]
fn removed_resource_stays_until_its_usages_are_in_force() {
    let test = || legacy().with("config", ready()).with("disk", ready());
    let answer = test().compose(without_disk).unwrap();
    assert_eq!(slots(&answer), ["config", "disk", "usage-config-by-disk"], "no Usage yet");
    let answer =
        test().with("usage-config-by-disk", usage(false, true)).compose(without_disk).unwrap();
    assert_eq!(slots(&answer), ["config", "disk", "usage-config-by-disk"], "is not in force");
    let answer =
        test().with("usage-config-by-disk", usage(true, true)).compose(without_disk).unwrap();
    assert_eq!(slots(&answer), ["config", "usage-config-by-disk"]);
}

#[test]
fn usages_of_a_removed_resource_stay_until_its_deletion() {
    let is_gone = |cx: &mut Composer<'_>| -> Result<(), Error> {
        assert!(!cx.is_gone("disk"));
        without_disk(cx)
    };
    let test = |is_owned| {
        legacy().with("config", ready()).with("usage-config-by-disk", usage(true, is_owned))
    };
    let answer = test(true).compose(is_gone).unwrap();
    assert_eq!(slots(&answer), ["config", "usage-config-by-disk"]);
    assert_eq!(
        (answer.ready, answer.message()),
        (false, "usage-config-by-disk (Usage): waits for disk to be deleted")
    );
    let answer = test(false).compose(is_gone).unwrap();
    assert_eq!((slots(&answer), answer.ready), (vec!["config"], true));
}

#[test]
fn kept_resource_is_unchanged() {
    for (test, is_namespaced) in [(legacy(), false), (namespaced(), true)] {
        let running = orphan(is_namespaced);
        let answer =
            test.with("disk", running.clone()).compose(|cx| cx.retain::<Disk>("disk")).unwrap();
        let kept = object(&answer, "disk");
        for part in ["forProvider", "deletionPolicy", "managementPolicies"] {
            assert_eq!(kept["spec"][part], running["spec"][part], "{part}");
        }
        assert_eq!(kept["metadata"]["annotations"], running["metadata"]["annotations"]);
    }
}

#[test]
fn resource_that_never_existed_counts_as_gone() {
    legacy()
        .compose(|cx| {
            cx.remove_ordered::<Disk>("disk", &["config"])?;
            assert!(cx.is_gone("disk"));
            cx.retain::<Disk>("disk")
        })
        .unwrap();
}
