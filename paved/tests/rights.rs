//! `paved platform --cloud-rights`: the rights that providers and publishers need in clouds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use crossplane::api_version;
use function_paved_road::apis::{APIS, Flavour, sections};
use function_paved_road::catalog::rights::{Operation, aws, azure, gcp};
use function_paved_road::manifests::rights::{Cloud, PARTS, documents};
use function_paved_road::models::{KINDS, Kind, Provider, Scope};
use function_paved_road::settings::Settings;
use serde_json::{Map, Value, json};
use support::{assert_golden, by_line, folder, paved, within};
use xtask::composed;

const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
gpuWorkspace:
  amis:
    us-gov-west-1:
      default: ami-0123456789abcdef0
  permissionsBoundary: arn:aws-us-gov:iam::123456789012:policy/machines
unifiedEnvironment:
  region: eu-central-1
environment:
  eks:
    region: eu-west-1
    clusterRoleArn: arn:aws:iam::123456789012:role/environments-cluster
    nodeRoleArn: arn:aws:iam::123456789012:role/environments-nodes
  aks:
    resourceGroupName: environments
    identity: /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/environments/providers/Microsoft.ManagedIdentity/userAssignedIdentities/clusters
";

/// A kind by its cloud's service, for example `ec2 Instance`.
fn title(kind: &Kind) -> String {
    format!("{:?} {} {}", kind.provider, kind.service, kind.kind)
}

fn has_cloud(kind: &Kind) -> bool {
    matches!(kind.provider, Provider::Aws | Provider::Gcp | Provider::Azure)
}

/// The kind of a composed object, if a cloud has it.
fn cloud_kind(object: &Value) -> Option<Kind> {
    let group = api_version::group_of(object);
    let kinds = KINDS.iter().map(|info| info.kind).filter(has_cloud);
    let mut found = kinds.filter(|kind| object["kind"] == kind.kind).filter(|kind| {
        [Scope::LegacyCluster, Scope::Namespaced].iter().any(|scope| kind.group(*scope) == group)
    });
    found.next()
}

/// The kinds in the `PARTS` of each API.
fn parts() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut parts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for part in PARTS {
        let mut providers: Vec<Provider> = part.kinds.iter().map(|kind| kind.provider).collect();
        providers.dedup();
        assert_eq!(providers.len(), 1, "{part:?}");
        parts.entry(part.api).or_default().extend(part.kinds.iter().map(title));
    }
    parts
}

/// The kinds that have rights, and the operations of each.
fn entries() -> Vec<(Kind, BTreeSet<Operation>)> {
    let aws = aws::RIGHTS
        .iter()
        .map(|rights| (rights.kind, rights.grants.iter().map(|grant| grant.operation).collect()));
    let gcp = gcp::RIGHTS
        .iter()
        .map(|rights| (rights.kind, rights.grants.iter().map(|grant| grant.operation).collect()));
    let azure = azure::RIGHTS
        .iter()
        .map(|rights| (rights.kind, rights.grants.iter().map(|grant| grant.operation).collect()));
    aws.chain(gcp).chain(azure).collect()
}

/// Every example is composed with every variant: each cluster type, and a database on RDS.
#[test]
fn parts_have_exactly_the_composed_kinds() {
    // Only environments of schema revision 1 have this kind. No example composes it any more.
    let earlier = ("gpu-workspace", "Aws iam RolePolicyAttachment".to_owned());
    let mut composed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    composed.entry(earlier.0).or_default().insert(earlier.1);
    for one in composed::all().unwrap() {
        let kinds = one.objects().filter_map(cloud_kind).map(|kind| title(&kind));
        composed.entry(one.api.info().name).or_default().extend(kinds);
    }
    composed.retain(|_, kinds| !kinds.is_empty());
    assert_eq!(parts(), composed);
}

#[test]
fn every_kind_has_one_entry() {
    let mut listed: Vec<String> = entries().iter().map(|(kind, _)| title(kind)).collect();
    let mut kinds: Vec<String> =
        KINDS.iter().map(|info| &info.kind).filter(|kind| has_cloud(kind)).map(title).collect();
    listed.sort_unstable();
    kinds.sort_unstable();
    assert_eq!(listed, kinds);
}

#[test]
fn every_kind_can_be_observed_created_and_deleted() {
    use Operation::{Create, Delete, Observe};
    for (kind, operations) in entries() {
        let needed: &[Operation] = match (kind.service, kind.kind) {
            ("eks", "ClusterAuth") => &[Observe],
            // The deletion of an InstanceState leaves the machine as it is. The deletion of a
            // server also deletes its databases and users.
            ("ec2", "InstanceState") | ("sql", "Database" | "User") => &[Observe, Create],
            _ => &[Observe, Create, Delete],
        };
        for operation in needed {
            assert!(operations.contains(operation), "{}: {operation:?}", title(&kind));
        }
    }
}

/// A new option that adds a tagged kind fails here, even without a variant of an example.
#[test]
fn every_tagged_kind_has_a_part() {
    let parts = parts();
    for api in APIS {
        let info = api.info();
        let mut section = api.example_settings();
        if info.name == "unified-environment" {
            section["database"]["mode"] = json!("rds");
        }
        let body = Map::from_iter([(info.settings.to_owned(), section)]);
        let settings = Settings::read(body, &sections()).unwrap();
        for kind in api.tagged(&settings).unwrap().kinds {
            assert!(parts[info.name].contains(&title(&kind)), "{}: {kind:?}", info.name);
        }
    }
}

