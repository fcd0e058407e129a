//! The crates of the workspace depend on each other in one direction. Dev-dependencies are free.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use serde_json::Value;
use xtask::workspace;

/// A crate, and our crates that it may depend on.
const EDGES: [(&str, &[&str]); 13] = [
    ("crossplane", &[]),
    (
        "demo",
        &[
            "crossplane",
            "fake-kube",
            "function-paved-road",
            "k8s-schema",
            "paved-render",
            "simulator",
        ],
    ),
    ("fake-kube", &["crossplane", "k8s-schema"]),
    ("function-proto", &[]),
    ("http-server", &[]),
    ("k8s-schema", &["crossplane"]),
    ("function-paved-road", &["crossplane", "function-proto", "http-server", "k8s-schema"]),
    ("simulator", &["crossplane", "function-proto"]),
    ("paved-client", &["crossplane", "function-paved-road"]),
    ("paved-controller", &["crossplane", "function-paved-road", "http-server", "paved-client"]),
    (
        "paved-render",
        &["crossplane", "function-paved-road", "function-proto", "k8s-schema", "simulator"],
    ),
    (
        "paved-portal",
        &[
            "crossplane",
            "function-paved-road",
            "function-proto",
            "k8s-schema",
            "paved-client",
            "paved-render",
        ],
    ),
    (
        "paved",
        &[
            "crossplane",
            "demo",
            "function-paved-road",
            "function-proto",
            "k8s-schema",
            "paved-client",
            "paved-controller",
            "paved-portal",
            "paved-render",
            "simulator",
        ],
    ),
];

/// Programs for developers. They may depend on all crates. No other crate may depend on them. Only
/// the demo may depend on fake-kube.
const PROGRAMS: [&str; 2] = ["e2e", "xtask"];

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

/// The first command in README.md must build quickly. These crates take most of the time of the
/// whole program: clients of clusters and clouds, servers, TLS, and images. An entry that ends with a
/// hyphen stands for all names that begin with it.
const SLOW: [&str; 27] = [
    "aws-",
    "axum",
    "axum-",
    "azure",
    "azure-",
    "function-sdk-rust",
    "google-",
    "h2",
    "http-server",
    "hyper",
    "hyper-",
    "kube-client",
    "kube-runtime",
    "oci-",
    "openidconnect",
    "openssl",
    "openssl-",
    "paved-controller",
    "paved-portal",
    "reqwest",
    "ring",
    "rust-embed",
    "rustls",
    "rustls-",
    "tokio",
    "tonic",
    "tower",
];

/// The names of the crates that `cargo run` with these arguments builds.
fn built_by(arguments: &[&str]) -> Vec<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none"]);
    cargo.args(["--format", "{p}"]).args(arguments).current_dir(workspace::root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The crates among these that are slow to build.
fn slow(crates: &[String]) -> Vec<&String> {
    let is_slow = |name: &&String| {
        let matches =
            |slow: &&str| *slow == name.as_str() || slow.ends_with('-') && name.starts_with(slow);
        SLOW.iter().any(matches)
    };
    crates.iter().filter(is_slow).collect()
}

#[test]
fn first_command_builds_no_client_and_no_server() {
    let readme = std::fs::read_to_string(workspace::root().join("README.md")).unwrap();
    let command = readme.lines().find_map(|line| line.strip_prefix("cargo run ")).unwrap();
    let (arguments, of_paved) = command.split_once(" -- ").unwrap();
    assert!(of_paved.starts_with("preview examples/"), "{command}");
    let crates = built_by(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(slow(&crates), Vec::<&String>::new(), "cargo run {arguments}");
    for ours in ["function-paved-road", "paved-render", "simulator"] {
        assert!(crates.iter().any(|name| name == ours), "{ours} is missing");
    }
    // The whole program has them, so the list names crates that exist.
    let whole = built_by(&["--package", "paved"]);
    assert!(slow(&whole).len() > 15, "{:?}", slow(&whole));
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
