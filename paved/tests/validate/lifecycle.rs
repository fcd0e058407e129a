//! Wrong fields of the lifecycle: one error each, with the field, the found and the allowed value.

use serde_json::{Value, json};

use crate::support::{example, folder, paved, within};

/// The allowed durations.
const SPAN: &str = "allowed: a whole number with a unit (s, m, h, d or w), for example 30m, 8h or \
                    14d, or never";

/// The allowed power.
const POWER: &str = "allowed: \"Running\", \"Stopped\"";

/// A line of YAML, its field, the found value, and the allowed ones.
const WRONG: [(&str, &str, &str, &str); 11] = [
    ("ttl: 8", "spec.lifecycle.ttl", "8", SPAN),
    ("ttl: -1h", "spec.lifecycle.ttl", "\"-1h\"", SPAN),
    ("ttl: 0s", "spec.lifecycle.ttl", "\"0s\"", SPAN),
    ("ttl: 15d", "spec.lifecycle.ttl", "\"15d\"", "allowed: at most 14d, the maximum in Settings"),
    (
        "ttl: never",
        "spec.lifecycle.ttl",
        "\"never\"",
        "allowed: at most 14d, the maximum in Settings",
    ),
    ("keepStoppedFor: 7", "spec.lifecycle.keepStoppedFor", "7", SPAN),
    ("ttl: off", "spec.lifecycle.ttl", "off", SPAN),
    ("keepStoppedFor: off", "spec.lifecycle.keepStoppedFor", "off", SPAN),
    ("onExpiry: Keep", "spec.lifecycle.onExpiry", "\"Keep\"", "allowed: \"Stop\", \"Delete\""),
    ("power: on", "spec.lifecycle.power", "on", POWER),
    ("power: off", "spec.lifecycle.power", "off", POWER),
];

/// The folder of each example, and its section in Settings.
const EXAMPLES: [(&str, &str); 5] = [
    ("application-environment", "applicationEnvironment"),
    ("gpu-workspace", "gpuWorkspace"),
    ("stock-pool", "stockPool"),
    ("unified-environment", "unifiedEnvironment"),
    VIRTUAL,
];

const VIRTUAL: (&str, &str) = ("virtual-environment", "environment");

/// The Settings of an example's Composition, with a maximum that forbids an environment without an
/// end, and without a schema revision.
fn settings(api: &str, section: &str) -> String {
    let composition = std::fs::read_to_string(example(&format!("{api}/composition.yaml"))).unwrap();
    let composition: Value = serde_saphyr::from_str(&composition).unwrap();
    let mut settings = composition["spec"]["pipeline"][0]["input"].clone();
    settings[section]["lifecycle"] = json!({"maximum": "14d"});
    settings.as_object_mut().unwrap().remove("schemaRevision");
    settings.to_string()
}

/// The errors that a command prints for a claim with this lifecycle.
fn errors(command: &str, (api, section): (&str, &str), lifecycle: &str) -> (u8, String) {
    let claim = std::fs::read_to_string(example(&format!("{api}/claim.yaml"))).unwrap();
    let claim = claim.replacen("\nspec:\n", &format!("\nspec:\n  lifecycle: {{{lifecycle}}}\n"), 1);
    let folder = folder(&[("claim.yaml", &claim), ("settings.yaml", &settings(api, section))]);
    let (claim, settings) = (within(&folder, "claim.yaml"), within(&folder, "settings.yaml"));
    let run = paved(&[command, &claim, "--settings", &settings]);
    (run.code, format!("{}{}", run.out, run.err))
}

#[test]
fn wrong_field_of_the_lifecycle_is_one_error_in_each_command() {
    for api in EXAMPLES {
        for (line, field, found, allowed) in WRONG {
            for command in ["validate", "preview"] {
                let (code, told) = errors(command, api, line);
                assert!(code == 2 || code == 3, "{command} {api:?} {line}: {code} {told}");
                let lines: Vec<&str> =
                    told.lines().filter(|line| line.contains("spec.lifecycle")).collect();
                let [error] = lines.as_slice() else { panic!("{command} {api:?} {line}: {told}") };
                for words in [field, &format!("found {found}; "), allowed] {
                    assert!(error.contains(words), "{command} {api:?}: {words}: {told}");
                }
                let is_boolean = ["on", "off"].contains(&found);
                assert_eq!(error.contains("YAML reads on, off"), is_boolean, "{error}");
            }
        }
    }
}

#[test]
fn wrong_duration_in_settings_is_reported_in_words() {
    for (value, found) in [("8", "8"), ("off", "off"), ("-1h", "\"-1h\""), ("1x", "\"1x\"")] {
        let settings = format!(
            "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\n\
             gpuWorkspace: {{lifecycle: {{ttl: {value}, maximum: {value}}}}}\n"
        );
        let folder = folder(&[("settings.yaml", &settings)]);
        let run = paved(&["validate", &within(&folder, "settings.yaml")]);
        assert_eq!(run.code, 3, "{value}: {}", run.told());
        for field in ["ttl", "maximum"] {
            let words = format!("gpuWorkspace.lifecycle.{field}: found {found}; {SPAN}");
            assert!(run.err.contains(&words), "{words}: {}", run.err);
        }
    }
}

