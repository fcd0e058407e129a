//! The three earlier APIs of clients, with requests written from their description.

use paved::portal::Limits;
use serde_json::{Value, json};

use crate::world::api_server::{ApiServer, GROUP, at, environment};
use crate::world::oidc::Provider;
use crate::world::portal::Portal;
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

async fn both() -> (ApiServer, Portal) {
    let cluster = ApiServer::start().await;
    let portal = Portal::alone(&cluster, "portal").await;
    (cluster, portal)
}

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop";

/// The message of an environment that is not ready.
const REFUSED: &str = "waiting for the machine";

/// A condition with this message.
fn refusal() -> Value {
    json!({"type": "Provisioned", "status": "False", "reason": "Waiting", "message": REFUSED})
}

#[tokio::test]
async fn a_workspace_is_made_listed_and_deleted() {
    let (cluster, portal) = both().await;
    let body = json!({"owner": "ada", "instanceType": "g5.xlarge", "opencvVersion": "4.9.0"});
    let made = portal.json("POST", "ada", "/api/workspaces", &body).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    let object = made.json();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("ws-ada-") && name.len() > "ws-ada-".len(), "{name}");
    assert_eq!(object["spec"]["writeConnectionSecretToRef"]["name"], format!("{name}-conn"));
    let parameters = json!({"owner": "ada", "instanceType": "g5.xlarge", "opencvVersion": "4.9.0"});
    assert_eq!(object["spec"]["parameters"], parameters);
    let there = cluster.get(&at("gpudevworkspaceclaims", "team-vision", &name)).unwrap();
    assert_eq!(there["metadata"]["labels"]["owner"], "ada");

    let list = portal.get("ada", "/api/workspaces").await;
    assert_eq!(list.status, 200);
    let list = list.json();
    let one = &list[0];
    assert_eq!(
        (&one["name"], &one["owner"], &one["instanceType"]),
        (&json!(name), &json!("ada"), &json!("g5.xlarge"))
    );
    assert_eq!(one["status"]["phase"], "Pending");
    for field in ["instanceId", "publicIp", "connection", "message"] {
        assert_eq!(one["status"].get(field), Some(&Value::Null), "{one}");
    }
    assert_eq!(one["creationTimestamp"], "2026-01-01T10:00:00Z");
    let mut known = json!({"phase": "Provisioning", "instanceId": "i-0abc", "publicIp": "203.0.113.7", "connection": "ssh dev@203.0.113.7"});
    cluster.change(&at("gpudevworkspaceclaims", "team-vision", &name), |object| {
        object["status"] = known.clone();
        object["status"]["conditions"] = json!([refusal()]);
    });
    known["message"] = json!(REFUSED);
    portal.until_as("ada", "/api/workspaces", |answer| answer.json()[0]["status"] == known).await;

    let deleted =
        portal.json("DELETE", "ada", &format!("/api/workspaces/{name}"), &Value::Null).await;
    assert_eq!((deleted.status.as_u16(), deleted.body.len()), (204, 0));
    assert!(cluster.paths("gpudevworkspaceclaims/").is_empty());
    let gone = portal.json("DELETE", "ada", &format!("/api/workspaces/{name}"), &Value::Null).await;
    assert_eq!(
        (gone.status.as_u16(), &gone.json()["error"]),
        (404, &json!("Workspace not found."))
    );
}

#[tokio::test]
async fn a_workspace_is_deleted_that_another_replica_has_just_made() {
    let cluster = ApiServer::start().await;
    cluster.grant("portal", &format!("watch {GROUP}/gpudevworkspaceclaims"), false);
    let portal = Portal::alone(&cluster, "portal").await;
    let path = at("gpudevworkspaceclaims", "team-vision", "ws-ada-1");
    cluster.put(
        &at("gpudevworkspaceclaims", "team-vision", "ws-ada-2"),
        environment("GpuDevWorkspaceClaim", "ada"),
    );
    cluster.put(&path, environment("GpuDevWorkspaceClaim", "ada"));
    let deleted = portal.json("DELETE", "ada", "/api/workspaces/ws-ada-1", &Value::Null).await;
    assert_eq!((deleted.status.as_u16(), cluster.get(&path)), (204, None), "{:?}", deleted.body);
    assert_eq!(cluster.paths("gpudevworkspaceclaims/").len(), 1);
    let others = portal.json("DELETE", "bob", "/api/workspaces/ws-ada-2", &Value::Null).await;
    assert_eq!(
        (others.status.as_u16(), &others.json()["error"]),
        (404, &json!("Workspace not found."))
    );
}

