//! `/api/v1`: kinds, environments, preview, connection and errors.

use std::collections::BTreeSet;

use function_paved_road::apis::APIS;
use serde_json::{Value, json};

use crate::world::api_server::{ApiServer, CAROL, at, environment};
use crate::world::portal::{Answer, Portal};

async fn both() -> (ApiServer, Portal) {
    let cluster = ApiServer::start().await;
    let portal = Portal::alone(&cluster, "portal").await;
    (cluster, portal)
}

fn pool(name: &str) -> Value {
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
        "metadata": {"name": name, "namespace": "team-vision"}, "spec": {"specName": "g1.1", "replicas": 1}})
}

const PATH: &str = "/api/v1/environments/team-vision/stockpools/spare";

#[tokio::test]
async fn an_environment_is_made_read_changed_and_deleted() {
    let (cluster, portal) = both().await;
    let rehearsed =
        portal.json("POST", "ada", "/api/v1/environments?dryRun=true", &pool("spare")).await;
    assert_eq!(rehearsed.status, 200, "{:?}", rehearsed.body);
    assert!(cluster.paths("stockpools/").is_empty());
    let made = portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    assert_eq!(
        made.header("location"),
        "/api/v1/environments/team-vision/stockpools.platform.acme.io/spare"
    );
    assert_eq!(portal.get("ada", made.header("location")).await.status, 200);
    let listed =
        portal.get("ada", "/api/v1/environments?kind=stockpool&phase=pending").await.json();
    assert_eq!(listed["items"][0]["name"], "spare", "its creator finds it immediately");

    let mut whole = portal.get("ada", PATH).await.json();
    assert_eq!((&whole["phase"], &whole["owner"]), (&json!("Pending"), &json!("ada")));
    let object = &mut whole["object"];
    object["spec"]["replicas"] = json!(2);
    let changed = portal.json("PUT", "ada", PATH, object).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let late = portal.json("PUT", "ada", PATH, object).await;
    assert_eq!(late.status, 409, "the object has changed since it was read");
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let blind = portal.json("PUT", "ada", PATH, object).await;
    assert_eq!(
        (blind.status.as_u16(), &blind.json()["errors"][0]["field"]),
        (400, &json!("metadata.resourceVersion"))
    );

    let patch =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer token-ada")];
    let patched = portal.send("PATCH", PATH, &patch, r#"{"spec": {"replicas": 3}}"#).await;
    assert_eq!(
        (patched.status.as_u16(), &patched.json()["object"]["spec"]["replicas"]),
        (200, &json!(3))
    );

    let other = portal.json("DELETE", "ada", &format!("{PATH}?uid=another"), &Value::Null).await;
    assert_eq!(other.status, 409);
    let uid = whole["uid"].as_str().unwrap();
    let deleted = portal.json("DELETE", "ada", &format!("{PATH}?uid={uid}"), &Value::Null).await;
    assert_eq!(deleted.status, 202);
    assert!(cluster.paths("stockpools/").is_empty());
    assert_eq!(portal.get("ada", PATH).await.status, 404);
}

#[tokio::test]
async fn environment_that_was_read_can_be_created_under_another_name() {
    let (cluster, portal) = both().await;
    portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await;
    cluster.change(&at("stockpools", "team-vision", "spare"), |object| {
        object["spec"]["resourceRef"] = json!({"name": "spare-x"});
        object["spec"]["crossplane"] =
            json!({"resourceRefs": [{"name": "part"}], "compositionRef": {"name": "ours"}});
    });
    let mut object = portal.get("ada", PATH).await.json()["object"].clone();
    object["metadata"]["name"] = json!("another");
    let made = portal.json("POST", "ada", "/api/v1/environments", &object).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let spec = cluster.get(&at("stockpools", "team-vision", "another")).unwrap()["spec"].clone();
    assert_eq!(
        (&spec["resourceRef"], &spec["crossplane"]),
        (&Value::Null, &json!({"compositionRef": {"name": "ours"}}))
    );
}

#[tokio::test]
async fn change_by_an_operator_keeps_the_owner() {
    let (cluster, portal) = both().await;
    cluster.grant("operator", "impersonate users/ada", false);
    portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await;
    let mut object = portal.get("operator", PATH).await.json()["object"].clone();
    object["spec"]["replicas"] = json!(2);
    object["metadata"].as_object_mut().unwrap().remove("labels");
    let changed = portal.json("PUT", "operator", PATH, &object).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let merge = [
        ("content-type", "application/merge-patch+json"),
        ("authorization", "Bearer token-operator"),
    ];
    let change = r#"{"metadata": {"labels": {"owner": "ada", "wave": "2"}}}"#;
    assert_eq!(portal.send("PATCH", PATH, &merge, change).await.status, 200);
    let there = cluster.get(&at("stockpools", "team-vision", "spare")).unwrap();
    let labels = &there["metadata"]["labels"];
    assert_eq!((&labels["owner"], &labels["wave"]), (&json!("ada"), &json!("2")));
}

#[tokio::test]
async fn incomplete_access_rules_are_requested_once_and_not_trusted() {
    let (cluster, portal) = both().await;
    for namespace in ["team-vision", "team-sound"] {
        cluster.put(&at("stockpools", namespace, "spare"), environment("StockPool", "ada"));
        cluster.put(
            &at("gpudevworkspaceclaims", namespace, "ada"),
            environment("GpuDevWorkspaceClaim", "ada"),
        );
    }
    let all =
        |answer: &Answer| answer.json()["items"].as_array().is_some_and(|items| items.len() == 4);
    portal.until_as("operator", "/api/v1/environments", all).await;
    cluster.asked();
    for _ in 0..2 {
        let seen = portal.get(CAROL, "/api/v1/environments").await.json();
        let places: Vec<&str> = seen["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["namespace"].as_str().unwrap())
            .collect();
        assert_eq!(places, ["team-vision", "team-vision"]);
    }
    let asked = cluster.asked();
    let times = |what: &str| {
        asked.iter().filter(|(who, _, path)| who == CAROL && path.ends_with(what)).count()
    };
    // One review of each kind in all namespaces, and then one in each of two namespaces.
    assert_eq!((times("selfsubjectrulesreviews"), times("selfsubjectaccessreviews")), (2, 6));
}

#[tokio::test]
async fn change_keeps_metadata_of_other_writers() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    let mut object = environment("StockPool", "ada");
    let parent = json!({"apiVersion": "acme.io/v1", "kind": "Team", "name": "vision", "uid": "u"});
    let kept = [
        ("finalizers", json!(["finalizer.apiextensions.crossplane.io"])),
        ("ownerReferences", json!([parent])),
        ("generateName", json!("spa")),
    ];
    for (field, value) in &kept {
        object["metadata"][field] = value.clone();
    }
    cluster.put(&path, object);
    for going in [false, true] {
        if going {
            cluster.change(&path, |object| {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
                object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            });
        }
        let read = portal.get("ada", PATH).await.json()["object"].clone();
        let mut short = read.clone();
        for (field, _) in &kept {
            short["metadata"].as_object_mut().unwrap().remove(*field);
        }
        let mut robbed = read.clone();
        robbed["metadata"]["finalizers"] = json!([]);
        robbed["metadata"]["ownerReferences"] = json!([{"kind": "Node"}]);
        for mut document in [read, short, robbed] {
            let version = cluster.get(&path).unwrap()["metadata"]["resourceVersion"].clone();
            document["metadata"]["resourceVersion"] = version;
            let changed = portal.json("PUT", "ada", PATH, &document).await;
            assert_eq!(changed.status, 200, "{:?}", changed.body);
            for (field, value) in &kept {
                assert_eq!(cluster.get(&path).unwrap()["metadata"][field], *value, "{document}");
            }
        }
    }
}

#[tokio::test]
async fn change_keeps_the_references_of_crossplane() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    let mut object = environment("StockPool", "ada");
    object["metadata"]["labels"]["request-id"] = json!("r-1");
    object["metadata"]["annotations"]["paved-road.fn.crossplane.io/request-body"] = json!("hash");
    object["spec"]["resourceRef"] = json!({"kind": "XStockPool", "name": "spare-x7k"});
    object["spec"]["compositionRef"] = json!({"name": "stock-pool"});
    object["spec"]["crossplane"] =
        json!({"resourceRefs": [{"name": "one"}], "compositionSelector": {}});
    cluster.put(&path, object);
    let version = cluster.get(&path).unwrap()["metadata"]["resourceVersion"].clone();
    let wanted = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
        "metadata": {"name": "spare", "resourceVersion": version},
        "spec": {"specName": "g7.2", "replicas": 3, "compositionRef": {"name": "mine"}},
    });
    let changed = portal.json("PUT", "ada", PATH, &wanted).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let there = cluster.get(&path).unwrap();
    assert_eq!(
        there["spec"],
        json!({"specName": "g7.2", "replicas": 3, "compositionRef": {"name": "mine"},
            "resourceRef": {"kind": "XStockPool", "name": "spare-x7k"},
            "crossplane": {"resourceRefs": [{"name": "one"}]}}),
    );
    assert_eq!(there["metadata"]["labels"]["request-id"], "r-1");
    assert_eq!(
        there["metadata"]["annotations"]["paved-road.fn.crossplane.io/request-body"],
        "hash"
    );
}

