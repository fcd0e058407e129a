//! Environments with several providers: clusters and their contents, namespaces and their Secrets,
//! sites.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod support;

use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};
use support::{SIBLING, message, namespaced, rounds, status, world};

/// The group in the claims API or in the namespaced API, where it has an additional `m`.
fn group(flavour: bool, group: &str) -> String {
    if flavour { group.replacen("crossplane.io", "m.crossplane.io", 1) } else { group.to_owned() }
}

fn object(manifest: Value) -> Value {
    json!({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
           "spec": {"forProvider": {"manifest": manifest}}})
}

fn release(chart: &str, namespace: &str) -> Value {
    json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "Release",
           "spec": {"forProvider": {"chart": {"name": chart}, "namespace": namespace}}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The same resource with a provider config.
fn by(mut resource: Value, config: &str) -> Value {
    resource["spec"]["providerConfigRef"] = json!({"name": config});
    resource
}

/// Adds provider configs for helm and kubernetes with a kubeconfig from an EKS cluster's
/// ClusterAuth.
fn with_cluster(mut resources: Value) -> Value {
    let secret =
        json!({"name": "kubeconfig", "namespace": "crossplane-system", "key": "kubeconfig"});
    let config = |provider: &str| {
        json!({"apiVersion": format!("{provider}.crossplane.io/v1beta1"), "kind": "ProviderConfig",
               "metadata": {"name": "inner"}, "spec": {"credentials": {"source": "Secret", "secretRef": secret}}})
    };
    let eks = |kind: &str, params: Value| json!({"apiVersion": "eks.aws.upbound.io/v1beta1", "kind": kind, "spec": {"forProvider": params}});
    resources["helm-config"] = config("helm");
    resources["kubernetes-config"] = config("kubernetes");
    resources["cluster"] = eks("Cluster", json!({"region": "eu-west-1"}));
    resources["auth"] =
        eks("ClusterAuth", json!({"region": "eu-west-1", "clusterNameSelector": SIBLING()}));
    resources["auth"]["spec"]["writeConnectionSecretToRef"] = secret;
    resources
}

fn at_once(resources: Value) -> World {
    let mut world = world(resources);
    Provider::new(Pace::Instant).answer(&mut world);
    world
}

#[test]
fn eks_kubeconfig_comes_from_cluster_auth_and_unblocks_content() {
    let inside = json!({"app": by(release("app", "shop"), "inner"), "n": by(object(namespace("x")), "inner")});
    let mut world = world(with_cluster(inside));
    assert_eq!(rounds(&mut world, &["cluster", "auth", "n", "app"]), [4, 5, 6, 7]);
    let details = world.connection_details(&world.resources()["auth"]);
    assert_eq!(details.keys().collect::<Vec<_>>(), ["clusterCA", "endpoint", "kubeconfig"]);
    assert!(String::from_utf8_lossy(&details["kubeconfig"]).contains(".eks.amazonaws.com"));
    for config in ["helm-config", "kubernetes-config"] {
        assert!(world.resources()[config].get("status").is_none(), "{config}");
    }
}

#[test]
fn provider_config_name_above_63_characters_is_unusable() {
    for (length, ready) in [(63, "True"), (64, "")] {
        let resource = by(release("app", "app"), &"x".repeat(length));
        let world = at_once(json!({"app": resource}));
        assert_eq!(status(&world, "app", "Ready"), ready, "{length} characters");
    }
}

#[test]
fn kinds_of_a_chart_are_unknown_until_its_release_is_ready() {
    let add_ons = [
        ("argo-cd", "argoproj.io/v1alpha1", "Application"),
        ("knative-operator", "operator.knative.dev/v1beta1", "KnativeServing"),
    ];
    for (chart, version, kind) in add_ons {
        let manifest = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "n"}});
        let mut resources = json!({"inside": by(object(manifest), "inner")});
        let world = at_once(with_cluster(resources.clone()));
        let expected = format!("no matches for kind {kind:?} in version {version:?}");
        assert!(message(&world, "inside", "Synced").ends_with(&expected), "{kind} is unknown");
        resources["add-on"] = by(release(chart, "n"), "inner");
        let mut world = support::world(with_cluster(resources.clone()));
        assert_eq!(rounds(&mut world, &["add-on", "inside"]), [7, 8], "{kind}");
        resources["add-on"] = release(chart, "n");
        let world = at_once(with_cluster(resources));
        assert_eq!(status(&world, "inside", "Ready"), "", "{chart} is in another cluster");
    }
}

