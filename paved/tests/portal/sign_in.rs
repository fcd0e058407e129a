//! Sign-in by OpenID Connect, and sign-out.

use paved::portal::Limits;
use serde_json::json;

use crate::world::api_server::{ApiServer, at, environment};
use crate::world::oidc::{Provider, SECRET, cookie};
use crate::world::portal::Portal;

struct World {
    cluster: ApiServer,
    provider: Provider,
    portal: Portal,
    folder: tempfile::TempDir,
}

async fn world() -> World {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let portal = start(&cluster, &provider, &folder, &[]).await;
    World { cluster, provider, portal, folder }
}

async fn start(
    cluster: &ApiServer,
    provider: &Provider,
    folder: &tempfile::TempDir,
    more: &[&str],
) -> Portal {
    let mut flags = provider.flags(folder);
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    Portal::start(cluster, "portal", &flags.iter().map(String::as_str).collect::<Vec<_>>()).await
}

#[tokio::test]
async fn signed_in_user_is_the_user_of_the_provider() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    let (begun, state) = provider.begin(portal, "/environments/ada?tab=yaml").await;
    provider.says(json!({"sub": "1", "email": "ada@acme.io", "email_verified": true, "groups": ["vision", "system:masters"]}), json!({}));
    let answer = portal
        .send("GET", &format!("/auth/callback?code=c&state={state}"), &[("cookie", &begun)], "")
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "/environments/ada?tab=yaml")
    );
    let all: Vec<&str> =
        answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    let set = all.iter().find(|value| value.starts_with("__Host-paved-session=")).unwrap();
    for flag in ["; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(set.contains(flag), "{set}");
    }
    assert!(!set.contains("Domain") && !set.contains("ada"), "{set}");
    assert!(
        all.iter().any(|value| value.starts_with("__Host-paved-sign-in=;") && value.contains("Max-Age=0")),
        "{all:?}"
    );
    let session = cookie(&answer, "__Host-paved-session");
    let me = portal.send("GET", "/api/v1/me", &[("cookie", &session)], "").await.json();
    assert_eq!((&me["username"], &me["credential"]), (&json!("ada@acme.io"), &json!("session")));
    assert_eq!(me["groups"], json!(["vision"]), "a provider cannot assign Kubernetes groups");
    assert!(me["owner"].as_str().unwrap().starts_with("u-"), "{me}");
}

#[tokio::test]
async fn client_secret_is_sent_with_a_supported_method() {
    let cluster = ApiServer::start().await;
    for method in ["client_secret_basic", "client_secret_post"] {
        let provider = Provider::start().await;
        provider.wants_secret(method);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, SECRET).unwrap();
        let more = ["--oidc-client-secret-file", file.to_str().unwrap()];
        let portal = start(&cluster, &provider, &folder, &more).await;
        provider.session(&portal, "ada@acme.io", &[]).await;
        assert!(!portal.log().contains(SECRET), "{}", portal.log());
        let without = start(&cluster, &provider, &folder, &[]).await;
        let claims = json!({"sub": "1", "email": "ada@acme.io", "email_verified": true});
        assert_eq!(provider.sign_in(&without, claims).await.status, 403, "{method}");
    }
}

#[tokio::test]
async fn claims_may_be_split_between_sources_of_the_same_person() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    let apart =
        |subject: &str| json!({"sub": subject, "email": "ada@acme.io", "groups": ["vision"]});
    for (subject, status) in [("1", 303), ("2", 403)] {
        let (begun, state) = provider.begin(portal, "/").await;
        provider.says(json!({"sub": "1"}), apart(subject));
        let answer = portal
            .send("GET", &format!("/auth/callback?code=c&state={state}"), &[("cookie", &begun)], "")
            .await;
        assert_eq!(answer.status, status, "{subject}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn a_sign_in_belongs_to_the_browser_that_began() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    let ada = json!({"sub": "1", "email": "ada@acme.io"});
    provider.says(ada.clone(), json!({}));
    let (begun, state) = provider.begin(portal, "/").await;
    let (other, other_state) = provider.begin(portal, "/").await;
    let callback = |state: &str| format!("/auth/callback?code=c&state={state}");
    for (path, headers) in [
        (callback(&state), vec![]),
        (callback(&state), vec![("cookie", other.as_str())]),
        (callback("guessed"), vec![("cookie", begun.as_str())]),
        ("/auth/callback?error=access_denied".to_owned(), vec![("cookie", begun.as_str())]),
        ("/auth/callback".to_owned(), vec![("cookie", begun.as_str())]),
    ] {
        let answer = portal.send("GET", &path, &headers, "").await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.headers.get("set-cookie").is_none());
    }
    let wrong = portal
        .send(
            "GET",
            &format!("/auth/callback?code=d&state={other_state}"),
            &[("cookie", &other)],
            "",
        )
        .await;
    assert_eq!(wrong.status, 403, "the provider does not know the code");
}

