//! Users at the portal, signed in by an OpenID provider, on two replicas with the rights of the
//! chart.

mod pages;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crossplane::api_version;
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(super) use self::pages::{people_use_the_pages, the_pages_outlive_the_api_server};
use crate::environment::Environment;
use crate::eventually::{TIMEOUT, eventually};
use crate::fixture::Fixture;
use crate::openid::{Browser, Changes};
use crate::portal::{Portal, PublicUrl};

/// The users. Each has access to the namespace of their group.
const PEOPLE: [&str; 2] = ["ada.e2e-vision", "bob.e2e-sound"];

/// The name of bob's environment.
const THEIRS: &str = "theirs";

/// Each kind is created through the API of its clients, watched until it is ready, connected to,
/// changed and deleted. Meanwhile, one of the two replicas is killed. Neither of two users sees the
/// other's environments.
#[expect(clippy::too_many_lines, reason = "the steps of one story")]
pub(super) async fn two_tenants_make_watch_and_delete(fixture: Fixture) -> Result<()> {
    let groups = PEOPLE.map(group_of);
    try_join_all(groups.map(|group| team(&fixture, group))).await?;
    let portal = Portal::start(&fixture, &PEOPLE.map(str::to_owned), PublicUrl::Shared).await?;
    let [first, second] = [&portal.replicas[0].url, &portal.replicas[1].url].map(String::as_str);
    let (ada, bob) = (Browser::new(first)?, Browser::new(first)?);
    ada.sign_in(first, PEOPLE[0]).await?;
    bob.sign_in(second, PEOPLE[1]).await?;
    // The session is valid at every replica.
    let (_, me) = ada.ask("GET", second, "/api/v1/me", &Value::Null).await?;
    ensure!(
        me["username"] == PEOPLE[0] && me["groups"] == json!([groups[0]]),
        "the wrong user is signed in: {me}"
    );
    let mut changes = ada.watch(second)?;
    let mut other = bob.watch(first)?;

    let pool = json!({"name": THEIRS, "specName": "g1.1", "replicas": 1});
    let (status, told) = bob.ask("POST", second, "/api/v1/operator/stockpools", &pool).await?;
    ensure!(status == 202, "{status}: {told}");
    let (heard, not_heard) =
        (ada.listen(second, "/ws/status/")?, bob.listen(first, "/ws/status/")?);
    let made = make(&fixture, &ada, first).await?;
    until(&mut changes, &made, |event, view| event != "deleted" && view["ready"] == true).await?;
    let shop = made
        .iter()
        .find(|name| name.starts_with("shop-"))
        .context("found no environment shop-…")?;
    for step in [("ADDED", "Provisioning"), ("MODIFIED", "Ready")] {
        eventually(&format!("the WebSocket reports {step:?}"), async || {
            let is_step = |one: &Value| {
                one["name"] == *shop
                    && (&one["eventType"], &one["status"]) == (&step.0.into(), &step.1.into())
            };
            Ok(heard.told()?.iter().any(is_step).then_some(()))
        })
        .await?;
    }
    let not_told = not_heard.told()?;
    ensure!(
        not_told.iter().all(|one| one["name"] != *shop),
        "the WebSocket reports to bob {not_told:?}"
    );
    for (who, is_own) in [(&ada, false), (&bob, true)] {
        let (status, list) = who.ask("GET", first, "/api/v1/environments", &Value::Null).await?;
        let all = list["items"].as_array().with_context(|| format!("{status}: {list}"))?;
        ensure!(
            all.iter().all(|one| (one["name"] == THEIRS) == is_own),
            "a user sees another user's environment: {list}"
        );
    }
    let theirs = path_of(&bob, first, THEIRS).await?;
    is_hidden(&ada, [first, second], &theirs).await?;
    for name in &made {
        is_hidden(&bob, [first, second], &path_of(&ada, first, name).await?).await?;
    }

    let workspace =
        made.iter().find(|name| name.starts_with("ws-")).context("found no workspace ws-…")?;
    check_lists(&ada, &bob, second, workspace).await?;
    for name in made.iter().filter(|name| *name != "render") {
        let connection = format!("{}/connection", path_of(&ada, first, name).await?);
        eventually("the portal returns a connection", async || {
            let (status, told) = ada.ask("POST", second, &connection, &Value::Null).await?;
            let keys = ["host", "kubeconfig", "endpoint"];
            let is_told = keys.iter().any(|key| told["values"][key].is_string());
            Ok((status == 200 && is_told).then_some(()))
        })
        .await?;
        let (status, _) = bob.ask("POST", second, &connection, &Value::Null).await?;
        ensure!(status == 403 || status == 404, "bob gets {status} for {connection}");
    }

    // A killed replica gives no notice. Its clients continue at another replica, and find all
    // environments.
    portal.replicas[1].kill()?;
    while let Ok(Ok(_)) = timeout(TIMEOUT, changes.next()).await {}
    let mut changes = ada.watch(first)?;
    until(&mut changes, &made, |event, view| event != "deleted" && view["ready"] == true).await?;

    let path = path_of(&ada, first, "render").await?;
    let (status, said) = ada.ask("PATCH", first, &path, &json!({"spec": {"replicas": 3}})).await?;
    ensure!(status == 200, "the change is answered by {status}: {said}");
    let pool = BTreeSet::from(["render".to_owned()]);
    until(&mut changes, &pool, |_, view| view["status"]["available"] == 3).await?;
    replace(&ada, first, &path).await?;
    until(&mut changes, &pool, |_, view| view["status"]["available"] == 1).await?;
    let label = json!({"metadata": {"labels": {"stage": "trial"}}});
    for name in &made {
        let (status, said) =
            ada.ask("PATCH", first, &path_of(&ada, first, name).await?, &label).await?;
        ensure!(status == 200, "the label of {name} is answered by {status}: {said}");
    }
    until(&mut changes, &made, |_, view| view["labels"]["stage"] == "trial").await?;

    let mut going = Vec::new();
    let (_, one) = bob.ask("GET", first, &theirs, &Value::Null).await?;
    let (status, said) = bob.ask("DELETE", first, &theirs, &Value::Null).await?;
    ensure!(status == 202, "DELETE {theirs} is answered by {status}: {said}");
    going.push(Environment::new(
        fixture.admin.clone(),
        fixture.objects.clone(),
        one["object"].clone(),
    ));
    for name in &made {
        let path = path_of(&ada, first, name).await?;
        let (_, one) = ada.ask("GET", first, &path, &Value::Null).await?;
        let path = if name == workspace { format!("/api/workspaces/{name}") } else { path };
        let (status, said) = ada.ask("DELETE", first, &path, &Value::Null).await?;
        ensure!((200..300).contains(&status), "DELETE {path} is answered by {status}: {said}");
        going.push(Environment::new(
            fixture.admin.clone(),
            fixture.objects.clone(),
            one["object"].clone(),
        ));
    }
    try_join_all(going.iter().map(Environment::gone)).await?;
    until(&mut changes, &made, |event, _| event == "deleted").await?;

    let (status, _) = ada.ask("POST", first, "/auth/sign-out", &Value::Null).await?;
    ensure!(status == 204, "signing out is answered by {status}");
    let told = timeout(TIMEOUT, ends(&mut changes))
        .await
        .context("the stream continues after signing out")??;
    ensure!(told == "signed-out", "the stream ends with {told}");
    let seen = silent(&mut other).await?;
    ensure!(seen.iter().all(|view| view["name"] == THEIRS), "bob received {seen:?}");
    portal.uninstall(&fixture).await
}

