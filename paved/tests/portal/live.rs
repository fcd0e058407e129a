//! Streams: each visible change arrives exactly once, and hidden environments never do.

use std::time::{Duration, Instant};

use futures::future::join_all;
use paved::portal::Limits;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::world::api_server::{ApiServer, Asked, GROUP, KINDS, at, environment};
use crate::world::portal::{Answer, Events, Portal, TIMEOUT};

const ADA: [(&str, &str); 1] = [("authorization", "Bearer token-ada")];

fn pool(name: &str) -> String {
    at("stockpools", "team-vision", name)
}

async fn both() -> (ApiServer, Portal) {
    limited(Limits::default()).await
}

/// The same, with these limits for the portal.
async fn limited(limits: Limits) -> (ApiServer, Portal) {
    let cluster = ApiServer::start().await;
    cluster.put(&pool("one"), environment("StockPool", "ada"));
    cluster.put(&at("stockpools", "team-sound", "bobs"), environment("StockPool", "bob"));
    let portal = Portal::limited(&cluster, "portal", &["--auth", "none"], limits).await;
    (cluster, portal)
}

/// The interval of a portal with short limits.
const SOON: Duration = Duration::from_millis(50);

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(event, name)| ((*event).to_owned(), (*name).to_owned())).collect()
}

async fn ada(portal: &Portal, last: &str) -> Events {
    let mut headers = ADA.to_vec();
    if !last.is_empty() {
        headers.push(("last-event-id", last));
    }
    portal.events(&headers).await
}

#[tokio::test]
async fn stream_begins_with_visible_environments_and_continues_with_changes() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    assert_eq!(events.synced().await, pairs(&[("snapshot", ""), ("added", "one")]));
    cluster.put(&at("stockpools", "team-sound", "bobs-too"), environment("StockPool", "bob"));
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "two".into()));
    cluster.change(&pool("two"), |object| object["status"]["progress"] = json!("2/2"));
    let (name, data) = events.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["progress"], &data["phase"]),
        ("modified", &json!("2/2"), &json!("Provisioning"))
    );
    cluster.remove(&pool("two"));
    assert_eq!(events.told().await, ("deleted".into(), "two".into()));
}

#[tokio::test]
async fn a_kind_that_the_portal_may_not_watch_hides_no_other() {
    let cluster = ApiServer::start().await;
    cluster.grant("portal", &format!("list {GROUP}/environments"), false);
    cluster.put(&pool("one"), environment("StockPool", "ada"));
    let portal = Portal::alone(&cluster, "portal").await;
    assert_eq!(ada(&portal, "").await.synced().await, pairs(&[("snapshot", ""), ("added", "one")]));
    assert!(portal.log().contains("you may not watch Environment"), "{}", portal.log());
}

#[tokio::test]
async fn returning_client_gets_only_missed_events() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    let last = events.last.clone();
    drop(events);
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    cluster.put(&at("stockpools", "team-sound", "bobs-too"), environment("StockPool", "bob"));
    cluster.remove(&pool("one"));
    portal
        .until_as("ada", "/api/v1/environments", |answer| {
            answer.json()["items"][0]["name"] == "two"
        })
        .await;
    let missed = ada(&portal, &last).await.synced().await;
    assert_eq!(missed, pairs(&[("added", "two"), ("deleted", "one")]));
    let (_, known) = last.rsplit_once('-').unwrap();
    let other = last.replace(known, &"0".repeat(known.len()).replacen('0', "1", 1));
    for unknown in ["another-1-2", "", "x", &last.replace('-', ""), &format!("{last}0"), &other] {
        let anew = ada(&portal, unknown).await.synced().await;
        assert_eq!(anew, pairs(&[("snapshot", ""), ("added", "two")]), "{unknown}");
    }
    let others = [("authorization", "Bearer token-bob"), ("last-event-id", last.as_str())];
    let others = portal.events(&others).await.synced().await;
    assert_eq!(
        others,
        pairs(&[("snapshot", ""), ("added", "bobs"), ("added", "bobs-too")]),
        "an event ID of ada is unknown to bob"
    );
}

