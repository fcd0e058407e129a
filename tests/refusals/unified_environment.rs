//! Unified environments.

use super::*;

fn unified(flavour: Flavour) -> World {
    main_examples("unified-environment").into_iter().find(|world| world.flavour == flavour).unwrap()
}

fn with(part: &str, field: &str, value: Value) -> World {
    let mut world = unified(Flavour::Claims);
    world.xr["spec"][part][field] = value;
    world
}

fn without(part: &str, field: &str) -> World {
    let mut world = unified(Flavour::Claims);
    world.xr["spec"][part].as_object_mut().unwrap().remove(field);
    world
}

fn variable(name: &str, value: &Value) -> World {
    let mut world = unified(Flavour::Claims);
    world.xr["spec"]["backend"]["env"] = json!({ name: value });
    world
}

fn called(flavour: Flavour, name: &str) -> World {
    let mut world = unified(flavour);
    world.xr["metadata"]["name"] = json!(name);
    world
}

fn spec_case(world: World, message: &'static str) -> Case {
    Case { world, reason: SPEC, message }
}

#[test]
fn backends() {
    let many: serde_json::Map<String, Value> =
        (0..101).map(|n| (format!("V{n}"), json!("x"))).collect();
    check(vec![
        spec_case(without("backend", "image"), "spec.backend.image: missing; a value is required"),
        spec_case(
            with("backend", "image", json!("Not An Image")),
            r#"spec.backend.image: found "Not An Image"; allowed: an image with a lowercase repository, for example registry.example.org/team/app:1.2"#,
        ),
        spec_case(
            with("backend", "port", json!(0)),
            "spec.backend.port: found 0; allowed: 1 to 65535",
        ),
        spec_case(
            with("backend", "port", json!(70000)),
            "spec.backend.port: found 70000; allowed: 1 to 65535",
        ),
        spec_case(
            with("backend", "replicas", json!(-1)),
            "spec.backend.replicas: found -1; allowed: 0 to 100 replicas",
        ),
        spec_case(
            with("backend", "replicas", json!(1.5)),
            "spec.backend.replicas: found 1.5; allowed: a whole number",
        ),
        spec_case(
            with("backend", "replica", json!(2)),
            "spec.backend.replica: unknown field; allowed: image, port, replicas, env (nearest: \
             replicas)",
        ),
        spec_case(
            with("backend", "env", Value::Object(many)),
            "spec.backend.env: found 101 variables; allowed: at most 100",
        ),
    ]);
}

#[test]
fn variables() {
    check(vec![
        spec_case(
            variable("LOG-LEVEL", &json!("info")),
            r#"spec.backend.env.LOG-LEVEL: found "LOG-LEVEL"; allowed: letters, digits and _, not starting with a digit, for example LOG_LEVEL"#,
        ),
        spec_case(
            variable("PGPASSWORD", &json!("hunter22")),
            r#"spec.backend.env.PGPASSWORD: found "PGPASSWORD"; allowed: any name except PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, DATABASE_URL, which Paved Road sets for the environment's database"#,
        ),
        spec_case(
            variable("RETRIES", &json!(3)),
            "spec.backend.env.RETRIES: found 3; allowed: a text, in quotes",
        ),
        spec_case(
            variable("LONG", &json!("x".repeat(4097))),
            "spec.backend.env.LONG: found a text with 4097 characters; allowed: at most 4096 \
             characters without NUL",
        ),
        spec_case(
            variable("NUL", &json!("a\0b")),
            "spec.backend.env.NUL: found a text with 3 characters; allowed: at most 4096 \
             characters without NUL",
        ),
    ]);
}

