//! The output of `paved preview` for a pipe, and the sources of Settings and observed resources.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{example, folder, paved, paved_with, within};

const CLAIM: &str = "gpu-workspace/claim.yaml";

fn claim() -> String {
    std::fs::read_to_string(example(CLAIM)).unwrap()
}

/// The image of the machine, which comes from Settings.
fn image(documents: &[Value]) -> &Value {
    let machine = documents.iter().find(|document| document["kind"] == "Instance").unwrap();
    &machine["spec"]["forProvider"]["ami"]
}

fn settings(image: &str) -> String {
    json!({
        "apiVersion": "paved-road.fn.crossplane.io/v1beta1", "kind": "Settings",
        "gpuWorkspace": {"amis": {"us-east-1": {"default": image}}},
    })
    .to_string()
}

fn config(name: &str, image: &str) -> String {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "metadata": {"name": name}, "data": {"gpuWorkspace": {"amis": {"us-east-1": {"default": image}}}},
    })
    .to_string()
}

#[test]
fn a_pipe_gets_the_composite_then_its_resources_by_slot() {
    let run = paved(&["preview", &example(CLAIM)]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.lines().all(|line| line.contains("is ami-0123456789abcdef0, a placeholder")),
        "{}",
        run.err
    );
    let documents = run.documents();
    assert_eq!(documents[0]["kind"], "GpuDevWorkspace");
    assert_eq!(documents[0]["spec"]["parameters"]["diskGB"], 100);
    assert_eq!(documents[0]["spec"]["claimRef"]["name"], "ada");
    let slot = |document: &Value| {
        document["metadata"]["annotations"]["crossplane.io/composition-resource-name"].clone()
    };
    let slots: Vec<String> = documents
        .iter()
        .filter_map(|document| slot(document).as_str().map(str::to_owned))
        .collect();
    assert!(slots.is_sorted() && slots.contains(&"instance".to_owned()), "{slots:?}");
    let owner = &documents[1]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("GpuDevWorkspace"), &json!(true)));
    assert!(documents.iter().all(|document| document["kind"] != "Result"), "clusters reject it");
}

#[test]
fn included_function_results_come_last() {
    let documents = paved(&["preview", &example(CLAIM), "--include-function-results"]).documents();
    assert_eq!(documents.last().unwrap()["kind"], "Result");
}

#[test]
fn json_is_one_list_of_the_same_documents() {
    let yaml = paved(&["preview", &example(CLAIM), "-o", "yaml"]).documents();
    let list: Value =
        serde_json::from_str(&paved(&["preview", &example(CLAIM), "-o", "json"]).out).unwrap();
    assert_eq!(list["kind"], "List");
    // The function's status contains times.
    assert_eq!(list["items"].as_array().unwrap()[1..], yaml[1..]);
}

#[test]
fn a_public_key_stays_on_one_line() {
    let out = paved(&["preview", &example(CLAIM)]).out;
    assert!(out.contains(
        "    - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop\n"
    ));
    assert!(out.contains("userData: |"), "user data is a block");
}

#[test]
fn the_same_claim_has_the_same_names_each_time() {
    let names = || -> Vec<Value> {
        let documents = paved(&["preview", &example(CLAIM)]).documents();
        documents.iter().map(|document| document["metadata"]["name"].clone()).collect()
    };
    assert_eq!(names(), names());
}

#[test]
fn settings_come_from_the_composition_beside_the_file() {
    let folder = folder(&[("claim.yaml", &claim())]);
    std::fs::copy(
        example("gpu-workspace/composition.yaml"),
        folder.path().join("composition.yaml"),
    )
    .unwrap();
    let run = paved(&["preview", &within(&folder, "claim.yaml")]);
    assert_eq!(*image(&run.documents()), "ami-0123456789abcdef0");
}