#[tokio::test]
async fn stream_resumes_at_another_replica() {
    let (cluster, portal) = both().await;
    let other = Portal::alone(&cluster, "portal").await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "two".into()));
    let last = events.last.clone();
    drop((events, portal));
    cluster.put(&pool("three"), environment("StockPool", "ada"));
    cluster.remove(&pool("one"));
    let one_is_gone = |names: &Value| {
        names["items"].as_array().is_some_and(|all| all.len() == 2 && all[0]["name"] != "one")
    };
    other.until_as("ada", "/api/v1/environments", |answer| one_is_gone(&answer.json())).await;
    let mut events = ada(&other, &last).await;
    assert_eq!(events.synced().await, pairs(&[("added", "three"), ("deleted", "one")]));
    cluster.put(&pool("four"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "four".into()));
    // The pages drop events of another epoch, and events that are not newer.
    let place = |id: &str| {
        let (epoch, rest) = id.split_once('-').unwrap();
        (epoch.to_owned(), rest.split_once('-').unwrap().0.parse::<u64>().unwrap())
    };
    let ((epoch, before), (same, after)) = (place(&last), place(&events.last));
    assert_eq!((same, after), (epoch, before + 3));
    let late = Portal::alone(&cluster, "portal").await;
    assert_eq!(
        ada(&late, &events.last).await.synced().await,
        pairs(&[]),
        "the client has missed no event"
    );
    let anew = ada(&late, &last).await.synced().await;
    assert_eq!(
        anew.first(),
        pairs(&[("snapshot", "")]).first(),
        "this replica does not know earlier events"
    );
}

#[tokio::test]
async fn simultaneous_streams_share_one_access_review() {
    let (cluster, portal) = both().await;
    cluster.asked();
    let here = &portal;
    let streams = (0..20).map(|_| async move { ada(here, "").await.synced().await });
    for told in join_all(streams).await {
        assert_eq!(told, pairs(&[("snapshot", ""), ("added", "one")]));
    }
    let asked = cluster.asked();
    let reviews: Vec<&str> = asked
        .iter()
        .filter(|(who, ..)| who == "ada")
        .map(|(.., path)| path.rsplit('/').next().unwrap())
        .collect();
    let count = |review: &str| reviews.iter().filter(|one| **one == review).count();
    assert_eq!(count("selfsubjectreviews"), 1, "{reviews:?}");
    assert_eq!(count("selfsubjectaccessreviews"), 1, "of all namespaces: {reviews:?}");
    assert_eq!(count("selfsubjectrulesreviews"), 2, "of each of two: {reviews:?}");
}

#[tokio::test]
async fn client_that_breaks_during_a_snapshot_starts_again() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    let mut again = ada(&portal, "another-1-2").await;
    // Like an EventSource, the client drops its state and its position at a snapshot.
    again.last.clone_from(&events.last);
    assert_eq!(again.told().await, ("snapshot".into(), String::new()));
    assert_eq!(again.last, "");
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "two".into()));
    let anew = ada(&portal, &again.last).await.synced().await;
    assert_eq!(anew, pairs(&[("snapshot", ""), ("added", "one"), ("added", "two")]));
}

#[tokio::test]
async fn resume_through_many_namespaces_needs_no_review() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    for number in 0..100 {
        let passing = at("stockpools", &format!("preview-{number}"), "passing");
        cluster.put(&passing, environment("StockPool", "bob"));
        cluster.remove(&passing);
    }
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "two".into()));
    cluster.asked();
    let last = format!("4f2a-1-{:032x}", 1);
    let anew = ada(&portal, &last).await.synced().await;
    assert_eq!(anew, pairs(&[("snapshot", ""), ("added", "one"), ("added", "two")]));
    let asked = cluster.asked();
    let rules = asked.iter().filter(|(.., path)| path.ends_with("selfsubjectrulesreviews")).count();
    assert!(rules <= 40, "{rules} namespaces were reviewed");
}