#[test]
fn databases_and_sites() {
    let mut misspelt = unified(Flavour::Claims);
    misspelt.xr["spec"]["databse"] = json!({"size": "small"});
    let app = |name: &str| with("frontend", "appName", json!(name));
    check(vec![
        spec_case(
            with("database", "size", json!("smal")),
            r#"spec.database.size: found "smal"; allowed: small, medium, large (nearest: small)"#,
        ),
        spec_case(
            with("database", "sise", json!("small")),
            "spec.database.sise: unknown field; allowed: size",
        ),
        spec_case(
            misspelt,
            "spec.databse: unknown field; allowed: backend, database, frontend (nearest: database)",
        ),
        spec_case(
            without("frontend", "appName"),
            "spec.frontend.appName: missing; a value is required",
        ),
        spec_case(
            app("Checkout"),
            r#"spec.frontend.appName: found "Checkout"; allowed: 1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        ),
        spec_case(
            app("check.out"),
            r#"spec.frontend.appName: found "check.out"; allowed: 1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        ),
        spec_case(
            app("checkout-"),
            r#"spec.frontend.appName: found "checkout-"; allowed: 1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        ),
        spec_case(
            app("a-name-that-leaves-no-room-for-what-s3-allows-"),
            r#"spec.frontend.appName: found "a-name-that-leaves-no-room-for-what-s3-allows-"; allowed: 1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        ),
        spec_case(
            with("frontend", "retainFiles", json!("yes")),
            r#"spec.frontend.retainFiles: found "yes"; allowed: true or false"#,
        ),
        spec_case(
            with("frontend", "retainFile", json!(true)),
            "spec.frontend.retainFile: unknown field; allowed: appName, retainFiles, kind (nearest: \
             retainFiles)",
        ),
        spec_case(
            with("frontend", "kind", json!("page")),
            r#"spec.frontend.kind: found "page"; allowed: app, pages (nearest: pages)"#,
        ),
        spec_case(
            with("frontend", "kind", json!(1)),
            "spec.frontend.kind: found 1; allowed: a text, in quotes",
        ),
    ]);
}

/// Other names are derived from the environment's name, and must be valid in Kubernetes.
#[test]
fn names() {
    check(vec![
        spec_case(
            called(Flavour::Namespaced, "check.out"),
            r#"metadata.name: found "check.out"; allowed: at most 63 lowercase letters, digits and hyphens, starting with a letter and not ending with a hyphen, as for the backend's Service"#,
        ),
        spec_case(
            called(Flavour::Namespaced, "1st"),
            r#"metadata.name: found "1st"; allowed: at most 63 lowercase letters, digits and hyphens, starting with a letter and not ending with a hyphen, as for the backend's Service"#,
        ),
    ]);
}

fn by_settings(field: &str, value: Value) -> World {
    settings(unified(Flavour::Claims), "unifiedEnvironment", field, value)
}

#[test]
fn settings_of_environments() {
    let rds = |servers: Value| {
        let world = by_settings("database", json!({"mode": "rds"}));
        settings(world, "unifiedEnvironment", "rds", servers)
    };
    let case = |world, message| Case { world, reason: SETTINGS, message };
    check(vec![
        case(
            by_settings("database", json!({"mode": "aurora"})),
            r#"settings.unifiedEnvironment.database.mode: found "aurora"; allowed: shared, rds"#,
        ),
        case(
            rds(json!({"securityGroupIds": ["sg-0123456789abcdef0"]})),
            "settings.unifiedEnvironment.rds.subnetGroup: missing; allowed: a subnet group, \
             because unifiedEnvironment.database.mode is rds",
        ),
        case(
            rds(json!({"subnetGroup": "environments"})),
            "settings.unifiedEnvironment.rds.securityGroupIds: missing; allowed: security groups \
             that allow connections from the cluster's pods, because \
             unifiedEnvironment.database.mode is rds",
        ),
        case(
            rds(json!({"subnetGroup": "environments", "securityGroupIds": ["default"]})),
            r#"settings.unifiedEnvironment.rds.securityGroupIds[0]: found "default"; allowed: the ID of a security group, for example sg-0123456789abcdef0"#,
        ),
        case(
            rds(json!({"subnetGroup": "Environments"})),
            r#"settings.unifiedEnvironment.rds.subnetGroup: found "Environments"; allowed: 1 to 255 lowercase letters, digits, spaces and . _ -, starting with a letter or digit"#,
        ),
        case(
            by_settings("region", json!("cn-north-1")),
            r#"settings.unifiedEnvironment.region: found "cn-north-1"; allowed: a public AWS region, for example us-east-1. CloudFront does not serve regions of China and of governments"#,
        ),
        case(
            by_settings("publisherRoleArns", json!(["arn:aws:iam::123456789012:user/ada"])),
            r#"settings.unifiedEnvironment.publisherRoleArns[0]: found "arn:aws:iam::123456789012:user/ada"; allowed: the ARN of an IAM role, for example arn:aws:iam::123456789012:role/publisher"#,
        ),
        case(
            by_settings("publisherRoleArns", json!(["*"])),
            r#"settings.unifiedEnvironment.publisherRoleArns[0]: found "*"; allowed: the ARN of an IAM role, for example arn:aws:iam::123456789012:role/publisher"#,
        ),
        case(
            by_settings("ingress", json!({"domain": "https://apps.acme.io"})),
            r#"settings.unifiedEnvironment.ingress.domain: found "https://apps.acme.io"; allowed: at most 189 lowercase letters, digits, hyphens and dots, for example apps.example.org"#,
        ),
        case(
            by_settings("ingress", json!({"className": ""})),
            r#"settings.unifiedEnvironment.ingress.className: found ""; allowed: at most 253 lowercase letters, digits, hyphens and dots, for example apps.example.org"#,
        ),
        case(
            by_settings("ingress", json!({"clusterIssuer": "Let's Encrypt"})),
            r#"settings.unifiedEnvironment.ingress.clusterIssuer: found "Let's Encrypt"; allowed: at most 253 lowercase letters, digits, hyphens and dots, for example apps.example.org"#,
        ),
        case(
            by_settings("ingress", json!({"annotations": {"crossplane.io/paused": "true"}})),
            r#"settings.unifiedEnvironment.ingress.annotations.crossplane.io/paused: found "crossplane.io/paused"; allowed: an annotation key outside Crossplane's domains, for example example.org/name"#,
        ),
        case(
            by_settings(
                "ingress",
                json!({"clusterIssuer": "one", "annotations": {"cert-manager.io/cluster-issuer": "two"}}),
            ),
            r#"settings.unifiedEnvironment.ingress.annotations.cert-manager.io/cluster-issuer: found "two"; allowed: one, the value of ingress.clusterIssuer. Set only one of the two settings"#,
        ),
        case(
            by_settings("rds", json!({"maxAllocatedStorage": 100})),
            "settings.unifiedEnvironment.rds.maxAllocatedStorage: found 100; allowed: 110 to 65536 GiB",
        ),
        case(
            by_settings("resources", json!({"small": {"cpu": "0m"}})),
            r#"settings.unifiedEnvironment.resources.small.cpu: found "0m"; allowed: 0.001 cores or more, for example 2, 0.5 or 250m"#,
        ),
        case(
            by_settings("resources", json!({"large": {"memory": "2 gigs"}})),
            r#"settings.unifiedEnvironment.resources.large.memory: found "2 gigs"; allowed: an amount of memory from 4Mi to less than 8Ei, for example 2Gi"#,
        ),
        case(
            by_settings("publisherRoles", json!([])),
            "settings.unifiedEnvironment.publisherRoles: unknown field; allowed: region, \
             database, rds, resources, ingress, publisherRoleArns (nearest: publisherRoleArns)",
        ),
    ]);
}