#[test]
fn named_composition_overrides_the_composition_beside_the_file() {
    let text = std::fs::read_to_string(example("gpu-workspace/composition.yaml")).unwrap();
    let folder =
        folder(&[("mine.yaml", &text.replace("ami-0123456789abcdef0", "ami-00000000000000001"))]);
    let run = paved(&["preview", &example(CLAIM), "--composition", &within(&folder, "mine.yaml")]);
    assert_eq!(*image(&run.documents()), "ami-00000000000000001");
}

#[test]
fn named_settings_override_other_settings() {
    let folder = folder(&[("settings.yaml", &settings("ami-00000000000000002"))]);
    let run = paved(&["preview", &example(CLAIM), "--settings", &within(&folder, "settings.yaml")]);
    assert_eq!(*image(&run.documents()), "ami-00000000000000002");
}

#[test]
fn an_environment_config_answers_the_built_in_composition() {
    let folder = folder(&[("config.yaml", &config("paved-road", "ami-00000000000000003"))]);
    let run = paved_with(&["preview", "-", "--settings", &within(&folder, "config.yaml")], claim());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(*image(&run.documents()), "ami-00000000000000003");
}

#[test]
fn unused_environment_config_is_rejected() {
    let folder = folder(&[("config.yaml", &config("other", "ami-00000000000000003"))]);
    let composition = example("gpu-workspace/composition.yaml");
    let run = paved(&[
        "preview",
        &example(CLAIM),
        "--settings",
        &within(&folder, "config.yaml"),
        "--composition",
        &composition,
    ]);
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains(
            "has EnvironmentConfig other; examples/gpu-workspace/composition.yaml uses no \
             EnvironmentConfig"
        ),
        "{}",
        run.err
    );
}

#[test]
fn missing_settings_are_named_by_the_function() {
    let run = paved_with(&["preview", "-"], claim());
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    assert!(
        run.err.contains(
            "warning: standard input: GpuDevWorkspaceClaim ada: EnvironmentConfig paved-road was not found"
        ),
        "{}",
        run.err
    );
    assert!(run.err.contains("settings.gpuWorkspace.amis.us-east-1"), "{}", run.err);
}

#[test]
fn folder_gives_only_its_claims_and_composites() {
    let run = paved(&["preview", &example("gpu-workspace")]);
    let documents = run.documents();
    let composites: Vec<&Value> = documents
        .iter()
        .filter(|document| document["kind"] == "GpuDevWorkspace")
        .map(|document| &document["metadata"]["name"])
        .collect();
    assert_eq!((run.code, composites.len()), (0, 2));
    assert_eq!(*composites[1], "ada-x7k2p");
}

#[test]
fn several_documents_and_files_are_previewed_in_order() {
    let two = format!("{}\n---\n{}", claim(), claim().replace("name: ada\n", "name: bob\n"));
    let folder =
        folder(&[("settings.yaml", &settings("ami-00000000000000004")), ("two.yaml", &two)]);
    let files = [within(&folder, "two.yaml"), example("gpu-workspace/namespaced/xr.yaml")];
    let run =
        paved(&["preview", &files[0], &files[1], "--settings", &within(&folder, "settings.yaml")]);
    let names: Vec<String> = run
        .documents()
        .iter()
        .filter(|document| document["kind"] == "GpuDevWorkspace")
        .map(|document| document["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        names[0].starts_with("ada-") && names[1].starts_with("bob-") && names[2] == "ada",
        "{names:?}"
    );
}

#[test]
fn observed_resource_keeps_its_names_and_its_password() {
    let args = [
        example("application-environment/claim.yaml"),
        example("application-environment/observed/ready.yaml"),
    ];
    let run = paved(&["preview", &args[0], "--observed", &args[1]]);
    assert_eq!(run.code, 0, "{}", run.err);
    let documents = run.documents();
    assert_eq!(documents[0]["metadata"]["name"], "shop-q4m8d");
    assert_eq!(documents[0]["status"]["phase"], "Ready");
}

#[test]
fn completions_are_printed_for_a_shell() {
    let run = paved(&["completions", "bash"]);
    assert_eq!(run.code, 0);
    assert!(run.out.contains("--until-ready"));
}
