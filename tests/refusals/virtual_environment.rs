//! Virtual environments.

use super::*;

fn virtual_environment() -> World {
    main_examples("virtual-environment")
        .into_iter()
        .find(|world| world.flavour == Flavour::Claims)
        .unwrap()
}

fn with(field: &str, value: Value) -> World {
    spec(virtual_environment(), field, value)
}

/// A virtual environment with a value at a JSON pointer below the parameters.
fn at(pointer: &str, value: Value) -> World {
    let mut world = virtual_environment();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    world.xr["spec"]["parameters"].pointer_mut(parent).unwrap()[field] = value;
    world
}

fn of_type(cluster_type: &str) -> World {
    with("type", json!(cluster_type))
}

/// An environment of a type, without a required field of Settings.
fn lacking(cluster_type: &str, pointer: &str) -> World {
    let mut world = of_type(cluster_type);
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = world.input["environment"].pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().remove(field);
    world
}

/// An environment of a type with these allowed networks.
fn reached_from(cluster_type: &str, networks: &[&str]) -> World {
    let mut world = of_type(cluster_type);
    world.input["environment"]["allowedCidrs"] = json!(networks);
    world
}

/// An environment with Settings that have a value at a JSON pointer below the section.
fn settings_at(pointer: &str, value: Value) -> World {
    let mut world = virtual_environment();
    let keys: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    let mut here = &mut world.input["environment"];
    for key in keys {
        here = &mut here[key];
    }
    *here = value;
    world
}

fn case(world: World, message: &'static str) -> Case {
    Case { world, reason: SPEC, message }
}

#[test]
fn parameters() {
    let mut misplaced = virtual_environment();
    misplaced.xr["spec"]["size"] = json!("small");
    check(vec![
        case(misplaced, "spec.size: unknown field; allowed: parameters"),
        case(
            with("type", json!("gek")),
            r#"spec.parameters.type: found "gek"; allowed: vcluster, gke, eks, aks"#,
        ),
        case(
            with("size", json!("smal")),
            r#"spec.parameters.size: found "smal"; allowed: small, medium, large (nearest: small)"#,
        ),
        case(
            with("sise", json!("small")),
            "spec.parameters.sise: unknown field; allowed: type, size, app, gitops, knative, \
             expose (nearest: size)",
        ),
        case(
            with("knative", json!({"enabled": "yes"})),
            r#"spec.parameters.knative.enabled: found "yes"; allowed: true or false"#,
        ),
        case(
            spec(of_type("gke"), "expose", json!("loadBalancer")),
            r#"spec.parameters.expose: found "loadBalancer"; allowed: cluster: the platform team decides who can reach a cluster of type gke"#,
        ),
    ]);
}

/// Values of this many levels: objects and lists in turn.
fn nested(levels: usize) -> Value {
    (1..=levels).rev().fold(json!(1), |inner, level| {
        if level % 2 == 1 { json!({"a": inner}) } else { json!([inner]) }
    })
}

#[test]
fn values_of_twenty_levels_are_accepted() {
    for levels in [1, 20] {
        let response = at("/app/values", nested(levels)).answer();
        assert!(!is_fatal(&response), "{levels}: {:?}", response.results);
    }
}

/// Repositories that a new environment must not use. Each is rejected in a chart, and with a path
/// also in GitOps.
const PRIVATE: [&str; 14] = [
    "http://charts.example.org/stable",
    "http://169.254.169.254/latest",
    "https://169.254.169.254/latest",
    "https://kubernetes.default.svc/a",
    "https://kubernetes.default.svc.cluster.local/a",
    "https://KUBERNETES.default.SVC./a",
    "http://10.0.0.1:8080/x",
    "https://localhost:5000/x",
    "https://chartmuseum/x",
    "https://2130706433/x",
    "https://0x7f.0.0.1/x",
    "https://0177.0.0.1/x",
    "https://127.1/x",
    "https://charts.example.org/team/../other",
];

