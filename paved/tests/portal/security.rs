//! Common vulnerabilities of dashboards.

use std::time::{Duration, Instant};

use paved::portal::Limits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::world::api_server::{ApiServer, Asked, NOBODY, at, environment};
use crate::world::oidc::Provider;
use crate::world::portal::{Portal, TIMEOUT};

struct World {
    cluster: ApiServer,
    portal: Portal,
    session: String,
    _provider: Provider,
    _folder: tempfile::TempDir,
}

/// A portal with a provider, and a session of ada.
async fn world() -> World {
    limited(Limits::default()).await
}

/// The same, with these limits for the portal.
async fn limited(limits: Limits) -> World {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let mut flags = provider.flags(&folder);
    flags.extend(["--oidc-username-claim", "sub"].map(str::to_owned));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portal = Portal::limited(&cluster, "portal", &flags, limits).await;
    let claims = json!({"sub": "ada", "groups": ["vision"]});
    let session = crate::world::oidc::cookie(
        &provider.sign_in(&portal, claims).await,
        "__Host-paved-session",
    );
    World { cluster, portal, session, _provider: provider, _folder: folder }
}

/// Every operation that may change an object, with an example path.
async fn mutations(portal: &Portal) -> Vec<(String, String)> {
    let description = portal.get("", "/api/v1/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        let path = path
            .replace("{namespace}", "team-vision")
            .replace("{kind}", "stockpools")
            .replace("{name}", "spare");
        for method in operations
            .as_object()
            .unwrap()
            .keys()
            .filter(|method| !["get", "head", "options"].contains(&method.as_str()))
        {
            all.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(all.len() >= 11, "{all:?}");
    all
}

#[tokio::test]
async fn cross_site_changes_are_rejected() {
    let world = world().await;
    let origin = world.portal.url("");
    let origin = origin.as_str();
    for (method, path) in mutations(&world.portal).await {
        for foreign in [
            &[("origin", "https://evil.example.org")][..],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("origin", origin), ("sec-fetch-site", "cross-site")],
            &[],
        ] {
            let mut headers =
                vec![("cookie", world.session.as_str()), ("content-type", "application/json")];
            headers.extend_from_slice(foreign);
            let answer = world.portal.send(&method, &path, &headers, "{}").await;
            assert_eq!(answer.status, 403, "{method} {path} {foreign:?}: {:?}", answer.body);
        }
        let form = [
            ("cookie", world.session.as_str()),
            ("origin", origin),
            ("content-type", "text/plain"),
        ];
        let answer = world.portal.send(&method, &path, &form, "{}").await;
        let harmless =
            path.ends_with("/connection") || path == "/auth/sign-out" || method == "DELETE";
        assert!(harmless || answer.status == 415, "{method} {path}: {:?}", answer.body);
        if path == "/auth/sign-out" {
            assert_eq!(answer.status, 204);
            break;
        }
    }
    assert!(world.cluster.paths("stockpools/").is_empty());
}

#[tokio::test]
async fn own_pages_and_scripts_with_a_token_can_write() {
    let world = world().await;
    let origin = world.portal.url("");
    let origin = origin.as_str();
    let body = json!({"specName": "g1.1", "replicas": 1}).to_string();
    let path = "/api/v1/operator/stockpools";
    for evidence in [("origin", origin), ("sec-fetch-site", "same-origin")] {
        let headers =
            [("cookie", world.session.as_str()), evidence, ("content-type", "application/json")];
        let answer = world.portal.send("POST", path, &headers, body.clone()).await;
        assert_eq!(answer.status, 202, "{:?}", answer.body);
    }
    let script = [("authorization", "Bearer token-ada"), ("content-type", "application/json")];
    assert_eq!(world.portal.send("POST", path, &script, body).await.status, 202);
    let creates = world
        .cluster
        .asked()
        .into_iter()
        .filter(|(_, method, path)| method == "POST" && path.ends_with("/stockpools"));
    let who: Vec<String> = creates.map(|(who, ..)| who).collect();
    assert_eq!(who, ["ada", "ada", "ada"], "each write has the user's own rights");
}

#[tokio::test]
async fn streams_are_not_for_other_sites() {
    let world = world().await;
    let evil = ("origin", "https://evil.example.org");
    let cookie = ("cookie", world.session.as_str());
    assert_eq!(world.portal.open("GET", "/api/v1/watch", &[cookie, evil], "").await.status(), 403);
    assert_eq!(world.portal.open("GET", "/api/v1/watch", &[], "").await.status(), 401);
    let own = world.portal.url("");
    assert!(world.portal.socket("/ws/status/", &[cookie, ("origin", &own)]).await.is_ok());
    for foreign in
        [&[cookie, evil][..], &[evil], &[cookie], &[("authorization", "Bearer token-ada"), evil]]
    {
        let refused = world.portal.socket("/ws/status/", foreign).await.map(drop).unwrap_err();
        assert!(refused.to_string().contains("403"), "{foreign:?}: {refused}");
    }
}

#[tokio::test]
async fn impersonation_header_is_rejected() {
    let world = world().await;
    for header in
        ["impersonate-user", "Impersonate-Group", "impersonate-uid", "impersonate-extra-scopes"]
    {
        for credential in
            [("cookie", world.session.as_str()), ("authorization", "Bearer token-ada")]
        {
            let headers = [credential, (header, "system:masters")];
            let answer = world.portal.send("GET", "/api/v1/me", &headers, "").await;
            assert_eq!(answer.status, 400, "{header}: {:?}", answer.body);
        }
    }
    world.cluster.asked();
    let listed = [
        ("cookie", world.session.as_str()),
        ("connection", "impersonate-user"),
        ("x-remote-user", "operator"),
    ];
    let me = world.portal.send("GET", "/api/v1/me", &listed, "").await.json();
    assert_eq!(me["username"], "ada");
}

#[tokio::test]
async fn request_body_gives_no_rights() {
    let world = world().await;
    let portal = &world.portal;
    let document = |metadata: Value| {
        json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": metadata,
            "spec": {"specName": "g1.1", "replicas": 1}})
    };
    for (metadata, status) in [
        (json!({"name": "a", "namespace": "team-sound"}), 403),
        (json!({"name": "a", "namespace": "portal"}), 403),
        (json!({"name": "a", "namespace": "team-vision", "labels": {"owner": "bob"}}), 403),
        (json!({"name": "a", "namespace": "../kube-system"}), 400),
        (json!({"name": "../../secrets/a"}), 400),
        (json!({"name": "a", "ownerReferences": [{"kind": "Node"}]}), 400),
        (json!({"name": "a", "labels": "owner=bob"}), 400),
    ] {
        let answer =
            portal.json("POST", "ada", "/api/v1/environments", &document(metadata.clone())).await;
        assert_eq!(answer.status, status, "{metadata}: {:?}", answer.body);
    }
    let made =
        document(json!({"name": "a", "annotations": {"paved-road.fn.crossplane.io/owner": "bob"}}));
    assert_eq!(portal.json("POST", "ada", "/api/v1/environments", &made).await.status, 201);
    let there = world.cluster.get(&at("stockpools", "team-vision", "a")).unwrap();
    assert_eq!(there["metadata"]["annotations"]["paved-road.fn.crossplane.io/owner"], "ada");
    let headers =
        [("authorization", "Bearer token-ada"), ("content-type", "application/merge-patch+json")];
    for patch in [
        json!({"metadata": {"labels": {"owner": "bob"}}}),
        json!({"metadata": {"namespace": "team-sound"}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"status": {"phase": "Ready"}}),
    ] {
        let path = "/api/v1/environments/team-vision/stockpools/a";
        let answer = portal.send("PATCH", path, &headers, patch.to_string()).await;
        assert!(answer.status == 403 || answer.status == 400, "{patch}: {:?}", answer.body);
    }
    for kind in ["Secret", "ConfigMap", "Pod", "ClusterRoleBinding"] {
        let body = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
        assert_eq!(
            portal.json("POST", "operator", "/api/v1/environments", &body).await.status,
            400,
            "{kind}"
        );
        let path = format!("/api/v1/environments/portal/{kind}/a");
        assert_eq!(portal.get("operator", &path).await.status, 404, "{kind}");
    }
}

