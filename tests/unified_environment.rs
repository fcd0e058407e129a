//! Running unified environments: the values that follow the user, that follow the credentials, and
//! that stay.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use function_paved_road::apis::Flavour;
use function_proto::v1::RunFunctionResponse;
use serde_json::{Map, Value, json};
use support::world::{Mood, World, desired, is_fatal, status};

const CREDENTIALS_HASH: &str =
    "/spec/template/metadata/annotations/paved-road.fn.crossplane.io~1credentials";

/// An environment of the examples, with changes by a test.
#[derive(Clone)]
struct Environment {
    xr: Value,
    input: Value,
    observed: Vec<Value>,
}

/// The running environments of both APIs.
fn ready() -> Vec<Environment> {
    let of_ours = |example: &support::Example| {
        example.api.info().name == "unified-environment" && example.state == "ready"
    };
    let environments: Vec<_> = support::examples()
        .into_iter()
        .filter(of_ours)
        .map(|example| Environment {
            xr: example.xr(),
            input: example.input(),
            observed: example.observed(),
        })
        .collect();
    assert_eq!(environments.len(), 2);
    environments
}

impl Environment {
    fn answer(&self) -> RunFunctionResponse {
        let response = support::answer(support::request(&self.xr, &self.observed, &self.input));
        assert!(!is_fatal(&response), "{:?}", response.results);
        response
    }

    /// The desired object of a slot. For a provider-kubernetes Object, its manifest.
    fn manifest(&self, slot: &str) -> Value {
        let object = self.object(slot);
        if object["kind"] == "Object" {
            object["spec"]["forProvider"]["manifest"].clone()
        } else {
            object
        }
    }

    fn object(&self, slot: &str) -> Value {
        self.desired().remove(slot).unwrap_or_else(|| panic!("{slot} is not desired")).into()
    }

    fn desired(&self) -> std::collections::BTreeMap<String, Map<String, Value>> {
        desired(&self.answer())
    }

    /// The Secret that the database's provider wrote.
    fn credentials(&mut self) -> &mut Value {
        let ours = |object: &&mut Value| {
            object["kind"] == "Secret"
                && object["metadata"]["name"].as_str().unwrap().ends_with("db-connection-details")
        };
        self.observed.iter_mut().find(ours).unwrap()
    }

    fn seen(&mut self, slot: &str) -> &mut Value {
        let of_slot = |object: &&mut Value| {
            object["metadata"]["annotations"]["crossplane.io/composition-resource-name"] == slot
        };
        self.observed.iter_mut().find(of_slot).unwrap()
    }

    fn forget(&mut self, slot: &str) {
        let name = self.seen(slot)["metadata"]["name"].clone();
        self.observed.retain(|object| object["metadata"]["name"] != name);
    }

    fn is_ready(&self) -> bool {
        status(&self.answer())["ready"].as_bool().unwrap()
    }
}

#[test]
fn new_password_only_restarts_the_backend_pods() {
    for mut environment in ready() {
        let before = environment.manifest("backend-deployment");
        environment.credentials()["data"]["password"] = json!("QW5vdGhlckV4YW1wbGU=");
        let mut after = environment.manifest("backend-deployment");
        assert_ne!(after.pointer(CREDENTIALS_HASH), before.pointer(CREDENTIALS_HASH));
        *after.pointer_mut(CREDENTIALS_HASH).unwrap() =
            before.pointer(CREDENTIALS_HASH).unwrap().clone();
        assert_eq!(after, before);
    }
}

#[test]
fn missing_credentials_do_not_restart_the_pods() {
    for mut environment in ready() {
        let before = environment.manifest("backend-deployment");
        environment.credentials()["data"] = json!({});
        assert_eq!(environment.manifest("backend-deployment"), before);
    }
}

#[test]
fn backend_waits_for_complete_database_credentials() {
    for environment in ready() {
        for key in ["username", "password", "endpoint", "port"] {
            let mut environment = environment.clone();
            environment.forget("backend-deployment");
            assert!(environment.desired().contains_key("backend-deployment"));
            environment.credentials()["data"].as_object_mut().unwrap().remove(key);
            assert!(!environment.desired().contains_key("backend-deployment"), "without {key}");
        }
    }
}

