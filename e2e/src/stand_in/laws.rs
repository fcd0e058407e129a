//! What the clouds refuse: changes in place, and deletions of what something else needs. Per kind, as data.
//!
//! What cannot change is what the Terraform providers behind upjet mark ForceNew, or refuse; the words are the clouds' own, or theirs.

use serde_json::Value;

use super::cloud::External;

/// What holds for a kind.
#[derive(Clone, Copy, Default)]
pub struct Law {
    /// The field of `spec.forProvider` that names what it is a part of: it goes with that.
    pub part_of: Option<&'static str>,
    /// Paths below `spec.forProvider` that cannot change.
    immutable: &'static [&'static str],
    /// Fields of `spec.forProvider` that the cloud chooses where the spec has none.
    pub computed: &'static [&'static str],
    /// Paths below `spec.forProvider` of sizes that cannot shrink.
    grows: &'static [&'static str],
    /// What changes only by way of something else.
    replaced: &'static [Replaced],
    /// What must be gone before it can go.
    needed_by: &'static [Dependent],
    /// What of its own parameters forbids its deletion: the words, in which `{}` is its name.
    protected: Option<fn(&Value) -> Option<String>>,
    /// What of its own parameters forbids its creation: the words.
    refused: Option<fn(&Value) -> Option<String>>,
}

/// Something that needs another resource.
#[derive(Clone, Copy)]
struct Dependent {
    kind: &'static str,
    /// Where it names what it needs, below `spec.forProvider`.
    pointer: &'static str,
    /// Whether it is in the way only while it is itself being made or deleted.
    only_busy: bool,
    /// What the cloud says; `{}` is the name of what was to be deleted.
    words: &'static str,
}

/// A field that changes only where another one names what stands in meanwhile.
#[derive(Clone, Copy)]
struct Replaced {
    /// Its path, below `spec.forProvider`.
    path: &'static str,
    /// That of the other.
    by: &'static str,
    /// What the provider says where that is missing.
    words: &'static str,
}

const fn needed(kind: &'static str, pointer: &'static str, words: &'static str) -> Dependent {
    Dependent { kind, pointer, only_busy: false, words }
}

/// The law of a kind, by the first label of its group and its name.
pub fn of(group: &str, kind: &str) -> Law {
    let mut labels = group.split('.');
    match (labels.next().unwrap_or_default(), labels.next().unwrap_or_default()) {
        (service, "aws") => aws(service, kind),
        (service, "gcp") => gcp(service, kind),
        (_, "azure") => Law {
            immutable: &[
                "location",
                "resourceGroupName",
                "dnsPrefix",
                "defaultNodePool.name",
                "networkProfile",
            ],
            replaced: &[Replaced {
                path: "defaultNodePool.vmSize",
                by: "defaultNodePool.temporaryNameForRotation",
                words: "`temporary_name_for_rotation` must be specified when updating any of the following properties [\"default_node_pool.0.vm_size\"]",
            }],
            ..Law::default()
        },
        _ => Law::default(),
    }
}

