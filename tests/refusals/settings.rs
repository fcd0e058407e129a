//! Settings that a cloud would reject are rejected for new resources, and have no effect on running
//! ones.

use super::*;

fn gpu(field: &str, value: Value) -> World {
    settings(workspace(), "gpuWorkspace", field, value)
}

fn tagged(mut world: World, tags: Value) -> World {
    world.input["tags"] = tags;
    world
}

fn of_api(name: &str) -> World {
    main_examples(name).into_iter().find(|world| world.flavour == Flavour::Claims).unwrap()
}

fn managed_cluster(cluster_type: &str, pointer: &str, value: Value) -> World {
    let mut world = spec(of_api("virtual-environment"), "type", json!(cluster_type));
    let keys: Vec<&str> = pointer.split('.').collect();
    *keys.iter().fold(&mut world.input["environment"], |here, key| &mut here[*key]) = value;
    world
}

/// A workspace in a region with an image in Settings.
fn workspace_in(region: &str) -> World {
    let amis = json!({region: {"default": "ami-0123456789abcdef0"}});
    spec(settings(workspace(), "gpuWorkspace", "amis", amis), "region", json!(region))
}

fn check_new_is_rejected_and_running_continues(cases: Vec<(World, &'static str)>) {
    for (world, _) in &cases {
        let mut running = World { input: json!(null), ..world.clone() };
        running.input = of_api(world.api().info().name).input;
        let mut running = running.settle(|_| Mood::Ready);
        running.input = world.input.clone();
        let response = running.answer();
        assert!(!is_fatal(&response), "{:?}", response.results);
    }
    check(
        cases
            .into_iter()
            .map(|(world, message)| Case { world, reason: SETTINGS, message })
            .collect(),
    );
}

#[test]
fn tags_are_checked_by_the_services_that_carry_them() {
    let sixty: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("key{n:02}"), json!("x"))).collect();
    check_new_is_rejected_and_running_continues(vec![
        (
            tagged(workspace(), json!({"name": "gpu-fleet"})),
            "settings.tags.name: the same key as \"Name\", which Paved Road or the provider sets, \
             because IAM ignores case. Rename one of the keys",
        ),
        (
            tagged(workspace(), json!({"department": "R&D (Vision)"})),
            "settings.tags.department: found \"R&D (Vision)\"; allowed: letters, digits, spaces \
             and _ . : / = + - @ (for IAM)",
        ),
        (
            tagged(workspace(), json!(sixty)),
            "settings.tags: found 60 tags; allowed: at most 41, because EC2 allows 50 on a \
             resource, including ManagedBy, Name, WorkspaceOwner, environment, namespace, owner, \
             crossplane-kind, crossplane-name, crossplane-providerconfig",
        ),
        (
            tagged(of_api("unified-environment"), json!({"cost-centers": "4711, 4712"})),
            "settings.tags.cost-centers: found \"4711, 4712\"; allowed: letters, digits, spaces \
             and _ . : / = + - @ (for S3)",
        ),
        (
            tagged(environment(), json!({"Cost Center": "4711", "cost_center": "0816"})),
            "settings.tags.cost_center: becomes the label \"cost_center\" on Google Cloud, like \
             \"Cost Center\", another tag in Settings. Rename one of the tags",
        ),
    ]);
    // Tags that no resource of an environment carries are not checked.
    for tags in [
        json!({"department": "R&D (Vision)"}),
        json!({"Cost Center": "4711", "cost_center": "0816"}),
    ] {
        assert!(!is_fatal(&tagged(of_api("stock-pool"), tags).answer()));
    }
    assert!(!is_fatal(&tagged(environment(), json!({"department": "R&D (Vision)"})).answer()));
}

