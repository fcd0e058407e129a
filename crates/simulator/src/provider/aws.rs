//! provider-upjet-aws.

use serde_json::{Value, json};

use crate::core::{ConnectionDetails, World, connection_secret};
use crossplane::json::text;

use super::manner::{Facts, Id, Manner, Reference, UPJET, details, each, many, one};

const ACCOUNT: &str = "123456789012";

/// The version of Kubernetes that EKS gives a cluster which asks for none.
const EKS_VERSION: &str = "1.34";

const SECURITY_GROUP: &[Reference] = &[one("securityGroupId", "SecurityGroup")];
const BUCKET: &[Reference] = &[one("bucket", "Bucket")];
const ROLE: &[Reference] = &[one("role", "Role"), one("policyArn", "Policy")];

pub(super) fn manner(service: &str, kind: &str) -> Manner {
    match (service, kind) {
        ("ec2", "Instance") => INSTANCE,
        ("ec2", "SecurityGroup") => Manner {
            id: Id::Assigned("sg-"),
            references: const { &[one("vpcId", "VPC")] },
            at_provider: |f| json!({"arn": arn(f, "ec2", "security-group"), "ownerId": ACCOUNT}),
            late: |_| json!({"description": "Managed by Terraform", "revokeRulesOnDelete": false}),
            ..UPJET
        },
        ("ec2", "SecurityGroupIngressRule" | "SecurityGroupEgressRule") => Manner {
            id: Id::Assigned("sgr-"),
            references: SECURITY_GROUP,
            at_provider: |f| json!({"arn": arn(f, "ec2", "security-group-rule"), "securityGroupRuleId": f.external()}),
            ..UPJET
        },
        ("ec2", "SecurityGroupRule") => {
            Manner { id: Id::Assigned("sgrule-"), references: SECURITY_GROUP, ..UPJET }
        }
        ("ec2", "VPC") => Manner {
            id: Id::Assigned("vpc-"),
            at_provider: |f| json!({"arn": arn(f, "ec2", "vpc")}),
            ..UPJET
        },
        ("ec2", "Subnet") => Manner {
            id: Id::Assigned("subnet-"),
            references: const { &[one("vpcId", "VPC")] },
            at_provider: |f| json!({"arn": arn(f, "ec2", "subnet")}),
            ..UPJET
        },
        ("ec2", "EBSVolume") => Manner { id: Id::Assigned("vol-"), ..UPJET },
        ("ec2", "EIP") => Manner {
            id: Id::Assigned("eipalloc-"),
            references: const { &[one("instance", "Instance")] },
            at_provider: |f| json!({"publicIp": public_ip(f), "allocationId": f.external()}),
            ..UPJET
        },
        ("iam", "Role") => Manner {
            at_provider: |f| json!({"arn": format!("arn:aws:iam::{ACCOUNT}:role/{}", f.external())}),
            late: |_| json!({"maxSessionDuration": 3600}),
            ..UPJET
        },
        ("iam", "RolePolicyAttachment") => {
            Manner { id: Id::Assigned("attachment-"), references: ROLE, ..UPJET }
        }
        ("iam", "RolePolicy") => Manner { references: ROLE, ..UPJET },
        ("iam", "InstanceProfile") => Manner {
            references: ROLE,
            at_provider: |f| json!({"arn": format!("arn:aws:iam::{ACCOUNT}:instance-profile/{}", f.external())}),
            ..UPJET
        },
        ("s3", "Bucket") => S3_BUCKET,
        ("s3", _) => Manner { references: BUCKET, ..UPJET },
        ("cloudfront", "Distribution") => Manner {
            rounds: 4,
            id: Id::Capital("E"),
            references: const { &[each("origin", "originAccessControlId", "OriginAccessControl")] },
            at_provider: |f| {
                json!({
                    "arn": format!("arn:aws:cloudfront::{ACCOUNT}:distribution/{}", f.external()),
                    "domainName": format!("d{}.cloudfront.net", f.hex(13)), "status": "Deployed",
                })
            },
            ..UPJET
        },
        ("cloudfront", _) => Manner { id: Id::Capital("E"), ..UPJET },
        ("rds", "Instance") => RDS_INSTANCE,
        ("eks", kind) => eks(kind),
        _ => UPJET,
    }
}

fn eks(kind: &str) -> Manner {
    match kind {
        "Cluster" => Manner {
            rounds: 4,
            references: const { &[one("roleArn", "Role")] },
            at_provider: |f| {
                json!({
                    "arn": arn(f, "eks", "cluster"), "status": "ACTIVE",
                    "version": f.param("version").unwrap_or(EKS_VERSION),
                    "endpoint": format!("https://{}.gr7.{}.eks.amazonaws.com", f.hex(32), f.region("us-east-1")),
                    "certificateAuthority": [{"data": "Y2E="}],
                })
            },
            late: |_| json!({"version": EKS_VERSION, "upgradePolicy": {"supportType": "EXTENDED"}}),
            ..UPJET
        },
        "NodeGroup" => Manner {
            rounds: 2,
            references: const { &[one("clusterName", "Cluster"), one("nodeRoleArn", "Role")] },
            at_provider: |f| json!({"arn": arn(f, "eks", "nodegroup"), "status": "ACTIVE"}),
            late: |_| json!({"capacityType": "ON_DEMAND"}),
            ..UPJET
        },
        "Addon" => Manner {
            rounds: 2,
            // The real one is made of two names: `<cluster>:<add-on>`.
            id: Id::Assigned("addon-"),
            references: const { &[one("clusterName", "Cluster"), one("serviceAccountRoleArn", "Role")] },
            at_provider: |f| json!({"arn": arn(f, "eks", "addon")}),
            late: |_| json!({"addonVersion": "v1.53.0-eksbuild.1"}),
            ..UPJET
        },
        "ClusterAuth" => Manner {
            references: const { &[one("clusterName", "Cluster")] },
            connection: |f| {
                let endpoint = format!("https://{}.eks.amazonaws.com", f.hex(32));
                let kubeconfig = super::kubeconfig(&endpoint);
                details([("endpoint", &endpoint), ("kubeconfig", &kubeconfig), ("clusterCA", "ca")])
            },
            ..UPJET
        },
        _ => UPJET,
    }
}