#[tokio::test]
async fn claim_bound_to_another_composite_is_rejected() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    let mut object = environment("StockPool", "ada");
    object["spec"]["resourceRef"] = json!({"kind": "XStockPool", "name": "spare-x7k"});
    cluster.put(&path, object);
    let bound = || cluster.get(&path).unwrap()["spec"]["resourceRef"].clone();
    let merge =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer token-ada")];
    let document = |binding: Option<Value>| {
        let mut document = cluster.get(&path).unwrap();
        document["spec"].as_object_mut().unwrap().remove("resourceRef");
        if let Some(binding) = binding {
            document["spec"]["resourceRef"] = binding;
        }
        document
    };
    let attacks = [
        json!({"kind": "XStockPool", "name": "team-billing"}),
        json!({"name": "team-billing"}),
        Value::Null,
    ];
    for binding in attacks {
        let change = json!({"spec": {"replicas": 3, "resourceRef": binding}}).to_string();
        let patched = portal.send("PATCH", PATH, &merge, change).await;
        let replaced = portal.json("PUT", "ada", PATH, &document(Some(binding.clone()))).await;
        for answer in [patched, replaced] {
            let field = &answer.json()["errors"][0]["field"];
            assert_eq!(
                (answer.status.as_u16(), field),
                (400, &json!("spec.resourceRef")),
                "{binding}"
            );
        }
        assert_eq!(bound(), json!({"kind": "XStockPool", "name": "spare-x7k"}), "{binding}");
    }
    for binding in
        [json!({"kind": "XStockPool", "name": "spare-x7k"}), json!({"name": "spare-x7k"})]
    {
        let change = json!({"spec": {"replicas": 3, "resourceRef": binding}}).to_string();
        assert_eq!(portal.send("PATCH", PATH, &merge, change).await.status, 200, "{binding}");
    }
    for binding in [None, Some(bound())] {
        let replaced = portal.json("PUT", "ada", PATH, &document(binding)).await;
        assert_eq!(replaced.status, 200, "{:?}", replaced.body);
    }
    assert_eq!(bound(), json!({"kind": "XStockPool", "name": "spare-x7k"}));
}