#[tokio::test]
async fn program_gets_json_errors() {
    let world = world().await;
    for accepted in ["application/json", "*/*"] {
        let answer = world
            .portal
            .send("GET", "/auth/callback?error=access_denied", &[("accept", accepted)], "")
            .await;
        assert_eq!(answer.header("content-type"), "application/problem+json", "{accepted}");
    }
}

#[tokio::test]
async fn an_id_token_for_another_is_none() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    for wrong in [
        json!({"aud": "another"}),
        json!({"iss": "https://evil.example.org"}),
        json!({"nonce": "another"}),
        json!({"exp": 1}),
        json!({"email_verified": false}),
        json!({"email": "system:admin"}),
        json!({"email": null}),
    ] {
        let mut claims = json!({"sub": "1", "email": "ada@acme.io", "email_verified": true});
        claims.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let answer = provider.sign_in(portal, claims).await;
        assert_eq!(answer.status, 403, "{wrong}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn sign_in_never_redirects_to_another_site() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    for back in [
        "//evil.example.org",
        "https://evil.example.org",
        "/%5Cevil.example.org",
        "/%09/evil.example.org",
    ] {
        let (begun, state) = provider.begin(portal, back).await;
        provider.says(json!({"sub": "1", "email": "ada@acme.io"}), json!({}));
        let answer = portal
            .send("GET", &format!("/auth/callback?code=c&state={state}"), &[("cookie", &begun)], "")
            .await;
        let location = answer.header("location");
        assert!(
            location.starts_with('/') && !location.starts_with("//") && !location.contains('\\'),
            "{back}: {location}"
        );
    }
}

#[tokio::test]
async fn foreign_session_is_replaced_at_sign_in() {
    let world = world().await;
    let World { provider, portal, .. } = &world;
    let mallory = provider.session(portal, "mallory@acme.io", &[]).await;
    let (begun, state) = provider.begin(portal, "/").await;
    provider.says(json!({"sub": "1", "email": "ada@acme.io"}), json!({}));
    let both = format!("{mallory}; {begun}");
    let answer = portal
        .send("GET", &format!("/auth/callback?code=c&state={state}"), &[("cookie", &both)], "")
        .await;
    let session = cookie(&answer, "__Host-paved-session");
    assert_ne!(session, mallory);
    let me = portal.send("GET", "/api/v1/me", &[("cookie", &session)], "").await.json();
    assert_eq!(me["login"], "ada@acme.io");
    assert_eq!(
        portal.send("GET", "/api/v1/me", &[("cookie", &mallory)], "").await.status,
        401,
        "the planted session has ended"
    );
}

#[tokio::test]
async fn second_sign_in_keeps_other_pages_signed_in() {
    let World { provider, portal, .. } = &world().await;
    let mut sessions = vec![String::new()];
    for _ in 0..2 {
        let (begun, state) = provider.begin(portal, "/").await;
        provider.says(json!({"sub": "1", "email": "ada@acme.io"}), json!({}));
        let both = format!("{}; {begun}", sessions.last().unwrap());
        let path = format!("/auth/callback?code=c&state={state}");
        sessions.push(cookie(
            &portal.send("GET", &path, &[("cookie", &both)], "").await,
            "__Host-paved-session",
        ));
    }
    assert_ne!(sessions[1], sessions[2]);
    for session in &sessions[1..] {
        assert_eq!(portal.send("GET", "/api/v1/me", &[("cookie", session)], "").await.status, 200);
    }
}

