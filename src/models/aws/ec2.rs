//! EC2: machines and their firewalls.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector};

impl Managed for Instance {
    const KIND: Kind = Kind::aws("ec2", "Instance").versions("v1beta2", "v1beta1");
    type Status = InstanceStatus;
}

impl Managed for InstanceState {
    const KIND: Kind = Kind::aws("ec2", "InstanceState").untagged().since(3);
    type Status = InstanceStateStatus;
}

impl Managed for SecurityGroup {
    const KIND: Kind = Kind::aws("ec2", "SecurityGroup");
    type Status = SecurityGroupStatus;
}

impl Managed for SecurityGroupIngressRule {
    const KIND: Kind = Kind::aws("ec2", "SecurityGroupIngressRule");
    type Status = SecurityGroupRuleStatus;
}

impl Managed for SecurityGroupEgressRule {
    const KIND: Kind = Kind::aws("ec2", "SecurityGroupEgressRule");
    type Status = SecurityGroupRuleStatus;
}

model! {
    /// A virtual machine. Its external name is the id that AWS assigns, so it must not be set.
    pub struct Instance {
        /// AWS region, for example `us-east-1`.
        pub region: Option<String>,
        /// Id of the machine image, `ami-…`. It belongs to one region.
        pub ami: Option<String>,
        /// Machine type, for example `g4dn.xlarge`.
        pub instance_type: Option<String>,
        /// The machine's subnet. It decides on the availability zone and on a public address.
        pub subnet_id: Option<String>,
        /// Name of the instance profile. The CRD has neither a reference nor a selector for it.
        pub iam_instance_profile: Option<String>,
        /// The machine's security groups.
        pub vpc_security_group_id_selector: Option<Selector>,
        /// Instructions for cloud-init at the first boot, as plain text. AWS shows them to all
        /// callers that may describe the machine. All readers of the resource can read them too.
        pub user_data: Option<String>,
        /// Whether changed user data creates a new machine. Upjet never replaces resources, so a
        /// change is an error if `true`. If `false`, it is a stop and a start.
        pub user_data_replace_on_change: Option<bool>,
        /// Effect of a shutdown from inside: `stop` or `terminate`.
        pub instance_initiated_shutdown_behavior: Option<String>,
        /// The disk that the machine boots from.
        pub root_block_device: Option<RootBlockDevice>,
        /// Access to the machine's metadata service, which returns credentials.
        pub metadata_options: Option<MetadataOptions>,
        /// Tags of the machine.
        pub tags: BTreeMap<String, String>,
    }

    /// The disk that a machine boots from.
    pub struct RootBlockDevice {
        /// Size in GiB. It can only grow.
        pub volume_size: Option<i64>,
        /// Volume type, for example `gp3`.
        pub volume_type: Option<String>,
        /// Whether the disk is encrypted at rest.
        pub encrypted: Option<bool>,
        /// Whether the disk is deleted with the machine.
        pub delete_on_termination: Option<bool>,
        /// Tags of the disk, which is billed separately.
        pub tags: BTreeMap<String, String>,
    }

    /// The instance metadata service, from which software on the machine gets the role's
    /// credentials.
    pub struct MetadataOptions {
        /// `enabled` or `disabled`.
        pub http_endpoint: Option<String>,
        /// `required`: only version 2, which a forged request from inside cannot reach.
        pub http_tokens: Option<String>,
        /// Maximum network hops of an answer: 1 reaches the machine, 2 also its containers.
        pub http_put_response_hop_limit: Option<i64>,
    }

    /// The observed state of a machine.
    pub struct InstanceStatus {
        /// Instance id, `i-…`.
        pub id: Option<String>,
        /// Power state: `pending`, `running`, `stopping`, `stopped`, `shutting-down` or
        /// `terminated`.
        pub instance_state: Option<String>,
        /// Machine type, for example `g4dn.xlarge`.
        pub instance_type: Option<String>,
        /// Public IPv4 address. It changes when the machine stops and starts.
        pub public_ip: Option<String>,
        /// Private IPv4 address.
        pub private_ip: Option<String>,
        /// IPv6 addresses, if the subnet has some.
        pub ipv6_addresses: Vec<String>,
        /// Subnet of the machine.
        pub subnet_id: Option<String>,
    }
}

model! {
    /// Starts or stops a machine. Its external name is the id of the machine, so each machine needs
    /// a resource of its own. Its deletion leaves the machine as it is. The provider reports it
    /// ready after its creation, and also while it changes the machine again: compare
    /// [`InstanceStateStatus::state`].
    pub struct InstanceState {
        /// AWS region.
        pub region: Option<String>,
        /// Id of the machine, `i-…`; it cannot change.
        pub instance_id: Option<String>,
        /// The wanted state: `running` or `stopped`.
        pub state: Option<String>,
    }

    /// The state of a machine.
    pub struct InstanceStateStatus {
        /// The state at the provider's last look: `pending`, `running`, `stopping` or `stopped`.
        pub state: Option<String>,
    }
}

model! {
    /// A firewall of machines. It has no inline rules: each rule is a separate resource.
    pub struct SecurityGroup {
        /// AWS region.
        pub region: Option<String>,
        /// Its name, unique in the VPC.
        pub name: Option<String>,
        /// Its purpose. AWS cannot change it later.
        pub description: Option<String>,
        /// Its VPC.
        pub vpc_id: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of a security group.
    pub struct SecurityGroupStatus {
        /// Group id, `sg-…`.
        pub id: Option<String>,
    }

    /// Allows incoming traffic of one protocol from one network.
    pub struct SecurityGroupIngressRule {
        /// AWS region.
        pub region: Option<String>,
        /// The group of the rule.
        pub security_group_id_selector: Option<Selector>,
        /// The source network, if IPv4.
        pub cidr_ipv4: Option<String>,
        /// The source network, if IPv6.
        pub cidr_ipv6: Option<String>,
        /// `tcp`, `udp`, `icmp`, or `-1` for all protocols.
        pub ip_protocol: Option<String>,
        /// First port.
        pub from_port: Option<i64>,
        /// Last port.
        pub to_port: Option<i64>,
        /// Its purpose.
        pub description: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// Allows outgoing traffic of one protocol to one network.
    pub struct SecurityGroupEgressRule {
        /// AWS region.
        pub region: Option<String>,
        /// The group of the rule.
        pub security_group_id_selector: Option<Selector>,
        /// The destination network, if IPv4.
        pub cidr_ipv4: Option<String>,
        /// The destination network, if IPv6.
        pub cidr_ipv6: Option<String>,
        /// `tcp`, `udp`, `icmp`, or `-1` for all protocols.
        pub ip_protocol: Option<String>,
        /// First port. Absent with protocol `-1`.
        pub from_port: Option<i64>,
        /// Last port. Absent with protocol `-1`.
        pub to_port: Option<i64>,
        /// Its purpose.
        pub description: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of a security group's rule.
    pub struct SecurityGroupRuleStatus {
        /// Rule id, `sgr-…`.
        pub id: Option<String>,
    }
}