fn aws(service: &str, kind: &str) -> Law {
    let none = Law { immutable: &["region"], ..Law::default() };
    match (service, kind) {
        ("ec2", "Instance") => Law {
            immutable: &[
                "region",
                "ami",
                "subnetId",
                "keyName",
                "associatePublicIpAddress",
                "availabilityZone",
                "instanceMarketOptions",
                "rootBlockDevice.encrypted",
                "rootBlockDevice.kmsKeyId",
            ],
            computed: &["subnetId"],
            grows: &["rootBlockDevice.volumeSize"],
            refused: Some(ec2_interface),
            ..none
        },
        ("ec2", "SecurityGroup") => Law {
            immutable: &["region", "name", "description", "vpcId"],
            needed_by: const {
                &[needed(
                    "Instance",
                    "/vpcSecurityGroupIds",
                    "deleting Security Group ({}): DependencyViolation: resource {} has a dependent object",
                )]
            },
            ..none
        },
        ("ec2", "SecurityGroupIngressRule" | "SecurityGroupEgressRule") => {
            Law { part_of: Some("securityGroupId"), immutable: &["region", "securityGroupId"], ..none }
        }
        ("iam", kind) => iam(kind),
        ("s3", "Bucket") => {
            Law { immutable: &["region", "objectLockEnabled"], protected: Some(s3_files), ..none }
        }
        ("s3", _) => Law { part_of: Some("bucket"), immutable: &["region", "bucket"], ..none },
        ("cloudfront", "OriginAccessControl") => Law {
            immutable: &["name"],
            needed_by: const {
                &[needed(
                    "Distribution",
                    "/origin",
                    "deleting CloudFront Origin Access Control ({}): OriginAccessControlInUse: Cannot delete the origin access control as it's associated with one or more distributions.",
                )]
            },
            ..none
        },
        ("rds", "Instance") => Law {
            immutable: &["region", "engine", "username", "dbName", "storageEncrypted", "availabilityZone"],
            grows: &["allocatedStorage"],
            protected: Some(rds_protection),
            refused: Some(rds_throughput),
            ..none
        },
        ("eks", "Cluster") => Law {
            immutable: &["region", "roleArn", "accessConfig.bootstrapClusterCreatorAdminPermissions"],
            needed_by: const {
                &[needed(
                    "NodeGroup",
                    "/clusterName",
                    "deleting EKS Cluster ({}): ResourceInUseException: Cluster has nodegroups attached",
                )]
            },
            ..none
        },
        ("eks", "NodeGroup") => Law {
            immutable: &[
                "region",
                "clusterName",
                "nodeRoleArn",
                "subnetIds",
                "instanceTypes",
                "amiType",
                "diskSize",
            ],
            ..none
        },
        ("eks", "Addon") => {
            Law { part_of: Some("clusterName"), immutable: &["region", "clusterName", "addonName"], ..none }
        }
        ("eks", "ClusterAuth") => Law { part_of: Some("clusterName"), ..none },
        _ => none,
    }
}

fn iam(kind: &str) -> Law {
    match kind {
        "Role" => Law {
            immutable: &["path"],
            needed_by: const {
                &[
                    needed(
                        "RolePolicyAttachment",
                        "/role",
                        "deleting IAM Role ({}): DeleteConflict: Cannot delete entity, must detach all policies first.",
                    ),
                    needed(
                        "RolePolicy",
                        "/role",
                        "deleting IAM Role ({}): DeleteConflict: Cannot delete entity, must delete policies first.",
                    ),
                    needed(
                        "InstanceProfile",
                        "/role",
                        "deleting IAM Role ({}): DeleteConflict: Cannot delete entity, must remove roles from instance profile first.",
                    ),
                ]
            },
            ..Law::default()
        },
        "RolePolicy" => Law { immutable: &["role"], ..Law::default() },
        "RolePolicyAttachment" => Law { immutable: &["role", "policyArn"], ..Law::default() },
        "InstanceProfile" => Law { immutable: &["path"], ..Law::default() },
        _ => Law::default(),
    }
}

fn gcp(service: &str, kind: &str) -> Law {
    let none = Law { immutable: &["location", "project"], ..Law::default() };
    match (service, kind) {
        ("container", "Cluster") => Law {
            immutable: &[
                "location",
                "project",
                "network",
                "subnetwork",
                "networkingMode",
                "initialNodeCount",
                "enableAutopilot",
                "privateClusterConfig.masterIpv4CidrBlock",
            ],
            // A cluster takes its node pools along, once none of them is being worked on.
            needed_by: const {
                &[Dependent {
                    only_busy: true,
                    ..needed(
                        "NodePool",
                        "/cluster",
                        "googleapi: Error 400: Cluster {} is running incompatible operation on one of its node pools., failedPrecondition",
                    )
                }]
            },
            protected: Some(gke_protection),
            ..none
        },
        ("container", "NodePool") => Law {
            part_of: Some("cluster"),
            immutable: &[
                "location",
                "cluster",
                "initialNodeCount",
                "nodeConfig.oauthScopes",
                "nodeConfig.spot",
            ],
            ..none
        },
        ("sql", "DatabaseInstance") => Law {
            immutable: &["region", "project"],
            grows: &["settings.diskSize"],
            protected: Some(cloud_sql_protection),
            ..none
        },
        ("sql", "Database") => {
            Law { part_of: Some("instance"), immutable: &["instance", "charset", "collation"], ..none }
        }
        ("sql", "User") => {
            Law { part_of: Some("instance"), immutable: &["instance", "type", "host"], ..none }
        }
        ("storage", "Bucket") => Law { protected: Some(cloud_storage_files), ..none },
        ("storage", "BucketIAMMember") => {
            Law { part_of: Some("bucket"), immutable: &["bucket", "role", "member", "condition"], ..none }
        }
        ("cloudplatform", "ProjectIAMMember") => {
            Law { immutable: &["project", "role", "member", "condition"], ..none }
        }
        _ => none,
    }
}