#[tokio::test]
async fn encoded_paths_reach_no_other_resource() {
    let world = world().await;
    world.cluster.asked();
    for path in [
        "/api/v1/environments/team-vision/stockpools/..%2f..%2fsecrets%2fa",
        "/api/v1/environments/team-vision%2f..%2fportal/stockpools/a",
        "/api/v1/environments/team-vision/..%2fsecrets/a",
        "/api/v1/environments/team-vision/stockpools/a%3Fwatch=1",
        "/api/v1/environments/team-vision/stockpools/%00",
        "/api/workspaces/..%2f..%2fx",
        "/api/v1/operator/jobs/..%2f..%2fx",
        "/assets/..%2f..%2fCargo.toml",
    ] {
        let method = if path.starts_with("/api/workspaces") { "DELETE" } else { "GET" };
        let answer = world.portal.json(method, "ada", path, &Value::Null).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!([400, 404].contains(&answer.status.as_u16()), "{path}: {} {text}", answer.status);
    }
    let page = world.portal.get("ada", "/..%2f..%2fetc%2fpasswd").await;
    assert!(page.status == 200 && !String::from_utf8_lossy(&page.body).contains("root:"));
    let strange =
        |path: &str| path.contains("secrets") || path.contains("..") || path.contains('%');
    assert!(world.cluster.asked().iter().all(|(_, _, path)| !strange(path)));
}