#[tokio::test]
async fn workspace_needs_an_owner_and_has_the_keys_of_the_owner() {
    let (cluster, portal) = both().await;
    for body in [json!({}), json!({"owner": ""}), json!({"owner": null}), json!([])] {
        let refused = portal.json("POST", "ada", "/api/workspaces", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (400, &json!("Owner field is required.")),
            "{body}"
        );
    }
    // A workspace has limits for the number and the length of its keys.
    let long = format!("{KEY} {}", "x".repeat(8192));
    for keys in [vec![KEY; 21], vec![&*long]] {
        let refused = portal.json("PUT", "ada", "/api/v1/keys", &json!({"keys": keys})).await;
        assert_eq!(refused.status, 400, "{:?}", refused.body);
    }
    let put = portal.json("PUT", "ada", "/api/v1/keys", &json!({"keys": [KEY]})).await;
    assert_eq!(put.status, 200, "{:?}", put.body);
    assert_eq!(portal.get("ada", "/api/v1/keys").await.json(), json!({"keys": [KEY]}));
    assert_eq!(portal.get("bob", "/api/v1/keys").await.json(), json!({"keys": []}));
    let made = portal.json("POST", "ada", "/api/workspaces", &json!({"owner": "ada"})).await.json();
    assert_eq!(made["spec"]["parameters"]["sshPublicKeys"], json!([KEY]));
    cluster.set_down(true);
    // The API server fails both for a user's request and for the user's authentication.
    for who in ["ada", "bob"] {
        let failed = portal.json("POST", who, "/api/workspaces", &json!({"owner": who})).await;
        let words = "Failed to create workspace.";
        assert_eq!(
            (failed.status.as_u16(), &failed.json()["error"]),
            (500, &json!(words)),
            "{who}"
        );
        let listed = portal.get(who, "/api/workspaces").await;
        let words = "Failed to list workspaces.";
        assert_eq!(
            (listed.status.as_u16(), &listed.json()["error"]),
            (500, &json!(words)),
            "{who}"
        );
        let deleted = portal.json("DELETE", who, "/api/workspaces/ws-x-1", &json!(null)).await;
        let words = "Failed to delete workspace.";
        assert_eq!(
            (deleted.status.as_u16(), &deleted.json()["error"]),
            (500, &json!(words)),
            "{who}"
        );
        let pool = json!({"name": "render", "specName": "g1.1", "replicas": 1});
        let pool = portal.json("POST", who, "/api/v1/operator/stockpools", &pool).await;
        let words = "Failed to create stock pool.";
        assert_eq!((pool.status.as_u16(), &pool.json()["error"]), (500, &json!(words)), "{who}");
    }
}

#[tokio::test]
async fn user_acts_for_others_only_with_the_right() {
    let (cluster, portal) = both().await;
    let refused = portal.json("POST", "ada", "/api/workspaces", &json!({"owner": "bob"})).await;
    assert_eq!(refused.status, 403, "{:?}", refused.body);
    assert!(cluster.paths("gpudevworkspaceclaims/").is_empty());
    let made = portal.json("POST", "operator", "/api/workspaces", &json!({"owner": "bob"})).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    assert_eq!(made.json()["metadata"]["labels"]["owner"], "bob");
}

