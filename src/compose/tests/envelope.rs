use serde_json::{Value, json};

use super::{Test, disk, legacy, namespaced, object};
use crate::models::Scope;
use crate::models::{self, Kind};
use crate::observe::{Composite, NameRule};

fn composed(test: &Test, orphan: bool) -> Value {
    let answer = test.compose(|cx| {
        cx.managed("disk", disk("here")).label("role", "data").orphan(orphan).add().map(|_| ())
    });
    object(&answer.unwrap(), "disk")
}

#[test]
fn each_flavour_has_its_group_and_version() {
    assert_eq!(composed(&legacy(), false)["apiVersion"], "ec2.aws.upbound.io/v1beta2");
    assert_eq!(composed(&namespaced(), false)["apiVersion"], "ec2.aws.m.upbound.io/v1beta1");
    let labels = json!({"role": "data", "paved-road.fn.crossplane.io/composed": "true"});
    assert_eq!(
        composed(&legacy(), false)["metadata"],
        json!({"labels": labels}),
        "no name, no namespace"
    );
}

#[test]
fn orphan_has_the_policy_of_its_api() {
    let policies = |test: &Test, orphan| {
        let spec = composed(test, orphan)["spec"].clone();
        (spec["deletionPolicy"].clone(), spec["managementPolicies"].clone())
    };
    assert_eq!(policies(&legacy(), true), (json!("Orphan"), Value::Null));
    assert_eq!(policies(&legacy(), false), (Value::Null, Value::Null));
    let without_delete = json!(["Observe", "Create", "Update", "LateInitialize"]);
    assert_eq!(policies(&namespaced(), true), (Value::Null, without_delete));
    assert_eq!(policies(&namespaced(), false), (Value::Null, Value::Null));
}

#[derive(
    Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
struct Named {
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
}

impl models::Managed for Named {
    const KIND: Kind = Kind::aws("eks", "Named").without_late_initialization();
    type Status = models::Unread;
}

#[test]
fn kind_without_late_initialization_names_every_other_policy() {
    let spec = |test: &Test, orphan| {
        let answer =
            test.compose(|cx| cx.managed("a", Named::default()).orphan(orphan).add().map(|_| ()));
        object(&answer.unwrap(), "a")["spec"].clone()
    };
    for test in [legacy(), namespaced()] {
        let policies = json!(["Observe", "Create", "Update", "Delete"]);
        assert_eq!(spec(&test, false)["managementPolicies"], policies);
        assert_eq!(spec(&test, true)["managementPolicies"], json!(["Observe", "Create", "Update"]));
    }
    assert_eq!(spec(&legacy(), true)["deletionPolicy"], "Orphan");
    assert_eq!(spec(&namespaced(), true).get("deletionPolicy"), None);
}

fn read(xr: &Value) -> Result<Composite, String> {
    Composite::read(xr.as_object().unwrap().clone(), [].into()).map_err(|error| error.to_string())
}

#[test]
fn scope_is_read_from_the_composite() {
    assert_eq!(read(&legacy().xr).unwrap().scope, Scope::LegacyCluster);
    assert_eq!(read(&legacy().xr).unwrap().user_namespace(), Some("team"));
    assert_eq!(read(&namespaced().xr).unwrap().scope, Scope::Namespaced);
    assert_eq!(read(&namespaced().xr).unwrap().user_namespace(), Some("team"));
    let mut cluster = namespaced().xr;
    cluster["metadata"].as_object_mut().unwrap().remove("namespace");
    let refused = read(&cluster).unwrap_err();
    assert!(refused.starts_with("metadata.namespace: "), "{refused}");
}

#[test]
fn names_in_the_cloud_fit_their_service() {
    let named = |name: &str, rule| {
        let mut xr = legacy().xr;
        xr["metadata"]["name"] = json!(name);
        read(&xr).unwrap().cloud_name(rule)
    };
    assert_eq!(named("thing", NameRule::dns(40)), "thing-abcde");
    assert_eq!(named("a.b", NameRule::dns(40)), format!("a-b-{}-abcde", &sha("a.b")));
    assert_eq!(named("1", NameRule::dns(40)), format!("x1-{}-abcde", &sha("1")));
    let long = "a".repeat(63);
    assert_eq!(
        named(&long, NameRule::dns(40)),
        format!("{}-{}-abcde", "a".repeat(27), &sha(&long))
    );
    let no_dogs = NameRule { not_at_start: &["dog"], nowhere: &["cat"], ..NameRule::dns(40) };
    assert_eq!(named("dog", no_dogs), format!("xr-{}-abcde", &sha("dog")));
    assert_eq!(named("a-cat", no_dogs), format!("xr-{}-abcde", &sha("a-cat")));
    assert_eq!(named("a-dog", no_dogs), "a-dog-abcde");
}

fn sha(name: &str) -> String {
    crate::fingerprint::hash(name, 6)
}

#[test]
fn uid_prefix_has_the_requested_length() {
    let composite =
        |test: &Test| Composite::read(test.xr.as_object().unwrap().clone(), [].into()).unwrap();
    assert_eq!(composite(&legacy()).uid(8), "abcde123");
    assert_eq!(composite(&legacy()).uid5(), "abcde");
    let mut preview = legacy();
    preview.xr["metadata"]["uid"] = json!("ABC");
    let made_up = composite(&preview).uid(8);
    assert!(made_up.len() == 8 && made_up.chars().all(|c| c.is_ascii_hexdigit()), "{made_up}");
}