#[tokio::test]
async fn a_body_has_a_bound() {
    let world = world().await;
    let headers = [("authorization", "Bearer token-ada"), ("content-type", "application/json")];
    // The portal answers before it receives the body.
    let mut stream = TcpStream::connect(&world.portal.address).await.unwrap();
    let head = "POST /api/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-ada\r\n\
                content-type: application/json\r\ncontent-length: 1048577\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    let told = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(
        told.starts_with("HTTP/1.1 413") && told.contains("application/problem+json"),
        "{told}"
    );
    // Without a length header, the portal counts the received bytes.
    let mut stream = TcpStream::connect(&world.portal.address).await.unwrap();
    let head = "POST /api/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-ada\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..20 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = vec![0; 64];
    let read = stream.read(&mut answer).await.unwrap_or(0);
    let told = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(told.starts_with("HTTP/1.1 413") || read == 0, "{told}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(world.portal.send("POST", "/api/v1/preview", &headers, deep).await.status, 400);
}

/// The head of a request with a body, by a user who may send it.
const POST: &str = "POST /api/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-ada\r\n\
                    content-type: application/json\r\n";

#[tokio::test]
async fn client_that_pauses_is_rejected() {
    let pause = Duration::from_millis(500);
    let world =
        limited(Limits { request_head: pause, body_pause: pause, ..Limits::default() }).await;
    let is_rejected = async |said: &str| {
        let began = Instant::now();
        let mut stream = TcpStream::connect(&world.portal.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        // Some clients get a response first.
        let end = timeout(TIMEOUT, stream.read(&mut [0; 64])).await;
        assert!(end.is_ok() && began.elapsed() >= pause, "{said:?} after {:?}", began.elapsed());
    };
    let body = format!("{POST}content-length: 9\r\n\r\n{{");
    tokio::join!(
        is_rejected(""),
        is_rejected("PRI "),
        is_rejected("PRI * HTTP/2.0\r\n"),
        is_rejected("GET /healthz HTTP/1.1\r\n"),
        is_rejected(&body),
        async {
            let answer = world.portal.get("", "/healthz").await;
            assert_eq!(answer.status, 200, "others are served meanwhile");
        }
    );
}

#[tokio::test]
async fn client_that_sends_slowly_is_rejected() {
    let limit = Duration::from_secs(2);
    let world = limited(Limits { request_head: limit, response: limit, ..Limits::default() }).await;
    let is_rejected = async |said: &str| {
        let began = Instant::now();
        let stream = TcpStream::connect(&world.portal.address).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let trickle = async {
            let mut sent = write.write_all(said.as_bytes()).await;
            while sent.is_ok() {
                sleep(limit / 10).await;
                sent = write.write_all(b"x").await;
            }
        };
        let mut response = [0; 64];
        let end = timeout(TIMEOUT, async {
            tokio::select! {
                () = trickle => {}
                _ = read.read(&mut response) => {}
            }
        });
        let end = end.await;
        assert!(end.is_ok() && began.elapsed() >= limit, "{said:?} after {:?}", began.elapsed());
    };
    let body = format!("{POST}content-length: 1000000\r\n\r\n{{");
    tokio::join!(is_rejected("GET /healthz HTTP/1.1\r\nx-slow: "), is_rejected(&body));
}

#[tokio::test]
async fn connections_may_exceed_the_initial_limit_of_open_files() {
    let cluster = ApiServer::start().await;
    let portal = Portal::process(&cluster, "portal", &["--auth", "none"]).await;
    let mut lines = Vec::new();
    for _ in 0..100 {
        lines.push(TcpStream::connect(&portal.address).await.unwrap());
    }
    assert_eq!(portal.get("", "/healthz").await.status, 200);
}

#[tokio::test]
async fn log_lines_of_a_request_have_its_id() {
    let world = world().await;
    let mut object = environment("ApplicationEnvironment", "ada");
    object["spec"]["writeConnectionSecretToRef"] = json!({"name": "shop-conn"});
    world.cluster.put(&at("applicationenvironments", "team-vision", "shop"), object);
    let id = "0123456789abcdef";
    let headers = [("authorization", "Bearer token-ada"), ("x-request-id", id)];
    let path = "/api/v1/environments/team-vision/applicationenvironments/shop/connection";
    assert_eq!(
        world.portal.send("POST", path, &headers, "").await.status,
        404,
        "there is no Secret yet"
    );
    let is_told = |field: &str, value: &str| {
        let log = world.portal.log();
        let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.any(|line| line[field] == value && line["span"]["request"] == id)
    };
    for (field, value) in [("audit", "connection"), ("message", "answered")] {
        world.portal.until("/healthz", |_| is_told(field, value)).await;
    }
}

#[tokio::test]
async fn secrets_are_never_in_the_log() {
    let world = world().await;
    let portal = &world.portal;
    let canary = "canary-0123456789";
    let bearer = format!("Bearer {canary}");
    let cookie = format!("__Host-paved-session={canary}");
    for headers in [
        [("authorization", bearer.as_str())],
        [("cookie", cookie.as_str())],
        [("x-api-key", canary)],
        [("x-request-id", canary)],
    ] {
        for path in ["/api/v1/me", "/api/v1/nothing", "/auth/callback", "/ws/status/"] {
            let answer = portal
                .send("GET", &format!("{path}?token={canary}&code={canary}"), &headers, "")
                .await;
            let echoed = String::from_utf8_lossy(&answer.body).contains(canary);
            assert!(!echoed || headers[0].0 == "x-request-id", "{path} {headers:?}");
        }
    }
    let body = format!(r#"{{"owner": {{"{canary}": 1}}, "password": "{canary}"}}"#);
    let headers = [("authorization", "Bearer token-ada"), ("content-type", "application/json")];
    for path in [
        "/api/workspaces",
        "/api/environments/",
        "/api/v1/operator/stockpools",
        "/api/v1/environments",
        "/api/v1/preview",
    ] {
        portal.send("POST", path, &headers, body.clone()).await;
    }
    let log = portal.log();
    let lines = log.lines().filter(|line| {
        line.contains(canary) && !line.contains(&format!("\"request\":\"{canary}\""))
    });
    assert_eq!(lines.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(
        !log.contains("token-portal")
            && !log.contains("access-canary")
            && !log.contains(&world.session)
    );
}

#[tokio::test]
async fn cached_answer_of_one_user_is_not_sent_to_another() {
    let world = world().await;
    world.cluster.put(&at("stockpools", "team-vision", "adas"), environment("StockPool", "ada"));
    world.cluster.put(&at("stockpools", "team-sound", "bobs"), environment("StockPool", "bob"));
    let names = |answer: &crate::world::portal::Answer| -> Vec<String> {
        let items = answer.json()["items"].clone();
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let path = "/api/v1/environments";
    world.portal.until_as("operator", path, |answer| names(answer).len() == 2).await;
    for _ in 0..2 {
        for (token, seen) in [
            ("ada", vec!["adas"]),
            ("bob", vec!["bobs"]),
            ("eve", vec![]),
            ("operator", vec!["bobs", "adas"]),
        ] {
            assert_eq!(names(&world.portal.get(token, path).await), seen, "{token}");
        }
        assert_eq!(world.portal.get("", path).await.status, 401);
        let unknown = world.portal.get("nobody", path).await;
        assert_eq!(
            (unknown.status.as_u16(), unknown.header("www-authenticate").is_empty()),
            (401, false)
        );
        for answer in [world.portal.get("ada", path).await, unknown] {
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
    let planted = at("stockpools", "team-sound", "planted");
    world.cluster.put(&planted, environment("StockPool", "ada"));
    world.portal.until_as("bob", path, |answer| names(answer).len() == 2).await;
    assert_eq!(
        names(&world.portal.get("ada", path).await),
        ["adas"],
        "a label gives no right to read"
    );
}

#[tokio::test]
async fn portal_with_a_certificate_speaks_only_tls() {
    let cluster = ApiServer::start().await;
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) =
        (write("tls.crt", &made.cert.pem()), write("tls.key", &made.signing_key.serialize_pem()));
    let config = format!(
        "auth: none\ntls-cert: {cert}\ntls-key: {key}\nnamespace-template: team-{{group}}\n"
    );
    let config = write("portal.yaml", &config);
    let portal = Portal::trusted(&cluster, "ada", &["--config", &config], made.cert.der()).await;
    let me = portal.get("", "/api/v1/me").await;
    assert_eq!(me.json()["username"], "ada");
    assert_eq!(me.header("strict-transport-security"), "max-age=31536000");
    let mut plain = TcpStream::connect(&portal.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut told = Vec::new();
    _ = plain.read_to_end(&mut told).await;
    assert!(!told.starts_with(b"HTTP/"), "{told:?}");
}

#[tokio::test]
async fn other_host_on_a_loopback_listener_is_rejected() {
    let cluster = ApiServer::start().await;
    let portal = Portal::start(&cluster, "ada", &["--auth", "none", "-n", "team-vision"]).await;
    assert_eq!(portal.get("", "/api/v1/me").await.json()["username"], "ada");
    let rebound = portal.send("GET", "/api/v1/me", &[("host", "evil.example.org")], "").await;
    assert_eq!(rebound.status, 403);
    let forged = [("origin", "https://evil.example.org"), ("content-type", "application/json")];
    assert_eq!(portal.send("POST", "/api/workspaces", &forged, "{}").await.status, 403);
    let refused = tokio::task::spawn_blocking(|| {
        crate::support::paved(&["portal", "--auth", "none", "--listen", "0.0.0.0:0"])
    });
    let refused = refused.await.unwrap();
    assert!(refused.code == 1 && refused.err.contains("loopback"), "{}", refused.err);
}

/// A user who writes an environment chooses the name of its Secret and, in the namespaced API, the
/// names of its resources. Such a name must not lead the portal to another path of the API server.
#[tokio::test]
async fn name_in_an_object_cannot_change_the_path() {
    let limits = Limits { deletions: Duration::from_millis(50), ..Limits::default() };
    let world = limited(limits).await;
    let (cluster, portal) = (&world.cluster, &world.portal);
    let path = at("applicationenvironments", "team-vision", "shop");
    cluster.put(&path, environment("ApplicationEnvironment", "ada"));
    let reveal = "/api/v1/environments/team-vision/applicationenvironments/shop/connection";
    for name in ["../../kube-system/secrets/admin", "x?watch=1", "x#y", ".."] {
        cluster.change(&path, |object| {
            object["spec"]["writeConnectionSecretToRef"] = json!({"name": name});
        });
        cluster.asked();
        let answer = portal.json("POST", "ada", reveal, &Value::Null).await;
        assert_eq!(answer.status, 400, "{name}: {:?}", answer.body);
        let field = &answer.json()["errors"][0]["field"];
        assert_eq!(field, "spec.writeConnectionSecretToRef.name", "{name}");
        let asked = cluster.asked();
        assert!(asked.iter().all(|(.., path)| !path.contains("secrets")), "{name}: {asked:?}");
    }
    cluster.change(&path, |object| {
        object["spec"]["resourceRefs"] = json!([
            {"apiVersion": "../../api/v1", "kind": "Secret", "name": "a"},
            {"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "name": "../../v1/secrets?x="},
        ]);
        object["spec"]["resourceRef"] =
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "name": "../x"});
    });
    cluster.begin_deletion(&path);
    // The portal reads an environment that is being deleted at most twice before it follows the
    // names in it.
    let mut asked = Vec::new();
    let reads = |asked: &[Asked]| {
        asked.iter().filter(|(who, _, path)| who == "portal" && path.ends_with("/shop")).count()
    };
    let is_read_again = async {
        while reads(&asked) < 3 {
            sleep(Duration::from_millis(20)).await;
            asked.extend(cluster.asked());
        }
    };
    timeout(TIMEOUT, is_read_again).await.expect("the environment is not read again");
    let strange = |path: &str| path.contains("..") || path.contains("secrets");
    assert!(asked.iter().all(|(.., path)| !strange(path)), "{asked:?}");
}

/// A request of one megabyte must not cause a response of many megabytes.
#[tokio::test]
async fn rejected_preview_of_many_fields_is_short() {
    let world = world().await;
    let fields: serde_json::Map<String, Value> =
        (0..18_000).map(|number| (format!("{number:0>48x}"), json!(1))).collect();
    let spec = |mut fields: serde_json::Map<String, Value>| {
        fields.extend([("specName".to_owned(), json!("g1.1")), ("replicas".to_owned(), json!(1))]);
        fields
    };
    let composition: Value = {
        let text = std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml"))
            .unwrap();
        serde_saphyr::from_multiple(&text).unwrap().remove(0)
    };
    world.cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let body = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
        "metadata": {"name": "a", "namespace": "team-vision"}, "spec": spec(fields)});
    assert!(body.to_string().len() > 900_000);
    let answer = world.portal.json("POST", "ada", "/api/v1/preview", &body).await;
    assert_eq!(answer.status, 422, "{:?}", &answer.body[..answer.body.len().min(200)]);
    assert!(answer.body.len() < 100_000, "{} bytes", answer.body.len());
    let told = answer.json();
    assert_eq!(told["errors"].as_array().unwrap().len(), 50);
    assert!(told["detail"].as_str().unwrap().ends_with("other errors"), "{}", told["detail"]);
    // Other requests are still processed. A request beyond the limit of the queue gets 503.
    let mut fewer = body.clone();
    let is_kept = |name: &str| name.len() < 48 || name.ends_with('0');
    fewer["spec"].as_object_mut().unwrap().retain(|name, _| is_kept(name));
    let many = (0..40).map(|_| world.portal.json("POST", "ada", "/api/v1/preview", &fewer));
    let statuses: Vec<u16> =
        futures::future::join_all(many).await.iter().map(|answer| answer.status.as_u16()).collect();
    assert!(statuses.iter().all(|status| [422, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&422), "{statuses:?}");
}

/// The client would add the kubeconfig's groups to the user's groups, and the API server would
/// accept all of them.
#[tokio::test]
async fn impersonating_kubeconfig_is_rejected_with_sign_in() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    for (field, value) in [
        ("as", json!("system:serviceaccount:paved:portal")),
        ("as-groups", json!(["system:masters"])),
        ("as-uid", json!("1")),
        ("as-user-extra", json!({"scopes": ["all"]})),
    ] {
        let text = std::fs::read_to_string(cluster.kubeconfig("portal")).unwrap();
        let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
        kubeconfig["users"][0]["user"][field] = value;
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        let mut args = vec!["portal".to_owned(), "--listen=127.0.0.1:0".to_owned()];
        args.extend(["--kubeconfig".to_owned(), path.display().to_string()]);
        args.extend(provider.flags(&folder));
        let run =
            move || crate::support::paved(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let refused = tokio::task::spawn_blocking(run).await.unwrap();
        assert_eq!(refused.code, 1, "{field}: {}", refused.err);
        assert!(
            refused.err.contains(&format!("the kubeconfig's user has {field}")),
            "{}",
            refused.err
        );
    }
}

/// An unauthorized caller costs the API server only one request.
#[tokio::test]
async fn rejected_token_is_not_asked_about_again() {
    let world = world().await;
    world.cluster.asked();
    for _ in 0..50 {
        assert_eq!(world.portal.get("stolen", "/api/v1/me").await.status, 401);
    }
    let at_once = (0..50).map(|_| world.portal.get("guessed", "/api/v1/me"));
    for answer in futures::future::join_all(at_once).await {
        assert_eq!(answer.status, 401);
    }
    let asked = world.cluster.asked();
    let reviews =
        asked.iter().filter(|(who, _, path)| who == NOBODY && path.ends_with("selfsubjectreviews"));
    assert_eq!(reviews.count(), 2, "{asked:?}");
    assert_eq!(world.portal.get("ada", "/api/v1/me").await.status, 200);
}

/// The portal's own account stores the keys. A user who creates service accounts must not fill the
/// portal's namespace.
#[tokio::test]
async fn keys_are_stored_within_rights_and_limits() {
    let world = world().await;
    let (cluster, portal) = (&world.cluster, &world.portal);
    let key = |comment: &str| json!({"keys": [format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl {comment}")]});
    for nobody in ["system:serviceaccount:team-vision:builder", "bob"] {
        for place in ["team-vision", "team-sound"] {
            cluster.grant(nobody, &format!("create {place}"), false);
        }
        let refused = portal.json("PUT", nobody, "/api/v1/keys", &key("a")).await;
        assert_eq!(refused.status, 403, "{nobody}: {:?}", refused.body);
    }
    assert!(cluster.paths("paved-road-keys").is_empty());
    assert_eq!(portal.json("PUT", "ada", "/api/v1/keys", &key("a")).await.status, 200);
    let many: Vec<Value> = (0..20)
        .map(|number| key(&format!("{number}{}", "x".repeat(1_000)))["keys"][0].clone())
        .collect();
    let refused = portal.json("PUT", "ada", "/api/v1/keys", &json!({"keys": many})).await;
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(refused.status == 400 && detail.contains("allowed: at most 16384"), "{detail}");
}

/// Every request body has a limit. Every response ends, except streams, and their number is
/// limited.
#[tokio::test]
async fn every_route_bounds_its_body_and_its_answer() {
    const STREAMS: [&str; 2] = ["/api/v1/watch", "/ws/status/"];
    // The response is compressed while it is sent, from data of limited size.
    const COMPRESSED: [&str; 1] = ["/api/v1/kinds"];
    let world = world().await;
    let description = world.portal.get("", "/api/v1/openapi.json").await.json();
    let headers = [("authorization", "Bearer token-ada"), ("content-type", "application/json")];
    let mut bodies = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        let filled = path.replace("{namespace}", "team-vision").replace("{kind}", "stockpools");
        let filled = filled.replace("{name}", "spare").replace("{jobID}", &"0".repeat(32));
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            if operation.get("requestBody").is_some() {
                // The portal answers before it receives the body.
                let mut stream = TcpStream::connect(&world.portal.address).await.unwrap();
                let head = format!(
                    "{method} {filled} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-ada\r\n\
                     content-type: application/json\r\ncontent-length: 1048577\r\n\r\n{{"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                let mut answer = [0; 12];
                stream.read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, b"HTTP/1.1 413", "{method} {path}");
                bodies += 1;
            } else if method == "GET" && !STREAMS.contains(&path.as_str()) {
                let answer = world.portal.open("GET", &filled, &headers, "").await;
                let has_length = answer.headers().contains_key("content-length");
                assert!(
                    has_length || COMPRESSED.contains(&path.as_str()),
                    "{path} is a stream without a bound"
                );
            }
        }
    }
    assert!(bodies >= 8, "{bodies}");
}

/// Every route that reads a body waits for room. Bodies of one user leave room for others.
#[tokio::test]
async fn every_route_with_a_body_waits_for_room() {
    let body_room = Duration::from_millis(100);
    let world = limited(Limits { body_room, ..Limits::default() }).await;
    let portal = &world.portal;
    let description = portal.get("", "/api/v1/openapi.json").await.json();
    let head = |length: usize| {
        format!(
            "POST /api/v1/environments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-ada\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{{"
        )
    };
    // These bodies never end.
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(&portal.address).await.unwrap();
        stream.write_all(head(1 << 20).as_bytes()).await.unwrap();
        open.push(stream);
    }
    let small =
        json!({"kind": "StockPool", "metadata": {"name": "spare"}, "spec": {"replicas": 1}});
    let is_full = async {
        while portal.json("POST", "ada", "/api/v1/environments", &small).await.status != 503 {}
    };
    timeout(TIMEOUT, is_full).await.expect("the bodies of a user have no limit");
    let mut routes = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        let filled = path.replace("{namespace}", "team-vision").replace("{kind}", "stockpools");
        let filled = filled.replace("{name}", "spare");
        for (method, operation) in operations.as_object().unwrap() {
            if operation.get("requestBody").is_none() {
                continue;
            }
            let answer = portal.json(&method.to_uppercase(), "ada", &filled, &json!({})).await;
            let status = answer.status.as_u16();
            // Older clients get 500 for each error of the server.
            assert!([500, 503].contains(&status), "{method} {path}: {:?}", answer.body);
            let reason = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(reason.contains("too many of your requests"), "{method} {path}: {reason}");
            routes += 1;
        }
    }
    assert!(routes >= 13, "{routes}");
    let other = portal.json("POST", "bob", "/api/v1/environments", &small).await;
    assert_eq!(other.status, 201, "{:?}", other.body);
    drop(open);
    let is_free = async {
        while portal.json("POST", "ada", "/api/v1/environments", &small).await.status == 503 {}
    };
    timeout(TIMEOUT, is_free).await.expect("the room is not free again");
}

/// Bodies of one megabyte: many values, the most values with a long text, and one long text.
fn large_bodies() -> Vec<String> {
    let document = |spec: &str| {
        format!(
            "{{\"kind\":\"StockPool\",\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"replicas\":1,\"x\":{spec}}}}}"
        )
    };
    let list = |each: &str, count: usize| format!("[{}]", vec![each; count].join(","));
    let text = |length: usize| format!("\"{}\"", "x".repeat(length));
    let most = format!("[{},{}]", list("{\"\":1}", 9_950), text(850_000));
    // Valid until the chart is looked at, so the most is done with it.
    let maps: Vec<String> = (0..9_000)
        .map(|number| format!("\"F{number}\":{{\"a\":\"{}\"}}", "z".repeat(85)))
        .collect();
    let values = format!(
        r#"{{"apiVersion":"platform.acme.io/v1alpha1","kind":"EnvironmentClaim","metadata":{{"name":"x",
        "namespace":"team-vision"}},"spec":{{"parameters":{{"app":{{"chart":{{"name":"n","version":"1.0.0",
        "repository":"https://charts.example.org"}},"values":{{{}}}}}}}}}}}"#,
        maps.join(",")
    );
    let bodies =
        vec![document(&list("{}", 333_000)), document(&most), document(&text(1_000_000)), values];
    assert!(bodies.iter().all(|body| (900_000..1 << 20).contains(&body.len())));
    bodies
}