#[test]
fn add_ons_report_their_health() {
    let manifest = |version: &str, kind: &str| {
        object(json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {}}))
    };
    let mut application = manifest("argoproj.io/v1alpha1", "Application");
    application["spec"]["readiness"] = json!({"policy": "DeriveFromCelQuery", "celQuery":
        "has(object.status) && has(object.status.health) && has(object.status.sync) && \
         object.status.health.status == 'Healthy' && object.status.sync.status == 'Synced'"});
    let mut serving = manifest("operator.knative.dev/v1beta1", "KnativeServing");
    serving["spec"]["readiness"] = json!({"policy": "DeriveFromObject"});
    let mut world = world(json!({"application": application, "serving": serving}));
    assert_eq!(rounds(&mut world, &["application", "serving"]), [2, 2]);
    let seen =
        |slot: &str| world.resources()[slot]["status"]["atProvider"]["manifest"]["status"].clone();
    assert_eq!(
        seen("application"),
        json!({"health": {"status": "Healthy"}, "sync": {"status": "Synced"}})
    );
}

#[test]
fn a_secret_waits_for_the_namespace_that_an_object_makes() {
    let role = json!({"apiVersion": "postgresql.sql.crossplane.io/v1alpha1", "kind": "Role",
        "spec": {"forProvider": {}, "writeConnectionSecretToRef": {"name": "creds", "namespace": "shop-environment"}}});
    let mut world =
        world(json!({"role": role, "namespace": object(namespace("shop-environment"))}));
    let mut provider = Provider::new(Pace::Rounds);
    provider.answer(&mut world);
    assert_eq!(status(&world, "role", "Synced"), "False");
    let said = message(&world, "role", "Synced");
    assert!(
        said.ends_with(r#"connection secret: namespaces "shop-environment" not found"#),
        "{said}"
    );
    assert!(world.secret("shop-environment", "creds").is_none());
    provider.answer(&mut world);
    assert_eq!(
        (status(&world, "namespace", "Ready"), status(&world, "role", "Ready")),
        ("True".into(), "True".into())
    );
    let keys: Vec<String> = world.secret_data("shop-environment", "creds").into_keys().collect();
    assert_eq!(keys, ["endpoint", "password", "port", "username"]);
}

#[test]
fn namespaced_resources_wait_for_their_namespace() {
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}});
    let mut release = release("app", "n");
    release["spec"]["forProvider"]["skipCreateNamespace"] = json!(true);
    let mut world = world(
        json!({"a-service": object(service), "b-release": release, "namespace": object(namespace("n"))}),
    );
    Provider::new(Pace::Rounds).answer(&mut world);
    for slot in ["a-service", "b-release"] {
        assert!(message(&world, slot, "Synced").ends_with(r#"namespaces "n" not found"#));
    }
    assert_eq!(rounds(&mut world, &["a-service", "b-release"]), [1, 2]);
}

#[test]
fn observed_service_has_its_address_after_its_release() {
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "v", "namespace": "n"}});
    let mut looked_at = object(service);
    looked_at["spec"]["managementPolicies"] = json!(["Observe"]);
    let mut world = world(json!({"address": looked_at, "vcluster": release("vcluster", "n")}));
    assert_eq!(rounds(&mut world, &["vcluster", "address"]), [2, 3]);
    let seen = &world.resources()["address"]["status"]["atProvider"]["manifest"]["status"];
    assert_eq!(seen["loadBalancer"]["ingress"][0]["ip"], "203.0.113.81");
}