/// A pretended bucket counts as full: it goes only where its files may go with it.
fn files(parameters: &Value, words: &str) -> Option<String> {
    (parameters["forceDestroy"] != true).then(|| words.to_owned())
}

fn s3_files(parameters: &Value) -> Option<String> {
    files(
        parameters,
        "deleting S3 Bucket ({}): operation error S3: DeleteBucket, https response error StatusCode: 409, api error BucketNotEmpty: The bucket you tried to delete is not empty",
    )
}

fn cloud_storage_files(parameters: &Value) -> Option<String> {
    files(
        parameters,
        "Error trying to delete bucket {} containing objects without `force_destroy` set to true",
    )
}

fn gke_protection(parameters: &Value) -> Option<String> {
    (parameters["deletionProtection"] != false)
        .then(|| "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster deletion.".to_owned())
}

fn cloud_sql_protection(parameters: &Value) -> Option<String> {
    if parameters["settings"]["deletionProtectionEnabled"] == true {
        return Some("googleapi: Error 400: The instance is protected. Please disable the deletion protection and try again. To disable deletion protection, update the instance settings with deletionProtectionEnabled set to false., failedPrecondition".to_owned());
    }
    (parameters["deletionProtection"] != false).then(|| {
        "cannot destroy instance without setting deletion_protection=false and running `terraform apply`"
            .to_owned()
    })
}

fn rds_protection(parameters: &Value) -> Option<String> {
    if parameters["deletionProtection"] == true {
        return Some("deleting RDS DB Instance: InvalidParameterCombination: Cannot delete protected DB Instance, please disable deletion protection and try again.".to_owned());
    }
    let kept = parameters["skipFinalSnapshot"] != true && parameters["finalSnapshotIdentifier"].is_null();
    kept.then(|| "final_snapshot_identifier is required when skip_final_snapshot is false".to_owned())
}

/// A machine that is made anew asks for the network interface of the former one, unless it has a subnet.
fn ec2_interface(parameters: &Value) -> Option<String> {
    let id = parameters["primaryNetworkInterface"]["networkInterfaceId"].as_str()?;
    parameters["subnetId"].is_null().then(|| {
        format!(
            "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, api error \
             InvalidNetworkInterfaceID.NotFound: The networkInterface ID '{id}' does not exist"
        )
    })
}

/// Small disks take neither IOPS nor throughput, which a server that is made anew asks for.
fn rds_throughput(parameters: &Value) -> Option<String> {
    let small = parameters["allocatedStorage"].as_f64().is_some_and(|gib| gib < 400.0);
    let asked = ["iops", "storageThroughput"].iter().any(|field| !parameters[field].is_null());
    (small && asked).then(|| {
        "creating RDS DB Instance: operation error RDS: CreateDBInstance, https response error StatusCode: 400, api error \
         InvalidParameterCombination: You can't specify IOPS or storage throughput for engine postgres and a storage size less \
         than 400."
            .to_owned()
    })
}

impl Law {
    /// Why something with these parameters may not be made, if so.
    pub fn forbids_creation(&self, parameters: &Value) -> Option<String> {
        self.refused.and_then(|refused| refused(parameters))
    }

    /// Why `external` may not be deleted among `all` that exists, if so.
    pub fn forbids_deletion(&self, external: &External, all: &[&External]) -> Option<String> {
        if let Some(why) = self.protected.and_then(|protected| protected(&external.parameters)) {
            return Some(why.replace("{}", &external.name));
        }
        self.needed_by.iter().find_map(|dependent| {
            let in_the_way = |one: &&&External| {
                one.kind == dependent.kind
                    && one.group == external.group
                    && (!dependent.only_busy || one.is_busy())
                    && one
                        .parameters
                        .pointer(dependent.pointer)
                        .is_some_and(|named| mentions(named, &external.name))
            };
            all.iter().find(in_the_way).map(|_| dependent.words.replace("{}", &external.name))
        })
    }