/// A hundred large writes at once, of users with and without rights. The portal's chart allows
/// 512 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn hundred_large_writes_at_once_use_little_memory() {
    let cluster = ApiServer::start().await;
    for (user, paths) in [
        ("ada", vec!["/api/v1/environments", "/api/v1/preview", "/api/workspaces"]),
        ("eve", vec!["/api/v1/environments"]),
    ] {
        let portal = Portal::process(&cluster, "portal", &["--auth", "none"]).await;
        for (body, path) in
            large_bodies().iter().flat_map(|body| paths.iter().map(move |path| (body, path)))
        {
            let (authorization, body) =
                (format!("Bearer token-{user}"), bytes::Bytes::from(body.clone()));
            let headers =
                [("content-type", "application/json"), ("authorization", authorization.as_str())];
            let all = (0..100).map(|_| portal.send("POST", path, &headers, body.clone()));
            let answers = futures::future::join_all(all).await;
            for answer in &answers {
                let status = answer.status.as_u16();
                let allowed = [201, 400, 403, 409, 413, 422, 500, 502, 503, 504];
                assert!(allowed.contains(&status), "{path}: {status} {:?}", answer.body);
            }
            assert_eq!(portal.get(user, "/api/v1/me").await.status, 200);
        }
        let peak = portal.peak_memory();
        assert!(peak < 256 * 1024, "{user}: {peak} KiB");
    }
}