#[tokio::test]
async fn person_is_one_owner_by_session_token_and_proxy() {
    for prefix in ["", "oidc:"] {
        let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
        let folder = tempfile::tempdir().unwrap();
        let mut flags = provider.flags(&folder);
        flags.extend(["username", "groups"].map(|what| format!("--oidc-{what}-prefix={prefix}")));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let portal = Portal::start(&cluster, "portal", &flags).await;
        let session = provider.session(&portal, "ada", &["vision"]).await;
        let origin = portal.url("");
        let headers = [
            ("cookie", session.as_str()),
            ("origin", origin.as_str()),
            ("content-type", "application/json"),
        ];
        let keys = json!({"keys": [KEY]});
        assert_eq!(
            portal.send("PUT", "/api/v1/keys", &headers, keys.to_string()).await.status,
            200
        );
        let username = format!("{prefix}ada");
        assert_eq!(portal.get(&username, "/api/v1/keys").await.json(), keys);
        assert_eq!(portal.get(&username, "/api/v1/me").await.json()["login"], "ada");
        for (token, named) in
            [(username.as_str(), "ada"), ("operator", "ada"), ("operator", &*username)]
        {
            let made =
                portal.json("POST", token, "/api/workspaces", &json!({"owner": named})).await;
            assert_eq!(made.status, 202, "{token} for {named}: {:?}", made.body);
            let object = made.json();
            assert_eq!(
                object["spec"]["parameters"],
                json!({"owner": "ada", "sshPublicKeys": [KEY]})
            );
            assert_eq!(object["metadata"]["labels"]["owner"], "ada");
            assert_eq!(
                object["metadata"]["annotations"]["paved-road.fn.crossplane.io/owner"],
                "ada"
            );
        }
    }
}

#[tokio::test]
async fn an_account_of_kubernetes_own_makes_a_workspace() {
    let (cluster, portal) = both().await;
    let who = "system:serviceaccount:team-vision:builder";
    let made = portal.json("POST", who, "/api/workspaces", &json!({"owner": who})).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    let object = made.json();
    assert_eq!(object["spec"]["parameters"]["owner"], "system-serviceaccount-team-vision-builder");
    assert_eq!(object["metadata"]["annotations"]["paved-road.fn.crossplane.io/owner"], who);
    let name = object["metadata"]["name"].as_str().unwrap();
    assert!(cluster.get(&at("gpudevworkspaceclaims", "team-vision", name)).is_some());
    assert_eq!(portal.get(who, "/api/workspaces").await.json()[0]["owner"], who);
}

#[tokio::test]
async fn missing_template_creates_no_environment_beside_the_portals_keys() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let portal =
        Portal::with(&cluster, "portal", &flags.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
    // The operator may create environments in every namespace.
    for (path, body) in [
        ("/api/workspaces", json!({"owner": "operator"})),
        ("/api/environments/", json!({"name": "shop"})),
        ("/api/v1/operator/stockpools", json!({"specName": "g1.1", "replicas": 1})),
    ] {
        let refused = portal.json("POST", "operator", path, &body).await;
        let told = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 403 && told.contains("--namespace-template"), "{path}: {told}");
    }
    assert!(cluster.paths("/namespaces/portal/").iter().all(|path| path.contains("configmaps")));
    assert_eq!(portal.get("operator", "/api/v1/me").await.json()["namespaces"], json!([]));
    let named = json!({"namespace": "team-vision", "specName": "g1.1", "replicas": 1});
    assert_eq!(portal.json("POST", "ada", "/api/v1/operator/stockpools", &named).await.status, 202);
}

#[tokio::test]
async fn an_application_environment_is_made() {
    let (cluster, portal) = both().await;
    let made = portal.json("POST", "ada", "/api/environments/", &json!({"name": "shop"})).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    let made = made.json();
    assert_eq!((&made["status"], &made["name"]), (&json!("creating"), &json!("shop-ada")));
    let there = cluster.get(&at("applicationenvironments", "team-vision", "shop-ada")).unwrap();
    assert_eq!(there["metadata"]["labels"]["request-id"], made["requestId"]);
    assert_eq!(there["metadata"]["labels"]["owner"], "ada");
    assert_eq!(there["spec"]["compositionSelector"]["matchLabels"], json!({"provider": "gcp"}));
    assert_eq!(there["spec"]["parameters"], json!({"nodeSize": "small"}));
    for body in [json!({}), json!({"name": ""})] {
        let refused = portal.json("POST", "ada", "/api/environments/", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (400, &json!("Environment name is required."))
        );
    }
    let again = portal.json("POST", "ada", "/api/environments/", &json!({"name": "shop"})).await;
    assert_eq!(again.status, 409);
    cluster.set_down(true);
    for who in ["ada", "bob"] {
        let failed = portal.json("POST", who, "/api/environments/", &json!({"name": "shop"})).await;
        let told = failed.json();
        assert_eq!(
            (failed.status.as_u16(), &told["error"]),
            (500, &json!("Failed to create environment."))
        );
        assert!(told["details"].is_string(), "{told}");
    }
}