#[tokio::test]
async fn signing_out_ends_the_session_and_its_streams_in_every_replica() {
    let World { cluster, provider, portal, folder } = world().await;
    let second = start(&cluster, &provider, &folder, &[]).await;
    let session = provider.session(&portal, "ada", &["vision"]).await;
    cluster.put(&at("stockpools", "team-vision", "adas"), environment("StockPool", "ada"));
    let cookie = [("cookie", session.as_str())];
    assert_eq!(
        second.send("GET", "/api/v1/me", &cookie, "").await.status,
        200,
        "one key for all replicas"
    );
    let (mut here, mut there) = (portal.events(&cookie).await, second.events(&cookie).await);
    here.synced().await;
    there.synced().await;
    let origin = portal.url("");
    let out = portal
        .send("POST", "/auth/sign-out", &[("cookie", &session), ("origin", &origin)], "")
        .await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    let end = ("reset".to_owned(), json!({"reason": "signed-out"}));
    for events in [&mut here, &mut there] {
        loop {
            let next = events.next().await.expect("the stream ends without a reset");
            if next == end {
                break;
            }
        }
        assert_eq!(events.next().await, None);
    }
    for portal in [&portal, &second] {
        assert_eq!(portal.send("GET", "/api/v1/me", &cookie, "").await.status, 401, "played again");
    }
    let third = start(&cluster, &provider, &folder, &[]).await;
    assert_eq!(
        third.send("GET", "/api/v1/me", &cookie, "").await.status,
        401,
        "a later replica also knows the sign-out"
    );
}