/// The chart has no template by default. The portal then asks for a namespace that it cannot know.
#[tokio::test]
async fn keys_need_a_right_to_create_a_workspace_without_a_template() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    cluster.put(
        &at("gpudevworkspaceclaims", "team-vision", "gpu"),
        environment("GpuDevWorkspaceClaim", "ada"),
    );
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portal = Portal::with(&cluster, "portal", &flags).await;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a";
    let keys = json!({"keys": [key]});
    portal
        .until_as("ada", "/api/v1/environments", |answer| answer.json()["items"][0].is_object())
        .await;
    for (user, query, status) in [
        // Without any right.
        ("eve", "", 403),
        ("eve", "?namespace=team-vision", 403),
        ("eve", "?namespace=..", 400),
        // With rights in a namespace with an environment, and in one without.
        ("ada", "", 200),
        ("ada", "?namespace=team-sound", 403),
        ("bob", "", 403),
        ("bob", "?namespace=team-sound", 200),
        ("bob", "?name=team-sound", 400),
        // With rights in all namespaces.
        ("operator", "", 200),
        ("system:serviceaccount:team-vision:builder", "", 403),
        ("system:serviceaccount:team-vision:builder", "?namespace=team-vision", 403),
    ] {
        let answer = portal.json("PUT", user, &format!("/api/v1/keys{query}"), &keys).await;
        assert_eq!(answer.status, status, "{user} {query}: {:?}", answer.body);
    }
    assert_eq!(cluster.paths("paved-road-keys").len(), 3);
    // Without the right to create workspaces, the right to read them is not enough.
    cluster.grant("ada", "create team-vision", false);
    let fresh = Portal::with(&cluster, "portal", &flags).await;
    fresh
        .until_as("ada", "/api/v1/environments", |answer| answer.json()["items"][0].is_object())
        .await;
    let refused = fresh.json("PUT", "ada", "/api/v1/keys", &keys).await;
    let reason = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(refused.status == 403 && reason.contains("query parameter namespace"), "{reason}");
}