/// docs/reference/cloud-rights.md has the same exceptions.
#[test]
fn changes_of_untagged_resources_are_documented_exceptions() {
    const EXCEPTIONS: &[&str] = &[
        "cloudfront::*:function/*",
        "cloudfront::*:origin-access-control/*",
        "eks:*:*:podidentityassociation/*",
        "rds:*:*:snapshot:*-final",
        // Default groups, which ModifyDBInstance names and does not change.
        "rds:*:*:og:default:*",
        "rds:*:*:pg:default.*",
    ];
    for rights in aws::RIGHTS {
        let untagged = rights.grants.iter().filter(|grant| {
            [Operation::Update, Operation::Delete].contains(&grant.operation)
                && grant.scope.condition == aws::Condition::None
        });
        for resource in untagged.flat_map(|grant| grant.scope.resources) {
            let is_bucket = resource.starts_with("s3:::acme-mfe-");
            let is_exception = is_bucket || EXCEPTIONS.contains(resource);
            assert!(is_exception, "{}: {resource}", title(&rights.kind));
        }
    }
}

#[test]
fn composed_policies_of_aws_are_granted_to_their_api() {
    let mut attached = 0;
    for one in composed::all().unwrap() {
        for object in one.objects().filter(|object| object["kind"] == "RolePolicyAttachment") {
            let arn = object["spec"]["forProvider"]["policyArn"].as_str().unwrap();
            let (_, name) = arn.split_once(":policy/").unwrap();
            assert!(aws::POLICIES.contains(&(one.api.info().name, name)), "{arn}");
            attached += 1;
        }
    }
    assert!(attached >= Flavour::ALL.len());
}

#[test]
fn rights_are_limited_to_the_names_of_site_buckets() {
    let mut buckets = 0;
    for one in composed::all().unwrap() {
        for object in one.objects().filter(|object| cloud_kind(object).is_some_and(is_site_bucket))
        {
            let name = object["metadata"]["annotations"]["crossplane.io/external-name"].as_str();
            assert!(name.unwrap().starts_with("acme-mfe-"), "{object}");
            buckets += 1;
        }
    }
    assert!(buckets >= Flavour::ALL.len());
}

fn is_site_bucket(kind: Kind) -> bool {
    (kind.service, kind.kind) == ("s3", "Bucket")
}

#[test]
fn files_are_the_printed_documents() {
    let settings = folder(&[("settings.yaml", SETTINGS)]);
    let path = within(&settings, "settings.yaml");
    let printed = paved(&["platform", "--settings", &path, "--cloud-rights"]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    assert_golden("cloud-rights", &by_line(&printed.out));
    let out = within(&settings, "rights");
    let written = paved(&["platform", "--settings", &path, "--cloud-rights", "-o", &out]);
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    let read = |path: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let files: Vec<Value> = written.out.lines().map(read).collect();
    assert_eq!(files, printed.documents());
    let azure = paved(&["platform", "--settings", &path, "--cloud-rights", "azure"]);
    assert!(azure.out.contains("Microsoft.ContainerService") && !azure.out.contains("ec2:"));
    let wrong = paved(&["platform", "--settings", &path, "--cloud-rights", "oracle"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("allowed: aws, gcp, azure"), "{}", wrong.err);
}

/// IAM counts the characters of a managed policy without white space.
#[test]
fn policies_fit_into_managed_policies() {
    for settings in [json!({}), serde_saphyr::from_str(SETTINGS).unwrap()] {
        for document in documents(Cloud::Aws, &settings) {
            let length = document.body.to_string().len();
            assert!(length <= 6144, "{}: {length}", document.path);
        }
    }
}

/// parliament knows the actions of AWS, their resources and their condition keys.
#[test]
fn policies_pass_a_linter() {
    let parliament = xtask::python::program(xtask::python::PARLIAMENT, "parliament").unwrap();
    for document in documents(Cloud::Aws, &serde_saphyr::from_str(SETTINGS).unwrap()) {
        let mut unmatched: BTreeMap<(String, String), usize> = BTreeMap::new();
        for finding in lint(&parliament, &document.body) {
            match finding["issue"].as_str().unwrap() {
                // The resources of an action are in several statements, so each statement lacks
                // some of them.
                "RESOURCE_MISMATCH" => {
                    for detail in finding["detail"].as_array().unwrap() {
                        let text = |key: &str| detail[key].as_str().unwrap().to_owned();
                        *unmatched.entry((text("action"), text("required_format"))).or_default() +=
                            1;
                    }
                }
                // The provider writes the policies of its buckets. AWS's own examples compare a
                // boundary as a string.
                "RESOURCE_POLICY_PRIVILEGE_ESCALATION" | "MISMATCHED_TYPE_BUT_USABLE" => {}
                // A creation has no resource yet.
                "RESOURCE_STAR" => {
                    assert_eq!(finding["detail"], json!(["cloudfront:CreateDistribution"]));
                }
                _ => panic!("{}: {finding}", document.path),
            }
        }
        let statements = document.body["Statement"].as_array().unwrap();
        for ((action, format), count) in unmatched {
            let with_action = statements
                .iter()
                .filter(|statement| {
                    statement["Action"].as_array().unwrap().contains(&json!(action))
                })
                .count();
            assert!(count < with_action, "{}: {action} needs {format}", document.path);
        }
    }
}

/// The linter's findings, one JSON object on each line.
fn lint(parliament: &std::path::Path, policy: &Value) -> Vec<Value> {
    let mut child = Command::new(parliament)
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(policy.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let text = String::from_utf8(output).unwrap();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