#[tokio::test]
async fn streams_end_with_the_session_without_the_api_server() {
    let World { cluster, provider, portal, .. } = world().await;
    let left = provider.session(&portal, "ada", &["vision"]).await;
    // Shorter than the portal's time limit of 10 s for an answer.
    let over = provider.session_that_ends("ada", &["vision"], 5);
    let mut streams = Vec::new();
    for session in [&left, &over] {
        let mut events = portal.events(&[("cookie", session.as_str())]).await;
        events.synced().await;
        streams.push(events);
    }
    cluster.put(&at("stockpools", "team-vision", "adas"), environment("StockPool", "ada"));
    for events in &mut streams {
        assert_eq!(events.told().await, ("added".to_owned(), "adas".to_owned()));
    }
    cluster.asked();
    cluster.fall_silent();
    // Both streams check whether ada may see the environment.
    cluster.put(&at("stockpools", "team-sound", "bobs"), environment("StockPool", "bob"));
    for _ in 0..500 {
        if cluster.asked().iter().any(|(_, _, path)| path.contains("selfsubject")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let reset = |reason: &str| Some(("reset".to_owned(), json!({"reason": reason})));
    tokio::select! {
        end = streams[0].next() => assert_eq!(end, reset("signed-out")),
        status = sign_out(&portal, &left) => panic!("answered without a record: {status}"),
    }
    assert_eq!(streams[1].next().await, reset("expired"));
    assert_eq!(streams[1].next().await, None);
    let cookie = [("cookie", over.as_str())];
    assert_eq!(portal.send("GET", "/api/v1/me", &cookie, "").await.status, 401);
}

/// The record of ended sessions.
const ENDED: &str = "/api/v1/namespaces/portal/configmaps/paved-portal-revoked";

async fn sign_out(portal: &Portal, session: &str) -> u16 {
    let origin = portal.url("");
    let headers = [("cookie", session), ("origin", origin.as_str())];
    portal.send("POST", "/auth/sign-out", &headers, "").await.status.as_u16()
}

#[tokio::test]
async fn record_of_ended_sessions_stays_small() {
    let World { cluster, provider, portal, .. } = world().await;
    for _ in 0..3 {
        let session = provider.session(&portal, "ada", &[]).await;
        assert_eq!(sign_out(&portal, &session).await, 204);
    }
    let map = cluster.get(ENDED).unwrap();
    let managers = map["metadata"]["managedFields"].as_array().map_or(0, Vec::len);
    assert!(map["data"].as_object().unwrap().len() == 3 && managers <= 1, "{map}");
}

#[tokio::test]
async fn failed_sign_out_everywhere_allows_a_new_sign_in() {
    let World { cluster, provider, portal, .. } = world().await;
    let old = provider.session(&portal, "mallory@acme.io", &[]).await;
    cluster.grant("portal", &format!("patch {ENDED}"), false);
    let (begun, state) = provider.begin(&portal, "/").await;
    provider.says(json!({"sub": "1", "email": "ada@acme.io"}), json!({}));
    let both = format!("{old}; {begun}");
    let path = format!("/auth/callback?code=c&state={state}");
    let answer = portal.send("GET", &path, &[("cookie", &both)], "").await;
    assert_eq!(answer.status, 303, "{:?}", answer.body);
    assert_eq!(
        portal.send("GET", "/api/v1/me", &[("cookie", &old)], "").await.status,
        401,
        "the session has ended here"
    );
    let new = cookie(&answer, "__Host-paved-session");
    assert_eq!(sign_out(&portal, &new).await, 503, "the user sees the failure");
}

#[tokio::test]
async fn each_request_of_a_session_is_made_under_its_person() {
    let world = world().await;
    let World { cluster, provider, portal, .. } = &world;
    let session = provider.session(portal, "ada", &["vision"]).await;
    cluster.asked();
    let cookie = [("cookie", session.as_str())];
    assert_eq!(
        portal
            .send("GET", "/api/v1/environments/team-vision/stockpools/a", &cookie, "")
            .await
            .status,
        404
    );
    let asked = cluster.asked();
    let read = asked.iter().find(|(_, _, path)| path.ends_with("/stockpools/a")).unwrap();
    assert_eq!(read.0, "ada");
    let eve = provider.session(portal, "eve", &[]).await;
    let refused = portal
        .send("GET", "/api/v1/environments/team-vision/stockpools/a", &[("cookie", &eve)], "")
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn cached_answer_of_one_session_is_not_sent_to_another() {
    let world = world().await;
    let World { cluster, provider, portal, .. } = &world;
    cluster.put(&at("stockpools", "team-vision", "adas"), environment("StockPool", "ada"));
    cluster.put(&at("stockpools", "team-sound", "bobs"), environment("StockPool", "bob"));
    let path = "/api/v1/environments";
    let count = |body: &serde_json::Value| body["items"].as_array().map_or(0, Vec::len);
    portal.until_as("operator", path, |answer| count(&answer.json()) == 2).await;
    // The groups are equal, so only the names differ.
    let ada = provider.session(portal, "ada", &["all"]).await;
    let bob = provider.session(portal, "bob", &["all"]).await;
    for _ in 0..2 {
        for (session, seen) in [(&ada, "adas"), (&bob, "bobs")] {
            let list = portal.send("GET", path, &[("cookie", session)], "").await.json();
            assert_eq!((count(&list), &list["items"][0]["name"]), (1, &json!(seen)));
        }
    }
}

#[tokio::test]
async fn groups_that_the_portal_may_not_act_for_are_left_out() {
    let world = world().await;
    let World { cluster, provider, portal, .. } = &world;
    cluster.grant("portal", "impersonate groups/everyone", false);
    let session = provider.session(portal, "ada", &["vision", "everyone"]).await;
    let headers = [("cookie", session.as_str())];
    for _ in 0..2 {
        let me = portal.send("GET", "/api/v1/me", &headers, "").await.json();
        assert_eq!(
            (&me["groups"], &me["namespaces"]),
            (&json!(["vision"]), &json!(["team-vision"]))
        );
        let kinds = portal.send("GET", "/api/v1/kinds", &headers, "").await;
        assert_eq!((kinds.status.as_u16(), &kinds.json()[0]["mayCreate"]), (200, &json!(true)));
    }
    let told = portal
        .log()
        .lines()
        .filter(|line| line.contains("may not impersonate"))
        .map(str::to_owned)
        .collect::<Vec<_>>();
    assert!(told.len() == 1 && told[0].contains(r#""group":"everyone""#), "{told:?}");
    let reviews = cluster
        .asked()
        .into_iter()
        .filter(|(who, _, path)| who == "portal" && path.ends_with("accessreviews"));
    assert_eq!(reviews.count(), 1, "the user, once; the portal's rules list the groups");
}

#[tokio::test]
async fn ineffective_groups_use_no_space_in_a_session() {
    let World { cluster, provider, portal, .. } = world().await;
    let many: Vec<String> =
        (0..300).map(|number| format!("00000000-0000-0000-0000-{number:012}")).collect();
    for group in &many {
        cluster.grant("portal", &format!("impersonate groups/{group}"), false);
    }
    let groups: Vec<&str> = many.iter().map(String::as_str).chain(["vision"]).collect();
    let session = provider.session(&portal, "ada", &groups).await;
    let me = portal.send("GET", "/api/v1/me", &[("cookie", session.as_str())], "").await.json();
    assert_eq!(me["groups"], json!(["vision"]));
}

#[tokio::test]
async fn user_without_impersonation_gets_the_remedy() {
    let world = world().await;
    let World { cluster, provider, portal, .. } = &world;
    cluster.grant("portal", "impersonate users/ada", false);
    let session = provider.session(portal, "ada", &["vision"]).await;
    for path in ["/api/v1/me", "/api/v1/environments", "/api/v1/watch"] {
        let refused = portal.send("GET", path, &[("cookie", session.as_str())], "").await;
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            refused.status == 403
                && detail.contains("impersonation.users")
                && detail.contains("\"ada\""),
            "{detail}"
        );
    }
    assert_eq!(
        portal.get("ada", "/api/v1/me").await.status,
        200,
        "a request with a token needs no impersonation"
    );
}

#[tokio::test]
async fn unknown_impersonation_rights_block_all_requests() {
    let world = world().await;
    let World { cluster, provider, portal, .. } = &world;
    let session = provider.session(portal, "ada", &["vision"]).await;
    cluster.set_down(true);
    let answer =
        portal.send("GET", "/api/v1/environments", &[("cookie", session.as_str())], "").await;
    assert_eq!(answer.status, 503, "{:?}", answer.body);
}

/// A provider whose users choose their groups determines the number of groups.
#[tokio::test]
async fn many_groups_are_one_question() {
    let World { cluster, provider, portal, .. } = &world().await;
    cluster.grant("portal", "impersonate groups/everyone", false);
    let many: Vec<String> = (0..2_000).map(|number| format!("group-{number}")).collect();
    let groups: Vec<&str> = many.iter().map(String::as_str).chain(["vision"]).collect();
    cluster.asked();
    let session = provider.session(portal, "ada", &groups).await;
    let me = portal.send("GET", "/api/v1/me", &[("cookie", session.as_str())], "").await.json();
    assert_eq!(me["groups"], json!(["vision"]));
    let asked = cluster.asked().into_iter().filter(|(.., path)| path.ends_with("reviews")).count();
    assert!(asked <= 3, "{asked} questions");
}

#[tokio::test]
async fn many_groups_are_rejected_if_each_needs_an_access_review() {
    let World { cluster, provider, portal, .. } = &world().await;
    cluster.add_webhook("portal");
    cluster.asked();
    let groups: Vec<String> = (0..2_000).map(|number| format!("group-{number}")).collect();
    let claims = json!({"sub": "1", "email": "ada", "email_verified": true, "groups": groups});
    let answer = provider.sign_in(portal, claims).await;
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        answer.status == 403 && detail.contains("2000 groups; allowed: at most 200"),
        "{detail}"
    );
    let asked = cluster.asked().into_iter().filter(|(.., path)| path.ends_with("reviews")).count();
    assert!(asked <= 3, "{asked} questions");
    // A few groups are still reviewed one by one.
    let session = provider.session(portal, "ada", &["vision"]).await;
    let me = portal.send("GET", "/api/v1/me", &[("cookie", session.as_str())], "").await.json();
    assert_eq!(me["groups"], json!(["vision"]));
}

/// Each portal accepts only its own sessions, even if portals share a key file. Another portal may
/// have another provider, or other names for its users.
#[tokio::test]
async fn session_of_another_portal_with_the_same_key_is_rejected() {
    let World { cluster, provider, portal, folder } = &world().await;
    let session = provider.session(portal, "ada", &["vision"]).await;
    let cookie = [("cookie", session.as_str())];
    assert_eq!(portal.send("GET", "/api/v1/me", &cookie, "").await.status, 200);
    let other = Provider::start().await;
    let of_another_provider = start(cluster, &other, folder, &[]).await;
    let with_a_prefix =
        start(cluster, provider, folder, &["--oidc-username-prefix", "oidc:"]).await;
    let elsewhere =
        start(cluster, provider, folder, &["--public-url", "https://portal.example.org"]).await;
    let mut flags = provider.flags(folder);
    flags[3] = "other-client".to_owned();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let of_another_client = Portal::start(cluster, "portal", &flags).await;
    for other in [of_another_provider, with_a_prefix, elsewhere, of_another_client] {
        assert_eq!(other.send("GET", "/api/v1/me", &cookie, "").await.status, 401);
    }
    let replica = start(cluster, provider, folder, &[]).await;
    assert_eq!(replica.send("GET", "/api/v1/me", &cookie, "").await.status, 200);
}

#[tokio::test]
async fn address_that_is_verified_elsewhere_is_not_verified() {
    let World { provider, portal, .. } = &world().await;
    for (verified, status) in [(false, 403), (true, 303)] {
        let (begun, state) = provider.begin(portal, "/").await;
        let apart = json!({"sub": "1", "email": "bob@acme.io", "email_verified": verified});
        provider.says(json!({"sub": "1", "email_verified": true}), apart);
        let path = format!("/auth/callback?code=c&state={state}");
        let answer = portal.send("GET", &path, &[("cookie", &begun)], "").await;
        assert_eq!(answer.status, status, "{:?}", answer.body);
    }
}

/// Browsers drop a cookie of more than 4096 bytes.
#[tokio::test]
async fn sign_in_from_a_long_address_begins() {
    let World { provider, portal, .. } = &world().await;
    let query = format!("/environments?q={}", "x".repeat(3_000));
    let path = format!("/{}", "x".repeat(3_000));
    for (back, place) in
        [(query.as_str(), "/environments"), (&path, "/"), ("/keys?a=b", "/keys?a=b")]
    {
        let begun = portal.get("", &format!("/auth/sign-in?return={back}")).await;
        let cookies = begun.headers.get_all("set-cookie").iter();
        let cookies: Vec<usize> = cookies.map(axum::http::HeaderValue::len).collect();
        assert!(cookies.len() == 1 && cookies[0] <= 4_000, "{cookies:?}");
        let (begun, state) = provider.begin(portal, back).await;
        provider.says(json!({"sub": "1", "email": "ada@acme.io"}), json!({}));
        let path = format!("/auth/callback?code=c&state={state}");
        let answer = portal.send("GET", &path, &[("cookie", &begun)], "").await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, place));
    }
}

#[tokio::test]
async fn dash_means_no_prefix_and_missing_prefix_is_logged() {
    let World { cluster, provider, folder, .. } = &world().await;
    for (prefix, warns) in [(Some("-"), false), (Some("oidc:"), false), (None, true)] {
        let mut more = vec!["--oidc-username-claim", "sub"];
        more.extend(prefix.iter().flat_map(|prefix| ["--oidc-username-prefix", prefix]));
        let portal = start(cluster, provider, folder, &more).await;
        assert_eq!(portal.log().contains("--oidc-username-prefix is not set"), warns, "{prefix:?}");
        if prefix == Some("-") {
            let answer =
                provider.sign_in(&portal, json!({"sub": "ada", "groups": ["vision"]})).await;
            let session = cookie(&answer, "__Host-paved-session");
            let me =
                portal.send("GET", "/api/v1/me", &[("cookie", session.as_str())], "").await.json();
            assert_eq!(me["username"], "ada");
        }
    }
}

/// Entra ID leaves out the groups of a user in more than 200 groups.
#[tokio::test]
async fn omitted_groups_are_a_problem_page_and_a_warning() {
    let World { provider, portal, .. } = &world().await;
    for (extra, word) in [
        (json!({"_claim_names": {"groups": "src1"}}), "Groups assigned to the application"),
        (json!({"hasgroups": true}), "Groups assigned to the application"),
        (json!({"groups": [{"name": "vision"}]}), "a list with an object"),
        (json!({"groups": 7}), "found a number"),
    ] {
        let mut claims = json!({"sub": "1", "email": "ada@acme.io"});
        claims.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let answer = provider.sign_in(portal, claims).await;
        let reason = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 403 && reason.contains(word), "{extra}: {reason}");
        assert!(answer.headers.get("set-cookie").is_none(), "{extra}");
    }
    for line in ["the provider left out the groups of a user", "could not be read"] {
        assert!(portal.log().contains(line), "{}", portal.log());
    }
    // Groups at the userinfo endpoint are groups.
    let token = json!({"sub": "1", "email": "ada@acme.io", "_claim_names": {"groups": "src1"}});
    let apart = json!({"sub": "1", "groups": ["vision"]});
    assert_eq!(provider.sign_in_with(portal, token, apart).await.status, 303);
}

