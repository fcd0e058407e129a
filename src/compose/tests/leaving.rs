//! What the user no longer asks for leaves step by step.

use serde_json::{Value, json};

use super::{Disk, disk, legacy, namespaced, object, observed, slots};
use crate::compose::Composition;
use crate::error::Error;

fn orphan(namespaced: bool) -> Value {
    let mut running = observed(&[("Ready", "True", "Available", "")]);
    if namespaced {
        running["spec"]["managementPolicies"] = json!(["Observe", "Create", "Update", "LateInitialize"]);
    } else {
        running["spec"]["deletionPolicy"] = json!("Orphan");
    }
    running
}

#[test]
fn an_orphan_is_first_made_to_be_deleted() {
    for (test, is_namespaced) in [(legacy(), false), (namespaced(), true)] {
        let mut gone = true;
        let answer = test
            .with("disk", orphan(is_namespaced))
            .compose(|cx| {
                gone = cx.dismiss::<Disk>("disk")?;
                Ok(())
            })
            .unwrap();
        let kept = object(&answer, "disk");
        assert_eq!(kept["spec"]["forProvider"], json!({"region": "here"}));
        assert_eq!(
            (&kept["spec"]["deletionPolicy"], &kept["spec"]["managementPolicies"]),
            (&Value::Null, &Value::Null)
        );
        assert!(!gone);
    }
}

#[test]
fn what_is_deleted_with_its_object_goes_at_once_and_its_usage_with_it() {
    let usage = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "Usage",
        "spec": {"of": {"kind": "Disk", "resourceRef": {"name": "config-name"}}}});
    let both = |cx: &mut Composition<'_>| -> Result<(), Error> {
        cx.managed("config", disk("here")).add()?;
        assert!(!cx.dismiss::<Disk>("disk")?);
        Ok(())
    };
    let test = legacy()
        .with("config", super::ready())
        .with("disk", super::ready())
        .with("usage-config-by-disk", usage);
    assert_eq!(slots(&test.compose(both).unwrap()), ["config"]);
}

#[test]
fn what_has_to_wait_for_another_to_go_stays_as_it_is() {
    for (test, is_namespaced) in [(legacy(), false), (namespaced(), true)] {
        let running = orphan(is_namespaced);
        let answer = test.with("disk", running.clone()).compose(|cx| cx.keep::<Disk>("disk")).unwrap();
        let kept = object(&answer, "disk");
        for part in ["forProvider", "deletionPolicy", "managementPolicies"] {
            assert_eq!(kept["spec"][part], running["spec"][part], "{part}");
        }
    }
}

#[test]
fn what_never_was_is_gone() {
    legacy()
        .compose(|cx| {
            assert!(cx.dismiss::<Disk>("disk")?);
            cx.keep::<Disk>("disk")
        })
        .unwrap();
}
