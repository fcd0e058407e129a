//! Budgets: an environment whose price does not fit is neither created nor changed.

use serde_json::{Value, json};

use crate::world::api_server::{ApiServer, at, environment};
use crate::world::portal::Portal;

const ALL: &str = "/api/v1/environments";
const PATH: &str = "/api/v1/environments/team-vision/stockpools/render";
const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";

/// A stock pool of ada with two replicas, for 2.4 dollars. A namespace may spend 6 dollars.
async fn world() -> (ApiServer, Portal) {
    let cluster = ApiServer::start().await;
    let mut render = environment("StockPool", "ada");
    render["spec"] = json!({"specName": "g1.1", "replicas": 2});
    render["status"] = json!({"phase": "Ready", "power": "Running", "estimatedHourlyUSD": "2.400"});
    cluster.put(&at("stockpools", "team-vision", "render"), render);
    let mut foreign = environment("StockPool", "bob");
    foreign["status"] = json!({"phase": "Ready", "estimatedHourlyUSD": "50"});
    cluster.put(&at("stockpools", "team-sound", "mix"), foreign);
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let mut composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    let input = &mut composition["spec"]["pipeline"][0]["input"];
    input["schemaRevision"] = json!(3);
    input["pricing"] = json!({"overrides": [{"type": "g1.1", "usdPerHour": "1.2"}]});
    input["budget"] = json!({"defaultHourlyUSD": "6"});
    cluster.put(&format!("{COMPOSITIONS}/pools"), composition);
    let portal = Portal::alone(&cluster, "portal").await;
    (cluster, portal)
}

fn pool(name: &str, spec: &str, replicas: u32) -> Value {
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
        "metadata": {"name": name, "namespace": "team-vision"},
        "spec": {"specName": spec, "replicas": replicas}})
}

/// The message of the error for an environment of this price.
fn message(total: &str, hourly: &str, rest: &str, highest: &str) -> String {
    format!(
        "found {total} USD per hour with {hourly} for this environment; allowed: 6.000, the \
         budget of namespace team-vision. {rest} is left{highest}"
    )
}

const HIGHEST: &str = ". The highest prices: StockPool render of ada (2.400)";

#[tokio::test]
async fn environment_over_the_budget_is_not_created() {
    let (cluster, portal) = world().await;
    let too_large = pool("spare", "g1.1", 4);
    let told = message("7.200", "4.800", "3.600", HIGHEST);
    for path in [ALL.to_owned(), format!("{ALL}?dryRun=true")] {
        let refused = portal.json("POST", "ada", &path, &too_large).await;
        let problem = refused.json();
        let errors = json!([{"field": "metadata.namespace", "message": told}]);
        assert_eq!((refused.status.as_u16(), &problem["errors"]), (422, &errors), "{problem}");
        let detail = format!("StockPool spare is rejected: metadata.namespace: {told}");
        assert_eq!(problem["detail"], detail);
    }
    assert!(cluster.paths("/spare").is_empty());
    let fits = portal.json("POST", "ada", ALL, &pool("spare", "g1.1", 3)).await;
    assert_eq!(fits.status, 201, "{:?}", fits.body);
}

#[tokio::test]
async fn preview_has_price_and_error() {
    let (_cluster, portal) = world().await;
    let preview =
        async |pool: &Value| portal.json("POST", "ada", "/api/v1/preview", pool).await.json();
    let shown = preview(&pool("spare", "g1.1", 4)).await;
    assert_eq!(shown["price"]["hourlyUSD"], "4.800", "{shown}");
    assert_eq!(shown["overBudget"]["message"], message("7.200", "4.800", "3.600", HIGHEST));
    let shown = preview(&pool("spare", "g1.1", 3)).await;
    assert!(shown["overBudget"].is_null(), "{shown}");
    let shown = preview(&pool("spare", "g2.1", 100)).await;
    let notes = shown["notes"].as_array().unwrap();
    let is_told = |note: &Value| note.as_str().unwrap().contains("does not count in the budget");
    assert!(shown["overBudget"].is_null() && notes.iter().any(is_told), "{shown}");
    let path = format!("{PATH}/preview");
    let changed = portal.json("POST", "ada", &path, &pool("render", "g1.1", 6)).await.json();
    assert_eq!(changed["price"]["hourlyUSD"], "7.200", "{changed}");
    assert_eq!(changed["overBudget"]["message"], message("7.200", "7.200", "6.000", ""));
}

#[tokio::test]
async fn change_over_the_budget_is_rejected_if_it_raises_the_price() {
    let (cluster, portal) = world().await;
    let render = at("stockpools", "team-vision", "render");
    let patch = async |replicas: u32| {
        let body = json!({"spec": {"replicas": replicas}});
        portal.json("PATCH", "ada", PATH, &body).await.status.as_u16()
    };
    assert_eq!([patch(6).await, patch(5).await], [422, 200]);
    // The budget is smaller now than the price.
    cluster.change(&format!("{COMPOSITIONS}/pools"), |composition| {
        let input = &mut composition["spec"]["pipeline"][0]["input"];
        input["budget"] = json!({"byNamespace": {"team-vision": "1"}});
    });
    assert_eq!([patch(6).await, patch(5).await, patch(4).await], [422, 200, 200]);
    let mut whole = cluster.get(&render).unwrap();
    whole["spec"]["replicas"] = json!(7);
    let refused = portal.json("PUT", "ada", PATH, &whole).await;
    assert_eq!(refused.status, 422, "{:?}", refused.body);
    whole["spec"]["replicas"] = json!(3);
    let changed = portal.json("PUT", "ada", PATH, &whole).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    assert_eq!(cluster.get(&render).unwrap()["spec"]["replicas"], 3);
}