#[tokio::test]
async fn stream_that_breaks_during_a_resume_loses_no_event() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    let last = events.last.clone();
    cluster.change(&pool("one"), |object| object["status"]["progress"] = json!("0/2"));
    cluster.change(&pool("one"), |object| object["status"]["progress"] = json!("2/2"));
    while events.next().await.unwrap().1["progress"] != "2/2" {}
    let mut events = ada(&portal, &last).await;
    assert_eq!(events.next().await.unwrap().1["progress"], "0/2");
    let amid = events.last.clone();
    assert_eq!(ada(&portal, &amid).await.next().await.unwrap().1["progress"], "2/2");
}

#[tokio::test]
async fn restarted_api_server_loses_no_event() {
    let (cluster, portal) = both().await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    cluster.set_down(true);
    cluster.put(&pool("three"), environment("StockPool", "ada"));
    cluster.remove(&pool("one"));
    cluster.cut_watches();
    cluster.set_down(false);
    let mut told = vec![events.told().await, events.told().await];
    told.sort();
    assert_eq!(told, pairs(&[("added", "three"), ("deleted", "one")]));
    cluster.put(&pool("four"), environment("StockPool", "ada"));
    assert_eq!(events.told().await, ("added".into(), "four".into()), "no event comes twice");
}

#[tokio::test]
async fn kind_is_removed_after_the_api_server_reports_its_removal() {
    let told = async |gone: bool| {
        let (cluster, portal) = limited(Limits { kinds: SOON, ..Limits::default() }).await;
        let mut events = ada(&portal, "").await;
        events.synced().await;
        cluster.unlist(gone);
        if !gone {
            portal.until_logged("does not list").await;
            cluster.put(&pool("two"), environment("StockPool", "ada"));
        }
        events.told().await
    };
    let (there, gone) = tokio::join!(told(false), told(true));
    assert_eq!(there, ("added".into(), "two".into()), "a kind that a list omits is still watched");
    assert_eq!(gone, ("deleted".into(), "one".into()));
}

async fn assert_stream_is_reset_after(what_befalls: fn(&ApiServer)) {
    let limits = Limits { heartbeat: SOON, interrupted_streams: SOON, ..Limits::default() };
    let (cluster, portal) = limited(limits).await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    what_befalls(&cluster);
    // The portal checks the API server with each heartbeat.
    assert_eq!(events.next().await, Some(("reset".to_owned(), json!({"reason": "unavailable"}))));
    assert_eq!(events.next().await, None);
    assert_eq!(portal.get("ada", "/api/v1/watch").await.status, 503);
}

#[tokio::test]
async fn unreachable_api_server_resets_streams() {
    assert_stream_is_reset_after(|cluster| cluster.set_down(true)).await;
}

#[tokio::test]
async fn lost_right_to_watch_resets_streams() {
    let forbid = |cluster: &ApiServer| {
        for (_, plural) in KINDS {
            cluster.grant("portal", &format!("list {GROUP}/{plural}"), false);
            cluster.grant("portal", &format!("watch {GROUP}/{plural}"), false);
        }
        cluster.cut_watches();
    };
    assert_stream_is_reset_after(forbid).await;
}

#[tokio::test]
async fn streams_share_one_watch_for_each_kind() {
    let (cluster, portal) = both().await;
    cluster.asked();
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut events = ada(&portal, "").await;
        events.synced().await;
        streams.push(events);
    }
    let lists = cluster.asked().into_iter().filter(|(who, method, path)| {
        who == "portal" && method == "GET" && path.ends_with("/stockpools")
    });
    assert_eq!(lists.count(), 0);
}

