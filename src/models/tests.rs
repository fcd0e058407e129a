//! Compares the models with the providers' CRDs, if a checkout of the CRDs exists beside the
//! repository.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::*;

/// The folder of CRDs. `None` if it does not exist, as in a plain clone.
fn crds() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/crds");
    let found = folder.join("INDEX.json").is_file();
    if !found {
        eprintln!("skipped: no CRDs at {}", folder.display());
    }
    found.then_some(folder)
}

/// The index of a folder of CRDs.
fn index(folder: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(folder.join("INDEX.json")).unwrap()).unwrap()
}

/// The CRD of a kind in the claims API or the namespaced API, in the model's version. That version
/// has to be the newest served version.
fn schema_of(folder: &Path, kind: Kind, namespaced: bool) -> Value {
    let scope = if namespaced { Scope::Namespaced } else { Scope::LegacyCluster };
    let (group, version) = (kind.group(scope), kind.version(scope));
    let is_of_kind = |e: &Value| {
        e["kind"] == kind.kind && e["file"].as_str().unwrap().starts_with(&format!("{group}_"))
    };
    // The repository has the CRDs of kinds that the folder lacks.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("xtask/crds");
    let (folder, entry) = [folder, &own]
        .into_iter()
        .find_map(|folder| Some((folder, index(folder).into_iter().find(is_of_kind)?)))
        .unwrap_or_else(|| panic!("no CRD of {} in {group}", kind.kind));
    assert_eq!(entry["newest"], version, "{} of {group}", kind.kind);

    let text = fs::read_to_string(folder.join(entry["file"].as_str().unwrap())).unwrap();
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let kept = versions.iter().find(|v| v["name"] == version).expect("the version exists");
    kept["schema"]["openAPIV3Schema"]["properties"].clone()
}

/// Checks that every field of `ours` is in `theirs`, with a compatible type.
fn compare(path: &str, ours: &Value, theirs: &Value) {
    let fits = match json_type(ours) {
        "integer" => ["integer", "number"].contains(&json_type(theirs)),
        other => other == json_type(theirs),
    };
    assert!(fits, "{path}: we have {ours}, the CRD has {theirs}");
    for (name, field) in ours["properties"].as_object().unwrap_or(&Map::new()) {
        let path = format!("{path}.{name}");
        let known = &theirs["properties"][name];
        assert!(known.is_object(), "{path}: the CRD does not have the field");
        compare(&path, field, known);
    }
    for inner in ["items", "additionalProperties"] {
        if ours[inner].is_object() {
            compare(&format!("{path}[]"), &ours[inner], &theirs[inner]);
        }
    }
}

/// The type that is not null. schemars writes an `Option<Struct>` as a choice between the two
/// types.
fn json_type(schema: &Value) -> &str {
    let types =
        || schema["type"].as_array()?.iter().filter_map(Value::as_str).find(|t| *t != "null");
    schema["type"].as_str().or_else(types).unwrap_or("object")
}

