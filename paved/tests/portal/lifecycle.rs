//! Extend, keep, stop and start: requests with the rights of the user.

use function_paved_road::lifecycle::{RENEWED_AT, RENEWED_FOR, STARTED_AT, STOPPED_AT};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::world::api_server::{ApiServer, at, environment};
use crate::world::portal::{Answer, Portal};

const PATH: &str = "/api/v1/environments/team-vision/stockpools/render";

/// A stock pool of ada that expires in two hours, and a portal.
async fn world() -> (ApiServer, Portal) {
    let cluster = ApiServer::start().await;
    cluster.put(&at("stockpools", "team-vision", "render"), pool());
    let portal = Portal::alone(&cluster, "portal").await;
    (cluster, portal)
}

fn pool() -> Value {
    let mut pool = environment("StockPool", "ada");
    pool["status"] = json!({"phase": "Ready", "progress": "1/1", "power": "Running",
        "estimatedHourlyUSD": "2.4", "estimatedStoppedHourlyUSD": "0",
        "lifecycle": {"expiresAt": ahead(SignedDuration::from_hours(2)), "maximum": "1d"}});
    pool
}

/// A time this far ahead of now, in whole seconds.
fn ahead(time: SignedDuration) -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap() + time
}

fn change(cluster: &ApiServer, change: impl FnOnce(&mut Value)) {
    cluster.change(&at("stockpools", "team-vision", "render"), change);
}

fn annotation(cluster: &ApiServer, name: &str) -> Option<String> {
    let there = cluster.get(&at("stockpools", "team-vision", "render")).unwrap();
    there["metadata"]["annotations"][name].as_str().map(str::to_owned)
}

/// The users of the writes since the last call.
fn writers(cluster: &ApiServer) -> Vec<(String, String)> {
    let writes = cluster
        .asked()
        .into_iter()
        .filter(|(_, method, path)| method != "GET" && path.contains("/stockpools/"));
    writes.map(|(user, method, _)| (user, method)).collect()
}

async fn request(portal: &Portal, user: &str, verb: &str, body: &Value) -> Answer {
    portal.json("POST", user, &format!("{PATH}/{verb}"), body).await
}

#[tokio::test]
async fn extension_is_an_annotation_of_the_user() {
    let (cluster, portal) = world().await;
    cluster.asked();
    let extended = request(&portal, "ada", "extend", &json!({"for": "8h"})).await;
    assert_eq!(extended.status, 200, "{:?}", extended.body);
    let told = extended.json();
    assert_eq!((&told["changed"], &told["starts"]), (&json!(true), &json!(false)));
    assert!(told["cappedBy"].is_null() && told["clockAhead"].is_string(), "{told}");
    let end: Timestamp = told["expiresAt"].as_str().unwrap().parse().unwrap();
    let left = end.duration_since(Timestamp::now());
    assert!((SignedDuration::from_mins(479)..=SignedDuration::from_hours(8)).contains(&left));
    assert_eq!(told["environment"]["name"], "render");
    assert_eq!(writers(&cluster), [("ada".to_owned(), "PATCH".to_owned())]);
    assert_eq!(annotation(&cluster, RENEWED_FOR).as_deref(), Some("8h"));
    let at: Timestamp = annotation(&cluster, RENEWED_AT).unwrap().parse().unwrap();
    assert_eq!(at + SignedDuration::from_hours(8), end);
    let spec = cluster.get(&at_render()).unwrap()["spec"].clone();
    assert_eq!(spec, pool()["spec"], "a synchronization from Git changes nothing");
}

fn at_render() -> String {
    at("stockpools", "team-vision", "render")
}

#[tokio::test]
async fn maximum_shortens_an_extension() {
    let (cluster, portal) = world().await;
    for body in [json!({"for": "2w"}), json!({"maximum": true})] {
        change(&cluster, |pool| pool["metadata"]["annotations"] = json!({}));
        let told = request(&portal, "ada", "extend", &body).await.json();
        let capped = body.get("for").map(|_| json!("1d"));
        assert_eq!(told.get("cappedBy"), capped.as_ref(), "{told}");
        assert_eq!(annotation(&cluster, RENEWED_FOR).as_deref(), Some("1d"));
    }
    let told = request(&portal, "ada", "extend", &json!({"for": "1h"})).await.json();
    assert_eq!(told["changed"], false, "it expires later: {told}");
}

