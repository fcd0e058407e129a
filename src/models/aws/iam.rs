//! IAM: roles and their rights. IAM has no regions.

use std::collections::BTreeMap;

use crate::models::{Kind, Managed, Selector, Unread};

impl Managed for Role {
    const KIND: Kind = Kind::aws("iam", "Role");
    type Status = RoleStatus;
}

impl Managed for RolePolicy {
    const KIND: Kind = Kind::aws("iam", "RolePolicy").untagged().since(2);
    type Status = Unread;
}

impl Managed for RolePolicyAttachment {
    const KIND: Kind = Kind::aws("iam", "RolePolicyAttachment").untagged();
    type Status = RolePolicyAttachmentStatus;
}

impl Managed for InstanceProfile {
    const KIND: Kind = Kind::aws("iam", "InstanceProfile");
    type Status = InstanceProfileStatus;
}

model! {
    /// An IAM role. Its name is the external name.
    pub struct Role {
        /// The principals that may assume the role, as JSON text.
        pub assume_role_policy: Option<String>,
        /// Its purpose.
        pub description: Option<String>,
        /// Whether a deletion of the role also detaches and deletes its policies.
        pub force_detach_policies: Option<bool>,
        /// ARN of the policy that limits all rights of the role.
        pub permissions_boundary: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of a role.
    pub struct RoleStatus {
        /// Its ARN.
        pub arn: Option<String>,
        /// Its name.
        pub id: Option<String>,
    }

    /// A policy that belongs to one role. Its name is the external name.
    pub struct RolePolicy {
        /// The rights of the role, as JSON text.
        pub policy: Option<String>,
        /// The role.
        pub role_selector: Option<Selector>,
    }

    /// Attaches one managed policy to a role.
    pub struct RolePolicyAttachment {
        /// ARN of the policy.
        pub policy_arn: Option<String>,
        /// The role.
        pub role_selector: Option<Selector>,
    }

    /// The observed state of an attachment.
    pub struct RolePolicyAttachmentStatus {
        /// Id in the provider's state.
        pub id: Option<String>,
    }

    /// Lets a machine assume a role. Its name is the external name.
    pub struct InstanceProfile {
        /// The role.
        pub role_selector: Option<Selector>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// The observed state of an instance profile.
    pub struct InstanceProfileStatus {
        /// Its ARN.
        pub arn: Option<String>,
        /// Its name.
        pub id: Option<String>,
    }
}
