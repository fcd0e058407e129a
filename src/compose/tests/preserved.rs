use serde_json::{Value, json};

use super::{Disk, Machine, Test, legacy, namespaced, object, ready};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::SIBLING;
use crate::models::aws::cloudfront::{Distribution, Origin};
use crate::settings::{NamespaceProviderConfig, ProviderConfig, ProviderConfigKind};

/// A disk with the current settings and the user's choice `size`.
fn disk(cx: &mut Composer<'_>, size: &str) -> Result<(), Error> {
    let model = Disk {
        region: Some("there".to_owned()),
        size: Some(20),
        machine: Some(Machine { kind: Some("new".to_owned()) }),
        key: Some("added later".to_owned()),
        tags: [("Name".to_owned(), "api".to_owned())].into(),
    };
    cx.managed("disk", model)
        .external_name("new-name")
        .updatable(&["size"])
        .resolved_from("size", size, &["machine.kind"])
        .add()
        .map(|_| ())
}

/// The observed disk: chosen as `small`, in another region, without the later field.
fn running() -> Value {
    let mut disk = ready();
    disk["metadata"]["annotations"] = json!({"crossplane.io/external-name": "old-name", "paved-road.fn.crossplane.io/size": "small"});
    disk["spec"] = json!({
        "forProvider": {"region": "here", "size": 10, "machine": {"kind": "old"}, "tags": {"gone": "x"}, "theirs": "not in the model"},
        "providerConfigRef": {"name": "old"},
    });
    disk
}

fn composed(test: &Test, size: &str) -> Value {
    object(&test.compose(|cx| disk(cx, size)).unwrap(), "disk")
}

#[test]
fn new_resource_has_all_desired_fields() {
    let disk = composed(&legacy(), "small");
    assert_eq!(
        disk["spec"]["forProvider"],
        json!({"region": "there", "size": 20, "machine": {"kind": "new"}, "key": "added later", "tags": {"Name": "api"}})
    );
    assert_eq!(
        disk["metadata"]["annotations"],
        json!({"crossplane.io/external-name": "new-name", "paved-road.fn.crossplane.io/size": "small"})
    );
}

#[test]
fn running_resource_keeps_all_but_updatable_fields_and_tags() {
    let disk = composed(&legacy().with("disk", running()), "small");
    assert_eq!(
        disk["spec"]["forProvider"],
        json!({"region": "here", "size": 20, "machine": {"kind": "old"}, "tags": {"Name": "api"}}),
        "absent fields stay absent"
    );
    assert_eq!(disk["metadata"]["annotations"]["crossplane.io/external-name"], "old-name");
    assert_eq!(disk["spec"]["providerConfigRef"], json!({"name": "old"}));
}

#[test]
fn changed_resource_is_not_ready_but_new_tags_do_not_count() {
    let mut same = running();
    same["spec"]["forProvider"]["size"] = json!(20);
    same["spec"]["forProvider"]["tags"] = json!({"Name": "other"});
    for (seen, size, ready) in
        [(same.clone(), "small", true), (running(), "small", false), (same, "large", false)]
    {
        let answer = legacy().with("disk", seen).compose(|cx| disk(cx, size)).unwrap();
        assert_eq!(answer.resources["disk"].1, ready, "{size}");
    }
}

#[test]
fn resolved_field_changes_only_with_the_recorded_choice() {
    let disk = composed(&legacy().with("disk", running()), "large");
    assert_eq!(disk["spec"]["forProvider"]["machine"]["kind"], "new");
    assert_eq!(disk["metadata"]["annotations"]["paved-road.fn.crossplane.io/size"], "large");

    let mut unnoted = running();
    unnoted["metadata"]["annotations"] = json!({});
    let disk = composed(&legacy().with("disk", unnoted), "large");
    assert_eq!(
        disk["spec"]["forProvider"]["machine"]["kind"], "old",
        "the recorded choice is unknown"
    );
}