/// Apple and Cognito write booleans as texts.
#[tokio::test]
async fn verified_address_may_be_a_text() {
    let World { provider, portal, .. } = &world().await;
    for (verified, told) in [
        (json!("true"), None),
        (json!(null), None),
        (json!("false"), Some("has not verified your email address")),
        (json!(false), Some("has not verified your email address")),
        (json!("TRUE"), Some("could not be read: found \"TRUE\"; allowed: true or false")),
        (json!(1), Some("could not be read: found 1; allowed: true or false")),
    ] {
        let claims = json!({"email": "ada@acme.io", "email_verified": verified, "groups": []});
        let mut whole = claims.clone();
        whole["sub"] = json!("1");
        let in_token = provider.sign_in(portal, whole.clone()).await;
        let apart = provider.sign_in_with(portal, json!({"sub": "1"}), whole).await;
        for answer in [in_token, apart] {
            let Some(told) = told else {
                assert_eq!(answer.status, 303, "{verified}: {:?}", answer.body);
                continue;
            };
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(answer.status == 403 && detail.contains(told), "{verified}: {detail}");
        }
    }
}

/// The issuer must be the provider's own, letter for letter.
#[tokio::test]
async fn portal_does_not_start_with_another_issuer_than_the_providers() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = cluster.kubeconfig("portal").display().to_string();
    let mut args = vec!["portal".to_owned(), "--listen=127.0.0.1:0".to_owned()];
    args.extend(["--kubeconfig".to_owned(), kubeconfig]);
    let first = args.len();
    args.extend(provider.flags(&folder));
    args[first + 1] = format!("{}/", provider.issuer);
    let run = move || crate::support::paved(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let refused = tokio::task::spawn_blocking(run).await.unwrap();
    let expected = format!(
        "--oidc-issuer: found \"{0}/\"; allowed: \"{0}\", the issuer that the provider states",
        provider.issuer
    );
    assert!(
        refused.code == 1 && refused.err.contains(&expected),
        "{} {}",
        refused.code,
        refused.err
    );
}

