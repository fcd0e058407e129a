#!/usr/bin/env bash
# kube-cel 0.8.0 (crates.io) evaluates ValidatingAdmissionPolicies in Rust. Its VapEvaluator escapes
# the keys of labels and annotations as if they were names of fields. So
# `'example.org/team' in object.metadata.labels` is false for an object with this label, and
# `'example__dot__org__slash__team' in object.metadata.labels` is true. Kubernetes escapes only names
# of declared fields, never the keys of maps (kubernetes.io, "Common Expression Language in
# Kubernetes", section "Escaping"). A policy that rejects a label passes a test with this crate,
# although an API server rejects the object.
#
# Needs cargo. Installs the pinned crate in a temporary folder. Fails if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src"
cat >"$folder/Cargo.toml" <<'TOML'
[package]
name = "label-keys"
version = "0.1.0"
edition = "2024"

[dependencies]
kube-cel = { version = "=0.8.0", features = ["validation"] }
serde_json = "1"
TOML
cat >"$folder/src/main.rs" <<'RUST'
use kube_cel::{VapEvaluator, VapExpression};

fn main() {
    let object = serde_json::json!({"metadata": {"labels": {"example.org/team": "vision"}}});
    let evaluator = VapEvaluator::builder().object(object).build();
    for key in ["example.org/team", "example__dot__org__slash__team"] {
        let expression = format!("'{key}' in object.metadata.labels");
        let rule = VapExpression { expression, message: None, message_expression: None };
        println!("{key}: {}", evaluator.evaluate(&[rule])[0].passed);
    }
}
RUST
seen=$(cd "$folder" && cargo run --quiet)
expected='example.org/team: false
example__dot__org__slash__team: true'
echo "$seen"
[[ $seen == "$expected" ]] || { echo 'kube-cel behaves differently now' >&2; exit 1; }
