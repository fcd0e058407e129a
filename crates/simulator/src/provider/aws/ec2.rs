//! Machines, security groups and networks.

use serde_json::{Value, json};

use super::super::kind_behaviour::{Context, Id, KindBehaviour, Reference, many, one};
use super::super::machines::{Role, is_spot, public_dns};
use super::super::rules::{Rules, needed};
use super::{ACCOUNT, KIND, RULES, arn};

const SECURITY_GROUP: &[Reference] = &[one("securityGroupId", "SecurityGroup")];

/// The error when shrinking a volume.
const SMALLER: &str = "modifying EC2 Volume: operation error EC2: ModifyVolume, https response \
     error StatusCode: 400, api error InvalidParameterValue: New size cannot be smaller than \
     existing size";

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Instance" => INSTANCE,
        "InstanceState" => KindBehaviour {
            id: Id::Of("instanceId"),
            references: const { &[one("instanceId", "Instance")] },
            at_provider: |f| json!({"state": f.param("state").unwrap_or("running")}),
            rules: Rules {
                part_of: Some("instanceId"),
                immutable: &["region", "instanceId"],
                ..RULES
            },
            role: Role::Switch,
            ..KIND
        },
        "SecurityGroup" => KindBehaviour {
            id: Id::Assigned("sg-"),
            references: const { &[one("vpcId", "VPC")] },
            at_provider: |f| json!({"arn": arn(f, "ec2", "security-group"), "ownerId": ACCOUNT}),
            rules: Rules {
                needed_by: const { &[needed("Instance", "/vpcSecurityGroupIds", "dependency")] },
                ..RULES
            },
            ..KIND
        },
        "SecurityGroupIngressRule" | "SecurityGroupEgressRule" => KindBehaviour {
            id: Id::Assigned("sgr-"),
            references: SECURITY_GROUP,
            at_provider: |f| {
                let arn = arn(f, "ec2", "security-group-rule");
                json!({"arn": arn, "securityGroupRuleId": f.external()})
            },
            rules: Rules { part_of: Some("securityGroupId"), ..RULES },
            ..KIND
        },
        "SecurityGroupRule" => {
            KindBehaviour { id: Id::Assigned("sgrule-"), references: SECURITY_GROUP, ..KIND }
        }
        "VPC" => KindBehaviour {
            id: Id::Assigned("vpc-"),
            at_provider: |f| json!({"arn": arn(f, "ec2", "vpc")}),
            ..KIND
        },
        "Subnet" => KindBehaviour {
            id: Id::Assigned("subnet-"),
            references: const { &[one("vpcId", "VPC")] },
            at_provider: |f| json!({"arn": arn(f, "ec2", "subnet")}),
            ..KIND
        },
        "EBSVolume" => KindBehaviour { id: Id::Assigned("vol-"), ..KIND },
        "EIP" => KindBehaviour {
            id: Id::Assigned("eipalloc-"),
            references: const { &[one("instance", "Instance")] },
            at_provider: |f| json!({"publicIp": public_ip(f), "allocationId": f.external()}),
            ..KIND
        },
        _ => KIND,
    }
}

/// EC2 creates a machine immediately. Its ID and addresses are known once it runs.
const INSTANCE: KindBehaviour = KindBehaviour {
    rounds: 3,
    id: Id::Assigned("i-"),
    references: &[
        one("subnetId", "Subnet"),
        many("vpcSecurityGroupIds", "vpcSecurityGroupId", "SecurityGroup"),
        many("securityGroups", "securityGroup", "SecurityGroup"),
    ],
    at_provider: |f| {
        let private = format!("10.0.{}.{}", f.byte(1), f.byte(2));
        let subnet =
            f.param("subnetId").map_or_else(|| format!("subnet-{}", f.hex(17)), str::to_owned);
        let mut seen = json!({
            "arn": arn(f, "ec2", "instance"), "instanceState": "running", "privateIp": private,
            "privateDns": format!("ip-{}.ec2.internal", private.replace('.', "-")),
            "subnetId": subnet,
        });
        if f.object["spec"]["forProvider"]["associatePublicIpAddress"] != Value::Bool(false) {
            let public = public_ip(f);
            seen["publicDns"] = json!(public_dns(&public));
            seen["publicIp"] = json!(public);
        }
        if is_spot(&f.object["spec"]["forProvider"]) {
            seen["instanceLifecycle"] = json!("spot");
            seen["spotInstanceRequestId"] = json!(format!("sir-{}", f.hex(8)));
        }
        seen
    },
    rules: Rules {
        computed: &["subnetId"],
        grows: &[("rootBlockDevice.volumeSize", SMALLER)],
        refused: Some(former_interface),
        state: Some("instanceState"),
        restarts: &["instanceType", "userData", "userDataBase64"],
        ..RULES
    },
    role: Role::Machine,
    ..KIND
};

/// A machine without a subnet that is created again still refers to the network interface of its
/// predecessor.
fn former_interface(parameters: &Value) -> Option<(&'static str, String)> {
    let id = parameters["primaryNetworkInterface"]["networkInterfaceId"].as_str()?;
    parameters["subnetId"].is_null().then(|| ("interface gone", id.to_owned()))
}

/// An address of the range reserved for documentation.
fn public_ip(f: &Context<'_>) -> String {
    format!("203.0.113.{}", f.byte(3).max(1))
}
