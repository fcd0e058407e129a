//! The diagnosis of whole environments: reported messages on the resources of examples, and the
//! limits of errors and of slow clouds.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use crossplane::conditions;
use function_paved_road::apis::Flavour;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};
use support::simulated::{self, Case};
use support::world;

const UNRESOLVED: &str = "cannot resolve references: mg.Spec.ForProvider.Role: referenced field was \
                          empty (referenced resource may not yet be ready)";

/// A reported case: an example, the errors of its providers by slot, and the wanted reason and code
/// of each slot.
type Reported = (&'static str, &'static [(&'static str, &'static str, &'static str, &'static str)]);

/// The errors of public reports, and their siblings.
const REPORTED: &[Reported] = &[
    // provider-upjet-aws#459: a mistyped region.
    (
        "gpu-workspace",
        &[(
            "instance",
            "observe failed: cannot run refresh: refresh failed: error configuring Terraform AWS \
             Provider: error validating provider credentials: error calling sts:GetCallerIdentity: \
             operation error STS: GetCallerIdentity, exceeded maximum number of attempts, 9, https \
             response error StatusCode: 0, RequestID: , request send failed, Post \
             \"https://sts.us-est-1.amazonaws.com/\": dial tcp: lookup \
             sts.us-est-1.amazonaws.com on 10.96.0.10:53: no such host",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get terraform setup: failed to retrieve credentials: operation \
             error STS: AssumeRole, request send failed, Post \
             \"https://sts.us-east-1.amazonaws.com/\": proxyconnect tcp: dial tcp 192.0.2.1:3128: \
             connect: connection refused",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "observe failed: operation error EC2: DescribeInstances, request send failed, Post \
             \"https://ec2.us-east-1.amazonaws.com/\": dial tcp 192.0.2.4:443: i/o timeout",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "virtual-environment",
        &[(
            "argocd",
            "create failed: failed to install release: failed to pull chart: looks like \
             \"https://charts.exmaple.org\" is not a valid chart repository or cannot be reached: \
             Get \"https://charts.exmaple.org/index.yaml\": dial tcp: lookup charts.exmaple.org on \
             10.96.0.10:53: no such host",
            "Failed",
            "Unreachable",
        )],
    ),
    // The environment's own hosts: a service of the virtual cluster, and one inside of it.
    (
        "virtual-environment",
        &[
            (
                "argocd",
                "connect failed: cannot create new kubernetes client: Get \
                 \"https://preview-7x9kd-5f0c9.preview-7x9kd.svc:443/version\": dial tcp: lookup \
                 preview-7x9kd-5f0c9.preview-7x9kd.svc on 10.96.0.10:53: no such host",
                "Waiting",
                "WaitsFor",
            ),
            (
                "knative-serving",
                "cannot apply object: Internal error occurred: failed calling webhook \
                 \"config.webhook\": failed to call webhook: Post \
                 \"https://operator-webhook.knative-operator.svc:443/?timeout=10s\": dial tcp \
                 10.96.9.9:443: connect: connection refused",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    // A missing policy of Settings, and its dependents.
    (
        "gpu-workspace",
        &[
            (
                "role",
                "create failed: operation error IAM: CreateRole, https response error StatusCode: \
                 404, NoSuchEntity: Scope ARN: arn:aws:iam::123456789012:policy/boundry does not \
                 exist or is not attachable.",
                "Failed",
                "SettingsReference",
            ),
            ("role-ssm", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance", UNRESOLVED, "Waiting", "WaitsFor"),
        ],
    ),
    // A missing object without another explanation, and its dependents.
    (
        "gpu-workspace",
        &[
            (
                "role",
                "create failed: operation error IAM: CreateRole, https response error StatusCode: \
                 404, NoSuchEntity: The thing cannot be found.",
                "Failed",
                "Unknown",
            ),
            ("role-ssm", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
        ],
    ),
    // A name that the function chose, before its resource exists.
    (
        "gpu-workspace",
        &[
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
            (
                "instance",
                "Value (ada-x7k2p-5f0c9) for parameter iamInstanceProfile.name is invalid. Invalid \
                 IAM Instance Profile name",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    (
        "application-environment",
        &[
            (
                "gke-cluster",
                "create failed: googleapi: Error 404: Not found: projects/acme-dve., notFound",
                "Failed",
                "SettingsReference",
            ),
            (
                "node-pool",
                "create failed: googleapi: Error 404: Not found: \
                 projects/acme-dev/locations/europe-west1/clusters/shop-q4m8d-2b7d4., notFound",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    (
        "gpu-workspace",
        &[(
            "role",
            "create failed: operation error IAM: CreateRole, LimitExceeded: Cannot exceed quota \
             for RolesPerAccount: 1000",
            "Failed",
            "QuotaExceeded",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get terraform setup: cannot get credentials secret: secrets \
             \"aws-creds\" is forbidden: User \
             \"system:serviceaccount:crossplane-system:provider-aws\" cannot get resource \
             \"secrets\" in API group \"\" in the namespace \"crossplane-system\"",
            "Failed",
            "AccessDenied",
        )],
    ),
    (
        "virtual-environment",
        &[
            (
                "knative",
                "create failed: failed to install release: Unable to continue with install: Secret \
                 \"web\" in namespace \"app\" exists and cannot be imported into the current \
                 release: invalid ownership metadata; annotation validation error: key \
                 \"meta.helm.sh/release-name\" not found",
                "Failed",
                "NameTaken",
            ),
            (
                "argocd",
                "create failed: failed to install release: execution error at \
                 (web/templates/deploy.yaml:3:4): secret db-credentials not found, create it first",
                "Failed",
                "Unknown",
            ),
        ],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get credentials secret: Secret \"aws-creds\" not found",
            "Waiting",
            "WaitsForSecret",
        )],
    ),
];

/// An example that is ready, as the claims API.
fn example(name: &str) -> support::Example {
    let is_it = |example: &support::Example| {
        example.api.info().name == name
            && example.flavour == Flavour::Claims
            && example.state == "ready"
    };
    support::examples().into_iter().find(is_it).unwrap()
}

fn slot(object: &Value) -> &str {
    object["metadata"]["annotations"]["crossplane.io/composition-resource-name"]
        .as_str()
        .unwrap_or_default()
}

/// Gives a resource the error of its provider.
fn reject(object: &mut Value, now: &str, message: &str) {
    object["status"].as_object_mut().unwrap().remove("conditions");
    conditions::set(object, now, "Synced", "False", "ReconcileError", message);
    conditions::set(object, now, "Ready", "False", "Creating", "");
}

#[test]
fn reported_errors_have_their_effect_and_cause() {
    for (name, errors) in REPORTED {
        let example = example(name);
        let mut observed = example.observed();
        for (of, message, ..) in *errors {
            let object = observed.iter_mut().find(|object| slot(object) == *of).unwrap();
            reject(object, "2026-11-21T08:59:00Z", message);
        }
        let request = support::request(&example.xr(), &observed, &example.input());
        let status = world::status(&support::answer(request));
        let lines = status["resources"].as_array().unwrap();
        for (of, message, reason, code) in *errors {
            let line = lines.iter().find(|line| line["slot"] == *of).unwrap();
            let actual =
                (line["reason"].as_str().unwrap(), line["cause"]["code"].as_str().unwrap());
            assert_eq!(actual, (*reason, *code), "{of}: {message}");
            assert!(line["cause"]["params"]["slot"] != *of, "{of} waits for itself");
        }
        let fails = errors.iter().any(|(.., reason, _)| *reason == "Failed");
        let phase = if fails { "Failed" } else { "Provisioning" };
        assert_eq!(status["phase"], phase, "{name}: {errors:?}");
    }
}

/// The condition `Stalled` of a composite.
fn is_stalled(world: &World) -> bool {
    let conditions = world.composite()["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Stalled" && condition["status"] == "True")
}

fn after(start: Timestamp, minutes: i64) -> Timestamp {
    start.checked_add(SignedDuration::from_mins(minutes)).unwrap()
}

/// Calls the function at a time, and applies its answer.
fn call_at(case: &Case, world: &mut World, now: Timestamp) -> SignedDuration {
    world.set_now(now);
    let response = case.call(world);
    world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    let ttl = response.meta.unwrap().ttl.unwrap();
    SignedDuration::new(ttl.seconds, ttl.nanos)
}

/// Errors of different kinds. Each of them has to stall an environment.
const ERRORS: &[&str] = &[
    UNRESOLVED,
    "connect failed: cannot get credentials secret: Secret \"a\" not found",
    "create failed: 404 NotFound: the thing does not exist",
    "create failed: operation error EC2: RunInstances, api error VcpuLimitExceeded: no vCPUs",
    "update failed: the object has been modified; please apply your changes to the latest version",
    "connect failed: Get \"https://thing.here.svc:443/\": dial tcp 10.0.0.1:443: connection refused",
    "some other sentence",
];

/// The slots with conditions of a provider.
fn slots(world: &World) -> Vec<String> {
    let has = |object: &Value| conditions::find(object, "Synced").is_some();
    let all = world.resources().iter().filter(|(_, object)| has(object));
    all.map(|(slot, _)| slot.clone()).collect()
}

#[test]
fn each_error_of_each_slot_stalls_within_fifteen_minutes() {
    for case in simulated::examples() {
        let settled = case.settled();
        let start = settled.now();
        for (place, slot) in slots(&settled).into_iter().enumerate() {
            // Two errors for each slot, and each error for many slots.
            let turns = [place, place + 3].map(|turn| turn % ERRORS.len());
            for (number, message) in turns.map(|turn| (turn, ERRORS[turn])) {
                let mut world = settled.clone();
                reject(world.resources_mut().get_mut(&slot).unwrap(), &start.to_string(), message);
                // The error's words change, and its time does not.
                let ttl = call_at(&case, &mut world, after(start, 1));
                assert!(ttl <= SignedDuration::from_mins(15), "{ttl:?}");
                let again = format!("{message} ({number} {number})");
                reject(world.resources_mut().get_mut(&slot).unwrap(), &start.to_string(), &again);
                let ttl = call_at(&case, &mut world, after(start, 15));
                let name = format!("{}: {slot}: {message}", case.name());
                assert!(!is_stalled(&world), "{name} stalled too early");
                assert!(ttl <= SignedDuration::from_mins(1), "{name}: {ttl:?}");
                call_at(&case, &mut world, after(start, 16));
                assert!(is_stalled(&world), "{name} has not stalled");
                let status = &world.composite()["status"];
                assert_eq!(status["phase"], "Failed", "{name}");
                assert!(
                    status.to_string().contains(&again.replace('"', "\\\"")),
                    "{name}: {status}"
                );
                // It stays, and ends with the error.
                call_at(&case, &mut world, after(start, 40));
                assert!(is_stalled(&world), "{name} has not stayed stalled");
                let ready = settled.resources()[&slot].clone();
                world.resources_mut().insert(slot.clone(), ready);
                call_at(&case, &mut world, after(start, 41));
                assert!(!is_stalled(&world), "{name} is still stalled");
            }
        }
    }
}

#[test]
fn missing_object_fails_although_all_others_wait_for_it() {
    for case in simulated::examples() {
        let settled = case.settled();
        let now = settled.now();
        for slot in slots(&settled) {
            let mut world = settled.clone();
            for other in slots(&settled) {
                let message = if other == slot { ERRORS[2] } else { UNRESOLVED };
                reject(world.resources_mut().get_mut(&other).unwrap(), &now.to_string(), message);
            }
            call_at(&case, &mut world, now);
            call_at(&case, &mut world, after(now, 15));
            assert!(is_stalled(&world), "{}: {slot}", case.name());
            assert_eq!(world.composite()["status"]["phase"], "Failed", "{}: {slot}", case.name());
        }
    }
}

/// The kinds that a slow cloud creates in 40 minutes.
const SLOW: [(&str, &str); 8] = [
    ("eks.", "Cluster"),
    ("eks.", "NodeGroup"),
    ("container.", "Cluster"),
    ("container.", "NodePool"),
    ("containerservice.", "KubernetesCluster"),
    ("sql.", "DatabaseInstance"),
    ("rds.", "Instance"),
    ("cloudfront.", "Distribution"),
];

fn is_slow(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    SLOW.iter().any(|(group, name)| version.starts_with(group) && kind == *name)
}

#[test]
fn cluster_that_takes_forty_minutes_never_stalls() {
    let mut slow = 0;
    for case in simulated::all() {
        let mut world = case.world();
        let start = world.now();
        let mut provider = Provider::new(Pace::Rounds);
        let mut phases: Vec<(String, i64)> = Vec::new();
        for minute in 0..120 {
            call_at(&case, &mut world, after(start, minute));
            assert!(!is_stalled(&world), "{}: minute {minute}", case.name());
            let before = world.resources().clone();
            provider.answer(&mut world);
            for (slot, object) in before.into_iter().filter(|(_, object)| is_slow(object)) {
                // Its references have to exist before the cloud begins.
                let now = &world.resources()[&slot];
                let is_waiting = conditions::find(now, "Synced")
                    .is_some_and(|synced| synced["status"] == "False");
                let begun = phases.iter().find(|(one, _)| *one == slot).map(|(_, begun)| *begun);
                let begun = begun.unwrap_or_else(|| {
                    if !is_waiting {
                        phases.push((slot.clone(), minute));
                    }
                    minute
                });
                if is_waiting || minute < begun + 40 {
                    let mut creating = object;
                    let status = if is_waiting { now["status"].clone() } else { json!({}) };
                    creating["status"] = status;
                    if !is_waiting {
                        let time = after(start, begun).to_string();
                        let synced = ("Synced", "True", "ReconcileSuccess");
                        conditions::set(&mut creating, &time, synced.0, synced.1, synced.2, "");
                        conditions::set(&mut creating, &time, "Ready", "False", "Creating", "");
                    }
                    world.resources_mut().insert(slot, creating);
                }
            }
            if world.composite()["status"]["phase"] == "Ready" {
                break;
            }
        }
        slow += phases.len();
        let status = &world.composite()["status"];
        assert_eq!(status["phase"], "Ready", "{}: {status:#}", case.name());
    }
    assert!(slow > 10, "only {slow} slow resources");
}

#[test]
fn cluster_that_takes_an_hour_stalls_after_forty_five_minutes() {
    let cases = simulated::examples();
    let case = cases.iter().find(|case| case.api().info().name == "application-environment");
    let case = case.unwrap();
    let mut world = case.settled();
    let start = world.now();
    let cluster = world.resources_mut().get_mut("gke-cluster").unwrap();
    cluster["status"] = json!({});
    conditions::set(cluster, &start.to_string(), "Synced", "True", "ReconcileSuccess", "");
    conditions::set(cluster, &start.to_string(), "Ready", "False", "Creating", "");
    let pool = world.resources_mut().get_mut("node-pool").unwrap();
    reject(pool, &start.to_string(), UNRESOLVED);
    for minute in 0..=60 {
        call_at(case, &mut world, after(start, minute));
        assert_eq!(is_stalled(&world), minute >= 45, "minute {minute}");
    }
    let status = &world.composite()["status"];
    let lines = status["resources"].as_array().unwrap();
    let cluster = lines.iter().find(|line| line["slot"] == "gke-cluster").unwrap();
    assert_eq!(cluster["cause"], json!({"code": "TimedOut", "params": {"minutes": "45"}}));
    assert_eq!(cluster["message"], "not ready within 45 minutes: is being created");
}