#[test]
fn stop_of_a_virtual_cluster_is_rejected_with_the_reason() {
    for command in ["validate", "preview"] {
        let (code, told) = errors(command, VIRTUAL, "power: Stopped, ttl: 8h");
        assert_eq!(code, 3, "{told}");
        let reason = "spec.lifecycle.power: found \"Stopped\"; allowed: Running, because a virtual \
                      cluster cannot be stopped";
        assert!(told.contains(reason), "{command}: {told}");
    }
}

/// The output of a command for a GPU workspace with this lifecycle, under a Composition of an older
/// schema revision.
fn under_revision(revision: &str, lifecycle: &str, command: &[&str]) -> (u8, String) {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let claim = claim.replacen("\nspec:\n", &format!("\nspec:\n  lifecycle: {{{lifecycle}}}\n"), 1);
    let composition = std::fs::read_to_string(example("gpu-workspace/composition.yaml")).unwrap();
    let composition = composition.replacen("      schemaRevision: 3\n", revision, 1);
    let folder = folder(&[("claim.yaml", &claim), ("own.yaml", &composition)]);
    let (claim, own) = (within(&folder, "claim.yaml"), within(&folder, "own.yaml"));
    let run = paved(&[command, &[&claim, "--composition", &own]].concat());
    (run.code, format!("{}{}", run.out, run.err).replace('\n', " "))
}

#[test]
fn lifecycle_that_the_composition_cannot_carry_is_reported_by_each_command() {
    for revision in ["", "      schemaRevision: 1\n", "      schemaRevision: 2\n"] {
        let (code, told) = under_revision(revision, "ttl: 8h, onExpiry: Delete", &["validate"]);
        assert_ne!(code, 0, "{told}");
        for field in ["spec.lifecycle.ttl", "spec.lifecycle.onExpiry"] {
            let words = format!("{field}: has no effect, because");
            assert!(told.contains(&words), "{revision} {field}: {told}");
        }
        assert!(told.contains("Set spec.pipeline[].input.schemaRevision to 3"), "{told}");
        let (code, told) = under_revision(revision, "ttl: 8h", &["preview", "-o", "tree"]);
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("warning: spec.lifecycle.ttl: has no effect"), "{told}");
    }
    let newest = "      schemaRevision: 3\n";
    let (code, told) = under_revision(newest, "ttl: 8h, onExpiry: Delete", &["validate"]);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn field_without_effect_and_request_in_a_file_are_warnings() {
    for (lifecycle, field) in [
        ("keepStoppedFor: 7d", "spec.lifecycle.keepStoppedFor"),
        ("onExpiry: Delete", "spec.lifecycle.onExpiry"),
        ("ttl: never, onExpiry: Stop", "spec.lifecycle.onExpiry"),
    ] {
        let newest = "      schemaRevision: 3\n";
        for command in [&["validate"][..], &["preview", "-o", "tree"][..]] {
            let (code, told) = under_revision(newest, lifecycle, command);
            assert_eq!(code, 0, "{told}");
            assert!(told.contains(&format!("{field}: found")), "{lifecycle}: {told}");
            assert!(told.contains("warning"), "{lifecycle}: {told}");
        }
    }
    let claim = std::fs::read_to_string(example("stock-pool/claim.yaml")).unwrap();
    let request = "\nmetadata:\n  annotations: {paved-road.fn.crossplane.io/stopped-at: x}\n";
    let claim = claim.replacen("\nmetadata:\n", request, 1);
    let folder = folder(&[("claim.yaml", &claim)]);
    let run = paved(&["validate", &within(&folder, "claim.yaml")]);
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains("paved-road.fn.crossplane.io/stopped-at"), "{}", run.told());
}

#[test]
fn settings_with_a_deletion_and_a_retention_are_rejected() {
    let body = |lifecycle: &str| {
        format!(
            "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\n\
             unifiedEnvironment: {{lifecycle: {{{lifecycle}}}}}\n"
        )
    };
    let validate = |lifecycle: &str| {
        let folder = folder(&[("settings.yaml", &body(lifecycle))]);
        paved(&["validate", &within(&folder, "settings.yaml")])
    };
    let run = validate("ttl: 8h, onExpiry: Delete, keepStoppedFor: 30d");
    assert_eq!(run.code, 3, "{}", run.told());
    assert!(run.err.contains("allowed: Stop, or no keepStoppedFor"), "{}", run.told());
    let run = validate("keepStoppedFor: 30d");
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains("unifiedEnvironment.lifecycle.keepStoppedFor"), "{}", run.told());
    let folder = folder(&[(
        "settings.yaml",
        "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\nminimumSchemaRevision: 99\n",
    )]);
    let run = paved(&["validate", &within(&folder, "settings.yaml")]);
    assert_eq!(run.code, 3, "{}", run.told());
    assert!(run.err.contains("found 99; allowed: 1 to 3"), "{}", run.told());
}
