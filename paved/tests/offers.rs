//! `paved offers` lists the values of fields, and `paved init` takes them by number.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use support::{assert_golden, example, folder, paved, paved_with, within};

/// Settings with two regions, two machine types and an own price.
const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
gpuWorkspace:
  instanceTypes: [g5.xlarge, p3.2xlarge]
  amis:
    eu-west-1: {default: ami-0123456789abcdef0}
    us-east-1: {default: ami-0123456789abcdef0}
pricing:
  overrides: [{type: p3.2xlarge, usdPerHour: \"2.5\"}]
";

#[test]
fn settings_decide_on_the_table() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    let run = paved(&["offers", "gpu-workspace", "--settings", &settings]);
    assert_golden("offers", &run.told());
    let run = paved(&["offers", "--settings", &settings, "-o", "json"]);
    let all: Value = serde_json::from_str(&run.out).unwrap();
    let workspaces = &all[0]["offers"];
    assert_eq!(workspaces[0]["values"][1]["value"], "p3.2xlarge");
    assert_eq!(workspaces[0]["values"][1]["hourlyUSD"], "2.500");
    assert_eq!(workspaces[1]["values"][0]["value"], "us-east-1");
}

#[test]
fn composition_has_settings_too() {
    let composition = example("virtual-environment/composition.yaml");
    let run = paved(&["offers", "environment", "--composition", &composition, "--field", "type"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("3  eks       0.100  Amazon EKS in eu-west-1"), "{}", run.out);
    assert!(!run.out.contains("spec.parameters.size"), "{}", run.out);
}

#[test]
fn unknown_field_and_kind_are_rejected_with_the_nearest() {
    let folder =
        folder(&[("settings.yaml", SETTINGS), ("wrong.yaml", &SETTINGS.replace("2.5", "x"))]);
    let file = |name: &str| within(&folder, name);
    for (args, told) in [
        (vec!["offers", "gpu-worksapce", "--settings", &file("settings.yaml")], "did you mean"),
        (
            vec![
                "offers",
                "gpu-workspace",
                "--settings",
                &file("settings.yaml"),
                "--field",
                "regio",
            ],
            "--field: found \"regio\"; allowed: spec.parameters.instanceType, ",
        ),
        (vec!["offers", "--settings", &file("wrong.yaml")], "the Settings are invalid"),
        (vec!["offers", "--settings", "none.yaml"], "none.yaml"),
    ] {
        let run = paved(&args);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(told), "{args:?}: {}", run.err);
    }
}

/// A claim with these values of parameters.
fn claim(region: &str, machine: &str) -> String {
    format!(
        "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\n\
         metadata: {{name: ada, namespace: team}}\n\
         spec:\n  parameters: {{owner: ada, region: {region}, instanceType: {machine}}}\n"
    )
}

#[test]
fn value_outside_the_offer_has_one_message_at_its_field() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    for (region, machine, message) in [
        (
            "us-esat-1",
            "g5.xlarge",
            "spec.parameters.region: found \"us-esat-1\"; allowed: us-east-1, eu-west-1 (nearest: us-east-1)",
        ),
        (
            "mars_north",
            "g5.xlarge",
            "spec.parameters.region: found \"mars_north\"; allowed: us-east-1, eu-west-1",
        ),
        (
            "eu-west-1",
            "p5.48xlarge",
            "spec.parameters.instanceType: found \"p5.48xlarge\"; allowed: g5.xlarge, p3.2xlarge \
             (nearest: g5.xlarge)",
        ),
    ] {
        let run = paved_with(&["validate", "-", "--settings", &settings], claim(region, machine));
        let errors: Vec<&str> =
            run.err.lines().filter(|line| line.starts_with("error: spec")).collect();
        assert_eq!(errors, [format!("error: {message}")], "{}", run.err);
        assert!(run.err.contains(":5:"), "{}", run.err);
    }
}

#[test]
fn region_is_free_without_settings() {
    let run = paved_with(&["validate", "-"], claim("eu-west-3", "g4dn.xlarge"));
    assert_eq!(run.code, 0, "{}", run.err);
}