#[tokio::test]
async fn size_is_another_name_of_node_size() {
    let (cluster, portal) = both().await;
    for (number, (body, size)) in [
        (json!({"size": "large"}), "large"),
        (json!({"nodeSize": "medium"}), "medium"),
        (json!({"size": "medium", "nodeSize": "medium"}), "medium"),
        (json!({"size": "large", "nodeSize": null}), "large"),
        (json!({"size": "", "nodeSize": "large"}), "large"),
    ]
    .into_iter()
    .enumerate()
    {
        for (path, name) in [("/api/environments/", "a"), ("/api/environments", "b")] {
            let mut body = body.clone();
            body["name"] = json!(format!("{name}{number}"));
            let made = portal.json("POST", "ada", path, &body).await;
            assert_eq!(made.status, 202, "{path} {body}: {:?}", made.body);
            let name = made.json()["name"].as_str().unwrap().to_owned();
            let there = cluster.get(&at("applicationenvironments", "team-vision", &name)).unwrap();
            assert_eq!(there["spec"]["parameters"], json!({"nodeSize": size}), "{body}");
        }
    }
    let both = json!({"name": "c", "size": "large", "nodeSize": "small"});
    let wrong = json!({"name": "c", "size": 3});
    for (body, part) in [(both, "found \"large\", and nodeSize is \"small\""), (wrong, "a text")] {
        let refused = portal.json("POST", "ada", "/api/environments", &body).await;
        let problem = refused.json();
        assert_eq!(
            (refused.status.as_u16(), &problem["errors"][0]["field"]),
            (400, &json!("size"))
        );
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
    cluster.set_down(true);
    let failed = portal.json("POST", "ada", "/api/environments", &json!({"name": "d"})).await;
    assert_eq!(failed.json()["error"], "Failed to create environment.");
}

#[tokio::test]
async fn stock_pools_of_a_namespace_are_listed() {
    let (cluster, portal) = both().await;
    for namespace in ["team-vision", "team-sound"] {
        cluster.put(&at("stockpools", namespace, "render"), environment("StockPool", "ada"));
    }
    let path = "/api/v1/operator/stockpools";
    let count = |answer: &crate::world::portal::Answer| answer.json().as_array().map(Vec::len);
    portal.until_as("operator", path, |answer| count(answer) == Some(2)).await;
    let list = portal.get("operator", &format!("{path}?namespace=team-sound")).await.json();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["namespace"]), (1, &json!("team-sound")));
    for (namespace, status, length) in
        [("team-none", 200, Some(0)), ("Team", 400, None), ("a/b", 400, None)]
    {
        let answer = portal.get("operator", &format!("{path}?namespace={namespace}")).await;
        assert_eq!((answer.status.as_u16(), count(&answer)), (status, length), "{namespace}");
    }
    assert_eq!(
        count(&portal.get("ada", &format!("{path}?namespace=team-sound")).await),
        Some(0),
        "ada may not read there"
    );
}

#[tokio::test]
async fn unknown_query_parameter_of_an_older_path_is_rejected() {
    let (cluster, portal) = both().await;
    let pool = json!({"specName": "g1.1", "replicas": 1});
    for (method, path, body) in [
        ("GET", "/api/workspaces", json!(null)),
        ("POST", "/api/workspaces", json!({"owner": "ada"})),
        ("DELETE", "/api/workspaces/a", json!(null)),
        ("POST", "/api/environments/", json!({"name": "shop"})),
        ("POST", "/api/environments", json!({"name": "shop"})),
        ("GET", "/api/v1/operator/stockpools", json!(null)),
        ("POST", "/api/v1/operator/stockpools", pool),
        ("GET", "/api/v1/operator/jobs/0123456789abcdef0123456789abcdef", json!(null)),
    ] {
        let answer = portal.json(method, "ada", &format!("{path}?labels=a"), &body).await;
        let problem = answer.json();
        assert_eq!(answer.status, 400, "{method} {path}: {problem}");
        let error = &problem["errors"][0];
        assert_eq!(error["field"], "labels", "{problem}");
        assert!(
            error["message"].as_str().unwrap().starts_with("unknown query parameter; allowed: ")
        );
    }
    assert!(cluster.paths("/namespaces/team-vision/").is_empty());
}