#[tokio::test]
async fn stop_and_start_are_annotations_and_repeat_without_a_write() {
    let (cluster, portal) = world().await;
    let stopped = request(&portal, "ada", "stop", &json!({})).await;
    assert_eq!((stopped.status.as_u16(), &stopped.json()["changed"]), (200, &json!(true)));
    let first: Timestamp = annotation(&cluster, STOPPED_AT).unwrap().parse().unwrap();
    change(&cluster, |pool| {
        pool["status"]["power"] = json!("Stopped");
        pool["status"]["lifecycle"]["stoppedAt"] = json!(first);
        pool["status"]["lifecycle"]["stopReason"] = json!("Requested");
    });
    cluster.asked();
    let again = request(&portal, "ada", "stop", &json!({})).await;
    assert_eq!((again.status.as_u16(), &again.json()["changed"]), (200, &json!(false)));
    assert!(writers(&cluster).is_empty());
    let started = request(&portal, "ada", "start", &json!({})).await;
    let told = started.json();
    assert_eq!((&told["changed"], &told["starts"]), (&json!(true), &json!(true)), "{told}");
    let start: Timestamp = annotation(&cluster, STARTED_AT).unwrap().parse().unwrap();
    assert!(start > first, "the latest request decides");
}

#[tokio::test]
async fn kept_environment_has_no_time_to_live_where_settings_allow_it() {
    let (cluster, portal) = world().await;
    let refused = request(&portal, "ada", "keep", &json!({})).await;
    let error =
        json!({"field": "spec.lifecycle.ttl", "message": "found never; allowed: at most 1d"});
    assert_eq!((refused.status.as_u16(), &refused.json()["errors"][0]), (422, &error));
    change(&cluster, |pool| pool["status"]["lifecycle"]["maximum"] = Value::Null);
    for changed in [true, false] {
        let kept = request(&portal, "ada", "keep", &json!({})).await;
        assert_eq!(kept.status, 200, "{:?}", kept.body);
        assert_eq!(kept.json()["changed"], changed);
        assert_eq!(cluster.get(&at_render()).unwrap()["spec"]["lifecycle"]["ttl"], "never");
    }
}

#[tokio::test]
async fn environment_shows_power_end_and_price() {
    let (cluster, portal) = world().await;
    let view = portal.get("ada", PATH).await.json();
    assert_eq!((&view["power"], &view["paused"]), (&json!("Running"), &json!(false)));
    assert_eq!(view["lifecycle"]["maximum"], "1d");
    assert_eq!(view["price"], json!({"hourlyUSD": "2.4", "stoppedHourlyUSD": "0"}));
    change(&cluster, |pool| pool["status"] = json!({"phase": "Ready"}));
    let view = portal.get("ada", PATH).await.json();
    assert!(view["price"].is_null() && view["lifecycle"].is_null(), "never 0: {view}");
}

#[tokio::test]
async fn requests_need_the_right_to_change_the_environment() {
    let (cluster, portal) = world().await;
    // With a maximum, the portal rejects a time to live without an end for every user.
    change(&cluster, |pool| pool["status"]["lifecycle"]["maximum"] = Value::Null);
    cluster.grant("eve", "get team-vision", true);
    change(&cluster, |pool| pool["status"]["lifecycle"]["maximum"] = Value::Null);
    cluster.asked();
    for (verb, body) in [
        ("extend", json!({"for": "4h"})),
        ("keep", json!({})),
        ("stop", json!({})),
        ("start", json!({})),
    ] {
        let refused = request(&portal, "eve", verb, &body).await;
        assert_eq!(refused.status, 403, "{verb}: {:?}", refused.body);
        let absent = format!("/api/v1/environments/team-vision/stockpools/nobody/{verb}");
        assert_eq!(portal.json("POST", "ada", &absent, &body).await.status, 404, "{verb}");
    }
    let annotations = cluster.get(&at_render()).unwrap()["metadata"]["annotations"].clone();
    assert!(annotations.is_null(), "{annotations}");
}