#[tokio::test]
async fn composite_that_names_other_resources_is_rejected() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    let own = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "spare"}]);
    let foreign = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "billing"}]);
    let mut object = environment("StockPool", "ada");
    object["spec"]["crossplane"] = json!({"resourceRefs": own});
    object["spec"]["resourceRefs"] = own.clone();
    cluster.put(&path, object);
    let merge =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer token-ada")];
    let attacks = [
        (json!({"crossplane": {"resourceRefs": foreign}}), "spec.crossplane.resourceRefs"),
        (json!({"crossplane": {"resourceRefs": null}}), "spec.crossplane.resourceRefs"),
        (json!({"crossplane": null}), "spec.crossplane.resourceRefs"),
        (json!({"resourceRefs": foreign}), "spec.resourceRefs"),
        (json!({"resourceRefs": null}), "spec.resourceRefs"),
    ];
    for (change, field) in attacks {
        let answer = portal.send("PATCH", PATH, &merge, json!({"spec": change}).to_string()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["errors"][0]["field"]),
            (400, &json!(field)),
            "{change}"
        );
    }
    let mut document = cluster.get(&path).unwrap();
    document["spec"]["crossplane"]["resourceRefs"] = foreign.clone();
    let answer = portal.json("PUT", "ada", PATH, &document).await;
    assert_eq!(answer.json()["errors"][0]["field"], "spec.crossplane.resourceRefs");
    assert_eq!(cluster.get(&path).unwrap()["spec"]["crossplane"]["resourceRefs"], own);
    // A document from before Crossplane's write conflicts. Another spelling of the version
    // conflicts too.
    let version = document["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for version in ["0".to_owned(), format!("0{version}"), "99999".to_owned()] {
        document["metadata"]["resourceVersion"] = json!(version);
        assert_eq!(portal.json("PUT", "ada", PATH, &document).await.status, 409, "{version}");
        assert_eq!(
            cluster.get(&path).unwrap()["spec"]["crossplane"]["resourceRefs"],
            own,
            "{version}"
        );
    }
    let change =
        json!({"spec": {"replicas": 3, "crossplane": {"compositionUpdatePolicy": "Manual"}}})
            .to_string();
    assert_eq!(portal.send("PATCH", PATH, &merge, change).await.status, 200);
}

#[tokio::test]
async fn claim_that_is_not_bound_yet_cannot_be_bound_by_its_user() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    cluster.put(&path, environment("StockPool", "ada"));
    let merge =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer token-ada")];
    let change = r#"{"spec": {"resourceRef": {"name": "team-billing"}}}"#;
    assert_eq!(portal.send("PATCH", PATH, &merge, change).await.status, 400);
    let mut document = cluster.get(&path).unwrap();
    document["spec"]["resourceRef"] = json!({"name": "team-billing"});
    assert_eq!(portal.json("PUT", "ada", PATH, &document).await.status, 400);
    assert!(cluster.get(&path).unwrap()["spec"]["resourceRef"].is_null());
}

#[tokio::test]
async fn change_neither_adds_nor_removes_an_owner() {
    let (cluster, portal) = both().await;
    let path = at("stockpools", "team-vision", "spare");
    let mark = || {
        let metadata = cluster.get(&path).unwrap()["metadata"].clone();
        let annotation = metadata["annotations"]["paved-road.fn.crossplane.io/owner"].clone();
        (metadata["labels"]["owner"].clone(), annotation)
    };
    cluster.put(&path, pool("spare"));
    let mut object = portal.get("operator", PATH).await.json()["object"].clone();
    object["metadata"]["annotations"] = json!({"paved-road.fn.crossplane.io/owner": "operator"});
    assert_eq!(portal.json("PUT", "operator", PATH, &object).await.status, 200);
    assert_eq!(mark(), (Value::Null, Value::Null));

    let headers =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer token-ada")];
    let change = async |metadata: Value| {
        portal
            .send("PATCH", PATH, &headers, json!({"metadata": metadata}).to_string())
            .await
            .status
            .as_u16()
    };
    assert_eq!(change(json!({"labels": {"owner": "ada"}})).await, 200);
    let ada = (json!("ada"), json!("ada"));
    assert_eq!(mark(), ada);
    for (metadata, status) in [
        (json!({"labels": {"owner": null}}), 200),
        (json!({"annotations": {"paved-road.fn.crossplane.io/owner": null, "a": "b"}}), 200),
        (json!({"annotations": {"paved-road.fn.crossplane.io/owner": "bob"}}), 200),
        (json!({"labels": {"owner": 3}}), 400),
        (json!({"labels": null}), 400),
        (json!({"annotations": null}), 400),
    ] {
        assert_eq!(change(metadata.clone()).await, status, "{metadata}");
        assert_eq!(mark(), ada, "{metadata}");
    }
    assert_eq!(cluster.get(&path).unwrap()["metadata"]["annotations"]["a"], "b");
}