/// A user without access to an environment can neither read nor delete it, at either replica.
async fn is_hidden(who: &Browser, [first, second]: [&str; 2], path: &str) -> Result<()> {
    for (method, replica) in [("GET", first), ("DELETE", second)] {
        let (status, _) = who.ask(method, replica, path, &Value::Null).await?;
        ensure!(
            status == 403 || status == 404,
            "a foreign {method} of {path} is answered by {status}"
        );
    }
    Ok(())
}

/// The group of a user named `NAME.GROUP`.
fn group_of(who: &str) -> &str {
    who.split('.').nth(1).unwrap_or_default()
}

/// A team's fixture: a namespace with its group's name, where members of the group may create
/// environments.
async fn team(fixture: &Fixture, group: &str) -> Result<Fixture> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": group}});
    fixture.objects.apply(&namespace).await?;
    let binding = ["create", "rolebinding", "people", "--clusterrole=paved-road-user", "-n", group];
    fixture.admin.run(&[&binding[..], &[&format!("--group={group}")]].concat()).await?;
    let kind = format!("stockpools.{}", Flavour::Namespaced.default_group());
    let whoever = format!("--as-group={group}");
    let can = ["auth", "can-i", "create", &kind, "--as=somebody", &whoever, "-n", group];
    eventually("the group may make environments", async || Ok(fixture.admin.run(&can).await.ok()))
        .await?;
    Ok(fixture.in_namespace(group))
}

