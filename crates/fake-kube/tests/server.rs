//! Tests faults and the request log with a client of the API.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::sync::Arc;

use fake_kube::access::{Access, User};
use fake_kube::kinds::Kinds;
use fake_kube::{Cluster, Server};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_schema::Schemas;
use kube::api::{Api, DeleteParams, ListParams, PostParams, VersionMatch, WatchEvent, WatchParams};
use kube::core::ObjectMeta;
use kube::{Client, Config, Error};
use serde_json::json;

/// A cluster, its server, and the ConfigMaps of a namespace.
async fn start() -> (Arc<Cluster>, Server, Api<ConfigMap>) {
    let kinds = Kinds::new([], Schemas::new([].iter()).unwrap(), Vec::new());
    let cluster = Arc::new(Cluster::new(kinds, Access::open(User::new("ada", &[]))));
    let server = Server::start(Arc::clone(&cluster)).await.unwrap();
    let mut config = Config::new(format!("http://{}", server.address).parse().unwrap());
    // By default the client repeats a request that is answered with 503 for minutes.
    config.default_retry = false;
    let maps = Api::namespaced(Client::try_from(config).unwrap(), "default");
    (cluster, server, maps)
}

async fn create(maps: &Api<ConfigMap>, name: &str) -> String {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, ..ConfigMap::default() };
    maps.create(&PostParams::default(), &map).await.unwrap().metadata.resource_version.unwrap()
}

#[tokio::test]
async fn watch_that_is_cut_ends_and_earlier_versions_are_expired() {
    let (cluster, _server, maps) = start().await;
    let (first, second) = (create(&maps, "a").await, create(&maps, "b").await);
    let mut events = Box::pin(maps.watch(&WatchParams::default(), &second).await.unwrap());
    cluster.cut_watches();
    assert!(events.next().await.is_none());
    let mut events = Box::pin(maps.watch(&WatchParams::default(), &first).await.unwrap());
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(&event, WatchEvent::Error(status) if status.code == 410), "{event:?}");
    let mut events = Box::pin(maps.watch(&WatchParams::default(), &second).await.unwrap());
    create(&maps, "c").await;
    assert!(matches!(events.next().await.unwrap().unwrap(), WatchEvent::Added(_)));
}

#[tokio::test]
async fn list_of_an_exact_version_has_the_objects_of_that_time() {
    let (cluster, _server, maps) = start().await;
    let first = create(&maps, "a").await;
    create(&maps, "b").await;
    let params = ListParams::default().at(&first).matching(VersionMatch::Exact);
    let names =
        maps.list(&params).await.unwrap().items.into_iter().map(|map| map.metadata.name.unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["a"]);
    cluster.cut_watches();
    let expired = maps.list(&params).await.unwrap_err();
    assert!(matches!(&expired, Error::Api(status) if status.code == 410), "{expired}");
}

#[tokio::test]
async fn policy_with_a_parameter_refuses_a_deletion() {
    let kind = "ValidatingAdmissionPolicy";
    let policies = vec![
        json!({"kind": kind, "metadata": {"name": "kept"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["DELETE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "!(oldObject.metadata.name in params.data)",
                "messageExpression": "params.data[oldObject.metadata.name]"}]}}),
        json!({"kind": format!("{kind}Binding"), "spec": {"policyName": "kept", "paramRef": {
            "name": "list", "namespace": "default", "parameterNotFoundAction": "Allow"}}}),
    ];
    let kinds = Kinds::new([], Schemas::new([].iter()).unwrap(), policies);
    let cluster = Arc::new(Cluster::new(kinds, Access::open(User::new("ada", &[]))));
    let server = Server::start(Arc::clone(&cluster)).await.unwrap();
    let config = Config::new(format!("http://{}", server.address).parse().unwrap());
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    create(&maps, "a").await;
    let mut list = maps.get("a").await.unwrap();
    list.metadata = ObjectMeta { name: Some("list".to_owned()), ..ObjectMeta::default() };
    list.data = Some([("a".to_owned(), "a is in use".to_owned())].into());
    maps.create(&PostParams::default(), &list).await.unwrap();
    for params in [DeleteParams::default(), DeleteParams::default().dry_run()] {
        let refused = maps.delete("a", &params).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Api(status) if status.message.ends_with("a is in use")),
            "{refused}"
        );
    }
    maps.delete("list", &DeleteParams::default()).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn unavailable_server_returns_503_until_it_recovers() {
    let (cluster, _server, maps) = start().await;
    cluster.faults.set_down(true);
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.code == 503), "{refused}");
    cluster.faults.set_down(false);
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    let requests = cluster.requests();
    let logged: Vec<_> =
        requests.iter().map(|one| (one.user.as_deref(), one.path.as_str())).collect();
    assert_eq!(logged, [(Some("ada"), "/api/v1/namespaces/default/configmaps")]);
    assert_eq!(cluster.requests(), []);
}

#[tokio::test]
async fn group_that_is_withdrawn_is_neither_listed_nor_served() {
    let (cluster, _server, maps) = start().await;
    let client = maps.into_client();
    let listed = async || {
        let groups = client.list_api_groups().await.unwrap().groups;
        groups.iter().any(|group| group.name == "apps")
    };
    assert!(listed().await);
    cluster.faults.unlist("apps");
    assert!(!listed().await);
    assert_eq!(client.list_api_group_resources("apps/v1").await.unwrap().resources.len(), 2);
    cluster.faults.withdraw("apps");
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::default_namespaced(client.clone());
    assert_eq!(deployments.get_opt("a").await.unwrap(), None);
    let refused = deployments.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.code == 404), "{refused}");
}

#[tokio::test]
async fn list_with_a_limit_comes_in_pages() {
    let (_cluster, _server, maps) = start().await;
    for name in ["a", "b", "c"] {
        create(&maps, name).await;
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    create(&maps, "d").await;
    let params = ListParams::default().limit(2).continue_token(&token);
    let second = maps.list(&params).await.unwrap();
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    let names = |maps: Vec<ConfigMap>| -> Vec<_> {
        maps.into_iter().map(|map| map.metadata.name.unwrap()).collect()
    };
    assert_eq!([names(first.items), names(second.items)], [["a", "b"], ["c", "d"]]);
    assert!(second.metadata.continue_.is_none_or(|token| token.is_empty()));
}