#[tokio::test]
async fn lists_come_in_pages_and_by_labels() {
    let (cluster, portal) = both().await;
    for number in 0..5 {
        let mut object = environment("StockPool", "ada");
        object["metadata"]["labels"]["odd"] = json!((number % 2 == 1).to_string());
        cluster.put(&at("stockpools", "team-vision", &format!("pool-{number}")), object);
    }
    let all = |answer: &Value| -> Vec<String> {
        answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    portal.until_as("ada", "/api/v1/environments", |answer| all(&answer.json()).len() == 5).await;
    let (mut found, mut path) = (Vec::new(), "/api/v1/environments?limit=2".to_owned());
    for size in [2, 2, 1] {
        let page = portal.get("ada", &path).await.json();
        assert_eq!(all(&page).len(), size);
        found.extend(all(&page));
        path = format!(
            "/api/v1/environments?limit=2&continue={}",
            page["continue"].as_str().unwrap_or_default()
        );
    }
    assert_eq!(found, ["pool-0", "pool-1", "pool-2", "pool-3", "pool-4"]);
    let odd =
        portal.get("ada", "/api/v1/environments?labelSelector=odd%3Dtrue,owner%3Dada").await.json();
    assert_eq!(all(&odd), ["pool-1", "pool-3"]);
    let even =
        portal.get("ada", "/api/v1/environments?labelSelector=odd%20in%20(false),!none").await;
    assert_eq!(all(&even.json()), ["pool-0", "pool-2", "pool-4"]);
    for empty in ["", "%20", ",", ",%20,"] {
        let path = format!("/api/v1/environments?labelSelector={empty}");
        let refused = portal.get("ada", &path).await;
        assert!(refused.status.is_client_error(), "{empty}: {:?}", refused.body);
        let problem = refused.json().to_string();
        assert!(problem.contains("Use LABEL=VALUE, or leave the"), "{problem}");
    }
    for wrong in [
        "limit=0",
        "limit=501",
        "limit=x",
        "continue=%21",
        "labelSelector=odd!%3D",
        "labelSelector=odd,",
        "kind=nothing",
    ] {
        let refused = portal.get("ada", &format!("/api/v1/environments?{wrong}")).await;
        assert!(refused.status.is_client_error(), "{wrong}: {:?}", refused.body);
    }
}

#[tokio::test]
async fn environment_has_causes_with_headline_and_remediation() {
    let (cluster, portal) = both().await;
    let made = portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let uncomposed = portal.get("ada", PATH).await.json();
    assert_eq!(uncomposed["diagnosis"]["cause"]["code"], "Uncomposed");
    assert!(uncomposed["diagnosis"]["from"].is_string(), "it counts later: {uncomposed}");
    let quota = "pods \"pool-spare-\" is forbidden: exceeded quota: gpus, requested: pods=1";
    let part = json!({"slot": "deployment", "kind": "Deployment", "ready": false, "reason": "Failed",
        "message": quota, "since": "2026-01-01T10:00:00Z"});
    let provisioned =
        json!({"type": "Provisioned", "status": "False", "reason": "Failed", "message": quota});
    cluster.change(&at("stockpools", "team-vision", "spare"), |object| {
        object["status"] =
            json!({"phase": "Failed", "resources": [part], "conditions": [provisioned]});
    });
    let failed = portal.get("ada", PATH).await.json();
    let cause = &failed["parts"][0]["cause"];
    assert_eq!(cause["code"], "QuotaExceeded");
    assert_eq!(cause["params"], json!({"provider": "Kubernetes", "quota": "gpus"}));
    assert_eq!(cause["headline"], "Kubernetes quota exceeded: gpus");
    assert!(cause["remediation"].as_str().unwrap().contains("higher quota"), "{cause}");
    assert_eq!(
        (&failed["diagnosis"]["slot"], &failed["diagnosis"]["cause"]),
        (&json!("deployment"), cause)
    );
    assert!(failed["diagnosis"]["from"].is_null(), "it counts at once: {failed}");
}

#[tokio::test]
async fn kinds_list_served_kinds_and_the_right_to_create() {
    let (cluster, portal) = both().await;
    let kinds = portal.get("ada", "/api/v1/kinds").await.json();
    assert_eq!(kinds.as_array().unwrap().len(), 5);
    assert!(
        kinds
            .as_array()
            .unwrap()
            .iter()
            .all(|kind| kind["mayCreate"] == true && kind["namespace"] == "team-vision")
    );
    let titles: Vec<&Value> = kinds.as_array().unwrap().iter().map(|kind| &kind["title"]).collect();
    let of_apis: Vec<String> = APIS.iter().map(|api| api.info().heading()).collect();
    assert_eq!(titles, of_apis.iter().collect::<Vec<_>>());
    let of_kind =
        |kind: &str| kinds.as_array().unwrap().iter().find(|one| one["kind"] == kind).unwrap();
    let workspace = of_kind("GpuDevWorkspaceClaim");
    assert_eq!((&workspace["api"], &workspace["suffix"]), (&json!("gpu-workspace"), &json!("gpu")));
    assert_eq!(workspace["endpoints"][0], "connection");
    assert_eq!(workspace["connectionKeys"], json!(["host", "instanceId", "user"]));
    assert_eq!(of_kind("StockPool")["endpoints"], json!([]));
    let elsewhere = portal.get("ada", "/api/v1/kinds/stockpools?namespace=team-sound").await.json();
    assert_eq!(elsewhere["mayCreate"], false);
    cluster.grant("eve", "create team-vision", true);
    let pools = portal.get("eve", "/api/v1/kinds/stockpools").await.json();
    assert!(
        pools["mayCreate"].is_null() && pools["namespace"].is_null(),
        "no group, no namespace: {pools}"
    );
    let there = portal.get("eve", "/api/v1/kinds/stockpools?namespace=team-vision").await.json();
    assert_eq!((&there["mayCreate"], &there["namespace"]), (&json!(true), &json!("team-vision")));
    cluster.grant("eve", "create ", true);
    let anywhere = portal.get("eve", "/api/v1/kinds/environmentclaims").await.json();
    assert!(
        anywhere["mayCreate"] == true && anywhere["namespace"].is_null(),
        "in every namespace: {anywhere}"
    );
    assert_eq!(portal.get("ada", "/api/v1/kinds/nothing").await.status, 404);
}

#[tokio::test]
async fn a_claim_with_connection_details_names_a_secret_for_them() {
    let cluster = ApiServer::start().await;
    for file in ["application-environment.yaml", "stock-pool.yaml"] {
        let xrd = format!("{}/../xrd/{file}", env!("CARGO_MANIFEST_DIR"));
        let definition: Value =
            serde_saphyr::from_str(&std::fs::read_to_string(xrd).unwrap()).unwrap();
        let path =
            format!("/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions/{file}");
        cluster.put(&path, definition);
    }
    let portal = Portal::alone(&cluster, "portal").await;
    let schema = async |kind: &str| {
        portal.get("ada", &format!("/api/v1/kinds/{kind}")).await.json()["schema"].clone()
    };
    let field =
        schema("applicationenvironments").await["properties"]["writeConnectionSecretToRef"].clone();
    assert!(
        field["description"].as_str().unwrap().contains("kubeconfig")
            && field["required"].is_null(),
        "{field}"
    );
    let pools = schema("stockpools").await;
    assert!(
        pools["properties"]["replicas"].is_object()
            && pools["properties"]["writeConnectionSecretToRef"].is_null()
    );

    let shop = |secret: Value| {
        json!({"kind": "ApplicationEnvironment", "metadata": {"name": "shop", "namespace": "team-vision"},
            "spec": {"parameters": {"nodeSize": "small"}, "writeConnectionSecretToRef": secret}})
    };
    let path = "/api/v1/environments/team-vision/applicationenvironments/shop";
    for (named, given) in
        [(Value::Null, "shop-conn"), (json!({}), "shop-conn"), (json!({"name": "mine"}), "mine")]
    {
        let answer =
            portal.json("POST", "ada", "/api/v1/environments?dryRun=true", &shop(named)).await;
        assert_eq!(answer.json()["object"]["spec"]["writeConnectionSecretToRef"]["name"], given);
    }
    portal.json("POST", "ada", "/api/v1/environments", &shop(json!({"name": "mine"}))).await;
    let mut object = portal.get("ada", path).await.json()["object"].clone();
    object["spec"].as_object_mut().unwrap().remove("writeConnectionSecretToRef");
    let changed = portal.json("PUT", "ada", path, &object).await.json();
    assert_eq!(
        changed["object"]["spec"]["writeConnectionSecretToRef"]["name"], "mine",
        "the given name stays"
    );
    let pool = portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await.json();
    assert!(
        pool["object"]["spec"]["writeConnectionSecretToRef"].is_null(),
        "there is no connection"
    );
}

#[tokio::test]
async fn preview_lists_the_resources_of_a_claim() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let shown = portal.json("POST", "ada", "/api/v1/preview", &pool("spare")).await;
    assert_eq!(shown.status, 200, "{:?}", shown.body);
    let shown = shown.json();
    assert_eq!(shown["parts"][0]["slot"], "deployment");
    assert_eq!(shown["resources"][0]["slot"], "deployment");
    assert!(cluster.paths("stockpools/").is_empty(), "a preview creates no environment");
    let mut wrong = pool("spare");
    wrong["spec"]["replicas"] = json!(-1);
    let refused = portal.json("POST", "ada", "/api/v1/preview", &wrong).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
        (422, &json!("spec.replicas"))
    );
    let elsewhere = portal.json("POST", "bob", "/api/v1/preview", &pool("spare")).await;
    assert_eq!(elsewhere.status, 403);
}

