//! Tests the API with the portal's client.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod support;

use futures::{StreamExt, future::join_all};
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    ValidationDirective, WatchEvent, WatchParams,
};
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, Error};
use serde_json::{Value, json};
use support::{FAST, start};

fn map(name: &str, data: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn code(error: Error) -> (u16, String) {
    match error {
        Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn discovery_is_served_in_both_shapes() {
    let (_demo, client) = start(FAST, &[]).await;
    let groups = client.list_api_groups_aggregated().await.unwrap();
    let resources = groups
        .items
        .iter()
        .flat_map(|group| &group.versions)
        .flat_map(|version| &version.resources);
    let marked = resources.filter(|one| one.categories.iter().any(|one| one == "paved")).count();
    assert_eq!(marked, 10, "five kinds of two APIs");
    for (group, version, kind, scope) in [
        ("", "v1", "Secret", Scope::Namespaced),
        ("ec2.aws.upbound.io", "v1beta2", "Instance", Scope::Cluster),
        ("ec2.aws.m.upbound.io", "v1beta1", "SecurityGroup", Scope::Namespaced),
        ("platform.acme.io", "v1alpha1", "XStockPool", Scope::Cluster),
    ] {
        let wanted = kube::core::GroupVersionKind::gvk(group, version, kind);
        let (_, capabilities) = pinned_kind(&client, &wanted).await.unwrap();
        assert_eq!(capabilities.scope, scope, "{kind}");
    }
}

#[tokio::test]
async fn a_watch_sees_every_write_in_order() {
    let (_demo, client) = start(FAST, &[]).await;
    let maps = maps(&client);
    let version =
        maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    maps.create(&PostParams::default(), &map("a", &json!({"x": "1"}))).await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "2"}})))
        .await
        .unwrap();
    // An equal write does not create a version.
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "2"}})))
        .await
        .unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let events = maps.watch(&WatchParams::default().timeout(20), &version).await.unwrap();
    let seen: Vec<(&str, Option<String>)> = events
        .take(3)
        .map(|event| match event.unwrap() {
            WatchEvent::Added(map) => ("added", map),
            WatchEvent::Modified(map) => ("modified", map),
            WatchEvent::Deleted(map) => ("deleted", map),
            other => panic!("{other:?}"),
        })
        .map(|(verb, map)| (verb, map.data.and_then(|mut data| data.remove("x"))))
        .collect()
        .await;
    let seen: Vec<(&str, &str)> =
        seen.iter().map(|(verb, x)| (*verb, x.as_deref().unwrap_or_default())).collect();
    assert_eq!(seen, [("added", "1"), ("modified", "2"), ("deleted", "2")]);
}

#[tokio::test]
async fn concurrent_writers_one_succeeds_and_the_others_get_a_conflict() {
    let (_demo, client) = start(FAST, &[]).await;
    let maps = maps(&client);
    let made = maps.create(&PostParams::default(), &map("a", &json!({}))).await.unwrap();
    let writers = (0..16).map(|writer| {
        let (maps, mut mine) = (maps.clone(), made.clone());
        mine.data = Some([("writer".to_owned(), writer.to_string())].into());
        async move { maps.replace("a", &PostParams::default(), &mine).await }
    });
    let (won, lost): (Vec<_>, Vec<_>) =
        join_all(writers).await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 15));
    assert!(lost.into_iter().all(|lost| code(lost.unwrap_err()) == (409, "Conflict".to_owned())));
    let winner = won.into_iter().next().unwrap().unwrap();
    assert_eq!(maps.get("a").await.unwrap(), winner);
}

#[tokio::test]
async fn object_is_deleted_when_its_finalizer_is_removed() {
    let (_demo, client) = start(FAST, &[]).await;
    let maps = maps(&client);
    let mut held = map("a", &json!({}));
    held.metadata.finalizers = Some(vec!["acme.io/keep".to_owned()]);
    let made = maps.create(&PostParams::default(), &held).await.unwrap();
    let other = Preconditions { uid: Some("another".to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(other), ..DeleteParams::default() };
    assert_eq!(code(maps.delete("a", &params).await.unwrap_err()).0, 409);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let going = maps.get("a").await.unwrap();
    assert_eq!(
        (going.metadata.deletion_timestamp.is_some(), &going.metadata.uid),
        (true, &made.metadata.uid)
    );
    maps.patch(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"metadata": {"finalizers": null}})),
    )
    .await
    .unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn applied_object_belongs_to_its_writer() {
    let (_demo, client) = start(FAST, &[]).await;
    let maps = maps(&client);
    let intent =
        |data: Value| Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}));
    let ada = PatchParams::apply("ada");
    maps.patch("a", &ada, &intent(json!({"x": "1", "y": "1"}))).await.unwrap();
    let bob = PatchParams::apply("bob");
    let refused = maps.patch("a", &bob, &intent(json!({"x": "2"}))).await.unwrap_err();
    let Error::Api(status) = refused else { panic!("{refused}") };
    let causes = status.details.unwrap().causes;
    assert_eq!(
        (causes.len(), causes[0].reason.as_str(), causes[0].field.as_str()),
        (1, "FieldManagerConflict", ".data.x")
    );
    let taken = maps.patch("a", &bob.clone().force(), &intent(json!({"x": "2"}))).await.unwrap();
    assert_eq!(json!(taken.data), json!({"x": "2", "y": "1"}));
    let less = maps.patch("a", &ada, &intent(json!({}))).await.unwrap();
    assert_eq!(json!(less.data), json!({"x": "2"}));
}