async fn told(
    socket: &mut (impl StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin),
) -> Value {
    loop {
        let next = tokio::time::timeout(std::time::Duration::from_secs(20), socket.next());
        match next.await.expect("no message in time").unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(frame) => {
                return json!({"closed": frame.map(|frame| u16::from(frame.code))});
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn websocket_reports_only_own_environments() {
    let (cluster, portal) = both().await;
    let path = at("applicationenvironments", "team-vision", "shop");
    cluster.put(
        &at("applicationenvironments", "team-vision", "others"),
        environment("ApplicationEnvironment", "carol"),
    );
    cluster.put(&at("stockpools", "team-vision", "pool"), environment("StockPool", "ada"));
    cluster.put(&path, environment("ApplicationEnvironment", "ada"));
    let authorization = [("authorization", "Bearer token-ada")];
    let mut socket = portal.socket("/ws/status/?token=url-canary", &authorization).await.unwrap();
    let uid = cluster.get(&path).unwrap()["metadata"]["uid"].clone();
    let first =
        json!({"requestId": uid, "name": "shop", "status": "Provisioning", "eventType": "ADDED"});
    assert_eq!(told(&mut socket).await, first);
    cluster.change(&path, |object| {
        object["metadata"]["labels"]["request-id"] = json!("r-1");
        object["status"]["phase"] = json!("Failed");
        object["status"]["conditions"] = json!([refusal()]);
    });
    let second = json!({"requestId": "r-1", "name": "shop", "status": "Error", "eventType": "MODIFIED",
        "message": REFUSED});
    assert_eq!(told(&mut socket).await, second);
    cluster.change(&path, |object| {
        let good = |kind| json!({"type": kind, "status": "True", "reason": "x", "message": ""});
        object["status"] = json!({"phase": "Ready"});
        object["status"]["conditions"] = ["Synced", "Ready", "Provisioned"].map(good).into();
    });
    assert_eq!(told(&mut socket).await["status"], "Ready");
    for (owner, event) in [("carol", "DELETED"), ("ada", "ADDED")] {
        cluster.change(&path, |object| object["metadata"]["labels"]["owner"] = json!(owner));
        assert_eq!(told(&mut socket).await["eventType"], event, "its owner is {owner}");
    }
    cluster.begin_deletion(&path);
    assert_eq!(told(&mut socket).await["status"], "Deleting");
    cluster.remove(&path);
    let last =
        json!({"requestId": "r-1", "name": "shop", "status": "Deleting", "eventType": "DELETED"});
    assert_eq!(told(&mut socket).await, last);
    assert!(!portal.log().contains("url-canary"), "a token in the URL is logged");
}

#[tokio::test]
async fn a_first_message_can_bring_the_token() {
    let cluster = ApiServer::start().await;
    let provider = crate::world::oidc::Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portal = Portal::start(&cluster, "portal", &flags).await;
    cluster.put(
        &at("applicationenvironments", "team-vision", "shop"),
        environment("ApplicationEnvironment", "ada"),
    );
    let mut socket = portal.socket("/ws/status/?token=token-ada", &[]).await.unwrap();
    socket.send(Message::text(r#"{"token": "token-ada"}"#)).await.unwrap();
    assert_eq!(told(&mut socket).await["name"], "shop");
    for strange in
        ["token-nobody", "", "[]", "{}", r#"{"token": "token-nobody"}"#, r#"{"token": 3}"#]
    {
        let mut socket = portal.socket("/ws/status/?token=token-ada", &[]).await.unwrap();
        socket.send(Message::text(strange)).await.unwrap();
        assert_eq!(told(&mut socket).await, json!({"closed": 4401}), "{strange}");
    }
    cluster.set_down(true);
    let mut socket = portal.socket("/ws/status/", &[]).await.unwrap();
    socket.send(Message::text(r#"{"token": "token-bob"}"#)).await.unwrap();
    assert_eq!(told(&mut socket).await, json!({"closed": 1013}), "the token cannot be checked");
}

#[tokio::test]
async fn websockets_are_notified_when_the_portal_stops() {
    let (_cluster, mut portal) = both().await;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let authorization = [("authorization", "Bearer token-ada")];
        sockets.push(portal.socket("/ws/status/", &authorization).await.unwrap());
    }
    let are_open = "paved_portal_streams 20\n";
    portal
        .until("/metrics", |answer| String::from_utf8_lossy(&answer.body).contains(are_open))
        .await;
    assert_eq!(portal.stop().await, 0);
    for socket in &mut sockets {
        assert_eq!(told(socket).await, json!({"closed": 1012}));
    }
}

#[tokio::test]
async fn a_stock_pool_is_made_by_a_job() {
    let (cluster, portal) = both().await;
    assert_eq!(portal.get("", "/api/v1/health").await.status, 200);
    let body = json!({"name": "spare", "namespace": "team-vision", "specName": "g1.1", "image": "pause:1", "memory": "2Gi",
        "gpu": 1, "replicas": 2});
    let made = portal.json("POST", "ada", "/api/v1/operator/stockpools", &body).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    let job = made.json();
    let id = job["jobID"].as_str().unwrap();
    assert!(job["status"].is_string());
    let there = cluster.get(&at("stockpools", "team-vision", "spare")).unwrap();
    assert_eq!(
        there["spec"],
        json!({"specName": "g1.1", "image": "pause:1", "memory": "2Gi", "gpu": 1, "replicas": 2})
    );
    assert_eq!(there["metadata"]["labels"]["request-id"], id);
    let asked = portal.get("ada", &format!("/api/v1/operator/jobs/{id}")).await;
    assert_eq!((asked.status.as_u16(), &asked.json()["status"]), (200, &json!("succeeded")));
    assert_eq!(
        portal.get("bob", &format!("/api/v1/operator/jobs/{id}")).await.status,
        404,
        "a foreign job"
    );
    assert_eq!(portal.get("ada", "/api/v1/operator/jobs/0123").await.status, 404);
    let list = portal.get("ada", "/api/v1/operator/stockpools").await.json();
    assert_eq!(
        (&list[0]["name"], &list[0]["replicas"], &list[0]["specName"]),
        (&json!("spare"), &json!(2), &json!("g1.1"))
    );
    assert_eq!(portal.get("bob", "/api/v1/operator/stockpools").await.json(), json!([]));
    let mut known = json!({"phase": "Provisioning", "available": 1, "allocated": 3});
    cluster.change(&at("stockpools", "team-vision", "spare"), |object| {
        object["status"] = known.clone();
        object["status"]["conditions"] = json!([refusal()]);
    });
    known["message"] = json!(REFUSED);
    let path = "/api/v1/operator/stockpools";
    portal.until_as("ada", path, |answer| answer.json()[0]["status"] == known).await;
}

#[tokio::test]
async fn a_stock_pool_is_refused_at_once() {
    let (_cluster, portal) = both().await;
    for (body, status) in [
        (json!({"replicas": 1}), 400),
        (json!({"specName": "g1.1"}), 400),
        (json!({"specName": "g1.1", "replicas": "many"}), 400),
        (json!({"specName": "g1.1", "replicas": 5000}), 422),
        (json!({"specName": "g1.1", "replicas": 1, "name": "over-quota"}), 403),
        (json!({"specName": "g1.1", "replicas": 1, "namespace": "team-sound"}), 403),
        (json!({"specName": "g1.1", "replicas": 1, "namespace": "../../x"}), 400),
    ] {
        let refused = portal.json("POST", "ada", "/api/v1/operator/stockpools", &body).await;
        assert_eq!(refused.status, status, "{body}: {:?}", refused.body);
        assert!(refused.json()["error"].is_string());
    }
    let quota = json!({"specName": "g1.1", "replicas": 1, "name": "over-quota"});
    let told = portal.json("POST", "ada", "/api/v1/operator/stockpools", &quota).await.json();
    assert_eq!(
        told["detail"], "exceeded quota: count/environments",
        "a quota's message is shown unchanged"
    );
}

#[tokio::test]
async fn the_same_key_means_the_same_job() {
    let (cluster, portal) = both().await;
    let path = "/api/v1/operator/stockpools";
    let ask = |token: &'static str, key: &'static str, replicas: i64| {
        let authorization = format!("Bearer token-{token}");
        let body = json!({"specName": "g1.1", "replicas": replicas}).to_string();
        let portal = &portal;
        async move {
            let headers = [
                ("content-type", "application/json"),
                ("authorization", authorization.as_str()),
                ("idempotency-key", key),
            ];
            portal.send("POST", path, &headers, body).await
        }
    };
    let (first, second) = tokio::join!(ask("ada", "k1", 1), ask("ada", "k1", 1));
    assert_eq!(
        (first.status.as_u16(), second.status.as_u16()),
        (202, 202),
        "{:?} {:?}",
        first.body,
        second.body
    );
    assert_eq!(first.json()["jobID"], second.json()["jobID"]);
    assert_eq!(cluster.paths("stockpools/").len(), 1, "one claim");
    assert_eq!(ask("ada", "k1", 2).await.status, 409, "another body under the same key");
    assert_ne!(ask("ada", "k2", 1).await.json()["jobID"], first.json()["jobID"]);
    let others = ask("bob", "k1", 2).await;
    assert_eq!(others.status, 202, "keys of different users differ");
    assert_ne!(others.json()["jobID"], first.json()["jobID"]);
    assert_eq!(cluster.paths("stockpools/").len(), 3);
}

#[tokio::test]
async fn simultaneous_requests_with_one_key_count_once() {
    let (cluster, portal) = both().await;
    let ask = async |key: &str, name: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("authorization", "Bearer token-ada"),
            ("idempotency-key", key),
        ];
        let body = json!({"name": name, "specName": "g1.1", "replicas": 1}).to_string();
        portal.send("POST", "/api/v1/operator/stockpools", &headers, body).await
    };
    for round in 1..=5 {
        let names = ["one", "two"].map(|name| format!("{name}-{round}"));
        let key = format!("key-{round}");
        let (first, second) = tokio::join!(ask(&key, &names[0]), ask(&key, &names[1]));
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409], "{:?} {:?}", first.body, second.body);
        assert_eq!(cluster.paths("stockpools/").len(), round, "one claim for each key");
    }
}

#[tokio::test]
async fn claim_of_another_user_is_not_a_job() {
    let (cluster, portal) = both().await;
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer token-ada"),
        ("idempotency-key", "k"),
    ];
    let body = r#"{"name": "mine", "specName": "g1.1", "replicas": 1}"#;
    let made = portal.send("POST", "/api/v1/operator/stockpools", &headers, body).await.json();
    cluster.remove(&at("stockpools", "team-vision", "mine"));
    let mut planted = environment("StockPool", "bob");
    planted["metadata"]["labels"]["request-id"] = made["jobID"].clone();
    cluster.put(&at("stockpools", "team-vision", "planted"), planted);
    let again = portal.send("POST", "/api/v1/operator/stockpools", &headers, body).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["name"]),
        (202, &json!("mine")),
        "{:?}",
        again.body
    );
}