#[tokio::test]
async fn preview_names_the_wrong_field_of_a_lifecycle() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let mut composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    let input = &mut composition["spec"]["pipeline"][0]["input"];
    input["stockPool"]["lifecycle"] = json!({"maximum": "14d"});
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    for (field, value, found, allowed) in [
        ("ttl", json!(8), "found 8; ", "a whole number with a unit"),
        ("ttl", json!("0s"), "found \"0s\"; ", "a whole number with a unit"),
        ("ttl", json!("never"), "found \"never\"; ", "at most 14d, the maximum in Settings"),
        ("power", json!(true), "found true; ", "YAML reads on, off, yes and no as booleans"),
        ("idle", json!({"after": "45m"}), "unknown field", "ttl"),
    ] {
        let mut wrong = pool("spare");
        wrong["spec"]["lifecycle"] = json!({field: value});
        let refused = portal.json("POST", "ada", "/api/v1/preview", &wrong).await;
        assert_eq!(refused.status, 422, "{:?}", refused.body);
        let told = refused.json();
        let [error] = told["errors"].as_array().unwrap().as_slice() else { panic!("{told}") };
        assert_eq!(error["field"], format!("spec.lifecycle.{field}"), "{told}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(found) && message.contains(allowed), "{message}");
    }
}