/// Creates one environment of each kind, through the API of its clients. Returns their names.
async fn make(fixture: &Fixture, ada: &Browser, portal: &str) -> Result<BTreeSet<String>> {
    let mut made = BTreeSet::new();
    let workspace = json!({"owner": PEOPLE[0], "instanceType": "g4dn.xlarge"});
    let (status, told) = ada.ask("POST", portal, "/api/workspaces", &workspace).await?;
    ensure!(status == 202, "{status}: {told}");
    made.insert(told["metadata"]["name"].as_str().context("a workspace's name")?.to_owned());
    let (status, told) =
        ada.ask("POST", portal, "/api/environments/", &json!({"name": "shop"})).await?;
    ensure!(status == 202 && told["status"] == "creating", "{status}: {told}");
    made.insert(told["name"].as_str().context("an application environment's name")?.to_owned());
    let pool = json!({"name": "render", "specName": "g1.1", "replicas": 2});
    let (pools, key) = ("/api/v1/operator/stockpools", ["Idempotency-Key: render"]);
    let (status, told) = ada.ask_with(&key, "POST", portal, pools, &pool).await?;
    ensure!(status == 202, "{status}: {told}");
    let (status, again) = ada.ask_with(&key, "POST", portal, pools, &pool).await?;
    ensure!(status == 202 && again["jobID"] == told["jobID"], "the same again: {status}: {again}");
    let other = json!({"name": "other", "specName": "g1.1", "replicas": 2});
    let (status, said) = ada.ask_with(&key, "POST", portal, pools, &other).await?;
    ensure!(status == 409, "another pool under the same key: {status}: {said}");
    let job = format!("/api/v1/operator/jobs/{}", told["jobID"].as_str().context("a job's id")?);
    let (status, told) = ada.ask("GET", portal, &job, &Value::Null).await?;
    ensure!(status == 200 && told["status"] == "succeeded", "{status}: {told}");
    made.insert("render".to_owned());
    for api in ["unified-environment", "virtual-environment"] {
        let mut manifest = fixture.example(api, Flavour::Claims, json!({}))?.manifest;
        manifest["metadata"].as_object_mut().context("metadata")?.remove("namespace");
        let (status, told) = ada.ask("POST", portal, "/api/v1/environments", &manifest).await?;
        ensure!((200..300).contains(&status), "{api}: {status}: {told}");
        made.insert(manifest["metadata"]["name"].as_str().context("an example's name")?.to_owned());
    }
    Ok(made)
}