#[test]
fn user_variables_do_not_hide_the_database_variables() {
    for mut environment in ready() {
        environment.xr["spec"]["backend"]["env"] =
            json!({"A": "$(DATABASE_URL)", "PGSSLMODE": "verify-full"});
        let deployment = environment.manifest("backend-deployment");
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let variables = container["env"].as_array().unwrap();
        let names: Vec<_> =
            variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        let whole = [
            "PGHOST",
            "PGPORT",
            "PGUSER",
            "PGPASSWORD",
            "PGDATABASE",
            "DATABASE_URL",
            "A",
            "PGSSLMODE",
        ];
        assert_eq!(names, whole, "each before its uses, none twice");
        assert_eq!(variables[7]["value"], "verify-full");
        let secret = &container["envFrom"][0]["secretRef"]["name"];
        assert_eq!(
            variables[0]["valueFrom"]["secretKeyRef"],
            json!({"name": secret, "key": "endpoint"})
        );
        assert!(!deployment.to_string().contains("AnExampleAndNoRealPassword1"));
    }
}

#[test]
fn environment_is_ready_only_if_the_current_backend_answers() {
    for environment in ready() {
        assert!(environment.is_ready());
        let mut none = environment.clone();
        none.xr["spec"]["backend"]["replicas"] = json!(0);
        assert!(!none.is_ready(), "no pod answers");
        let mut newer = environment.clone();
        newer.xr["spec"]["backend"]["image"] = json!("ghcr.io/acme/checkout:1.5.0");
        assert!(!newer.is_ready(), "the new image does not run yet");
        let env =
            [json!({"LOG_LEVEL": "debug"}), json!({"LOG_LEVEL": "info"}), json!({}), Value::Null];
        for (env, same) in env.into_iter().zip([false, true, false, false]) {
            let mut other = environment.clone();
            other.xr["spec"]["backend"]["env"] = json!({"LOG_LEVEL": "info"});
            let asked = other.object("backend-deployment");
            let seen = other.seen("backend-deployment");
            let (to, from) = if seen["kind"] == "Object" {
                (
                    &mut seen["spec"]["forProvider"]["manifest"]["spec"],
                    &asked["spec"]["forProvider"]["manifest"]["spec"],
                )
            } else {
                (&mut seen["spec"], &asked["spec"])
            };
            *to = from.clone();
            match env {
                Value::Null => {
                    drop(other.xr["spec"]["backend"].as_object_mut().unwrap().remove("env"));
                }
                ref env => other.xr["spec"]["backend"]["env"] = env.clone(),
            }
            assert_eq!(other.is_ready(), same, "{env}");
        }
        for slot in
            ["backend-deployment", "backend-service", "frontend-site", "frontend-bucket-policy"]
        {
            let mut missing = environment.clone();
            missing.forget(slot);
            assert!(!missing.is_ready(), "without {slot}");
        }
        let mut spreading = environment.clone();
        spreading.seen("frontend-site")["status"]["atProvider"]["status"] = json!("InProgress");
        assert!(!spreading.is_ready(), "not every edge has the site");
    }
}

#[test]
fn retain_files_decides_the_deletion_of_the_bucket() {
    for environment in ready() {
        for (retain, told) in [(true, "Retained"), (false, "Deleted")] {
            let mut environment = environment.clone();
            environment.xr["spec"]["frontend"]["retainFiles"] = json!(retain);
            assert_eq!(status(&environment.answer())["frontendFilesOnDeletion"], told);
            assert_eq!(
                environment.object("frontend-bucket")["spec"]["forProvider"]["forceDestroy"],
                !retain
            );
            let stays = |slot: &str| {
                let spec = environment.object(slot)["spec"].clone();
                spec["deletionPolicy"] == "Orphan" || spec["managementPolicies"].is_array()
            };
            for slot in ["", "-ownership", "-public-access", "-encryption"] {
                assert_eq!(stays(&format!("frontend-bucket{slot}")), retain, "{slot}");
            }
            for slot in
                ["frontend-bucket-policy", "frontend-access", "frontend-site", "postgres-db"]
            {
                assert!(!stays(slot), "{slot}");
            }
        }
    }
}

#[test]
fn fate_of_files_is_not_reported_without_a_bucket() {
    for mut environment in ready() {
        environment.observed.clear();
        assert_eq!(status(&environment.answer())["frontendFilesOnDeletion"], Value::Null);
    }
}