#[test]
fn values_that_a_cloud_refuses_are_refused_for_new_environments() {
    let app =
        |field: &str, value: Value| settings(environment(), "applicationEnvironment", field, value);
    let publishers = json!([
        "arn:aws:iam::123456789012:role/site-publisher",
        "arn:aws-us-gov:iam::123456789012:role/site-publisher",
    ]);
    check_new_is_rejected_and_running_continues(vec![
        (
            gpu("permissionsBoundary", json!("DeveloperBoundary")),
            "settings.gpuWorkspace.permissionsBoundary: found \"DeveloperBoundary\"; allowed: the \
             ARN of an IAM policy, for example arn:aws:iam::123456789012:policy/developers",
        ),
        (
            gpu("permissionsBoundary", json!("arn:aws-cn:iam::123456789012:policy/developers")),
            "settings.gpuWorkspace.permissionsBoundary: found \"arn:aws-cn:iam::123456789012:policy/developers\"; allowed: an ARN of the partition aws, which starts with arn:aws:",
        ),
        (
            settings(
                of_api("unified-environment"),
                "unifiedEnvironment",
                "publisherRoleArns",
                publishers,
            ),
            "settings.unifiedEnvironment.publisherRoleArns[1]: found \"arn:aws-us-gov:iam::123456789012:role/site-publisher\"; allowed: an ARN of the partition aws, which starts with arn:aws:",
        ),
        (
            app("databaseTier", json!("db-n1-standard-1")),
            "settings.applicationEnvironment.databaseTier: found \"db-n1-standard-1\"; allowed: a \
             Cloud SQL machine type for PostgreSQL: db-f1-micro, db-g1-small, \
             db-custom-CPUS-MEMORY (in MiB), for example db-custom-2-7680, or \
             db-perf-optimized-N-2 for Enterprise Plus",
        ),
        (
            app("zones", json!({"us-central1": ["us-central1-a", "us-east1-b"]})),
            "settings.applicationEnvironment.zones.us-central1[1]: found \"us-east1-b\"; allowed: a zone of us-central1, for example us-central1-a",
        ),
        (
            managed_cluster("eks", "eks.region", json!("europe-west1")),
            "settings.environment.eks.region: found \"europe-west1\"; allowed: an AWS region, for \
             example eu-west-1",
        ),
        (
            managed_cluster(
                "eks",
                "eks.nodeRoleArn",
                json!("arn:aws-cn:iam::123456789012:role/nodes"),
            ),
            "settings.environment.eks.nodeRoleArn: found \"arn:aws-cn:iam::123456789012:role/nodes\"; allowed: an ARN of the partition aws, which starts with arn:aws:",
        ),
        (
            managed_cluster("eks", "machineTypes.eks.small", json!("e2-standard-2")),
            "settings.environment.machineTypes.eks.small: found \"e2-standard-2\"; allowed: a \
             machine type of EC2, for example m6i.xlarge",
        ),
        (
            managed_cluster("gke", "gke.location", json!("eu-west-1")),
            "settings.environment.gke.location: found \"eu-west-1\"; allowed: a region or zone of \
             Google Cloud, for example europe-west1",
        ),
        (
            managed_cluster("aks", "aks.location", json!("europe-west1")),
            "settings.environment.aks.location: found \"europe-west1\"; allowed: an Azure region, \
             for example westeurope",
        ),
    ]);
    // Wrong Settings of another type do not block a virtual cluster.
    assert!(!is_fatal(&managed_cluster("vcluster", "eks.region", json!("europe-west1")).answer()));
}

#[test]
fn unknown_offered_machine_type_fails_only_without_a_match() {
    let offer =
        |types: Value| spec(gpu("instanceTypes", types), "instanceType", json!("g5.xlarge"));
    assert!(!is_fatal(&offer(json!(["g5.xlrage", "g5.xlarge"])).answer()));
    let response = offer(json!(["g5.xlrage"])).answer();
    let message = refused(&response).1;
    let begin = "settings.gpuWorkspace.instanceTypes[0]: found \"g5.xlrage\"; allowed: a machine \
                 type of g4dn, g5, ";
    assert!(message.starts_with(begin) && message.contains("(nearest: g5.xlarge, "), "{message}");
}

#[test]
fn machines_in_china_use_the_service_principal_of_china() {
    let principal = |world: &World| {
        let role = desired(&world.answer()).remove("role").unwrap();
        let policy = role["spec"]["forProvider"]["assumeRolePolicy"].as_str().unwrap().to_owned();
        let policy: Value = serde_json::from_str(&policy).unwrap();
        policy["Statement"][0]["Principal"]["Service"].as_str().unwrap().to_owned()
    };
    assert_eq!(principal(&workspace_in("eu-west-1")), "ec2.amazonaws.com");
    assert_eq!(principal(&workspace_in("us-gov-west-1")), "ec2.amazonaws.com");
    let china = workspace_in("cn-north-1");
    assert_eq!(principal(&china), "ec2.amazonaws.com.cn");
    // A running role with another principal keeps it.
    let mut running = china.settle(|_| Mood::Ready);
    let role = &mut running.composed.get_mut("role").unwrap().object["spec"]["forProvider"];
    let policy = role["assumeRolePolicy"].as_str().unwrap().replace(".com.cn", ".com");
    role["assumeRolePolicy"] = json!(policy);
    assert_eq!(principal(&running), "ec2.amazonaws.com");
}