/// The function's check comes before the API server: the schema in this cluster has only a maximum.
#[tokio::test]
async fn environment_that_the_function_rejects_is_not_created() {
    let (cluster, portal) = world().await;
    let mut wrong = pool("spare", "g1.1", 1);
    wrong["spec"]["memory"] = json!("0");
    for query in ["", "?dryRun=true", "?skipCheck=false"] {
        let refused = portal.json("POST", "ada", &format!("{ALL}{query}"), &wrong).await;
        let problem = refused.json();
        assert_eq!(refused.status, 422, "{query}: {problem}");
        assert_eq!(problem["errors"][0]["field"], "spec.memory", "{problem}");
        let preview = portal.json("POST", "ada", "/api/v1/preview", &wrong).await.json();
        assert_eq!(problem["errors"], preview["errors"], "as in the preview");
    }
    assert!(cluster.paths("/spare").is_empty());
    let anyway = portal.json("POST", "ada", &format!("{ALL}?skipCheck=true"), &wrong).await;
    assert_eq!(anyway.status, 201, "{:?}", anyway.body);
    // The budget still counts.
    let mut costly = pool("costly", "g1.1", 9);
    costly["spec"]["memory"] = json!("0");
    for (body, status) in [(costly, 201), (pool("c", "g1.1", 9), 422)] {
        let answer = portal.json("POST", "ada", &format!("{ALL}?skipCheck=true"), &body).await;
        assert_eq!(answer.status, status, "a rejected document has no price: {:?}", answer.body);
    }
}

#[tokio::test]
async fn change_that_the_function_rejects_is_not_made() {
    let (cluster, portal) = world().await;
    let render = at("stockpools", "team-vision", "render");
    let wrong = json!({"spec": {"memory": "0"}});
    let refused = portal.json("PATCH", "ada", PATH, &wrong).await;
    let problem = refused.json();
    assert_eq!(
        (refused.status.as_u16(), &problem["errors"][0]["field"]),
        (422, &json!("spec.memory"))
    );
    let mut whole = cluster.get(&render).unwrap();
    whole["spec"]["memory"] = json!("0");
    assert_eq!(portal.json("PUT", "ada", PATH, &whole).await.status, 422);
    assert!(cluster.get(&render).unwrap()["spec"]["memory"].is_null());
    let anyway = portal.json("PATCH", "ada", &format!("{PATH}?skipCheck=true"), &wrong).await;
    assert_eq!(anyway.status, 200, "{:?}", anyway.body);
    // An error that the environment already has does not prevent another change.
    let other = portal.json("PATCH", "ada", PATH, &json!({"spec": {"replicas": 1}})).await;
    assert_eq!(other.status, 200, "{:?}", other.body);
    let more = portal.json("PATCH", "ada", PATH, &json!({"spec": {"specName": ""}})).await;
    assert_eq!(more.status, 422, "{:?}", more.body);
}

#[tokio::test]
async fn older_api_rejects_what_the_function_rejects() {
    let (cluster, portal) = world().await;
    let text = std::fs::read_to_string(crate::support::example("gpu-workspace/composition.yaml"));
    let composition: Value = serde_saphyr::from_multiple(&text.unwrap()).unwrap().remove(0);
    cluster.put(&format!("{COMPOSITIONS}/workspaces"), composition);
    for (field, value) in [("instanceType", "p3.2xlarge"), ("opencvVersion", "4.8.9")] {
        let body = json!({"owner": "ada", field: value});
        let refused = portal.json("POST", "ada", "/api/workspaces", &body).await;
        let problem = refused.json();
        assert_eq!(refused.status, 422, "{problem}");
        assert_eq!(problem["errors"][0]["field"], format!("spec.parameters.{field}"), "{problem}");
        assert!(cluster.paths("gpudevworkspaceclaims/").is_empty());
    }
    let body = json!({"owner": "ada", "opencvVersion": "4.8.9"});
    let anyway = portal.json("POST", "ada", "/api/workspaces?skipCheck=true", &body).await;
    assert_eq!(anyway.status, 202, "{:?}", anyway.body);
    let fits = portal.json("POST", "ada", "/api/workspaces", &json!({"owner": "ada"})).await;
    assert_eq!(fits.status, 202, "{:?}", fits.body);
    let kind = portal.get("ada", "/api/v1/kinds/gpudevworkspaceclaims").await.json();
    let first = &kind["options"][0];
    assert_eq!(first["field"], "spec.parameters.instanceType", "{first}");
    assert_eq!(first["options"][0]["hourlyUSD"], "0.526", "{first}");
    assert_eq!(kind["options"][1]["options"], json!([{"value": "us-east-1"}]));
    assert_eq!(kind["options"][1]["closed"], true);
    // Settings are for users with a use for them.
    let other = portal.get("eve", "/api/v1/kinds/gpudevworkspaceclaims").await.json();
    let others = other["options"].as_array().unwrap();
    assert_eq!(others.len(), 2, "{others:?}");
    assert!(others.iter().all(|one| one["closed"] == false), "{others:?}");
}

#[tokio::test]
async fn budget_that_cannot_be_read_rejects_nothing() {
    let (cluster, portal) = world().await;
    cluster.grant("portal", &format!("list {COMPOSITIONS}"), false);
    let created = portal.json("POST", "ada", ALL, &pool("spare", "g1.1", 4)).await;
    assert_eq!(created.status, 201, "{:?}", created.body);
}

#[tokio::test]
async fn user_without_rights_gets_the_answer_of_the_api_server() {
    let (_cluster, portal) = world().await;
    let refused = portal.json("POST", "eve", ALL, &pool("spare", "g1.1", 4)).await;
    assert_eq!(refused.status, 403, "{:?}", refused.body);
}