#[tokio::test]
async fn jobs_are_found_with_rights_in_one_namespace() {
    let cluster = ApiServer::start().await;
    let portal = Portal::start(&cluster, "ada", &["--auth", "none", "-n", "team-vision"]).await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let body = r#"{"specName": "g1.1", "replicas": 1}"#;
    let made = portal.send("POST", "/api/v1/operator/stockpools", &headers, body).await;
    assert_eq!(made.status, 202, "{:?}", made.body);
    assert_eq!(portal.get("", made.header("location")).await.status, 200);
}

/// A socket without a credential waits for its first message, and uses memory meanwhile.
#[tokio::test]
async fn anonymous_sockets_are_limited() {
    let cluster = ApiServer::start().await;
    let provider = crate::world::oidc::Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let limits = Limits { anonymous_sockets: 3, ..Limits::default() };
    let portal = Portal::limited(&cluster, "portal", &flags, limits).await;
    let mut sockets = Vec::new();
    for _ in 0..limits.anonymous_sockets {
        sockets.push(portal.socket("/ws/status/", &[]).await.unwrap());
    }
    let refused = portal.socket("/ws/status/", &[]).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
    let known = [("authorization", "Bearer token-ada")];
    assert!(portal.socket("/ws/status/", &known).await.is_ok(), "known users are not limited");
    sockets[0].send(Message::text("nonsense")).await.unwrap();
    assert_eq!(told(&mut sockets[0]).await, json!({"closed": 4401}));
    assert!(portal.socket("/ws/status/", &[]).await.is_ok(), "a closed socket frees its place");
}
