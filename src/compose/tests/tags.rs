//! The tags of cloud resources.

use serde_json::{Value, json};

use super::{Disk, Test, legacy, namespaced, object, ready};
use crate::compose::Composer;
use crate::observe::{MADE_WITH, OWNER};

/// The tags of a disk, the environment's first resource, under schema revision 3.
fn tags(test: Test) -> Value {
    tags_under(3, test)
}

fn tags_under(revision: u32, mut test: Test) -> Value {
    test.settings.schema_revision = Some(revision);
    test.first_slots = &["disk"];
    let compose = |cx: &mut Composer<'_>| cx.managed("disk", Disk::default()).add().map(|_| ());
    object(&test.compose(compose).unwrap(), "disk")["spec"]["forProvider"]["tags"].clone()
}

fn owned(mut test: Test, owner: &str) -> Test {
    test.xr["metadata"]["annotations"] = json!({OWNER: owner});
    test
}

/// A disk that revision 3 created for Ada.
fn of_ada() -> Value {
    let mut disk = ready();
    disk["metadata"]["annotations"][MADE_WITH] = json!("3");
    disk["spec"]["forProvider"]["tags"] =
        json!({"environment": "thing", "namespace": "team", "owner": "ada"});
    disk
}

#[test]
fn new_resource_names_environment_namespace_and_owner() {
    let expected = json!({"environment": "thing", "namespace": "team", "owner": "ada@acme.io"});
    for test in [legacy(), namespaced()] {
        assert_eq!(tags(owned(test, "ada@acme.io")), expected);
    }
    let nobodys = json!({"environment": "thing", "namespace": "team"});
    assert_eq!(tags(legacy()), nobodys);
    assert_eq!(tags(owned(legacy(), " \n")), nobodys, "no owner remains");
    let mut claimless = legacy();
    claimless.xr["spec"]["claimRef"] = Value::Null;
    assert_eq!(tags(claimless), json!({"environment": "thing-x1"}));
}

#[test]
fn owner_is_read_from_annotation_then_spec_then_label() {
    let mut test = legacy();
    test.xr["metadata"]["labels"] = json!({"owner": "u-4f2a"});
    assert_eq!(tags(test)["owner"], "u-4f2a");
    let mut test = legacy();
    test.xr["metadata"]["labels"] = json!({"owner": "u-4f2a"});
    test.xr["spec"]["parameters"] = json!({"owner": "lin"});
    assert_eq!(tags(test)["owner"], "lin");
    let mut test = owned(legacy(), "ada");
    test.xr["spec"]["parameters"] = json!({"owner": "lin"});
    assert_eq!(tags(test)["owner"], "ada");
}

#[test]
fn change_of_the_owner_follows_on_a_running_resource() {
    let test = owned(legacy().with("disk", of_ada()), "lin");
    assert_eq!(tags(test)["owner"], "lin");
    let mut missing = owned(legacy().with("disk", of_ada()), "lin");
    missing.settings.config_not_found = true;
    assert_eq!(tags(missing)["owner"], "ada", "the missing Settings may have tags");
}

#[test]
fn upgrade_adds_no_owner_to_running_resources() {
    let before = owned(legacy().with("disk", ready()), "ada");
    assert_eq!(tags(before), Value::Null);
    for revision in [1, 2] {
        assert_eq!(tags_under(revision, owned(legacy(), "ada")), Value::Null, "{revision}");
    }
}

#[test]
fn only_labels_in_settings_become_tags() {
    let mut test = legacy();
    test.settings.tags = [("team".to_owned(), "none".to_owned())].into();
    test.settings.tags_from_labels = [("CostCenter", "acme.io/cost-center"), ("team", "team")]
        .map(|(key, label)| (key.to_owned(), label.to_owned()))
        .into();
    test.xr["metadata"]["labels"] = json!({"acme.io/cost-center": "4711", "secret": "x"});
    let expected =
        json!({"CostCenter": "4711", "environment": "thing", "namespace": "team", "team": "none"});
    assert_eq!(tags(test), expected);
}

#[test]
fn tags_from_labels_follow_on_running_resources_of_every_revision() {
    let mut test = legacy().with("disk", ready());
    test.settings.tags_from_labels = [("team".to_owned(), "team".to_owned())].into();
    test.xr["metadata"]["labels"] = json!({"team": "vision"});
    assert_eq!(tags(test), json!({"team": "vision"}));
}

#[test]
fn tag_of_settings_replaces_the_owners() {
    let mut test = owned(legacy(), "ada");
    test.settings.tags = [("Owner".to_owned(), "platform".to_owned())].into();
    let expected = json!({"Owner": "platform", "environment": "thing", "namespace": "team"});
    assert_eq!(tags(test), expected);
}
