//! The crates of the workspace depend on each other in one direction. Dev-dependencies are free.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use serde_json::Value;
use xtask::workspace;

/// A crate, and the crates of ours that it may depend on. A crate that is not listed may depend on all of them.
const EDGES: [(&str, &[&str]); 5] = [
    ("crossplane", &[]),
    ("fake-kube", &["crossplane", "k8s-schema"]),
    ("k8s-schema", &["crossplane"]),
    ("function-paved-road", &["crossplane", "k8s-schema"]),
    ("simulator", &["crossplane", "function-paved-road"]),
];

/// Developers' programs and test equipment. Only [`PROGRAMS`] may depend on them.
const TOOLS: [&str; 4] = ["demo", "e2e", "fake-kube", "xtask"];

/// Developers' programs. They may depend on all crates.
const PROGRAMS: [&str; 3] = ["demo", "e2e", "xtask"];

#[test]
fn crates_depend_in_one_direction() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace::root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed = EDGES.iter().find(|(from, _)| *from == name).map(|(_, allowed)| *allowed);
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|one| one["path"].is_string() && one["kind"] != "dev");
        for dependency in ours.map(|one| one["name"].as_str().unwrap()) {
            let is_allowed = match allowed {
                Some(allowed) => allowed.contains(&dependency),
                None => PROGRAMS.contains(&name) || !TOOLS.contains(&dependency),
            };
            if !is_allowed {
                wrong.push(format!("{name} -> {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    let names: Vec<&Value> =
        metadata["packages"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let missing: Vec<&str> =
        EDGES.iter().map(|(name, _)| *name).filter(|name| !names.contains(&&Value::from(*name))).collect();
    assert!(missing.is_empty(), "no such crate: {missing:?}");
}
