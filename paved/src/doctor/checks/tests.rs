#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use function_paved_road::apis::Flavour;
use function_paved_road::manifests::SCHEMA_REVISION;
use function_paved_road::manifests::namespaces;
use function_paved_road::manifests::policy::{CROSSPLANE, policies};
use function_paved_road::settings::API_VERSION;
use kube::core::ApiResource;
use paved_client::samples::kinds;
use serde_json::json;

use super::*;
use crate::doctor::snapshot::{ProviderConfigs, Served};
use crate::style::Mark;

pub(in crate::doctor) fn objects(values: &[Value]) -> ListResult {
    ListResult::All(
        values.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect(),
    )
}

fn with(name: &str, spec: &Value, conditions: &[(&str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "message": format!("{kind} is {status}")}))
        .collect();
    json!({"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}})
}

/// A correct cluster with one API.
pub(in crate::doctor) fn snapshot() -> ClusterSnapshot {
    let package = json!({"package": "registry.example.org/x/y:v1.2.3"});
    let healthy = [("Installed", "True"), ("Healthy", "True")];
    let definition = json!({"group": "dev.example.org", "names": {"kind": "GpuDevWorkspace", "plural": "gpudevworkspaces", "categories": ["paved"]}});
    let policies = |kind: &str| {
        let mut all = policies(&[(Flavour::Namespaced, "dev.example.org")], CROSSPLANE);
        all.extend(namespaces::policy("paved-controller"));
        objects(&all.into_iter().filter(|document| document["kind"] == kind).collect::<Vec<_>>())
    };
    let composition = json!({
        "compositeTypeRef": {"apiVersion": "dev.example.org/v1alpha1", "kind": "GpuDevWorkspace"},
        "pipeline": [{"functionRef": {"name": "fn"},
            "input": {"apiVersion": API_VERSION, "kind": "Settings", "schemaRevision": SCHEMA_REVISION,
                "settingsFrom": {"name": "paved-road"}}}]});
    let aws = |kind: &str| ApiResource {
        group: "aws.m.upbound.io".into(),
        version: "v1".into(),
        api_version: "aws.m.upbound.io/v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    ClusterSnapshot {
        kinds: kinds().all().to_vec(),
        crossplane: objects(&[
            json!({"metadata": {"name": "crossplane", "labels": {}}, "spec": {"template": {"spec": {
            "containers": [{"name": "crossplane", "image": "r.example.org/crossplane:v2.4.3"}]}}}, "status": {"availableReplicas": 1}}),
        ]),
        served: Some(served()),
        definitions: objects(&[with(
            "workspaces.dev.example.org",
            &definition,
            &[("Established", "True")],
        )]),
        compositions: objects(&[with("workspaces", &composition, &[])]),
        configs: objects(&[json!({"metadata": {"name": "paved-road"},
            "data": {"providerConfigs": {"aws": {"name": "team"}}}})]),
        functions: objects(&[with("fn", &package, &healthy)]),
        providers: objects(&[with("provider-aws-ec2", &package, &healthy)]),
        policies: policies("ValidatingAdmissionPolicy"),
        bindings: policies("ValidatingAdmissionPolicyBinding"),
        protected: BTreeMap::from([(
            "paved-controller".to_owned(),
            Some(objects(&[json!({"metadata": {"name": namespaces::NAME}})])),
        )]),
        roles: objects(&[]),
        provider_configs: vec![
            ProviderConfigs {
                resource: aws("ClusterProviderConfig"),
                objects: objects(&[with("team", &json!({}), &[])]),
            },
            ProviderConfigs { resource: aws("ProviderConfig"), objects: objects(&[]) },
        ],
        clusters: Vec::new(),
        environments: Vec::new(),
        releases: Vec::new(),
        databases: Vec::new(),
    }
}

/// All kinds in a GPU workspace.
fn served() -> BTreeSet<Served> {
    let kinds = [
        ("apiextensions.crossplane.io", "v2", "CompositeResourceDefinition"),
        ("ec2.aws.m.upbound.io", "v1beta1", "Instance"),
        ("ec2.aws.m.upbound.io", "v1beta1", "InstanceState"),
        ("ec2.aws.m.upbound.io", "v1beta1", "SecurityGroup"),
        ("ec2.aws.m.upbound.io", "v1beta1", "SecurityGroupEgressRule"),
        ("ec2.aws.m.upbound.io", "v1beta1", "SecurityGroupIngressRule"),
        ("iam.aws.m.upbound.io", "v1beta1", "InstanceProfile"),
        ("iam.aws.m.upbound.io", "v1beta1", "Role"),
        ("iam.aws.m.upbound.io", "v1beta1", "RolePolicy"),
        ("iam.aws.m.upbound.io", "v1beta1", "RolePolicyAttachment"),
    ];
    kinds
        .map(|(group, version, kind)| (group.to_owned(), version.to_owned(), kind.to_owned()))
        .into()
}

fn told(snapshot: &ClusterSnapshot) -> String {
    let line = |check: &Check| {
        format!("{} {}  {}\n", crate::style::sign_of(check.mark), check.what, check.found)
    };
    all(snapshot).iter().map(line).collect()
}

#[test]
fn a_cluster_that_is_well_has_no_red_line() {
    insta::assert_snapshot!(told(&snapshot()), @r"
    ✓ Crossplane  2.4.3 serves both APIs
    ✓ Function fn  v1.2.3
    ✓ Provider provider-aws-ec2  v1.2.3
    ✓ ClusterProviderConfig.aws.m.upbound.io  team
    ✓ XRD workspaces.dev.example.org  Composition workspaces
    ✓ Admission policies  only Crossplane may bind claims and composites, and write their status
    ✓ Deletion of namespaces  a policy refuses to delete namespaces with environments
    ✓ Settings paved-road  EnvironmentConfig
    ");
}

#[test]
fn missing_or_broken_component_is_red_with_its_remedy() {
    let sick = [("Installed", "True"), ("Healthy", "False")];
    let snapshot = ClusterSnapshot {
        functions: objects(&[]),
        providers: objects(&[with(
            "ours",
            &json!({"package": "r.example.org/provider-aws-ec2:v1"}),
            &sick,
        )]),
        ..snapshot()
    };
    for line in [
        "✗ Provider ours  is not Healthy: Healthy is False; run `kubectl describe \
         provider.pkg.crossplane.io ours`",
        "✗ Function fn  is not installed",
    ] {
        assert!(told(&snapshot).contains(line), "{line}: {}", told(&snapshot));
    }
    let snapshot = ClusterSnapshot { compositions: objects(&[]), ..snapshot };
    for line in [
        "… Provider ours  is not Healthy: Healthy is False; no environment uses it",
        "✗ XRD workspaces.dev.example.org  has no Composition; install",
    ] {
        assert!(told(&snapshot).contains(line), "{line}: {}", told(&snapshot));
    }
}

#[test]
fn hidden_component_is_not_red() {
    let hidden = || ListResult::Hidden;
    let snapshot = ClusterSnapshot {
        crossplane: hidden(),
        definitions: hidden(),
        compositions: hidden(),
        configs: hidden(),
        functions: hidden(),
        providers: hidden(),
        policies: hidden(),
        bindings: hidden(),
        roles: hidden(),
        ..snapshot()
    };
    assert!(all(&snapshot).iter().all(|check| check.mark != Mark::Bad), "{}", told(&snapshot));
    assert!(told(&snapshot).contains("Environments  3 kinds"), "{}", told(&snapshot));
}

#[test]
fn unreadable_component_is_red_and_not_hidden() {
    let failed = || ListResult::Failed("etcd has no leader".to_owned());
    let snapshot = ClusterSnapshot {
        definitions: failed(),
        functions: failed(),
        providers: ListResult::Hidden,
        ..snapshot()
    };
    let told = told(&snapshot);
    for line in [
        "✗ Functions  could not be read: etcd has no leader; check the state of the cluster, and \
         run paved doctor again",
        "… Providers  you may not read them",
        "✗ XRDs  could not be read: etcd has no leader",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn cluster_without_crossplane_reports_only_crossplane() {
    let snapshot =
        ClusterSnapshot { definitions: ListResult::NoSuchKind, kinds: Vec::new(), ..snapshot() };
    assert_eq!(
        told(&snapshot),
        "✗ Crossplane  is not installed; install 1.20 for claims, or 2.x for both APIs\n"
    );
}

/// A cluster with a kind of composite, and without any prerequisite.
fn serving_nothing(kind: &str) -> ClusterSnapshot {
    let names = json!({"kind": kind, "categories": ["paved"]});
    let definition = json!({"metadata": {"name": "x"},
        "spec": {"group": "dev.example.org", "names": names}});
    let composition = json!({"metadata": {"name": "NAME"}, "spec": {
        "compositeTypeRef": {"apiVersion": "dev.example.org/v1alpha1", "kind": kind},
        "pipeline": [{"functionRef": {"name": "fn"},
            "input": {"kind": "Settings", "settingsFrom": {"name": "NAME"}}}]}});
    ClusterSnapshot {
        served: Some(BTreeSet::new()),
        definitions: objects(&[definition]),
        compositions: objects(&[composition]),
        configs: objects(&[]),
        policies: objects(&[]),
        ..snapshot()
    }
}

/// The second column of the table of new prerequisites.
fn prerequisites() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/how-to/upgrade.md");
    let table = page.split_once("## New prerequisites").unwrap().1;
    let table = table.split_once("\n## ").unwrap().0;
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.split('|').nth(2).unwrap().trim()).collect()
}

/// Without a prerequisite, its check has a line with a remediation. A correct cluster has no such
/// line.
#[test]
fn prerequisite_of_an_upgrade_has_a_check() {
    let rows = prerequisites();
    assert!(rows.len() >= 5, "{rows:?}");
    let without = all(&serving_nothing("Environment"));
    let with = all(&snapshot());
    for row in rows {
        let name = row.strip_prefix('`').and_then(|row| row.strip_suffix('`'));
        let name = name.unwrap_or_else(|| panic!("{row}: not the name of a check"));
        let (begin, end) = name.split_once("NAME").unwrap_or((name, ""));
        let is_named = |check: &&Check| {
            check.what.starts_with(begin) && check.what.ends_with(end) && check.mark != Mark::Good
        };
        assert!(without.iter().any(|check| is_named(&check)), "{name}: {without:?}");
        assert!(!with.iter().any(|check| is_named(&check)), "{name}: {with:?}");
    }
}
