//! The crates of the workspace depend on each other in one direction. Dev-dependencies are free.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use serde_json::Value;
use xtask::workspace;

/// A crate, and our crates that it may depend on.
const EDGES: [(&str, &[&str]); 11] = [
    ("crossplane", &[]),
    ("fake-kube", &["crossplane", "k8s-schema"]),
    ("http-server", &[]),
    ("k8s-schema", &["crossplane"]),
    ("function-paved-road", &["crossplane", "http-server", "k8s-schema"]),
    ("simulator", &["crossplane", "function-paved-road", "k8s-schema"]),
    ("paved-client", &["crossplane", "function-paved-road"]),
    ("paved-controller", &["crossplane", "function-paved-road", "http-server", "paved-client"]),
    ("paved-render", &["crossplane", "function-paved-road", "k8s-schema", "simulator"]),
    (
        "paved-portal",
        &["crossplane", "function-paved-road", "k8s-schema", "paved-client", "paved-render"],
    ),
    (
        "paved",
        &[
            "crossplane",
            "function-paved-road",
            "k8s-schema",
            "paved-client",
            "paved-controller",
            "paved-portal",
            "paved-render",
            "simulator",
        ],
    ),
];

/// Programs for developers. They may depend on all crates. No other crate may depend on them, or on
/// test equipment like fake-kube.
const PROGRAMS: [&str; 3] = ["demo", "e2e", "xtask"];

/// Crates for flags and terminals.
const TERMINAL: [&str; 6] =
    ["anstream", "anstyle", "annotate-snippets", "clap", "console", "indicatif"];

fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace::root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn client_and_previews_need_no_terminal() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    for name in ["paved-client", "paved-render"] {
        let package = packages.iter().find(|one| one["name"] == name).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let names: Vec<&str> = dependencies.map(|one| one["name"].as_str().unwrap()).collect();
        let terminal: Vec<&&str> = names.iter().filter(|one| TERMINAL.contains(one)).collect();
        assert!(names.len() > 5 && terminal.is_empty(), "{name}: {terminal:?}");
    }
}

#[test]
fn crates_depend_in_one_direction() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed = EDGES.iter().find(|(from, _)| *from == name).map(|(_, allowed)| *allowed);
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|one| one["path"].is_string() && one["kind"] != "dev");
        for dependency in ours.map(|one| one["name"].as_str().unwrap()) {
            let is_allowed = match allowed {
                Some(allowed) => allowed.contains(&dependency),
                None => PROGRAMS.contains(&name),
            };
            if !is_allowed {
                wrong.push(format!("{name} -> {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    let names: Vec<&Value> =
        metadata["packages"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let missing: Vec<&str> = EDGES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !names.contains(&&Value::from(*name)))
        .collect();
    assert!(missing.is_empty(), "no such crate: {missing:?}");
}