/// Clients see ready environments through their APIs. Other users do not see them.
async fn check_lists(ada: &Browser, bob: &Browser, portal: &str, workspace: &str) -> Result<()> {
    for (path, name, fields) in [
        ("/api/workspaces", workspace, &["phase", "instanceId", "connection"][..]),
        ("/api/v1/operator/stockpools", "render", &["phase", "available", "allocated"][..]),
    ] {
        let (status, list) = ada.ask("GET", portal, path, &Value::Null).await?;
        let one = list.as_array().into_iter().flatten().find(|one| one["name"] == name);
        let told = one.with_context(|| format!("{path}: {status}: no {name} in {list}"))?;
        let are_own = list.as_array().into_iter().flatten().all(|one| one["name"] != THEIRS);
        ensure!(are_own, "{path} shows bob's to ada: {list}");
        ensure!(
            fields.iter().all(|field| !told["status"][field].is_null()),
            "{path} returns {told}"
        );
        let (status, list) = bob.ask("GET", portal, path, &Value::Null).await?;
        let all =
            list.as_array().with_context(|| format!("{path} returns {status} to bob: {list}"))?;
        ensure!(all.iter().all(|one| one["name"] == THEIRS), "{path} shows ada's to bob: {list}");
    }
    Ok(())
}

/// Replaces a whole pool, as the pages do. The response still has the metadata of other writers.
async fn replace(ada: &Browser, portal: &str, path: &str) -> Result<()> {
    eventually("the pool is replaced", async || {
        let (_, read) = ada.ask("GET", portal, path, &Value::Null).await?;
        let (object, metadata) = (&read["object"], &read["object"]["metadata"]);
        ensure!(metadata["finalizers"].is_array(), "Crossplane keeps no finalizer on {read}");
        let mut document =
            json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"]});
        for field in ["name", "namespace", "labels", "annotations", "resourceVersion"] {
            document["metadata"][field] = metadata[field].clone();
        }
        document["spec"]["replicas"] = json!(1);
        let (status, said) = ada.ask("PUT", portal, path, &document).await?;
        // Crossplane writes to the pool as well.
        if status == 409 {
            return Ok(None);
        }
        ensure!(status == 200, "the PUT is answered by {status}: {said}");
        for field in ["finalizers", "ownerReferences"] {
            let left = &said["object"]["metadata"][field];
            ensure!(*left == metadata[field], "a PUT makes {field} {left}");
        }
        Ok(Some(()))
    })
    .await
}

/// The path of an environment with this name. It includes the group, because claims and namespaced
/// composites can have kinds with the same name.
async fn path_of(who: &Browser, portal: &str, name: &str) -> Result<String> {
    let (status, list) = who.ask("GET", portal, "/api/v1/environments", &Value::Null).await?;
    let one = list["items"].as_array().into_iter().flatten().find(|one| one["name"] == name);
    let one = one.with_context(|| format!("{status}: no {name} in {list}"))?;
    let text = |key: &str| one[key].as_str().unwrap_or_default();
    let group = api_version::group_of(one);
    Ok(format!("/api/v1/environments/{}/{}.{group}/{name}", text("namespace"), text("plural")))
}

/// Waits until each of these environments has had a matching event.
async fn until(
    changes: &mut Changes,
    names: &BTreeSet<String>,
    is_so: impl Fn(&str, &Value) -> bool,
) -> Result<()> {
    let mut left = names.clone();
    let all = async {
        while !left.is_empty() {
            let (event, view) = changes.next().await?;
            ensure!(view["name"] != THEIRS, "ada receives bob's: {view}");
            if is_so(&event, &view) {
                left.remove(view["name"].as_str().unwrap_or_default());
            }
        }
        anyhow::Ok(())
    };
    let in_time = timeout(TIMEOUT, all).await;
    in_time.with_context(|| format!("no matching event in time for {left:?}"))?
}

/// The reason for a stream's end.
async fn ends(changes: &mut Changes) -> Result<String> {
    loop {
        let (event, told) = changes.next().await?;
        if event == "reset" {
            return Ok(told["reason"].as_str().unwrap_or_default().to_owned());
        }
    }
}

/// The environments in a stream's events so far.
async fn silent(changes: &mut Changes) -> Result<Vec<Value>> {
    let mut seen = Vec::new();
    while let Ok(event) = timeout(Duration::from_secs(1), changes.next()).await {
        let (_, view) = event?;
        seen.extend(view["name"].is_string().then_some(view));
    }
    Ok(seen)
}