#[tokio::test]
async fn preview_of_a_change_names_differences_and_rejections() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let path = "/api/v1/environments/team-vision/stockpools/spare";
    assert_eq!(
        portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await.status,
        201
    );
    let before = cluster.get(&at("stockpools", "team-vision", "spare")).unwrap();
    let preview = format!("{path}/preview");
    let mut changed = pool("spare");
    let same = portal.json("POST", "ada", &preview, &changed).await;
    assert_eq!(
        (same.status.as_u16(), &same.json()["changes"]),
        (200, &json!([])),
        "{:?}",
        same.body
    );
    changed["spec"]["replicas"] = json!(7);
    let told = portal.json("POST", "ada", &preview, &changed).await.json();
    let [change] = told["changes"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&change["slot"], &change["action"]), (&json!("deployment"), &json!("change")));
    let is_it = |field: &&Value| field["path"].as_str().unwrap().ends_with("spec.replicas");
    let field = change["fields"].as_array().unwrap().iter().find(is_it);
    assert_eq!(field.map(|field| &field["after"]), Some(&json!("7")), "{change}");
    changed["spec"]["replicas"] = json!(-1);
    let refused = portal.json("POST", "ada", &preview, &changed).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
        (422, &json!("spec.replicas"))
    );
    assert_eq!(
        cluster.get(&at("stockpools", "team-vision", "spare")).unwrap(),
        before,
        "a preview changes no environment"
    );
    assert_eq!(portal.json("POST", "bob", &preview, &pool("spare")).await.status, 403);
}

/// Faults of the current environment are not a reason to reject an unrelated change.
#[tokio::test]
async fn preview_of_a_change_accepts_earlier_faults() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let mut there = pool("spare");
    there["spec"]["unknown"] = json!(1);
    cluster.put(&at("stockpools", "team-vision", "spare"), there.clone());
    let preview = "/api/v1/environments/team-vision/stockpools/spare/preview";
    there["spec"]["replicas"] = json!(3);
    let told = portal.json("POST", "ada", preview, &there).await;
    assert_eq!(told.status, 200, "{:?}", told.body);
    assert!(
        told.json()["notes"][0].as_str().unwrap().contains("The current environment is rejected"),
        "{:?}",
        told.body
    );
    there["spec"]["other"] = json!(1);
    let refused = portal.json("POST", "ada", preview, &there).await.json();
    let fields: Vec<&Value> =
        refused["errors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert_eq!(fields, ["spec.other"], "{refused}");
}

/// A new environment is rejected if its Composition is older than the platform requires. One that
/// runs may be changed.
#[tokio::test]
async fn preview_tells_a_running_environment_from_a_new_one() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let mut composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    let input = &mut composition["spec"]["pipeline"][0]["input"];
    input["schemaRevision"] = json!(2);
    input["minimumSchemaRevision"] = json!(3);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let refused = portal.json("POST", "ada", "/api/v1/preview", &pool("spare")).await;
    assert_eq!(refused.status, 422, "{:?}", refused.body);
    assert!(refused.json().to_string().contains("minimumSchemaRevision"), "{:?}", refused.body);
    let mut running = pool("spare");
    running["status"] = json!({"resources": [{"slot": "deployment", "kind": "Deployment"}]});
    cluster.put(&at("stockpools", "team-vision", "spare"), running);
    let mut changed = pool("spare");
    changed["spec"]["replicas"] = json!(7);
    let path = "/api/v1/environments/team-vision/stockpools/spare";
    let told = portal.json("POST", "ada", &format!("{path}/preview"), &changed).await;
    assert_eq!(told.status, 200, "{:?}", told.body);
    let told = told.json();
    assert_eq!(told["changes"][0]["slot"], "deployment", "{told}");
    assert!(told["notes"].to_string().contains("schemaRevision 2"), "{told}");
}