#[test]
fn malformed_neighbours_cost_no_value() {
    let mut malformed = running();
    malformed["spec"]["forProvider"]["machine"] = json!("not an object");
    malformed["spec"]["forProvider"]["key"] = json!("kept");
    let wanted = Disk {
        size: Some(20),
        machine: Some(Machine { kind: Some("new".to_owned()) }),
        ..Disk::default()
    };
    let answer = legacy()
        .with("disk", malformed)
        .compose(|cx| cx.managed("disk", wanted).updatable(&["size"]).add().map(|_| ()));
    assert_eq!(
        object(&answer.unwrap(), "disk")["spec"]["forProvider"],
        json!({"region": "here", "size": 20, "machine": {"kind": "new"}, "key": "kept"})
    );
}

#[test]
fn missing_external_name_is_not_invented() {
    let mut nameless = running();
    nameless["metadata"]["annotations"] = json!({});
    let disk = composed(&legacy().with("disk", nameless), "small");
    assert_eq!(disk["metadata"]["annotations"].get("crossplane.io/external-name"), None);
}

#[test]
fn tags_of_settings_reach_running_resources_below_api_tags() {
    let mut test = legacy().with("disk", running());
    test.settings.tags = [("Name", "settings"), ("Team", "vision")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    assert_eq!(
        composed(&test, "small")["spec"]["forProvider"]["tags"],
        json!({"Name": "api", "Team": "vision"})
    );
}

#[test]
fn tags_stay_while_the_environment_config_is_missing() {
    let mut test = legacy().with("disk", running());
    test.settings.tags = [("Team".to_owned(), "vision".to_owned())].into();
    test.settings.config_not_found = true;
    assert_eq!(composed(&test, "small")["spec"]["forProvider"]["tags"], json!({"gone": "x"}));
}

#[test]
fn a_provider_config_is_chosen_by_the_users_namespace_and_pinned() {
    let own = NamespaceProviderConfig {
        name: "of-team".to_owned(),
        kind: Some(ProviderConfigKind::ProviderConfig),
    };
    let config = |namespace: &str| {
        let by_namespace = [(namespace.to_owned(), own.clone())].into();
        Some(ProviderConfig { name: "company".to_owned(), kind: None, by_namespace })
    };
    let reference = |mut test: Test, namespace: Option<&str>| {
        test.settings.provider_configs.aws = namespace.and_then(config);
        composed(&test, "small")["spec"]["providerConfigRef"].clone()
    };
    assert_eq!(reference(legacy(), None), json!({"name": "default"}));
    assert_eq!(reference(legacy(), Some("team")), json!({"name": "of-team"}), "by claim");
    assert_eq!(reference(legacy(), Some("other")), json!({"name": "company"}));
    assert_eq!(
        reference(namespaced(), None),
        json!({"name": "default", "kind": "ClusterProviderConfig"})
    );
    assert_eq!(
        reference(namespaced(), Some("team")),
        json!({"name": "of-team", "kind": "ProviderConfig"})
    );
    assert_eq!(
        reference(namespaced(), Some("other")),
        json!({"name": "company", "kind": "ClusterProviderConfig"})
    );
    assert_eq!(
        reference(legacy().with("disk", running()), Some("team")),
        json!({"name": "old"}),
        "preserved"
    );
}

#[test]
fn provider_values_in_list_entries_are_kept() {
    let site = || Distribution {
        origin: vec![Origin {
            domain_name: Some("a bucket".to_owned()),
            origin_access_control_id_selector: Some(SIBLING),
            ..Origin::default()
        }],
        ..Distribution::default()
    };
    let mut running = ready();
    let origin = json!([{
        "domainName": "a bucket", "originAccessControlIdSelector": {"matchControllerRef": true},
        "originAccessControlIdRef": {"name": "it"}, "originAccessControlId": "E1", "connectionTimeout": 10,
    }]);
    running["spec"] = json!({"forProvider": {"origin": origin, "comment": "theirs"}});
    let answer = legacy()
        .with("site", running)
        .compose(|cx| cx.managed("site", site()).add().map(|_| ()))
        .unwrap();
    assert_eq!(object(&answer, "site")["spec"]["forProvider"]["origin"], origin);
}
