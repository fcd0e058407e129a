//! IAM: who may do what. It knows no regions.

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
        /// Who may take the role, as JSON text.
        pub assume_role_policy: Option<String>,
        /// What it is for.
        pub description: Option<String>,
        /// ARN of the policy that caps whatever the role is given.
        pub permissions_boundary: Option<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What a role became.
    pub struct RoleStatus {
        /// Its ARN.
        pub arn: Option<String>,
        /// Its name.
        pub id: Option<String>,
    }

    /// A policy that belongs to one role. Its name is the external name.
    pub struct RolePolicy {
        /// What the role may do, as JSON text.
        pub policy: Option<String>,
        /// The role.
        pub role_selector: Option<Selector>,
    }

    /// Gives a role one managed policy.
    pub struct RolePolicyAttachment {
        /// ARN of the policy.
        pub policy_arn: Option<String>,
        /// The role.
        pub role_selector: Option<Selector>,
    }

    /// What an attachment became.
    pub struct RolePolicyAttachmentStatus {
        /// Id in the provider's state.
        pub id: Option<String>,
    }

    /// What lets a machine take a role. Its name is the external name.
    pub struct InstanceProfile {
        /// The role.
        pub role_selector: Option<Selector>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
    }

    /// What an instance profile became.
    pub struct InstanceProfileStatus {
        /// Its ARN.
        pub arn: Option<String>,
        /// Its name.
        pub id: Option<String>,
    }
}