#[tokio::test]
async fn action_of_a_user_is_logged_and_has_an_event() {
    let (cluster, portal) = both().await;
    cluster.grant("portal", "create /api/v1/namespaces/team-vision/events", true);
    let path = "/api/v1/environments/team-vision/stockpools/spare";
    let made = portal.json("POST", "ada", "/api/v1/environments", &pool("spare")).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let refused = portal.json("DELETE", "bob", path, &Value::Null).await;
    assert_eq!(refused.status, 403, "{:?}", refused.body);
    assert_eq!(portal.json("DELETE", "ada", path, &Value::Null).await.status, 202);
    portal.until_logged(r#""audit":"delete","user":"ada""#).await;
    let log = portal.log();
    for (verb, user, outcome) in
        [("create", "ada", "done"), ("delete", "bob", "refused"), ("delete", "ada", "done")]
    {
        let line = log.lines().find(|line| {
            line.contains(&format!(r#""audit":"{verb}","user":"{user}""#))
                && line.contains(&format!(r#""outcome":"{outcome}""#))
        });
        let line = line.unwrap_or_else(|| panic!("{verb} {user}: {log}"));
        assert!(line.contains(r#""namespace":"team-vision","name":"spare""#), "{line}");
    }
    let mut events = Vec::new();
    for _ in 0..100 {
        events = cluster.paths("namespaces/team-vision/events/");
        if events.len() >= 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut found: Vec<(String, String)> = events
        .iter()
        .filter_map(|path| cluster.get(path))
        .map(|event| {
            assert_eq!(event["involvedObject"]["name"], "spare", "{event}");
            assert_eq!(event["reportingComponent"], "paved-portal", "{event}");
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            (text("reason"), text("message"))
        })
        .collect();
    found.sort();
    let expected = ["Created", "Deleted"].map(|reason| {
        let message = format!("ada {} this environment in the portal", reason.to_lowercase());
        (reason.to_owned(), message)
    });
    assert_eq!(found, expected);
}

#[tokio::test]
async fn one_kind_of_each_api_is_offered() {
    let (_cluster, portal) = both().await;
    let kinds = portal.get("ada", "/api/v1/kinds").await.json();
    let kinds = kinds.as_array().unwrap();
    let offered: Vec<&Value> = kinds.iter().filter(|kind| kind["offered"] == true).collect();
    let mut apis: Vec<&str> = offered.iter().filter_map(|kind| kind["api"].as_str()).collect();
    let all = apis.len();
    apis.sort_unstable();
    apis.dedup();
    assert_eq!(apis.len(), all, "{offered:?}");
}

#[tokio::test]
async fn rejection_by_a_pattern_is_in_words() {
    let (cluster, portal) = both().await;
    let text =
        std::fs::read_to_string(crate::support::example("stock-pool/composition.yaml")).unwrap();
    let composition: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    cluster.put("/apis/apiextensions.crossplane.io/v1/compositions/pools", composition);
    let mut wrong = pool("spare");
    wrong["spec"]["specName"] = json!("not a label");
    wrong["spec"]["image"] = json!("NOT an image");
    for path in ["/api/v1/preview", "/api/v1/environments"] {
        let problem = portal.json("POST", "ada", path, &wrong).await;
        assert_eq!(problem.status, 422, "{path}: {:?}", problem.body);
        let problem = problem.json();
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(2), "{path}: {problem}");
        let text = problem.to_string();
        assert!(!text.contains("[a-z") && !text.contains('^'), "{path}: {text}");
        assert!(text.contains("1 to 63 letters, digits and . _ -"), "{path}: {text}");
    }
}

#[tokio::test]
async fn connection_details_are_shown_on_request_with_the_right() {
    let (cluster, portal) = both().await;
    let mut object = environment("ApplicationEnvironment", "ada");
    object["spec"]["writeConnectionSecretToRef"] = json!({"name": "shop-conn"});
    cluster.put(&at("applicationenvironments", "team-vision", "shop"), object);
    let secret = "/api/v1/namespaces/team-vision/secrets/shop-conn";
    let path = "/api/v1/environments/team-vision/applicationenvironments/shop/connection";
    assert_eq!(portal.json("POST", "ada", path, &Value::Null).await.status, 404, "no Secret yet");
    cluster.put(
        secret,
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"db_password": "c2VjcmV0LWNhbmFyeQ=="}}),
    );
    let shown = portal.json("POST", "ada", path, &Value::Null).await;
    assert_eq!(
        shown.json(),
        json!({"secret": "shop-conn", "values": {"db_password": "secret-canary"}})
    );
    assert_eq!(shown.header("cache-control"), "no-store");
    assert_eq!(portal.json("POST", "bob", path, &Value::Null).await.status, 403);
    assert_eq!(portal.get("ada", path).await.status, 405, "a link shows no secret");
    let whole = portal.get("ada", path.trim_end_matches("/connection")).await;
    assert!(!String::from_utf8_lossy(&whole.body).contains("secret-canary"));
    let log = portal.log();
    assert!(
        log.contains(r#""audit":"connection""#)
            && log.contains("shop-conn")
            && !log.contains("secret-canary"),
        "{log}"
    );
    let asked = cluster.asked();
    assert!(
        asked
            .iter()
            .filter(|(_, _, path)| path == secret)
            .all(|(who, ..)| who == "ada" || who == "bob")
    );
}

#[tokio::test]
async fn errors_are_problems_with_the_requests_id() {
    let (_cluster, portal) = both().await;
    for (method, path, status) in [
        ("GET", "/api/v1/nothing", 404),
        ("DELETE", "/api/v1/environments", 405),
        ("GET", "/api/v1/environments/team-vision/stockpools/nothing", 404),
        ("GET", "/api/v1/environments/..%2fx/stockpools/a", 400),
        ("GET", "/ws/status/", 400),
    ] {
        let id = ("x-request-id", "0123456789abcdef");
        let answer =
            portal.send(method, path, &[("authorization", "Bearer token-ada"), id], "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (status, "application/problem+json"),
            "{path}"
        );
        let problem = answer.json();
        assert_eq!((&problem["status"], &problem["instance"]), (&json!(status), &json!(path)));
        assert_eq!(
            (&problem["requestId"], answer.header("x-request-id")),
            (&json!("0123456789abcdef"), "0123456789abcdef")
        );
        assert!(
            problem["error"].is_string()
                && problem["title"].is_string()
                && problem["detail"].is_string()
        );
    }
    assert!(portal.log().contains(r#""request":"0123456789abcdef""#));
}

#[tokio::test]
async fn every_route_is_described_and_metrics_exist() {
    let (_cluster, portal) = both().await;
    let served = portal.get("", "/api/v1/openapi.json").await.json();
    let print = || crate::support::paved(&["portal", "--print-openapi"]);
    let printed = tokio::task::spawn_blocking(print).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&printed.out).unwrap(), served, "without a cluster");
    let of_the_pages: Value =
        serde_json::from_str(include_str!("../../../web/openapi.json")).unwrap();
    assert_eq!(
        of_the_pages, served,
        "paved portal --print-openapi >web/openapi.json, and `npm run types` there"
    );
    let paths = served["paths"].as_object().unwrap();
    for path in [
        "/api/workspaces",
        "/api/environments/",
        "/ws/status/",
        "/api/v1/operator/jobs/{jobID}",
        "/api/v1/watch",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    let text = served.to_string();
    for reference in text.split(r##""$ref":"#"##).skip(1).filter_map(|rest| rest.split('"').next())
    {
        assert!(served.pointer(reference).is_some(), "{reference} does not exist");
    }
    assert!(text.contains("#/components/schemas/Problem"));
    let mut ids = BTreeSet::new();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses.keys().any(|code| code.starts_with(['1', '2', '3'])),
                "{method} {path}"
            );
            let id = operation["operationId"].as_str().unwrap_or_default();
            assert!(
                !id.is_empty() && ids.insert(id),
                "{method} {path}: {id:?} must be a unique ID"
            );
            let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            assert!(said(&operation["summary"]), "{method} {path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(said(&parameter["description"]), "{method} {path}: {parameter}");
            }
        }
    }
    portal.get("ada", "/api/v1/kinds/stockpools").await;
    let figures = String::from_utf8(portal.get("", "/metrics").await.body.to_vec()).unwrap();
    for figure in [
        r#"paved_portal_http_requests_total{method="GET",route="/api/v1/kinds/{kind}",status="200"} 1"#,
        "paved_portal_streams 0",
        "paved_portal_access_reviews_total",
    ] {
        assert!(figures.contains(figure), "{figure}\n{figures}");
    }
}

#[tokio::test]
async fn every_other_path_is_the_page_whether_pages_were_built_or_not() {
    let (_cluster, portal) = both().await;
    let page = portal.get("", "/environments/team/stockpools.platform.acme.io/ada").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let text = String::from_utf8_lossy(&page.body);
    assert!(text.contains("npm run build") || text.contains("<script type=\"module\""), "{text}");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let head = portal.send("HEAD", "/", &[], "").await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), page.header("content-length"));
    assert_eq!(portal.get("", "/assets/index.js").await.status, 404);
    assert_eq!(portal.json("POST", "", "/", &json!({})).await.status, 404);
}

#[tokio::test]
async fn only_pages_and_schemas_are_compressed() {
    let (_cluster, portal) = both().await;
    let zipped = ("accept-encoding", "gzip");
    let page = portal.send("GET", "/", &[zipped], "").await;
    assert_eq!((page.header("content-encoding"), page.header("vary")), ("gzip", "accept-encoding"));
    assert!(page.body.starts_with(&[0x1f, 0x8b]));
    assert_eq!(portal.get("", "/").await.header("content-encoding"), "");
    let ada = ("authorization", "Bearer token-ada");
    for (path, encoding) in
        [("/api/v1/kinds", "gzip"), ("/api/v1/environments", ""), ("/api/v1/openapi.json", "")]
    {
        let answer = portal.send("GET", path, &[zipped, ada], "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-encoding")),
            (200, encoding),
            "{path}"
        );
    }
    let stream = portal.open("GET", "/api/v1/watch", &[zipped, ada], "").await;
    assert!(stream.status() == 200 && stream.headers().get("content-encoding").is_none());
}