/// The provider may be down when the portal starts, so sign-ins check the issuer too.
#[tokio::test]
async fn sign_in_with_another_issuer_names_the_operators_mistake() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let flags = provider.flags(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let limits = Limits { provider: std::time::Duration::ZERO, ..Limits::default() };
    let portal = Portal::limited(&cluster, "portal", &flags, limits).await;
    let upper = provider.issuer.replace("http://", "HTTP://");
    for stated in [format!("{}/", provider.issuer), format!("{}/realm", provider.issuer), upper] {
        provider.states_issuer(&stated);
        let answer = portal.get("", "/auth/sign-in").await;
        let reason = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 500 && reason.contains(&stated), "{reason}");
        assert!(
            reason.contains("correct --oidc-issuer") && !reason.contains("Try again"),
            "{reason}"
        );
    }
    provider.states_issuer(&provider.issuer);
    assert_eq!(portal.get("", "/auth/sign-in").await.status, 303);
}

#[tokio::test]
async fn issuer_with_another_path_has_no_provider() {
    let (cluster, provider) = (ApiServer::start().await, Provider::start().await);
    let folder = tempfile::tempdir().unwrap();
    let mut flags = provider.flags(&folder);
    flags[1].push_str("/realms/acme");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portal = Portal::start(&cluster, "portal", &flags).await;
    let answer = portal.get("", "/auth/sign-in").await;
    let reason = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(answer.status == 502 && reason.contains("No OpenID provider answers at"), "{reason}");
    assert!(portal.log().contains("the provider's description could not be read"));
}
