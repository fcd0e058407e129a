//! Cloud rights as files for the platform team: IAM policies, custom roles of Google Cloud and role
//! definitions of Azure. They follow from the kinds that each API composes.

mod aws;
mod azure;
mod gcp;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::models::aws::{cloudfront, ec2, eks, iam, rds, s3};
use crate::models::{Kind, Managed, Provider, azure as aks, gcp as google};

/// An API, or a component of an API with a cloud of its own. The platform team grants the rights of
/// the components that it uses.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Name of the API, for example `unified-environment`.
    pub api: &'static str,
    /// Name of the component, for example `database`. Empty if the API has only one.
    pub name: &'static str,
    /// The kinds that the component composes, also in earlier schema revisions.
    pub kinds: &'static [Kind],
}

/// The components of all APIs.
pub static PARTS: &[Part] = &[
    Part {
        api: "gpu-workspace",
        name: "",
        kinds: &[
            ec2::Instance::KIND,
            ec2::InstanceState::KIND,
            ec2::SecurityGroup::KIND,
            ec2::SecurityGroupIngressRule::KIND,
            ec2::SecurityGroupEgressRule::KIND,
            iam::Role::KIND,
            iam::RolePolicy::KIND,
            iam::RolePolicyAttachment::KIND,
            iam::InstanceProfile::KIND,
        ],
    },
    Part {
        api: "application-environment",
        name: "",
        kinds: &[
            google::Cluster::KIND,
            google::NodePool::KIND,
            google::DatabaseInstance::KIND,
            google::Database::KIND,
            google::User::KIND,
            google::Bucket::KIND,
            google::BucketIamMember::KIND,
            google::ProjectIamMember::KIND,
        ],
    },
    Part {
        api: "unified-environment",
        name: "site",
        kinds: &[
            s3::Bucket::KIND,
            s3::BucketOwnershipControls::KIND,
            s3::BucketPublicAccessBlock::KIND,
            s3::BucketServerSideEncryptionConfiguration::KIND,
            s3::BucketPolicy::KIND,
            cloudfront::OriginAccessControl::KIND,
            cloudfront::Function::KIND,
            cloudfront::Distribution::KIND,
        ],
    },
    Part { api: "unified-environment", name: "database", kinds: &[rds::Instance::KIND] },
    Part {
        api: "virtual-environment",
        name: "eks",
        kinds: &[
            eks::Cluster::KIND,
            eks::NodeGroup::KIND,
            eks::ClusterAuth::KIND,
            eks::Addon::KIND,
            iam::Role::KIND,
            iam::RolePolicyAttachment::KIND,
        ],
    },
    Part {
        api: "virtual-environment",
        name: "gke",
        kinds: &[google::Cluster::KIND, google::NodePool::KIND],
    },
    Part { api: "virtual-environment", name: "aks", kinds: &[aks::KubernetesCluster::KIND] },
];

impl Part {
    /// The component's cloud.
    pub fn cloud(&self) -> Option<Provider> {
        self.kinds.first().map(|kind| kind.provider)
    }

    /// The name of the component's files: `virtual-environment-eks`.
    fn file(&self) -> String {
        let dash = if self.name.is_empty() { "" } else { "-" };
        format!("{}{dash}{}", self.api, self.name)
    }
}

/// A cloud with rights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon Web Services
    Aws,
    /// Google Cloud
    Gcp,
    /// Microsoft Azure
    Azure,
}

impl Cloud {
    /// All clouds.
    pub const ALL: [Self; 3] = [Self::Aws, Self::Gcp, Self::Azure];
}

impl fmt::Display for Cloud {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
        })
    }
}

impl FromStr for Cloud {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |cloud: &Self| cloud.to_string() == text;
        let found = Self::ALL.into_iter().find(named);
        found.ok_or_else(|| format!("{text:?}: allowed: aws, gcp, azure"))
    }
}

/// A file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its path: `aws/gpu-workspace.json`.
    pub path: String,
    /// Its JSON document.
    pub body: Value,
}

/// The files of a cloud. `settings` is a body of Settings, for the values that limit the rights.
pub fn documents(cloud: Cloud, settings: &Value) -> Vec<Document> {
    let named = match cloud {
        Cloud::Aws => aws::documents(settings),
        Cloud::Gcp => gcp::documents(),
        Cloud::Azure => azure::documents(settings),
    };
    let document = |(name, body)| Document { path: format!("{cloud}/{name}.json"), body };
    named.into_iter().map(document).collect()
}

/// The components in a cloud.
fn parts(provider: Provider) -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(move |part| part.cloud() == Some(provider))
}