#[test]
fn host_of_a_long_environment_name_is_a_valid_dns_name() {
    let host = |name: &str| {
        let mut environment = ready().pop().unwrap();
        environment.observed.clear();
        environment.xr["metadata"]["name"] = json!(name);
        let rules = environment.manifest("backend-ingress")["spec"]["rules"].clone();
        rules[0]["host"].as_str().unwrap().to_owned()
    };
    let long = "a".repeat(62);
    let [one, other] = ["b", "c"].map(|end| host(&format!("{long}{end}")));
    assert_ne!(one, other);
    for host in [&one, &other] {
        assert!(host.split('.').all(|label| (1..=63).contains(&label.len())), "{host}");
    }
    assert!(host("checkout").starts_with("checkout-"));
}

#[test]
fn new_size_changes_connection_limit_and_resources() {
    for mut environment in ready() {
        environment.xr["spec"]["database"]["size"] = json!("large");
        assert_eq!(
            environment.object("postgres-role")["spec"]["forProvider"]["connectionLimit"],
            200
        );
        let deployment = environment.manifest("backend-deployment");
        let resources = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"];
        assert_eq!(
            *resources,
            json!({"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}})
        );
    }
}

#[test]
fn changed_settings_keep_databases_and_ingresses() {
    for mut environment in ready() {
        let before = environment.desired();
        let url = status(&environment.answer())["backendUrl"].clone();
        environment.input["unifiedEnvironment"] = json!({
            "region": "eu-west-1", "database": {"mode": "rds"}, "resources": {"medium": {"cpu": "4"}},
            "publisherRoleArns": ["arn:aws:iam::123456789012:role/site-publisher"],
        });
        assert_eq!(environment.desired(), before);
        assert_eq!(status(&environment.answer())["backendUrl"], url);
    }
}

#[test]
fn publishers_follow_settings_and_policy_survives_unseen_site() {
    for mut environment in ready() {
        let policy = |environment: &Environment| {
            environment.object("frontend-bucket-policy")["spec"]["forProvider"]["policy"].clone()
        };
        let before = policy(&environment);
        let other = "arn:aws:iam::123456789012:role/other";
        environment.input["unifiedEnvironment"]["publisherRoleArns"] = json!([other]);
        assert!(policy(&environment).as_str().unwrap().contains(other));
        environment.seen("frontend-site")["status"] = json!({});
        assert_eq!(policy(&environment), before);
    }
}

/// The example of each API, before any resource exists.
fn new() -> Vec<World> {
    let examples = support::examples();
    let ours = examples.iter().filter(|example| {
        example.api.info().name == "unified-environment" && example.state == "nothing"
    });
    ours.map(World::new).collect()
}

/// The desired object of a slot. For a provider-kubernetes Object, its manifest.
fn asked(world: &World, slot: &str) -> Value {
    let response = world.answer();
    assert!(!is_fatal(&response), "{:?}", response.results);
    let object = desired(&response).remove(slot).map(Value::Object).unwrap_or_default();
    object.pointer("/spec/forProvider/manifest").cloned().unwrap_or(object)
}

#[test]
fn role_that_does_not_exist_cannot_break_a_policy() {
    let ours = "arn:aws:iam::123456789012:role/site-publisher";
    for mut world in new() {
        world.input["unifiedEnvironment"]["publisherRoleArns"] = json!([ours]);
        let world = world.settle(|_| Mood::Ready);
        let policy =
            asked(&world, "frontend-bucket-policy")["spec"]["forProvider"]["policy"].clone();
        let policy: Value = serde_json::from_str(policy.as_str().unwrap()).unwrap();
        let statements = policy["Statement"].as_array().unwrap();
        let publishers: Vec<_> = statements
            .iter()
            .filter(|one| one["Sid"].as_str().unwrap().starts_with("Publishers"))
            .collect();
        assert_eq!(publishers.len(), 2);
        for statement in publishers {
            assert_eq!(statement["Principal"], "*");
            assert_eq!(
                statement["Condition"],
                json!({"StringEquals": {"aws:PrincipalArn": [ours]}})
            );
        }
    }
}

#[test]
fn policy_of_an_earlier_release_stays_until_its_publishers_change() {
    let [one, other] =
        ["one", "other"].map(|name| format!("arn:aws:iam::123456789012:role/{name}"));
    for mut world in new() {
        world.input["unifiedEnvironment"]["publisherRoleArns"] = json!([one]);
        let mut world = world.settle(|_| Mood::Ready);
        let field = &mut world.composed.get_mut("frontend-bucket-policy").unwrap().object["spec"]["forProvider"];
        let mut policy: Value = serde_json::from_str(field["policy"].as_str().unwrap()).unwrap();
        for statement in policy["Statement"].as_array_mut().unwrap() {
            if statement["Sid"].as_str().unwrap().starts_with("Publishers") {
                statement["Principal"] = json!({"AWS": [one]});
                statement.as_object_mut().unwrap().remove("Condition");
            }
        }
        let earlier = policy.to_string();
        field["policy"] = json!(earlier);
        let now = |world: &World| {
            asked(world, "frontend-bucket-policy")["spec"]["forProvider"]["policy"].clone()
        };
        assert_eq!(now(&world), earlier);
        world.input["unifiedEnvironment"]["publisherRoleArns"] = json!([one, other]);
        assert!(now(&world).as_str().unwrap().contains("aws:PrincipalArn"));
    }
}

#[test]
fn new_ingress_has_annotations_and_a_certificate_by_settings() {
    for mut world in new() {
        world.input["unifiedEnvironment"]["ingress"] = json!({
            "domain": "apps.acme.io", "clusterIssuer": "letsencrypt", "tlsSecretName": "wildcard",
            "annotations": {"example.org/timeout": "60"},
        });
        let mut world = world.settle(|_| Mood::Ready);
        let ingress = asked(&world, "backend-ingress");
        let annotations = &ingress["metadata"]["annotations"];
        assert_eq!(annotations["cert-manager.io/cluster-issuer"], "letsencrypt");
        assert_eq!(annotations["example.org/timeout"], "60");
        assert_eq!(ingress["spec"]["tls"][0]["secretName"], "wildcard");

        // The ingress keeps them after a change of Settings.
        world.input["unifiedEnvironment"]["ingress"] =
            json!({"annotations": {"example.org/other": "1"}});
        assert_eq!(asked(&world, "backend-ingress"), ingress);
    }
}

#[test]
fn running_ingress_gets_no_annotation_from_settings() {
    for world in new() {
        let mut world = world.settle(|_| Mood::Ready);
        let before = asked(&world, "backend-ingress");
        world.input["unifiedEnvironment"]["ingress"]["clusterIssuer"] = json!("letsencrypt");
        assert_eq!(asked(&world, "backend-ingress"), before);
    }
}

/// The same, with a separate server for every environment.
fn with_a_server() -> Vec<World> {
    let mut worlds = new();
    for world in &mut worlds {
        let settings = &mut world.input["unifiedEnvironment"];
        settings["database"] = json!({"mode": "rds"});
        settings["rds"] = json!({"subnetGroup": "databases", "securityGroupIds": ["sg-0a1b2c3d"]});
    }
    worlds
}

#[test]
fn new_server_names_its_final_snapshot_and_changes_immediately() {
    for world in with_a_server() {
        let mut world = world.settle(|_| Mood::Ready);
        let server = asked(&world, "postgres-instance")["spec"]["forProvider"].clone();
        let name = server["identifier"].as_str().unwrap();
        assert_eq!(server["finalSnapshotIdentifier"], format!("{name}-final"));
        assert_eq!(
            (&server["skipFinalSnapshot"], &server["applyImmediately"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(server["maxAllocatedStorage"], Value::Null);

        // A server of an earlier release: AWS named it, and its changes wait for the maintenance
        // window.
        let fields =
            &mut world.composed.get_mut("postgres-instance").unwrap().object["spec"]["forProvider"];
        let fields = fields.as_object_mut().unwrap();
        fields.insert("identifier".to_owned(), json!("terraform-20261125120000000000000001"));
        fields.remove("applyImmediately");
        world.xr["spec"]["database"]["size"] = json!("large");
        let server = asked(&world, "postgres-instance")["spec"]["forProvider"].clone();
        assert_eq!(server["identifier"], "terraform-20261125120000000000000001");
        assert_eq!(server["applyImmediately"], Value::Null);
        assert_eq!(server["instanceClass"], "db.m7g.large");
    }
}

#[test]
fn new_server_follows_storage_and_snapshot_settings() {
    for mut world in with_a_server() {
        world.input["unifiedEnvironment"]["rds"]["finalSnapshot"] = json!(false);
        world.input["unifiedEnvironment"]["rds"]["maxAllocatedStorage"] = json!(500);
        let world = world.settle(|_| Mood::Ready);
        let server = asked(&world, "postgres-instance")["spec"]["forProvider"].clone();
        assert_eq!(server["maxAllocatedStorage"], 500);
        assert_eq!(
            (&server["skipFinalSnapshot"], &server["finalSnapshotIdentifier"]),
            (&json!(true), &Value::Null)
        );
    }
}

const REWRITE: &str = "frontend-rewrite";

/// The functions of a world's distribution.
fn associated(world: &World) -> Value {
    let site = asked(world, "frontend-site")["spec"]["forProvider"].clone();
    site["defaultCacheBehavior"]["functionAssociation"].clone()
}

fn refused(world: &World) -> String {
    let response = world.answer();
    assert!(is_fatal(&response), "{:?}", response.results);
    response.results.iter().map(|result| result.message.as_str()).collect()
}

#[test]
fn new_site_answers_missing_files_with_404() {
    for mut world in new() {
        for kind in ["app", "pages"] {
            world.xr["spec"]["frontend"]["kind"] = json!(kind);
            let world = World::clone(&world).settle(|_| Mood::Ready);
            let function = asked(&world, REWRITE);
            let code = &function["spec"]["forProvider"]["codeSecretRef"];
            assert_eq!(code["key"], format!("{kind}.js"));
            let secret = asked(&world, "frontend-rewrite-code");
            assert_eq!(
                (&secret["kind"], &secret["metadata"]["name"]),
                (&json!("Secret"), &code["name"])
            );
            assert!(secret["data"][format!("{kind}.js")].is_string());
            let site = asked(&world, "frontend-site")["spec"]["forProvider"].clone();
            let association = &site["defaultCacheBehavior"]["functionAssociation"];
            let arn = association[0]["functionArn"].as_str().unwrap();
            let name = function["metadata"]["annotations"]["crossplane.io/external-name"].as_str();
            assert!(arn.ends_with(&format!(":function/{}", name.unwrap())), "{arn}");
            assert_eq!(association[0]["eventType"], "viewer-request");
            let errors =
                json!([{"errorCode": 404, "responseCode": 404, "responsePagePath": "/404.html"}]);
            assert_eq!(site["customErrorResponse"], errors);
            let policy = asked(&world, "frontend-bucket-policy");
            assert!(
                policy["spec"]["forProvider"]["policy"].as_str().unwrap().contains("SiteFinds")
            );
        }
    }
}

#[test]
fn distribution_does_not_wait_for_its_function() {
    for mut world in new() {
        let first = desired(&world.answer());
        assert!(first.contains_key("frontend-site") && !first.contains_key(REWRITE));
        let mood = |slot: &str| if slot == REWRITE { Mood::Silent } else { Mood::Ready };
        for _ in 0..3 {
            world.reconcile(mood);
        }
        assert!(world.composed.contains_key(REWRITE));
        assert_eq!(associated(&world), Value::Null);
        assert_eq!(world.xr["status"]["ready"], false, "paths are not rewritten yet");
        world.reconcile(|_| Mood::Ready);
        assert_eq!(associated(&world)[0]["eventType"], "viewer-request");
        let told = status(&world.answer());
        assert_ne!(told["phase"], "Ready", "the association is not observed yet: {told:#}");
        world.reconcile(|_| Mood::Ready);
        assert_eq!(status(&world.answer())["phase"], "Ready");
    }
}

#[test]
fn function_waits_for_the_secret_with_its_code() {
    const CODE: &str = "frontend-rewrite-code";
    for world in new() {
        let mood = |slot: &str| if slot == CODE { Mood::Silent } else { Mood::Ready };
        let mut world = world.settle(mood);
        // A native Secret is ready as soon as it exists.
        if world.flavour == Flavour::Claims {
            assert!(!world.composed.contains_key(REWRITE));
            world.reconcile(|_| Mood::Ready);
            world.reconcile(|_| Mood::Ready);
        }
        assert!(world.composed.contains_key(REWRITE));
    }
}

#[test]
fn lost_function_is_composed_again_and_stays_associated() {
    for world in new() {
        let mut world = world.settle(|_| Mood::Ready);
        let before = associated(&world);
        for slots in [vec![REWRITE], vec![REWRITE, "frontend-rewrite-code"]] {
            for slot in slots {
                world.composed.remove(slot);
            }
            assert_eq!(associated(&world), before);
            world = world.settle(|_| Mood::Ready);
            assert!(world.composed.contains_key(REWRITE));
            assert_eq!(associated(&world), before);
        }
    }
}

#[test]
fn status_has_the_answer_for_missing_files() {
    for mut world in new() {
        assert_eq!(status(&world.answer())["frontendMissingFiles"], Value::Null);
        world.reconcile(|_| Mood::Ready);
        assert_eq!(status(&world.answer())["frontendMissingFiles"], "NotFound");
        world.input["schemaRevision"] = json!(2);
        assert_eq!(status(&world.answer())["frontendMissingFiles"], Value::Null);
    }
    for environment in ready() {
        let mut environment = environment;
        environment.input["schemaRevision"] = json!(3);
        assert_eq!(status(&environment.answer())["frontendMissingFiles"], "IndexPage");
        environment.input["schemaRevision"] = json!(1);
        assert_eq!(status(&environment.answer())["frontendMissingFiles"], Value::Null);
    }
}

/// An environment of the current schema revision, with a distribution from before the function.
#[test]
fn running_distribution_without_a_function_gets_none() {
    for world in new() {
        let mut world = world.settle(|_| Mood::Ready);
        world.composed.retain(|slot, _| !slot.contains(REWRITE));
        let site = &mut world.composed.get_mut("frontend-site").unwrap().object;
        let notes = site["metadata"]["annotations"].as_object_mut().unwrap();
        notes.remove("paved-road.fn.crossplane.io/missing-files").unwrap();
        let errors =
            json!([{"errorCode": 403, "responseCode": 200, "responsePagePath": "/index.html"}]);
        site["spec"]["forProvider"]["customErrorResponse"] = errors.clone();
        let behaviour = site["spec"]["forProvider"]["defaultCacheBehavior"].as_object_mut();
        behaviour.unwrap().remove("functionAssociation");

        let world = world.settle(|_| Mood::Ready);
        assert!(!world.composed.keys().any(|slot| slot.contains(REWRITE)));
        assert_eq!(associated(&world), Value::Null);
        assert_eq!(
            asked(&world, "frontend-site")["spec"]["forProvider"]["customErrorResponse"],
            errors
        );
        let policy = asked(&world, "frontend-bucket-policy")["spec"]["forProvider"].clone();
        assert!(!policy["policy"].as_str().unwrap().contains("SiteFinds"));
        assert_eq!(world.xr["status"]["frontendMissingFiles"], "IndexPage");
    }
}

#[test]
fn code_in_the_claims_api_has_one_name_in_all_environments() {
    for world in new() {
        let world = world.settle(|_| Mood::Ready);
        let secret = asked(&world, "frontend-rewrite-code");
        let name = secret["metadata"]["name"].as_str().unwrap();
        if world.flavour == Flavour::Claims {
            assert_eq!(name, REWRITE);
        } else {
            assert!(name.starts_with(world.xr["metadata"]["name"].as_str().unwrap()), "{name}");
        }
    }
}

#[test]
fn changed_kind_of_a_site_selects_other_code_of_the_same_function() {
    for world in new() {
        let mut world = world.settle(|_| Mood::Ready);
        let before = (asked(&world, REWRITE), asked(&world, "frontend-rewrite-code"));
        world.xr["spec"]["frontend"]["kind"] = json!("pages");
        let mut after = (asked(&world, REWRITE), asked(&world, "frontend-rewrite-code"));
        let key = &mut after.0["spec"]["forProvider"]["codeSecretRef"]["key"];
        assert_eq!(std::mem::replace(key, json!("app.js")), "pages.js");
        assert_eq!(after, before);
    }
}

#[test]
fn earlier_site_keeps_its_answers_and_rejects_pages() {
    for mut environment in ready() {
        assert!(!environment.desired().contains_key(REWRITE));
        let site = environment.object("frontend-site")["spec"]["forProvider"].clone();
        assert!(site["defaultCacheBehavior"].get("functionAssociation").is_none());
        assert_eq!(site["customErrorResponse"][1]["responsePagePath"], "/index.html");
        environment.xr["spec"]["frontend"]["kind"] = json!("pages");
        let request = support::request(&environment.xr, &environment.observed, &environment.input);
        let response = support::answer(request);
        let message = &response.results[0].message;
        assert!(is_fatal(&response) && message.contains("spec.frontend.kind"), "{message}");
        assert!(message.contains("create a new environment"), "{message}");
    }
}

#[test]
fn pages_need_a_composition_of_schema_revision_3() {
    for mut world in new() {
        world.input["schemaRevision"] = json!(2);
        world.xr["spec"]["frontend"]["kind"] = json!("pages");
        let message = refused(&world);
        assert!(message.contains("schemaRevision below 3"), "{message}");
        world.xr["spec"]["frontend"]["kind"] = json!("app");
        assert!(!desired(&world.answer()).contains_key(REWRITE));
    }
}