/// Replaces `anyOf: [struct, null]` by the struct, at every level.
fn without_null(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => match map.get("anyOf").and_then(Value::as_array) {
            Some(choice) => without_null(choice.iter().find(|c| c["type"] != "null").unwrap()),
            None => {
                map.iter().map(|(k, v)| (k.clone(), without_null(v))).collect::<Map<_, _>>().into()
            }
        },
        Value::Array(items) => items.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

/// Removes fields that an API lacks: secret references of the namespaced API have no namespace.
fn for_flavour(mut schema: Value, namespaced: bool) -> Value {
    if namespaced
        && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
    {
        for (name, field) in properties {
            if name.ends_with("SecretRef") {
                field["properties"].as_object_mut().unwrap().remove("namespace");
            }
        }
    }
    schema
}

#[test]
fn every_field_exists_in_both_flavours() {
    let Some(folder) = crds() else { return };
    for info in KINDS {
        for namespaced in [false, true] {
            let crd = schema_of(&folder, info.kind, namespaced);
            let name = info.kind.kind;
            let written = for_flavour(without_null((info.for_provider)().as_value()), namespaced);
            compare(name, &written, &crd["spec"]["properties"]["forProvider"]);
            for field in info.kind.spec_fields {
                assert!(crd["spec"]["properties"][field].is_object(), "{name} has no spec.{field}");
            }
            let read = without_null((info.status)().as_value());
            compare(name, &read, &crd["status"]["properties"]["atProvider"]);
        }
    }
}

#[test]
fn tags_are_a_map_of_texts_that_the_model_has() {
    for info in KINDS {
        let Some(path) = info.kind.tags else { continue };
        let schema = without_null((info.for_provider)().as_value());
        let field = path.split('.').fold(&schema, |at, name| &at["properties"][name]);
        assert_eq!(field["additionalProperties"]["type"], "string", "{}: {path}", info.kind.kind);
    }
}

#[test]
fn kinds_that_take_tags_name_them() {
    let Some(folder) = crds() else { return };
    for info in KINDS.iter().filter(|info| info.kind.tags.is_none()) {
        let crd = schema_of(&folder, info.kind, false);
        for name in ["tags", "labels", "userLabels", "resourceLabels"] {
            let field = &crd["spec"]["properties"]["forProvider"]["properties"][name];
            assert!(field.is_null(), "{} takes {name}", info.kind.kind);
        }
    }
}

#[test]
fn every_provider_has_a_group_of_its_own_in_each_flavour() {
    let versions =
        |kind: Kind| [Scope::LegacyCluster, Scope::Namespaced].map(|scope| kind.api_version(scope));
    let expected = [
        (aws::s3::Bucket::KIND, ["s3.aws.upbound.io/v1beta2", "s3.aws.m.upbound.io/v1beta1"]),
        (
            gcp::NodePool::KIND,
            ["container.gcp.upbound.io/v1beta2", "container.gcp.m.upbound.io/v1beta1"],
        ),
        (
            azure::KubernetesCluster::KIND,
            [
                "containerservice.azure.upbound.io/v1beta2",
                "containerservice.azure.m.upbound.io/v1beta1",
            ],
        ),
        (
            kubernetes::Object::KIND,
            ["kubernetes.crossplane.io/v1alpha2", "kubernetes.m.crossplane.io/v1alpha1"],
        ),
        (helm::Release::KIND, ["helm.crossplane.io/v1beta1", "helm.m.crossplane.io/v1beta1"]),
        (
            sql::Role::KIND,
            ["postgresql.sql.crossplane.io/v1alpha1", "postgresql.sql.m.crossplane.io/v1alpha1"],
        ),
    ];
    for (kind, expected) in expected {
        assert_eq!(versions(kind), expected);
    }
}

#[test]
fn tag_has_the_characters_that_its_cloud_allows() {
    let tag = |provider: Provider| provider.tag("acme.io/Team", "A & B");
    let expected =
        [("acme.io/Team", "A & B"), ("acme.io_Team", "A & B"), ("acme_io_team", "a___b")];
    for (provider, (key, value)) in
        [Provider::Aws, Provider::Azure, Provider::Gcp].into_iter().zip(expected)
    {
        assert_eq!(tag(provider), (key.to_owned(), value.to_owned()));
    }
}

#[test]
fn empty_field_is_left_out() {
    let group = aws::ec2::SecurityGroup { region: Some("eu-west-1".into()), ..Default::default() };
    assert_eq!(serde_json::to_value(group).unwrap(), json!({"region": "eu-west-1"}));

    let rule = aws::ec2::SecurityGroupIngressRule {
        security_group_id_selector: Some(siblings([("role", "front")])),
        cidr_ipv4: Some("203.0.113.0/24".into()),
        to_port: Some(22),
        ..Default::default()
    };
    let expected = json!({
        "securityGroupIdSelector": {"matchControllerRef": true, "matchLabels": {"role": "front"}},
        "cidrIpv4": "203.0.113.0/24",
        "toPort": 22,
    });
    assert_eq!(serde_json::to_value(&rule).unwrap(), expected);
    assert_eq!(
        serde_json::from_value::<aws::ec2::SecurityGroupIngressRule>(expected).unwrap(),
        rule
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let seen = json!({"id": "i-0abc", "arn": "arn:aws:…", "vpcSecurityGroupIds": ["sg-1"]});
    let status: aws::ec2::InstanceStatus = serde_json::from_value(seen).unwrap();
    assert_eq!(
        status,
        aws::ec2::InstanceStatus { id: Some("i-0abc".into()), ..Default::default() }
    );
}

#[test]
fn each_kind_is_listed_once() {
    let mut names: Vec<_> =
        KINDS.iter().map(|info| (info.kind.provider, info.kind.service, info.kind.kind)).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}