#[tokio::test]
async fn a_claim_is_checked_as_an_api_server_checks_it() {
    let (_demo, client) = start(FAST, &[]).await;
    let pools = support::api(
        &client,
        "team-vision",
        "platform.acme.io/v1alpha1",
        "StockPool",
        "stockpools",
    );
    let pool = |name: &str, spec: Value| {
        serde_json::from_value(
            json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
            "metadata": {"name": name}, "spec": spec}),
        )
        .unwrap()
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let shown = pools
        .create(&dry, &pool("dry", json!({"specName": "g1.1", "replicas": 1, "strange": 1})))
        .await
        .unwrap();
    assert_eq!(shown.data["spec"]["gpu"], 0, "a default");
    assert!(shown.data["spec"].get("strange").is_none(), "an unknown field");
    assert!(pools.get_opt("dry").await.unwrap().is_none());
    let refused = pools
        .create(&dry, &pool("bad", json!({"specName": "g1.1", "replicas": -1})))
        .await
        .unwrap_err();
    let Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(
        (status.code, status.details.unwrap().causes[0].field.as_str()),
        (422, "spec.replicas")
    );
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("ada")
    };
    let strange = pool("strict", json!({"specName": "g1.1", "strange": 1}));
    assert_eq!(
        code(pools.patch("strict", &strict, &Patch::Apply(&strange)).await.unwrap_err()).0,
        400
    );
    let nowhere =
        support::api(&client, "nowhere", "platform.acme.io/v1alpha1", "StockPool", "stockpools");
    let absent =
        nowhere.create(&PostParams::default(), &pool("a", json!({"specName": "g1.1"}))).await;
    assert_eq!(code(absent.unwrap_err()).0, 404);
}

/// If users could bind a claim, they would gain control of a namespace with that name, and could
/// delete it with the claim.
#[tokio::test]
async fn claim_that_names_its_composite_is_rejected() {
    let (_demo, client) = start(FAST, &[]).await;
    let (version, place) = ("platform.acme.io/v1alpha1", "team-vision");
    let claims = support::api(&client, place, version, "Environment", "environments");
    let reference = json!({"apiVersion": version, "kind": "XEnvironment", "name": "team-payments"});
    let claim = |spec: Value| {
        serde_json::from_value(
            json!({"apiVersion": version, "kind": "Environment", "metadata": {"name": "innocent"}, "spec": spec}),
        )
        .unwrap()
    };
    let attack = claim(json!({"parameters": {}, "resourceRef": reference}));
    let refused = claims.create(&PostParams::default(), &attack).await.unwrap_err();
    let Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.code, 422);
    assert!(status.message.contains("spec.resourceRef is Crossplane's own"), "{}", status.message);

    claims.create(&PostParams::default(), &claim(json!({"parameters": {}}))).await.unwrap();
    let bound = support::eventually("the claim is bound", async || {
        let claim = claims.get("innocent").await.unwrap();
        Some(claim.data["spec"]["resourceRef"].clone()).filter(Value::is_object)
    })
    .await;
    let change = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        claims.patch("innocent", &PatchParams::default(), &patch).await
    };
    for binding in [reference, Value::Null] {
        assert_eq!(
            code(change(json!({"resourceRef": binding})).await.unwrap_err()).0,
            422,
            "{binding}"
        );
    }
    change(json!({"resourceRef": bound, "parameters": {"size": "medium"}})).await.unwrap();
}

#[tokio::test]
async fn access_review_allows_all_users() {
    let (_demo, client) = start(FAST, &[]).await;
    let spec = SelfSubjectRulesReviewSpec { namespace: Some("default".to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let reviews: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    assert_eq!(status.resource_rules[0].verbs, ["*"]);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert!(namespaces.get("team-shop").await.is_ok());
    let secrets: Api<Secret> = Api::all(client);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
}