#[test]
fn a_wrapped_deployment_is_ready_for_its_newest_generation_only() {
    const QUERY: &str = "has(object.status) && has(object.status.observedGeneration) && \
        object.status.observedGeneration >= object.metadata.generation && (object.spec.replicas == 0 || \
        (has(object.status.availableReplicas) && object.status.availableReplicas >= object.spec.replicas))";
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": {"replicas": 1}});
    let mut deployment = object(manifest);
    deployment["spec"]["readiness"] = json!({"policy": "DeriveFromCelQuery", "celQuery": QUERY});
    let mut world = world(json!({"d": deployment}));
    assert_eq!(rounds(&mut world, &["d"]), [2]);
    let inner = |world: &World| world.resources()["d"]["status"]["atProvider"]["manifest"].clone();
    assert!(inner(&world)["metadata"]["uid"].is_string());
    assert_eq!(inner(&world)["metadata"]["generation"], 1);
    world.resources_mut().get_mut("d").unwrap()["spec"]["forProvider"]["manifest"]["spec"]["replicas"] =
        json!(3);
    let mut provider = Provider::new(Pace::Rounds);
    provider.answer(&mut world);
    assert_eq!(
        (&inner(&world)["metadata"]["generation"], status(&world, "d", "Ready")),
        (&json!(2), "False".into())
    );
    provider.answer(&mut world);
    assert_eq!(
        (&inner(&world)["status"]["availableReplicas"], status(&world, "d", "Ready")),
        (&json!(3), "True".into())
    );
    let zero = |world: &mut World| {
        world.resources_mut().get_mut("d").unwrap()["spec"]["forProvider"]["manifest"]["spec"]["replicas"] =
            json!(0);
    };
    zero(&mut world);
    Provider::new(Pace::Instant).answer(&mut world);
    assert_eq!(
        (&inner(&world)["metadata"]["generation"], status(&world, "d", "Ready")),
        (&json!(3), "True".into())
    );
}

#[test]
fn a_site_finds_its_access_control_and_is_deployed() {
    for modern in [false, true] {
        let upbound = |service: &str, kind: &str, params: Value| {
            let group = if modern { "aws.m.upbound.io" } else { "aws.upbound.io" };
            json!({"apiVersion": format!("{service}.{group}/v1beta1"), "kind": kind, "spec": {"forProvider": params}})
        };
        let origin = json!([{"originId": "site", "originAccessControlIdSelector": SIBLING()}]);
        let resources = json!({
            "bucket": upbound("s3", "Bucket", json!({"region": "eu-west-1"})),
            "policy": upbound("s3", "BucketPolicy", json!({"region": "eu-west-1", "bucketSelector": SIBLING(), "policy": "{}"})),
            "access": upbound("cloudfront", "OriginAccessControl", json!({})),
            "site": upbound("cloudfront", "Distribution", json!({"origin": origin})),
        });
        let mut world = if modern { namespaced(resources) } else { world(resources) };
        assert_eq!(rounds(&mut world, &["bucket", "access", "policy", "site"]), [1, 1, 2, 5]);
        let (access, site) = (&world.resources()["access"], &world.resources()["site"]);
        assert_eq!(
            site["spec"]["forProvider"]["origin"][0]["originAccessControlId"],
            access["metadata"]["annotations"]["crossplane.io/external-name"]
        );
        let seen = &site["status"]["atProvider"];
        assert_eq!(seen["status"], "Deployed");
        assert!(seen["domainName"].as_str().unwrap().ends_with(".cloudfront.net"));
        assert!(world.resources()["policy"]["spec"]["forProvider"]["bucket"].is_string());
    }
}

#[test]
fn site_without_access_control_names_its_selector() {
    let origin = json!([{"originAccessControlIdSelector": SIBLING()}]);
    let world = at_once(
        json!({"site": {"apiVersion": "cloudfront.aws.upbound.io/v1beta2", "kind": "Distribution",
        "spec": {"forProvider": {"origin": origin}}}}),
    );
    let expected = "cannot resolve references: mg.Spec.ForProvider.Origin[i3].OriginAccessControlID: no resources matched selector";
    assert_eq!(message(&world, "site", "Synced"), expected);
}

/// A function, and the Secret with its code.
fn cloudfront_function(code: &str) -> (Value, Value) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"app.js": code},
                        "metadata": {"name": "code", "namespace": "shop"}});
    let reference = json!({"name": "code", "namespace": "shop", "key": "app.js"});
    let function = json!({
        "apiVersion": "cloudfront.aws.upbound.io/v1beta1", "kind": "Function",
        "metadata": {"annotations": {"crossplane.io/external-name": "paths"}},
        "spec": {"forProvider": {"runtime": "cloudfront-js-2.0", "publish": true, "codeSecretRef": reference}},
    });
    (secret, function)
}

const HANDLER: &str = "function handler(event) { return event.request; }";