#[tokio::test]
async fn request_without_an_effect_names_field_found_and_allowed_values() {
    let (cluster, portal) = world().await;
    let told = async |verb: &str, body: Value| {
        let refused = request(&portal, "ada", verb, &body).await;
        let told = refused.json();
        let error = &told["errors"][0];
        let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
        (refused.status.as_u16(), text("field"), text("message"))
    };
    let invalid = [
        ("for", json!({"for": "8"}), "found \"8\"; allowed: a whole number with a unit"),
        ("for", json!({"for": "never"}), "found \"never\"; allowed: "),
        ("until", json!({"until": "soon"}), "found \"soon\"; allowed: a time (RFC 3339)"),
        ("body", json!({}), "found none; allowed: exactly one of"),
    ];
    for (field, body, message) in invalid {
        let (status, found, words) = told("extend", body).await;
        assert_eq!((status, found.as_str()), (400, field));
        assert!(words.starts_with(message), "{words}");
    }
    let past = told("extend", json!({"until": "2020-01-01T00:00:00Z"})).await;
    let words = "found 2020-01-01T00:00:00Z; allowed: a time after now";
    assert_eq!(past, (422, "until".to_owned(), words.to_owned()));

    change(&cluster, |pool| {
        pool["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    });
    for verb in ["stop", "start"] {
        let (status, field, words) = told(verb, json!({})).await;
        assert_eq!((status, field.as_str()), (409, "metadata.annotations[crossplane.io/paused]"));
        assert_eq!(words, "found \"true\"; allowed: no such annotation");
    }
    change(&cluster, |pool| {
        pool["metadata"]["annotations"] = json!({});
        pool["status"]["lifecycle"] = json!({});
    });
    let endless = told("extend", json!({"for": "4h"})).await;
    assert_eq!((endless.0, endless.1.as_str()), (422, "spec.lifecycle.ttl"));
    let unlimited = {
        change(&cluster, |pool| {
            pool["status"]["lifecycle"]["expiresAt"] = json!(ahead(SignedDuration::from_hours(2)));
        });
        told("extend", json!({"maximum": true})).await
    };
    assert_eq!((unlimited.0, unlimited.1.as_str()), (422, "maximum"));
    change(&cluster, |pool| pool["status"] = json!({"phase": "Ready"}));
    let older = told("stop", json!({})).await;
    assert_eq!((older.0, older.1.as_str()), (409, "status.lifecycle"));
}

#[tokio::test]
async fn virtual_cluster_cannot_be_stopped() {
    let (cluster, portal) = world().await;
    let mut preview = environment("Environment", "ada");
    preview["spec"] = json!({"parameters": {"type": "vcluster"}});
    preview["status"] = json!({"phase": "Ready", "power": "Running", "lifecycle": {}});
    cluster.put(&at("environments", "team-vision", "preview"), preview);
    let path = "/api/v1/environments/team-vision/environments/preview";
    let view = portal.get("ada", path).await.json();
    assert_eq!(view["cannotStop"], "a virtual cluster cannot be stopped");
    let refused = portal.json("POST", "ada", &format!("{path}/stop"), &json!({})).await;
    let told = refused.json();
    let error = json!({"field": "spec.lifecycle.power",
        "message": "found Stopped; allowed: Running, because a virtual cluster cannot be stopped"});
    assert_eq!((refused.status.as_u16(), &told["errors"][0]), (422, &error), "{told}");
}

#[tokio::test]
async fn preview_shows_price_and_end_before_the_environment_exists() {
    let (cluster, portal) = world().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let mut composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    let input = &mut composition["spec"]["pipeline"][0]["input"];
    input["schemaRevision"] = json!(3);
    input["pricing"] = json!({"overrides": [{"type": "g1.1", "usdPerHour": "1.2"}]});
    input["stockPool"]["lifecycle"] = json!({"ttl": "8h"});
    let mut unpriced = composition.clone();
    unpriced["spec"]["pipeline"][0]["input"]["pricing"] = json!({});
    let compositions = "/apis/apiextensions.crossplane.io/v1/compositions/pools";
    cluster.put(compositions, composition);
    let pool = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
        "metadata": {"name": "spare", "namespace": "team-vision"}, "spec": {"specName": "g1.1", "replicas": 2}});
    let shown = portal.json("POST", "ada", "/api/v1/preview", &pool).await.json();
    assert_eq!(shown["price"]["hourlyUSD"], "2.400", "{shown}");
    let end: Timestamp = shown["expiresAt"].as_str().unwrap().parse().unwrap();
    let left = end.duration_since(Timestamp::now());
    assert!((SignedDuration::from_mins(479)..=SignedDuration::from_hours(8)).contains(&left));
    cluster.put(compositions, unpriced);
    let shown = portal.json("POST", "ada", "/api/v1/preview", &pool).await.json();
    assert!(shown["price"].is_null(), "never 0: {shown}");
}
