//! Previews for users: a line for each resource, round after round.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use base64::Engine as _;
use function_paved_road::apis::APIS;
use serde_json::Value;
use support::{assert_golden, example, paved};

/// The examples for each claims API and namespaced API: `gpu-workspace/claim.yaml`,
/// `gpu-workspace/namespaced/xr.yaml`, …
fn applied() -> impl Iterator<Item = String> {
    let both = |api: &str| [format!("{api}/claim.yaml"), format!("{api}/namespaced/xr.yaml")];
    APIS.iter().flat_map(move |api| both(api.info().name))
}

/// `gpu-workspace-namespaced`
fn name(example: &str) -> String {
    let (folder, _) = example.rsplit_once('/').unwrap();
    folder.replace('/', "-")
}

#[test]
fn a_preview_has_a_line_per_resource() {
    for file in applied() {
        assert_golden(
            &format!("tree-{}", name(&file)),
            &paved(&["preview", &example(&file), "-o", "tree"]).told(),
        );
    }
}

#[test]
fn existing_resources_differ_from_waiting_and_failed() {
    for state in ["half-way", "ready", "failing"] {
        for api in APIS.iter().map(|api| api.info().name) {
            let (claim, observed) = (
                example(&format!("{api}/claim.yaml")),
                example(&format!("{api}/observed/{state}.yaml")),
            );
            assert!(
                std::path::Path::new(&observed).exists(),
                "the example for the state {state} is missing: {observed}"
            );
            let run = paved(&["preview", &claim, "--observed", &observed, "-o", "tree"]);
            assert_golden(&format!("tree-{api}-{state}"), &run.told());
        }
    }
}

/// Variants with their own Settings are skipped, because the Composition's Settings do not fit
/// them.
#[test]
fn every_variant_becomes_ready_in_rounds() {
    let mut previewed = 0;
    for folder in APIS
        .iter()
        .flat_map(|api| ["", "/namespaced"].map(|flavour| format!("{}{flavour}", api.info().name)))
    {
        let Ok(variants) = std::fs::read_dir(example(&format!("{folder}/variants"))) else {
            continue;
        };
        let composition = example(&format!("{folder}/composition.yaml"));
        for variant in variants.map(|entry| entry.unwrap().path()) {
            let file = variant.to_str().unwrap();
            if std::fs::read_to_string(file).unwrap().contains("kind: Settings") {
                continue;
            }
            let run = paved(&[
                "preview",
                file,
                "--composition",
                &composition,
                "--until-ready",
                "-o",
                "tree",
            ]);
            assert_eq!(run.code, 0, "{file}: {}", run.told());
            previewed += 1;
        }
    }
    assert!(previewed >= 8, "too few variants were previewed: {previewed}");
}

#[test]
fn every_example_becomes_ready_in_rounds() {
    for file in applied() {
        let run = paved(&["preview", &example(&file), "--until-ready"]);
        assert_golden(
            &format!("rounds-{}", name(&file)),
            &format!("{}--- exit code {}\n", run.err, run.code),
        );
        let composite = &run.documents()[0];
        assert_eq!(composite["status"]["phase"], "Ready", "{file}");
    }
}

#[test]
fn tree_output_shows_a_tree_for_each_round() {
    let run =
        paved(&["preview", &example("gpu-workspace/claim.yaml"), "--until-ready", "-o", "tree"]);
    assert_eq!((run.code, run.err.lines().count()), (0, 1), "{}", run.err);
    assert!(run.err.contains("ami-0123456789abcdef0, a placeholder"), "{}", run.err);
    assert!(run.out.starts_with("round 1\nGpuDevWorkspace ada-"), "{}", run.out);
    let last = run.out.split("round ").last().unwrap();
    assert!(last.contains("Ready 8/8") && last.contains("connection: ssh developer@"), "{last}");
}

#[test]
fn failing_environment_shows_its_cause() {
    let fail = "instance=VcpuLimitExceeded: no GPUs left";
    let run =
        paved(&["preview", &example("gpu-workspace/claim.yaml"), "--until-ready", "--fail", fail]);
    assert_golden("rounds-failing", &run.told());
}

#[test]
fn unreachable_chart_repository_fails_a_preview_with_its_host() {
    let fail = "argocd=Get \"https://charts.exmaple.org/index.yaml\": dial tcp: lookup \
                charts.exmaple.org on 10.96.0.10:53: no such host";
    let claim = example("virtual-environment/claim.yaml");
    for output in ["yaml", "tree"] {
        let run = paved(&["preview", &claim, "--until-ready", "--fail", fail, "-o", output]);
        assert_eq!(run.code, 4, "{}", run.err);
        let printed = run.told();
        for part in ["charts.exmaple.org cannot be reached", "Check the spelling", "no such host"] {
            assert!(printed.contains(part), "{part} is missing: {printed}");
        }
        assert!(!printed.contains("Helm failed"), "{printed}");
    }
}

#[test]
fn a_tree_never_shows_a_secret() {
    for observed in [None, Some("application-environment/observed/ready.yaml")] {
        let claim = example("application-environment/claim.yaml");
        let mut args = vec!["preview".to_owned(), claim];
        args.extend(observed.map(|file| format!("--observed={}", example(file))));
        args.push("--until-ready".to_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let tree = paved(&[args.as_slice(), &["-o", "tree"]].concat());
        assert_eq!(tree.code, 0);
        let secrets = secrets(observed);
        assert_eq!(secrets.is_empty(), observed.is_none());
        for secret in secrets {
            assert!(!tree.out.contains(&secret), "{secret} is in {}", tree.out);
        }
        for word in ["BEGIN CERTIFICATE", "kubeconfig", "password:"] {
            assert!(!tree.out.contains(word), "{word} is in {}", tree.out);
        }
    }
}

/// The secret values in an observed state. Addresses and names are not secret, because the status
/// shows them.
fn secrets(observed: Option<&str>) -> Vec<String> {
    let Some(observed) = observed else { return Vec::new() };
    let text = std::fs::read_to_string(example(observed)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let data = documents
        .iter()
        .filter(|document| document["kind"] == "Secret")
        .filter_map(|secret| secret["data"].as_object());
    let secret = data
        .flatten()
        .filter(|(key, _)| key.to_lowercase().contains("password") || *key == "kubeconfig");
    let decode = |value: &Value| {
        base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap()
    };
    secret.map(|(_, value)| String::from_utf8(decode(value)).unwrap()).collect()
}