    /// Why what is there may not become what is `wanted`, if so.
    pub fn forbids_change(&self, there: &Value, wanted: &Value) -> Option<String> {
        let changed = |path: &&&str| at(wanted, path).is_some_and(|new| Some(new) != at(there, path));
        if let Some(path) = self.immutable.iter().find(changed) {
            let (old, new) = (shown(at(there, path)), shown(at(wanted, path)));
            return Some(format!(
                "refuse to update the external resource because the following update requires replacing it: cannot change \
                 the value of the argument {:?} from {old:?} to {new:?}",
                snake(path)
            ));
        }
        let is_stuck = |one: &&Replaced| changed(&&one.path) && at(wanted, one.by).is_none();
        if let Some(one) = self.replaced.iter().find(is_stuck) {
            return Some(one.words.to_owned());
        }
        let shrinks = |path: &&&str| {
            let sizes = at(wanted, path).and_then(Value::as_f64).zip(at(there, path).and_then(Value::as_f64));
            sizes.is_some_and(|(wanted, there)| wanted < there)
        };
        self.grows.iter().find(shrinks).map(|path| {
            let (old, new) = (shown(at(there, path)), shown(at(wanted, path)));
            format!("InvalidParameterValue: {} cannot shrink from {old} to {new}", snake(path))
        })
    }
}

/// Whether there is anything in `wanted` that is otherwise in `there`. What is left out of `spec.forProvider` itself is left
/// to the cloud.
pub fn differs(there: &Value, wanted: &Value) -> bool {
    let wanted = wanted.as_object();
    wanted.into_iter().flatten().any(|(field, value)| there.get(field) != Some(value))
}

