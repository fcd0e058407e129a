//! An observed resource is identified by group, kind, namespace and name, never by its name alone.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{example, folder, paved, within};

const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
gpuWorkspace:
  amis: {us-east-1: {default: ami-0123456789abcdef0}}
";

/// A file of `tests/inputs`.
fn input(name: &str) -> String {
    format!("{}/tests/inputs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Previews a file with observed resources. Returns the namespace and name of each security group,
/// and standard error.
fn groups(file: &str, observed: &str) -> (Vec<(String, String)>, String) {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    let run = paved(&["preview", file, "--observed", observed, "--settings", &settings]);
    assert_eq!(run.code, 0, "{}", run.err);
    let documents = run.documents();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let groups =
        documents.iter().filter(|document| document["kind"] == "SecurityGroup").map(|group| {
            let labels = &group["metadata"]["labels"];
            let namespace = &labels["crossplane.io/claim-namespace"];
            let namespace =
                if namespace.is_null() { &group["metadata"]["namespace"] } else { namespace };
            (text(namespace), text(&group["metadata"]["name"]))
        });
    (groups.collect(), run.err)
}

#[test]
fn claims_of_one_name_have_their_own_resources() {
    let (groups, err) = groups(&input("same-name.yaml"), &input("same-name-observed.yaml"));
    let expected = [
        ("team-vision", "dev-x7k2p-security-group-5f0c9"),
        ("team-audio", "dev-k9m3q-security-group-5f0c9"),
    ];
    assert_eq!(groups, expected.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())));
    assert!(err.contains("StockPool dev: no observed resources"), "{err}");
}

#[test]
fn resources_of_another_team_are_reported() {
    let observed = std::fs::read_to_string(input("same-name-observed.yaml")).unwrap();
    let claims = std::fs::read_to_string(input("same-name.yaml")).unwrap();
    let audio = claims.split("---\n").nth(1).unwrap();
    let vision = observed.split("---\n").next().unwrap();
    let folder = folder(&[("claim.yaml", audio), ("observed.yaml", vision)]);
    let (groups, err) = groups(&within(&folder, "claim.yaml"), &within(&folder, "observed.yaml"));
    assert_ne!(groups[0].1, "dev-x7k2p-security-group-5f0c9");
    for told in [
        "GpuDevWorkspaceClaim dev: no observed resources",
        "not part of these environments: ",
        "observed.yaml: SecurityGroup dev-x7k2p-security-group-5f0c9",
    ] {
        assert!(err.contains(told), "{told}: {err}");
    }
}

#[test]
fn composites_of_one_name_have_their_own_resources() {
    let (groups, err) =
        groups(&input("same-name-namespaced.yaml"), &input("same-name-namespaced-observed.yaml"));
    assert_eq!(groups[0], ("team-vision".to_owned(), "dev-security-group-5f0c9".to_owned()));
    assert_eq!(groups[1].0, "team-audio");
    assert_ne!(groups[1].1, "dev-security-group-5f0c9");
    assert_eq!(err.matches("no observed resources").count(), 1, "{err}");
}

#[test]
fn a_controller_of_another_kind_or_group_owns_its_resources() {
    let observed = std::fs::read_to_string(input("same-name-namespaced-observed.yaml")).unwrap();
    let xrs = std::fs::read_to_string(input("same-name-namespaced.yaml")).unwrap();
    let xr = xrs.split("---\n").next().unwrap();
    let owned = |api_version: &str, kind: &str| {
        let mut group: Value = serde_saphyr::from_str(&observed).unwrap();
        group["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind, "name": "dev",
            "uid": "5d4c2b1a-0000-4000-8000-000000000000", "controller": true}]);
        let folder = folder(&[("xr.yaml", xr), ("observed.yaml", &group.to_string())]);
        groups(&within(&folder, "xr.yaml"), &within(&folder, "observed.yaml")).0.remove(0).1
    };
    assert_eq!(owned("platform.m.acme.io/v1alpha1", "GpuDevWorkspace"), "dev-security-group-5f0c9");
    assert_ne!(
        owned("platform.example.org/v1alpha1", "GpuDevWorkspace"),
        "dev-security-group-5f0c9"
    );
    assert_ne!(owned("platform.m.acme.io/v1alpha1", "StockPool"), "dev-security-group-5f0c9");
}

#[test]
fn a_check_of_settings_compares_each_claim_with_its_own_resources() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    let args = [
        "platform",
        "--settings",
        &settings,
        "--old",
        &settings,
        "--check",
        &input("same-name.yaml"),
    ];
    let run = paved(&[&args[..], &["--observed", &input("same-name-observed.yaml")]].concat());
    assert_eq!(run.code, 0, "{}", run.told());
    assert_eq!(run.out.matches(": nothing changes\n").count(), 3, "{}", run.told());
    assert_eq!(run.err.matches("no observed resources").count(), 1, "{}", run.told());
}

#[test]
fn claim_of_another_namespace_is_not_the_stored_claim() {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let moved = claim
        .replace("namespace: team-vision", "namespace: team-audio")
        .replace("    owner:", "    region: eu-west-1\n    owner:");
    let folder = folder(&[("stored.yaml", &claim), ("new.yaml", &moved)]);
    let composition = example("gpu-workspace/composition.yaml");
    let (stored, new) = (within(&folder, "stored.yaml"), within(&folder, "new.yaml"));
    let run = paved(&["preview", &new, "--observed", &stored, "--composition", &composition]);
    // Another team's claim with another value of an immutable field does not affect this claim.
    assert!(!run.err.contains("cannot be changed"), "{}", run.err);
    assert!(run.err.contains("stored.yaml: GpuDevWorkspaceClaim ada"), "{}", run.err);
}

#[test]
fn a_cluster_scoped_composite_loses_the_namespace_of_its_file() {
    let file = "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspace\n\
                metadata: {name: a, namespace: team-vision}\nspec: {parameters: {owner: ada}}\n";
    let folder = folder(&[("xr.yaml", file), ("settings.yaml", SETTINGS)]);
    let (xr, settings) = (within(&folder, "xr.yaml"), within(&folder, "settings.yaml"));
    let run = paved(&["preview", &xr, "--settings", &settings]);
    assert_eq!(run.code, 0, "{}", run.err);
    let documents = run.documents();
    assert!(
        documents.iter().all(|document| document["metadata"]["namespace"].is_null()),
        "{}",
        run.out
    );
    let group = documents.iter().find(|document| document["kind"] == "SecurityGroup").unwrap();
    assert_eq!(group["apiVersion"], "ec2.aws.upbound.io/v1beta1");
    for run in [run, paved(&["validate", &xr, "--settings", &settings])] {
        assert!(run.err.contains("GpuDevWorkspace is cluster-scoped"), "{}", run.err);
    }
}