#[test]
fn edition_and_disk_of_a_new_server_follow_from_its_tier() {
    let server = |tier: &str| {
        let mut world =
            settings(environment(), "applicationEnvironment", "databaseTier", json!(tier));
        world.input["applicationEnvironment"]["databaseVersion"] = json!("POSTGRES_16");
        let server = desired(&world.answer()).remove("cloudsql-instance").unwrap();
        let settings = &server["spec"]["forProvider"]["settings"];
        ["tier", "edition", "diskType"].map(|field| settings[field].as_str().unwrap().to_owned())
    };
    for [tier, edition, disk] in [
        ["db-perf-optimized-N-2", "ENTERPRISE_PLUS", "PD_SSD"],
        ["db-custom-2-7680", "ENTERPRISE", "PD_SSD"],
        ["db-c4a-highmem-4", "ENTERPRISE_PLUS", "HYPERDISK_BALANCED"],
    ] {
        assert_eq!(server(tier), [tier, edition, disk]);
    }
}

/// The check of Settings alone by `paved validate`.
#[test]
fn tags_in_settings_are_checked_for_the_apis_with_a_section() {
    let paths = |body: Value| -> Vec<String> {
        let Value::Object(body) = body else { panic!("an object") };
        let errors = apis::check_settings(body);
        errors
            .iter()
            .flat_map(function_paved_road::error::Error::fields)
            .map(|field| field.path.clone())
            .collect()
    };
    let tags = json!({"department": "R&D (Vision)", "Cost Center": "4711", "cost_center": "0816"});
    let only = |section: &str| json!({"tags": tags, section: {}});
    assert_eq!(paths(json!({"tags": tags})), [""; 0], "without a section, no API is known");
    assert_eq!(paths(only("gpuWorkspace")), ["settings.tags.department"]);
    assert_eq!(paths(only("applicationEnvironment")), ["settings.tags.cost_center"]);
    assert_eq!(paths(only("environment")), [""; 0], "virtual clusters carry no tags");
    let of = |section: &str, body: Value| paths(json!({section: body}));
    assert_eq!(
        of("gpuWorkspace", json!({"instanceTypes": ["g5.xlarge", "g5.xlrage"]})),
        ["settings.gpuWorkspace.instanceTypes[1]"]
    );
    let image =
        json!({"default": "ami-0123456789abcdef0", "byFamily": {"p33": "ami-0123456789abcdef0"}});
    assert_eq!(
        of("gpuWorkspace", json!({"amis": {"europe-west1": image}, "networks": {"us-east1": {}}})),
        [
            "settings.gpuWorkspace.amis.europe-west1",
            "settings.gpuWorkspace.networks.us-east1",
            "settings.gpuWorkspace.amis.europe-west1.byFamily.p33",
        ]
    );
    assert_eq!(
        of(
            "environment",
            json!({"eks": {"region": "cn-north-1", "nodeRoleArn": "arn:aws:iam::123456789012:role/n"}})
        ),
        ["settings.environment.eks.nodeRoleArn"]
    );
    assert_eq!(
        of("applicationEnvironment", json!({"machineTypes": {"small": "m6i.large"}})),
        ["settings.applicationEnvironment.machineTypes.small"]
    );
    let config = json!({"name": "default", "byNamespace": {"Team Vision": {"name": "vision"}}});
    assert_eq!(
        of("providerConfigs", json!({"aws": config})),
        ["settings.providerConfigs.aws.byNamespace.Team Vision"]
    );
}

/// All kinds that carry tags in an example are checked by `paved validate`.
#[test]
fn every_kind_with_tags_is_named_by_its_api() {
    for example in support::examples().into_iter().filter(|example| example.state == "nothing") {
        let mut world = tagged(World::new(&example), json!({"cost-center": "4711"}));
        let input = world.input.as_object().unwrap().clone();
        if example.api.info().name == "virtual-environment" {
            world = spec(world, "type", json!("eks"));
        }
        let settings =
            function_paved_road::settings::Settings::read(input, &apis::sections()).unwrap();
        let known = example.api.tagged(&settings).unwrap().kinds;
        for (slot, object) in desired(&world.settle(|_| Mood::Ready).answer()) {
            let carries = object
                .get("spec")
                .is_some_and(|spec| spec.to_string().contains("\"cost-center\":"));
            let is_known = known.iter().any(|kind| object["kind"] == kind.kind);
            assert_eq!(carries, is_known, "{} {slot}", example.name());
        }
    }
}