#[test]
fn private_repository_of_a_new_environment_is_rejected() {
    for field in ["app.chart.repository", "gitops.repoURL"] {
        let extra: &[&str] = if field == "gitops.repoURL" {
            &["ssh://git@10.0.0.1/a", "git@localhost:a/b.git", "git@git.team.svc:a/b.git"]
        } else {
            &["oci://localhost:5000/x", "oci://192.168.0.1/x", "oci://registry.local/x"]
        };
        for url in PRIVATE.iter().chain(extra) {
            let world = at(&format!("/{}", field.replace('.', "/")), json!(url));
            let (reason, message) = refused(&world.answer());
            let begin = format!("spec.parameters.{field}: found \"{url}\", ");
            assert_eq!(reason, SPEC, "{url}");
            assert!(message.starts_with(&begin), "{message}");
            assert_eq!(message.matches("spec.parameters").count(), 1, "{message}");
        }
        for url in [
            "https://[::1]/x",
            "https://[::ffff:127.0.0.1]/x",
            "https://user:secret@charts.example.org/x",
            "https://127.0.0.1%2f@charts.example.org/x",
            "https://charts.example.org\\@127.0.0.1/x",
        ] {
            let world = at(&format!("/{}", field.replace('.', "/")), json!(url));
            let (reason, message) = refused(&world.answer());
            assert_eq!(reason, SPEC, "{url}");
            let begin = format!("spec.parameters.{field}: found ");
            assert!(message.starts_with(&begin), "{url}: {message}");
            assert!(!message.contains("secret@"), "{message}");
        }
    }
}

#[test]
fn settings_limit_the_repositories_of_charts() {
    let allowed = json!(["https://charts.acme.io/team", "oci://ghcr.io/acme"]);
    let from = |url: &str| {
        let mut world = settings_at("/chartRepositories", allowed.clone());
        world.xr["spec"]["parameters"]["app"]["chart"]["repository"] = json!(url);
        world
    };
    for url in [
        "https://charts.acme.io/team",
        "https://charts.acme.io/team/a",
        "https://charts.acme.io:443/team/",
        "oci://ghcr.io/acme/charts",
    ] {
        assert!(!is_fatal(&from(url).answer()), "{url}");
    }
    for url in [
        "https://charts.acme.io/team-evil",
        "https://charts.acme.io.evil.com/team",
        "https://charts.acme.io:8443/team",
        "oci://charts.acme.io/team",
        "oci://ghcr.io/acme-evil",
        "https://stefanprodan.github.io/podinfo",
    ] {
        let message = format!(
            "spec.parameters.app.chart.repository: found \"{url}\"; allowed: the platform team's \
             repositories and what is below them (environment.chartRepositories): \
             https://charts.acme.io/team, oci://ghcr.io/acme"
        );
        assert_eq!(refused(&from(url).answer()), (SPEC.to_owned(), message));
    }
}

#[test]
fn allowed_repository_in_settings_is_public() {
    for (url, why) in [
        ("https://10.0.0.1/charts", "an address that is not public"),
        ("http://charts.acme.io", "a URL without encryption"),
        ("https://charts", "without a dot"),
        ("charts.acme.io", "allowed: a URL"),
        ("https://", "allowed: a URL"),
    ] {
        let mut world = settings_at("/chartRepositories", json!([url]));
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("app");
        let (reason, message) = refused(&world.answer());
        assert_eq!(reason, SETTINGS, "{url}");
        assert!(
            message.starts_with("settings.environment.chartRepositories[0]: found ")
                && message.contains(why),
            "{message}"
        );
    }
}

#[test]
fn empty_list_of_allowed_repositories_is_rejected() {
    let (reason, message) = refused(&settings_at("/chartRepositories", json!([])).answer());
    assert_eq!(reason, SETTINGS);
    assert!(
        message
            .contains("environment.chartRepositories: found an empty list; allowed: at least one"),
        "{message}"
    );
}