/// Whether a value is this name, or holds it.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, name)),
        _ => false,
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, field| value.get(field))
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// A field as Terraform calls it.
fn snake(path: &str) -> String {
    let words = path.chars().flat_map(|c| if c.is_ascii_uppercase() { vec!['_', c] } else { vec![c] });
    words.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::cloud::Owner;
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;

    fn external(group: &str, kind: &str, name: &str, parameters: Value) -> External {
        let owner = Owner {
            api_version: String::new(),
            namespace: String::new(),
            name: String::new(),
            uid: String::new(),
            composite: String::new(),
        };
        let (group, kind, name) = (group.to_owned(), kind.to_owned(), name.to_owned());
        let (ready_at, gone_at) = (Timestamp::UNIX_EPOCH, None);
        External {
            group,
            kind,
            name,
            parent: None,
            identity: String::new(),
            ready_at,
            gone_at,
            parameters,
            owner,
        }
    }

    #[test]
    fn a_security_group_stays_while_a_machine_is_in_it() {
        let group = external("ec2.aws.upbound.io", "SecurityGroup", "sg-1", json!({}));
        let machine = |groups| {
            external("ec2.aws.upbound.io", "Instance", "i-1", json!({"vpcSecurityGroupIds": groups}))
        };
        let law = of(&group.group, &group.kind);
        let why = law.forbids_deletion(&group, &[&machine(json!(["sg-1"]))]);
        assert!(why.is_some_and(|why| why.contains("DependencyViolation: resource sg-1")));
        assert_eq!(law.forbids_deletion(&group, &[&machine(json!(["sg-2"]))]), None);
    }

    #[test]
    fn a_cluster_waits_only_for_node_pools_at_work_and_for_its_protection() {
        let group = "container.gcp.upbound.io";
        let cluster =
            |protected: bool| external(group, "Cluster", "c", json!({"deletionProtection": protected}));
        let idle = external(group, "NodePool", "p", json!({"cluster": "c"}));
        let busy = External { gone_at: Some(Timestamp::UNIX_EPOCH), ..idle.clone() };
        let law = of(group, "Cluster");
        assert_eq!(law.forbids_deletion(&cluster(false), &[&idle]), None);
        assert!(
            law.forbids_deletion(&cluster(false), &[&busy])
                .is_some_and(|why| why.contains("incompatible operation"))
        );
        assert!(
            law.forbids_deletion(&cluster(true), &[]).is_some_and(|why| why.contains("deletion_protection"))
        );
    }

    #[test]
    fn machine_made_anew_needs_a_subnet() {
        let law = of("ec2.aws.upbound.io", "Instance");
        let interface = json!({"networkInterfaceId": "eni-1"});
        assert_eq!(law.forbids_creation(&json!({"ami": "ami-1"})), None);
        let why = law.forbids_creation(&json!({"primaryNetworkInterface": interface})).unwrap_or_default();
        assert!(why.contains("InvalidNetworkInterfaceID.NotFound"), "{why}");
        let with_subnet = json!({"primaryNetworkInterface": interface, "subnetId": "subnet-1"});
        assert_eq!(law.forbids_creation(&with_subnet), None);
    }

    #[test]
    fn small_server_made_anew_takes_no_throughput() {
        let law = of("rds.aws.upbound.io", "Instance");
        let server = |gib: i64| json!({"allocatedStorage": gib, "storageThroughput": 125});
        assert!(
            law.forbids_creation(&server(20)).is_some_and(|why| why.contains("InvalidParameterCombination"))
        );
        assert_eq!(law.forbids_creation(&server(400)), None);
        assert_eq!(law.forbids_creation(&json!({"allocatedStorage": 20})), None);
    }

    #[test]
    fn a_bucket_goes_only_with_its_files() {
        for group in ["s3.aws.upbound.io", "storage.gcp.upbound.io"] {
            let forbids = |parameters| {
                of(group, "Bucket").forbids_deletion(&external(group, "Bucket", "site", parameters), &[])
            };
            assert_eq!(forbids(json!({"forceDestroy": true})), None);
            assert!(forbids(json!({"forceDestroy": false})).is_some_and(|why| why.contains("site")));
            assert!(forbids(json!({})).is_some(), "{group}");
        }
    }

    #[test]
    fn what_terraform_would_replace_is_refused_by_name() {
        let law = of("ec2.aws.upbound.io", "Instance");
        let there = json!({"ami": "ami-1", "instanceType": "a", "rootBlockDevice": {"volumeSize": 100, "encrypted": true}});
        let changed = |wanted| law.forbids_change(&there, &wanted);
        assert_eq!(changed(json!({"instanceType": "b", "rootBlockDevice": {"volumeSize": 200}})), None);
        let why = changed(json!({"ami": "ami-2"})).unwrap_or_default();
        assert!(
            why.ends_with(r#"cannot change the value of the argument "ami" from "ami-1" to "ami-2""#),
            "{why}"
        );
        let why = changed(json!({"rootBlockDevice": {"encrypted": false}})).unwrap_or_default();
        assert!(why.contains(r#""root_block_device.encrypted" from "true" to "false""#), "{why}");
        assert!(changed(json!({"rootBlockDevice": {"volumeSize": 50}})).is_some());
    }

    #[test]
    fn an_aks_clusters_machine_type_changes_only_by_way_of_another_pool() {
        let law = of("containerservice.azure.upbound.io", "KubernetesCluster");
        let pool = |pool: Value| json!({"defaultNodePool": pool});
        let there = pool(json!({"name": "nodes", "vmSize": "a", "nodeCount": 2}));
        let changed = |wanted| law.forbids_change(&there, &pool(wanted));
        assert_eq!(changed(json!({"name": "nodes", "vmSize": "a", "nodeCount": 3})), None);
        let why = changed(json!({"name": "nodes", "vmSize": "b"})).unwrap_or_default();
        assert!(why.starts_with("`temporary_name_for_rotation` must be specified"), "{why}");
        let rotated = json!({"name": "nodes", "vmSize": "b", "temporaryNameForRotation": "meanwhile"});
        assert_eq!(changed(rotated), None);
    }

    #[test]
    fn what_is_left_out_is_left_to_the_cloud() {
        assert!(!differs(&json!({"a": 1, "late": 2}), &json!({"a": 1})));
        assert!(differs(&json!({"tags": {"a": "1", "b": "2"}}), &json!({"tags": {"a": "1"}})));
    }
}