#[tokio::test]
async fn stopping_portal_notifies_its_streams() {
    let cluster = ApiServer::start().await;
    let mut portal = Portal::process(&cluster, "portal", &["--auth", "none"]).await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    let (code, last) = tokio::join!(portal.stop(), events.next());
    assert_eq!((code, last), (0, Some(("reset".to_owned(), json!({"reason": "shutdown"})))));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn slow_client_is_reset_with_the_reason() {
    let (cluster, portal) = limited(Limits { event: SOON, ..Limits::default() }).await;
    let mut events = ada(&portal, "").await;
    // More data than a connection can hold without a reader.
    let much = "x".repeat(1 << 16);
    for number in 0..400 {
        cluster.change(&pool("one"), |object| {
            object["status"]["much"] = json!(format!("{much}{number}"));
        });
    }
    let is_let_go = |answer: &Answer| {
        let figures = String::from_utf8_lossy(&answer.body);
        let slow = "paved_portal_stream_resets_total{reason=\"slow\"} 1\n";
        figures.contains(slow) && figures.contains("paved_portal_streams 0\n")
    };
    portal.until("/metrics", is_let_go).await;
    let last = loop {
        let event = events.next().await.expect("the stream ends without a reset");
        if event.0 == "reset" {
            break event.1;
        }
    };
    assert_eq!((last, events.next().await), (json!({"reason": "slow"}), None));
}

#[tokio::test]
async fn rights_that_change_end_a_stream() {
    let limits = Limits { heartbeat: SOON, access: SOON, ..Limits::default() };
    let (cluster, portal) = limited(limits).await;
    let mut events = ada(&portal, "").await;
    events.synced().await;
    cluster.grant("ada", "list team-vision", false);
    // The portal repeats the review with a heartbeat after the answer has expired.
    assert_eq!(
        events.next().await,
        Some(("reset".to_owned(), json!({"reason": "access-changed"})))
    );
    assert_eq!(events.next().await, None);
    let anew = ada(&portal, &events.last).await.synced().await;
    assert_eq!(anew, pairs(&[("snapshot", "")]), "no environment is visible");
}

/// Limits of a portal that reads environments often while they are being deleted.
fn deletions() -> Limits {
    Limits { deletions: SOON, deletion_pause: SOON * 4, ..Limits::default() }
}

const COMPOSITE: &str = "/apis/platform.acme.io/v1alpha1/xstockpools/one-x";

fn reference(kind: &str, name: &str) -> Value {
    let version = if kind == "XStockPool" { "platform.acme.io/v1alpha1" } else { "v1" };
    json!({"apiVersion": version, "kind": kind, "name": name})
}

/// A claim's composite.
fn composite(claim: &str, references: &[Value]) -> Value {
    let claim = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "namespace": "team-vision", "name": claim});
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "XStockPool", "metadata": {"name": "one-x", "uid": "uid-x"},
        "spec": {"claimRef": claim, "resourceRefs": references}})
}

/// Adds a resource in the team's namespace.
fn part(cluster: &ApiServer, name: &str, owner: &str) -> String {
    let path = format!("/api/v1/namespaces/team-vision/configmaps/{name}");
    let owner =
        json!({"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": owner, "controller": true});
    cluster.put(
        &path,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"ownerReferences": [owner],
            "annotations": {"crossplane.io/composition-resource-name": name}}}),
    );
    path
}

/// Deletes a pool that refers to these objects.
fn goes(cluster: &ApiServer, name: &str, field: &str, references: Value) {
    cluster.change(&pool(name), |object| object["spec"][field] = references);
    cluster.begin_deletion(&pool(name));
}

#[tokio::test]
async fn remaining_resources_are_shown_during_a_deletion() {
    let (cluster, portal) = limited(deletions()).await;
    cluster.grant("portal", "get /api/v1/namespaces/team-vision/secrets/hidden", false);
    let references = [
        reference("ConfigMap", "usage"),
        reference("ConfigMap", "deployment"),
        reference("Secret", "hidden"),
    ];
    cluster.put(COMPOSITE, composite("one", &references));
    let path = part(&cluster, "deployment", "uid-x");
    // Owned by the deployment and not by the composite. Kubernetes leaves such a resource, and the
    // composite waits for it.
    let user = cluster.get(&path).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    part(&cluster, "usage", &user);
    let mut events = ada(&portal, "").await;
    events.synced().await;
    goes(&cluster, "one", "resourceRef", reference("XStockPool", "one-x"));
    let (slots, seen) = loop {
        let (_, data) = events.next().await.unwrap();
        // The first write only sets the reference.
        if data["phase"] != "Deleting" {
            continue;
        }
        let slots: Vec<_> =
            data["parts"].as_array().unwrap().iter().map(|part| part["slot"].clone()).collect();
        if slots.contains(&json!("deployment")) {
            break (slots, data);
        }
    };
    assert_eq!(slots.len(), 3, "the resources and the composite: {slots:?}");
    assert_eq!(seen["progress"], "0/4", "an unreadable resource does not count as deleted: {seen}");
    cluster.remove(&path);
    let (_, data) = events.next().await.unwrap();
    assert_eq!(data["progress"], "1/4", "a resource with a deleted owner still exists: {data}");
}