#[test]
fn applications() {
    let chart = |field: &str, value: Value| at(&format!("/app/chart/{field}"), value);
    let mut without = virtual_environment();
    without.xr["spec"]["parameters"]["app"]["chart"].as_object_mut().unwrap().remove("repository");
    let large = json!({"text": "x".repeat(300_000)});
    check(vec![
        case(without, "spec.parameters.app.chart.repository: missing; a value is required"),
        case(
            chart("repository", json!("stefanprodan.github.io/podinfo")),
            r#"spec.parameters.app.chart.repository: found "stefanprodan.github.io/podinfo"; allowed: a URL, for example https://charts.example.org or oci://registry.example.org/charts"#,
        ),
        case(
            chart("repository", json!("https://bot:s3cr3t@charts.example.org")),
            "spec.parameters.app.chart.repository: found a URL with credentials or a query; \
             allowed: a URL without credentials and query, because a claim must not have secrets",
        ),
        case(
            chart("name", json!("pod info")),
            r#"spec.parameters.app.chart.name: found "pod info"; allowed: the name of a chart, for example podinfo"#,
        ),
        case(
            chart("version", json!("latest")),
            r#"spec.parameters.app.chart.version: found "latest"; allowed: a full version, for example 1.2.3"#,
        ),
        case(
            chart("version", json!("6.9")),
            r#"spec.parameters.app.chart.version: found "6.9"; allowed: a full version, for example 1.2.3"#,
        ),
        case(
            at("/app/namespace", json!("Conference")),
            r#"spec.parameters.app.namespace: found "Conference"; allowed: 1 to 63 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        ),
        case(
            at("/app/namespace", json!("knative-serving")),
            r#"spec.parameters.app.namespace: found "knative-serving"; allowed: another namespace, because Knative creates and deletes this namespace"#,
        ),
        case(
            at("/app/values", json!(["replicaCount"])),
            "spec.parameters.app.values: found a list; allowed: an object",
        ),
        case(
            at("/app/values", json!("replicaCount: 2")),
            r#"spec.parameters.app.values: found "replicaCount: 2"; allowed: an object"#,
        ),
        case(
            at("/app/values", large),
            "spec.parameters.app.values: found 300011 bytes of values; allowed: at most 245760",
        ),
        case(
            at("/app/values", nested(21)),
            "spec.parameters.app.values: found values with more than 20 levels; allowed: at most \
             20 levels of objects and lists",
        ),
        case(
            at("/app/values", json!({"list": [nested(100)]})),
            "spec.parameters.app.values: found values with more than 20 levels; allowed: at most \
             20 levels of objects and lists",
        ),
        case(
            at("/app/namespace", json!("argocd")),
            r#"spec.parameters.app.namespace: found "argocd"; allowed: another namespace, because Argo CD, which installs the chart, has it"#,
        ),
    ]);
}

#[test]
fn repositories_to_follow() {
    check(vec![
        case(
            at("/gitops/repoURL", json!("https://bot:ghp_s3cr3t@git.example.org/team/app.git")),
            "spec.parameters.gitops.repoURL: found a URL with credentials or a query; allowed: a \
             URL without credentials and query, because a claim must not have secrets",
        ),
        case(
            at("/gitops/repoURL", json!("team/app")),
            r#"spec.parameters.gitops.repoURL: found "team/app"; allowed: a URL, for example https://git.example.org/team/app.git or git@git.example.org:team/app.git"#,
        ),
        case(
            at("/gitops/path", json!("../other")),
            r#"spec.parameters.gitops.path: found "../other"; allowed: a folder in the repository, for example deploy/production"#,
        ),
        case(
            at("/gitops/path", json!("/etc")),
            r#"spec.parameters.gitops.path: found "/etc"; allowed: a folder in the repository, for example deploy/production"#,
        ),
        case(
            at("/gitops/targetRevision", json!("--all")),
            r#"spec.parameters.gitops.targetRevision: found "--all"; allowed: a branch, a tag or a commit"#,
        ),
        case(
            at("/gitops/branch", json!("main")),
            "spec.parameters.gitops.branch: unknown field; allowed: repoURL, path, targetRevision",
        ),
    ]);
}

#[test]
fn running_environment_cannot_change_its_identity() {
    let settled = |world: World| world.settle(|_| Mood::Ready);
    let running = settled(virtual_environment());
    let eks = settled(of_type("eks"));
    let aks = settled(of_type("aks"));
    let mut moved = running.clone();
    moved.xr["spec"]["parameters"]["app"]["namespace"] = json!("elsewhere");
    check(vec![
        case(
            spec(running, "type", json!("gke")),
            r#"spec.parameters.type: found "gke"; allowed: vcluster, the current type. For another type, create a new environment"#,
        ),
        case(
            spec(eks.clone(), "type", json!("vcluster")),
            r#"spec.parameters.type: found "vcluster"; allowed: eks, the current type. For another type, create a new environment"#,
        ),
        case(
            spec(eks, "size", json!("large")),
            r#"spec.parameters.size: found "large"; allowed: small, the current size, because nodes of eks cannot be changed"#,
        ),
        case(
            spec(aks, "size", json!("large")),
            r#"spec.parameters.size: found "large"; allowed: small, the current size, because nodes of aks cannot be changed"#,
        ),
        case(
            moved,
            r#"spec.parameters.app.namespace: found "elsewhere"; allowed: conference, the current namespace, because a Helm release cannot move"#,
        ),
    ]);
}

#[test]
fn namespace_that_begins_with_kube_is_rejected() {
    let mut composite = virtual_environment();
    composite.xr["metadata"]["name"] = json!("kube-system");
    check(vec![case(
        composite,
        r#"metadata.name: found "kube-system"; allowed: another name, because Kubernetes reserves the namespace kube-system-5f0c9"#,
    )]);
}

#[test]
fn settings_that_a_type_needs() {
    let case = |world, message| Case { world, reason: SETTINGS, message };
    let mut one_subnet = of_type("eks");
    one_subnet.input["environment"]["eks"]["subnetIds"] = json!(["subnet-0a1b2c3d4e5f60718"]);
    check(vec![
        case(
            lacking("gke", "/gke/location"),
            "settings.environment.gke.location: missing; allowed: a region or zone, for example \
             europe-west1",
        ),
        case(
            lacking("gke", "/gke/projectId"),
            "settings.environment.gke.projectId: missing; allowed: the name of a project, for \
             example acme-dev",
        ),
        case(
            lacking("gke", "/allowedCidrs"),
            "settings.environment.allowedCidrs: missing; allowed: the network of the providers, \
             for example 198.51.100.0/24",
        ),
        case(
            lacking("eks", "/eks/region"),
            "settings.environment.eks.region: missing; allowed: a region, for example eu-west-1",
        ),
        case(
            lacking("eks", "/eks/subnetIds"),
            "settings.environment.eks.subnetIds: missing; allowed: subnets in at least two availability zones",
        ),
        case(
            one_subnet,
            "settings.environment.eks.subnetIds: found one; allowed: subnets in at least two availability zones",
        ),
        case(
            lacking("eks", "/eks/clusterRoleArn"),
            "settings.environment.eks.clusterRoleArn: missing; allowed: the ARN of the role of \
             the control plane",
        ),
        case(
            lacking("eks", "/eks/nodeRoleArn"),
            "settings.environment.eks.nodeRoleArn: missing; allowed: the ARN of the role of the \
             nodes",
        ),
        case(
            lacking("eks", "/allowedCidrs"),
            "settings.environment.allowedCidrs: missing; allowed: the network of the providers, \
             for example 198.51.100.0/24",
        ),
        case(
            lacking("aks", "/aks/location"),
            "settings.environment.aks.location: missing; allowed: a location, for example \
             westeurope",
        ),
        case(
            lacking("aks", "/aks/resourceGroupName"),
            "settings.environment.aks.resourceGroupName: missing; allowed: the name of a resource group",
        ),
        case(
            lacking("aks", "/allowedCidrs"),
            "settings.environment.allowedCidrs: missing; allowed: the network of the providers, \
             for example 198.51.100.0/24",
        ),
        case(
            reached_from("eks", &["198.51.100.0/24", "10.0.0.0/8"]),
            r#"settings.environment.allowedCidrs[1]: found "10.0.0.0/8", which is not a public network; allowed: public networks, for clusters of type eks"#,
        ),
        case(
            reached_from("eks", &["0.0.0.0/32"]),
            r#"settings.environment.allowedCidrs[0]: found "0.0.0.0/32", which is not a public network; allowed: public networks, for clusters of type eks"#,
        ),
        case(
            reached_from("aks", &["198.51.100.0/24", "0.0.0.0/32"]),
            r#"settings.environment.allowedCidrs[1]: found "0.0.0.0/32", which is not a public network; allowed: public networks, for clusters of type aks"#,
        ),
        case(
            reached_from("aks", &["100.72.0.0/16"]),
            r#"settings.environment.allowedCidrs[0]: found "100.72.0.0/16", which is not a public network; allowed: public networks, for clusters of type aks"#,
        ),
    ]);
}

#[test]
fn settings_that_are_wrong() {
    let case = |pointer: &str, value, message| Case {
        world: settings_at(pointer, value),
        reason: SETTINGS,
        message,
    };
    check(vec![
        case(
            "/allowedCidrs",
            json!(["198.51.100.7/24"]),
            r#"settings.environment.allowedCidrs[0]: found "198.51.100.7/24", an address inside a network; allowed: 198.51.100.0/24 for the network, 198.51.100.7/32 for this host"#,
        ),
        case(
            "/allowedCidrs",
            json!(["198.51.100.0/24", "2001:db8::/48"]),
            r#"settings.environment.allowedCidrs[1]: found "2001:db8::/48"; allowed: an IPv4 network, for example 203.0.113.0/24"#,
        ),
        case(
            "/charts/vcluster",
            json!("0.36"),
            r#"settings.environment.charts.vcluster: found "0.36"; allowed: a full version, for example 1.2.3"#,
        ),
        case(
            "/charts/vcluster",
            json!("0.19.5"),
            r#"settings.environment.charts.vcluster: found "0.19.5"; allowed: 0.20.0 or later, because earlier charts have other values"#,
        ),
        case(
            "/allowedCidrs",
            json!(["198.51.100.0/24", "203.0.113.0/24", "198.51.100.0/24"]),
            "settings.environment.allowedCidrs[2]: found 198.51.100.0/24 twice; each network may be given once",
        ),
        case(
            "/eks/subnetIds",
            json!(["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60718"]),
            "settings.environment.eks.subnetIds[1]: found subnet-0a1b2c3d4e5f60718 twice; each subnet may be given once",
        ),
        case(
            "/charts/argo",
            json!("10.1.1"),
            "settings.environment.charts.argo: unknown field; allowed: vcluster, argocd, knative \
             (nearest: argocd)",
        ),
        case(
            "/typeBySize/small",
            json!("k3s"),
            r#"settings.environment.typeBySize.small: found "k3s"; allowed: vcluster, gke, eks, aks"#,
        ),
        case(
            "/machineTypes/gke/tiny",
            json!("e2-micro"),
            "settings.environment.machineTypes.gke.tiny: unknown field; allowed: small, medium, \
             large",
        ),
        case(
            "/machineTypes/eks/small",
            json!("t3 large"),
            r#"settings.environment.machineTypes.eks.small: found "t3 large"; allowed: a machine type, for example e2-standard-4"#,
        ),
        case(
            "/eks/clusterRoleArn",
            json!("environments-cluster"),
            r#"settings.environment.eks.clusterRoleArn: found "environments-cluster"; allowed: a role, for example arn:aws:iam::123456789012:role/nodes"#,
        ),
        case(
            "/eks/subnetIds",
            json!(["subnet-1", "subnet-2"]),
            r#"settings.environment.eks.subnetIds[0]: found "subnet-1"; allowed: a subnet, for example subnet-0a1b2c3d4e5f60718"#,
        ),
        case(
            "/loadBalancerAnnotations",
            json!({"not a key": "x"}),
            r#"settings.environment.loadBalancerAnnotations.not a key: found "not a key"; allowed: an annotation key, for example service.beta.kubernetes.io/aws-load-balancer-scheme"#,
        ),
        case(
            "/aks/identity",
            json!("environments"),
            r#"settings.environment.aks.identity: found "environments"; allowed: /subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/…"#,
        ),
    ]);
}

#[test]
fn no_message_shows_a_secret() {
    for pointer in ["/gitops/repoURL", "/app/chart/repository"] {
        for url in [
            "https://bot:s3cr3t@example.org/x",
            "https://example.org/x?token=s3cr3t",
            "s3cr3t:x@example.org:x",
        ] {
            let (_, message) = refused(&support::answer(at(pointer, json!(url)).request()));
            assert!(!message.contains("s3cr3t"), "{message}");
        }
    }
}
