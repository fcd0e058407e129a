//! EC2: machines, and the firewalls around them.

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
    /// A virtual machine. Its external name is the id that AWS assigns: never set it.
    pub struct Instance {
        /// AWS region, such as `us-east-1`.
        pub region: Option<String>,
        /// Id of the machine image, `ami-…`; it belongs to one region.
        pub ami: Option<String>,
        /// Machine type, such as `g4dn.xlarge`.
        pub instance_type: Option<String>,
        /// Subnet to start in; it decides on the availability zone and on a public address.
        pub subnet_id: Option<String>,
        /// Name of the instance profile; the CRD has neither a reference nor a selector for it.
        pub iam_instance_profile: Option<String>,
        /// Which security groups guard the machine.
        pub vpc_security_group_id_selector: Option<Selector>,
        /// What cloud-init does at the first boot, as plain text: AWS shows it to whoever may
        /// describe the machine anyway, and everyone who looks at the resource can read what the
        /// machine was told.
        pub user_data: Option<String>,
        /// Whether changed user data makes a new machine. Upjet never replaces anything, so `true`
        /// would make a change an error, and `false` makes it a stop and a start.
        pub user_data_replace_on_change: Option<bool>,
        /// Effect of a shutdown from inside: `stop` or `terminate`.
        pub instance_initiated_shutdown_behavior: Option<String>,
        /// The disk that the machine boots from.
        pub root_block_device: Option<RootBlockDevice>,
        /// Who can ask the machine's metadata service for credentials.
        pub metadata_options: Option<MetadataOptions>,
        /// Tags of the machine.
        pub tags: BTreeMap<String, String>,
    }

    /// The disk that a machine boots from.
    pub struct RootBlockDevice {
        /// Size in GiB; it can only grow.
        pub volume_size: Option<i64>,
        /// Volume type, such as `gp3`.
        pub volume_type: Option<String>,
        /// Whether the disk is encrypted at rest.
        pub encrypted: Option<bool>,
        /// Whether the disk goes with the machine.
        pub delete_on_termination: Option<bool>,
        /// Tags of the disk, which has a bill of its own.
        pub tags: BTreeMap<String, String>,
    }

    /// The instance metadata service, from which software on the machine gets the role's
    /// credentials.
    pub struct MetadataOptions {
        /// `enabled` or `disabled`.
        pub http_endpoint: Option<String>,
        /// `required`: version 2 only, which a forged request from inside cannot reach.
        pub http_tokens: Option<String>,
        /// Network hops an answer may travel: 1 reaches the machine, 2 its containers too.
        pub http_put_response_hop_limit: Option<i64>,
    }

    /// What a machine became.
    pub struct InstanceStatus {
        /// Instance id, `i-…`.
        pub id: Option<String>,
        /// Public IPv4 address; it changes when the machine stops and starts.
        pub public_ip: Option<String>,
        /// Private IPv4 address.
        pub private_ip: Option<String>,
        /// IPv6 addresses, where the subnet has some.
        pub ipv6_addresses: Vec<String>,
        /// Subnet that the machine is in.
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
    /// A firewall around machines. It has no inline rules: each rule is a resource of its own.
    pub struct SecurityGroup {
        /// AWS region.
        pub region: Option<String>,
        /// Its name, unique in the VPC.
        pub name: Option<String>,
        /// What it is for; AWS cannot change it later.
        pub description: Option<String>,
        /// The VPC it belongs to.
        pub vpc_id: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What a security group became.
    pub struct SecurityGroupStatus {
        /// Group id, `sg-…`.
        pub id: Option<String>,
    }

    /// Lets traffic of one kind in from one network.
    pub struct SecurityGroupIngressRule {
        /// AWS region.
        pub region: Option<String>,
        /// The group that the rule belongs to.
        pub security_group_id_selector: Option<Selector>,
        /// Where traffic may come from, if IPv4.
        pub cidr_ipv4: Option<String>,
        /// Where traffic may come from, if IPv6.
        pub cidr_ipv6: Option<String>,
        /// `tcp`, `udp`, `icmp`, or `-1` for everything.
        pub ip_protocol: Option<String>,
        /// First port.
        pub from_port: Option<i64>,
        /// Last port.
        pub to_port: Option<i64>,
        /// What it is for.
        pub description: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// Lets traffic of one kind out to one network.
    pub struct SecurityGroupEgressRule {
        /// AWS region.
        pub region: Option<String>,
        /// The group that the rule belongs to.
        pub security_group_id_selector: Option<Selector>,
        /// Where traffic may go, if IPv4.
        pub cidr_ipv4: Option<String>,
        /// Where traffic may go, if IPv6.
        pub cidr_ipv6: Option<String>,
        /// `tcp`, `udp`, `icmp`, or `-1` for everything.
        pub ip_protocol: Option<String>,
        /// First port; none with protocol `-1`.
        pub from_port: Option<i64>,
        /// Last port; none with protocol `-1`.
        pub to_port: Option<i64>,
        /// What it is for.
        pub description: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What a rule of a security group became.
    pub struct SecurityGroupRuleStatus {
        /// Rule id, `sgr-…`.
        pub id: Option<String>,
    }
}