#[test]
fn cloudfront_function_is_created_from_the_code_in_its_secret() {
    let (secret, function) = cloudfront_function(HANDLER);
    let world = at_once(json!({"code": object(secret), "paths": function}));
    assert_eq!(status(&world, "paths", "Ready"), "True");
    let arn = &world.resources()["paths"]["status"]["atProvider"]["arn"];
    assert_eq!(arn, "arn:aws:cloudfront::123456789012:function/paths");
}

#[test]
fn invalid_cloudfront_function_is_rejected() {
    let (secret, function) = cloudfront_function(HANDLER);
    let mut of_old_runtime = function.clone();
    of_old_runtime["spec"]["forProvider"]["runtime"] = json!("nodejs20.x");
    let mut of_wrong_name = function.clone();
    of_wrong_name["metadata"]["annotations"]["crossplane.io/external-name"] = json!("a.b");
    let mut without_key = function.clone();
    without_key["spec"]["forProvider"]["codeSecretRef"]["key"] = json!("pages.js");
    let (without_handler, _) = cloudfront_function("exports.run = 1");
    let (too_large, _) = cloudfront_function(&format!("{HANDLER}{}", " ".repeat(10 * 1024)));
    let code = object(secret);
    for (resources, words) in [
        (json!({"paths": function}), "empty"),
        (json!({"code": code, "paths": without_key}), "empty"),
        (json!({"code": object(too_large), "paths": function}), "too large"),
        (json!({"code": object(without_handler), "paths": function}), "no function handler"),
        (json!({"code": code, "paths": of_old_runtime}), "runtime"),
        (json!({"code": code, "paths": of_wrong_name}), "name"),
    ] {
        let message = message(&at_once(resources), "paths", "Synced");
        assert!(message.contains("InvalidArgument") && message.contains(words), "{message}");
    }
}

#[test]
fn distribution_rejects_a_function_that_is_not_published() {
    let (secret, mut function) = cloudfront_function(HANDLER);
    let arn = "arn:aws:cloudfront::123456789012:function/paths";
    let association = json!([{"eventType": "viewer-request", "functionArn": arn}]);
    let site = json!({"apiVersion": "cloudfront.aws.upbound.io/v1beta2", "kind": "Distribution",
        "spec": {"forProvider": {"defaultCacheBehavior": {"functionAssociation": association}}}});
    let made = |function: &Value| {
        at_once(json!({"code": object(secret.clone()), "paths": function, "site": site}))
    };
    assert_eq!(status(&made(&function), "site", "Ready"), "True");
    function["spec"]["forProvider"]["publish"] = json!(false);
    let message = message(&made(&function), "site", "Synced");
    assert!(message.contains("InvalidFunctionAssociation"), "{message}");
}

#[test]
fn rds_instance_writes_its_endpoint_and_generated_password() {
    let instance = json!({"apiVersion": "rds.aws.m.upbound.io/v1beta1", "kind": "Instance", "spec": {
        "forProvider": {"region": "eu-west-1", "username": "app", "autoGeneratePassword": true,
                        "passwordSecretRef": {"name": "master", "key": "password"}},
        "writeConnectionSecretToRef": {"name": "creds"}}});
    let mut world = namespaced(json!({"db": instance}));
    assert_eq!(rounds(&mut world, &["db"]), [4]);
    let details = world.secret_data("team", "creds");
    let keys: Vec<&String> = details.keys().collect();
    assert_eq!(keys, ["address", "endpoint", "host", "password", "port", "username"]);
    assert_eq!(world.secret_data("team", "master")["password"], details["password"]);
    let text = |key: &str| String::from_utf8_lossy(&details[key]).into_owned();
    assert_eq!(text("endpoint"), format!("{}:5432", text("address")));
}

#[test]
fn grants_wait_for_role_and_database_in_both_flavours() {
    for modern in [false, true] {
        let sql = |kind: &str, params: Value| {
            let group = group(modern, "postgresql.sql.crossplane.io");
            json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "spec": {"forProvider": params}})
        };
        let resources = json!({
            "grant": sql("Grant", json!({"roleSelector": SIBLING(), "databaseSelector": SIBLING()})),
            "db": sql("Database", json!({})), "role": sql("Role", json!({})),
        });
        let mut world = if modern { namespaced(resources) } else { world(resources) };
        assert_eq!(rounds(&mut world, &["role", "db", "grant"]), [1, 1, 2]);
    }
}
