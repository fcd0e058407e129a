//! The files in package/observability agree with each other, and their expressions use only series
//! that we serve.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn the_operators_rules_are_the_files_rules() {
    assert_eq!(yaml("prometheus-rule.yaml")["spec"], yaml("rules.yaml"));
}

#[test]
fn every_expression_asks_for_a_series_that_exists() {
    const SERVED: [&str; 11] = [
        "paved_road_answers_total",
        "paved_road_compose_seconds_bucket",
        "paved_road_waiting_requests",
        "paved_controller_budget_usd_per_hour",
        "paved_controller_cost_usd_per_hour",
        "paved_controller_held_environments",
        "paved_controller_leader",
        "paved_controller_longest_held_seconds",
        "paved_controller_settings_missing",
        "paved_controller_notifications_total",
        // From the kubelet, not from us.
        "container_",
    ];
    const COMMON: [&str; 2] = ["grpc_server_started_total", "grpc_server_handled_total"];
    for expression in rules().into_iter().chain(panels()) {
        let words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
        let series: Vec<_> =
            words.filter(|word| word.matches('_').count() > 1 && !word.starts_with("__")).collect();
        let known = |name: &&str| {
            SERVED.iter().chain(&COMMON).any(|served| name.starts_with(served))
                || *name == "min_over_time"
        };
        assert!(!series.is_empty() && series.iter().all(known), "{expression}");
    }
}

/// Skipped if promtool is not installed. .ci/run installs it.
#[test]
fn promtool_accepts_rules_their_tests_and_the_dashboards_expressions() {
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("promtool is not installed");
        return;
    }
    promtool(&["check", "rules", "--lint=all", "--lint-fatal"], &folder().join("rules.yaml"));
    promtool(&["test", "rules"], &folder().join("rules.test.yaml"));

    let expressions = panels().into_iter().enumerate();
    let recorded: Vec<_> = expressions
        .map(|(n, expr)| json!({"record": format!("panel:{n}"), "expr": expr}))
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}", json!({"groups": [{"name": "dashboard", "rules": recorded}]})).unwrap();
    promtool(&["check", "rules"], file.path());
}

fn promtool(command: &[&str], file: &Path) {
    let output =
        Command::new("promtool").args(command).arg(file).stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
    );
}

/// The alerts' expressions.
fn rules() -> Vec<String> {
    let rules = yaml("rules.yaml")["groups"][0]["rules"].as_array().unwrap().clone();
    rules.iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect()
}

/// The dashboard's expressions, with a fixed duration instead of Grafana's variable.
fn panels() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m"))
        .collect()
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&read(name)).unwrap()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("package/observability")
}