/// EC2 gives the id at once and the addresses when the machine runs.
const INSTANCE: Manner = Manner {
    rounds: 3,
    id: Id::Assigned("i-"),
    references: &[
        one("subnetId", "Subnet"),
        many("vpcSecurityGroupIds", "vpcSecurityGroupId", "SecurityGroup"),
        many("securityGroups", "securityGroup", "SecurityGroup"),
    ],
    at_provider: |f| {
        let private = format!("10.0.{}.{}", f.byte(1), f.byte(2));
        let mut seen = json!({
            "arn": arn(f, "ec2", "instance"), "instanceState": "running", "privateIp": private,
            "privateDns": format!("ip-{}.ec2.internal", private.replace('.', "-")),
            "subnetId": f.param("subnetId").map_or_else(|| format!("subnet-{}", f.hex(17)), str::to_owned),
        });
        if f.object["spec"]["forProvider"]["associatePublicIpAddress"] != Value::Bool(false) {
            let public = public_ip(f);
            seen["publicDns"] = json!(format!("ec2-{}.compute-1.amazonaws.com", public.replace('.', "-")));
            seen["publicIp"] = json!(public);
        }
        seen
    },
    late: |f| {
        let private = format!("10.0.{}.{}", f.byte(1), f.byte(2));
        json!({
            "availabilityZone": format!("{}a", f.region("us-east-1")), "tenancy": "default", "privateIp": private,
            "sourceDestCheck": true, "disableApiStop": false, "hibernation": false,
            "primaryNetworkInterface": {"networkInterfaceId": format!("eni-{}", f.hex(17))},
        })
    },
    ..UPJET
};

const S3_BUCKET: Manner = Manner {
    at_provider: |f| {
        let (name, region) = (f.external(), f.region("us-east-1"));
        json!({
            "arn": format!("arn:aws:s3:::{name}"), "bucketDomainName": format!("{name}.s3.amazonaws.com"),
            "bucketRegionalDomainName": format!("{name}.s3.{region}.amazonaws.com"), "hostedZoneId": "Z3AQBSTGFYJSTF",
        })
    },
    connection: |f| {
        let arn = format!("arn:aws:s3:::{}", f.external());
        details([("id", f.external()), ("arn", &arn), ("region", f.region("us-east-1"))])
    },
    ..UPJET
};

/// `endpoint` is host and port, `address` the host alone. The server's name is its identifier; the external name becomes an id
/// of AWS's own.
const RDS_INSTANCE: Manner = Manner {
    rounds: 4,
    id: Id::Replaced("db-"),
    late: |f| json!({"identifier": rds_identifier(f), "iops": 3000, "storageThroughput": 125}),
    at_provider: |f| {
        let host = rds_host(f);
        json!({
            "arn": arn(f, "rds", "db"), "address": host, "endpoint": format!("{host}:5432"), "port": 5432,
            "status": "available", "engineVersionActual": f.param("engineVersion").unwrap_or("16.4"),
        })
    },
    connection: |f| {
        let host = rds_host(f);
        details([
            ("endpoint", &format!("{host}:5432")),
            ("address", &host),
            ("host", &host),
            ("port", "5432"),
            ("username", f.param("username").unwrap_or("postgres")),
            ("password", &f.password()),
        ])
    },
    effects: keep_password,
    ..UPJET
};

/// A generated password goes where the resource's own reference points.
fn keep_password(instance: &mut Value, before: &World, world: &mut World, _: &mut ConnectionDetails) {
    let params = &instance["spec"]["forProvider"];
    let reference = &params["passwordSecretRef"];
    let (Some(name), Some(key)) = (text(reference, &["name"]), text(reference, &["key"])) else { return };
    let own = text(instance, &["metadata", "namespace"]);
    let Some(namespace) = own.or_else(|| text(reference, &["namespace"])) else { return };
    if params["autoGeneratePassword"] == Value::Bool(true) {
        let mut data = world.secret_data(namespace, name);
        data.insert(key.to_owned(), Facts::new(instance, before).password().into_bytes());
        world.put_secret(connection_secret(namespace, name, &data));
    }
}

/// AWS names a server itself where nobody does.
fn rds_identifier(f: &Facts<'_>) -> String {
    f.param("identifier").map_or_else(|| format!("terraform-{}", f.hex(26)), str::to_owned)
}

fn rds_host(f: &Facts<'_>) -> String {
    format!("{}.c{}.{}.rds.amazonaws.com", rds_identifier(f), f.hex(11), f.region("us-east-1"))
}

fn arn(f: &Facts<'_>, service: &str, kind: &str) -> String {
    format!("arn:aws:{service}:{}:{ACCOUNT}:{kind}/{}", f.region("us-east-1"), f.external())
}

/// An address of the range that documentation uses.
fn public_ip(f: &Facts<'_>) -> String {
    format!("203.0.113.{}", f.byte(3).max(1))
}