#[tokio::test]
async fn foreign_referenced_objects_are_not_shown() {
    let (cluster, portal) = limited(deletions()).await;
    part(&cluster, "theirs", "uid-x");
    // The claim refers to a foreign composite. The namespaced composite refers to a foreign
    // resource.
    cluster.put(COMPOSITE, composite("bobs", &[reference("ConfigMap", "theirs")]));
    goes(&cluster, "one", "resourceRef", reference("XStockPool", "one-x"));
    cluster.put(&pool("two"), environment("StockPool", "ada"));
    let uid = cluster.get(&pool("two")).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let mine = part(&cluster, "mine", &uid);
    goes(
        &cluster,
        "two",
        "resourceRefs",
        json!([reference("ConfigMap", "theirs"), reference("ConfigMap", "mine")]),
    );
    let read = async |name: &str, progress: &'static str| {
        let path = format!("/api/v1/environments/team-vision/stockpools/{name}");
        let is_there =
            |answer: &Answer| answer.status == 200 && answer.json()["progress"] == progress;
        portal.until_as("ada", &path, is_there).await;
        portal.get("ada", &path).await.json()
    };
    let two = read("two", "1/2").await;
    assert_eq!(
        (two["parts"].as_array().unwrap().len(), &two["parts"][0]["slot"]),
        (1, &json!("mine"))
    );
    // By then, the portal has also read the other environment.
    cluster.remove(&mine);
    assert_eq!(read("two", "2/2").await["parts"], json!([]));
    let one = portal.get("ada", "/api/v1/environments/team-vision/stockpools/one").await;
    assert_eq!((one.status.as_u16(), &one.json()["parts"]), (200, &json!([])), "{:?}", one.body);
}

/// A user who can block the deletion of an environment controls its references. These must not
/// determine the number of requests.
#[tokio::test]
async fn deletions_that_hang_cost_the_api_server_little() {
    // In a round, the portal reads five environments, each of them twice.
    const ROUND: u128 = 10;
    let limits = deletions();
    let (cluster, portal) = limited(limits).await;
    let references: Vec<Value> = (0..200)
        .map(|number| json!({"apiVersion": format!("bogus{number}.example.org/v1"), "kind": "Bogus", "name": "a"}))
        .collect();
    cluster.asked();
    let began = Instant::now();
    let stuck: Vec<String> = (0..20).map(|number| pool(&format!("stuck-{number}"))).collect();
    for (number, path) in stuck.iter().enumerate() {
        cluster.put(path, environment("StockPool", "ada"));
        goes(&cluster, &format!("stuck-{number}"), "resourceRefs", json!(references));
    }
    let mut asked = Vec::new();
    let reads =
        |asked: &[Asked], path: &String| asked.iter().filter(|(.., one)| one == path).count();
    let all_are_read_again = async {
        while stuck.iter().any(|path| reads(&asked, path) < 4) {
            sleep(SOON).await;
            asked.extend(cluster.asked());
        }
    };
    timeout(TIMEOUT, all_are_read_again).await.expect("an environment is not read again");
    let rounds = began.elapsed().as_millis() / limits.deletions.as_millis() + 1;
    let read: usize = stuck.iter().map(|path| reads(&asked, path)).sum();
    assert!(read as u128 <= ROUND * rounds, "{read} requests in {rounds} rounds");
    let bogus = asked.iter().filter(|(.., path)| path.contains("bogus")).count();
    assert_eq!(bogus, 0, "groups that the cluster does not have are not requested");
    assert!(asked.len() < read + 20, "other requests: {asked:?}");
    assert_eq!(portal.get("ada", "/api/v1/environments").await.status, 200);
}
