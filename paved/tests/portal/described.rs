//! The portal answers as its API description says. schemathesis generates valid and invalid
//! requests from the description.

use std::process::Command;

use serde_json::{Value, json};
use xtask::python::{SCHEMATHESIS, program};

use crate::world::api_server::{ApiServer, at, environment};
use crate::world::oidc::Provider;
use crate::world::portal::Portal;

/// The checks for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test]
async fn generated_requests_get_described_answers() {
    let cluster = ApiServer::start().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    cluster.put(&at("stockpools", "team-vision", "render"), environment("StockPool", "ada"));
    let mut shop = environment("ApplicationEnvironment", "ada");
    shop["spec"]["writeConnectionSecretToRef"] = json!({"name": "shop-conn"});
    cluster.put(&at("applicationenvironments", "team-vision", "shop"), shop);
    let portal = Portal::process(&cluster, "operator", &["--auth", "none"]).await;
    // A stream never ends, so the tests of streams send its requests.
    keeps_its_word(&portal, &["--exclude-path", "/api/v1/watch"]).await;
}

#[tokio::test]
async fn sign_in_and_sign_out_follow_the_description() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portal = Portal::process(&cluster, "portal", &flags).await;
    keeps_its_word(&portal, &["--include-path-regex", "^/auth/"]).await;
}

/// Sends generated requests to a portal, for the operations that the flags select.
async fn keeps_its_word(portal: &Portal, which: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let description = folder.path().join("openapi.json");
    std::fs::write(&description, strict(portal.get("", "/api/v1/openapi.json").await.json()))
        .unwrap();
    let mut command = Command::new(program(SCHEMATHESIS, "schemathesis").unwrap());
    // A fixed seed, and no memory of other runs, make every finding repeatable.
    command
        .current_dir(&folder)
        .args(["run", "--no-color", "--url", &portal.url("")])
        .arg(description);
    command.args(["--seed", "1", "--generation-deterministic"]);
    command.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        "10",
        "--workers",
        "1",
    ]);
    command.args(["--checks", CHECKS, "--continue-on-failure"]);
    // The operator has all rights. Generated tokens would all be rejected.
    command.args(["--generation-with-security-parameters", "false"]);
    command.args(["--header", "Authorization: Bearer token-operator"]);
    command.args(which);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!portal.log().contains("panicked"), "{}", portal.log());
}

/// A description without `4XX`, so that each status must be named. `4XX` covers other rejections of
/// an API server, and would allow every other status.
fn strict(mut description: Value) -> String {
    let operations = description["paths"].as_object_mut().unwrap().values_mut();
    for operation in operations.flat_map(|path| path.as_object_mut().unwrap().values_mut()) {
        if let Some(responses) = operation["responses"].as_object_mut() {
            responses.remove("4XX");
        }
    }
    description.to_string()
}
