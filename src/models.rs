//! Managed resources. Each struct *is* a kind's `spec.forProvider`, reduced to the fields that we
//! set or read.
//!
//! A field in a struct is ours: its observed value is preserved (see
//! [`Composer`](crate::compose::Composer)). Other fields belong to the provider.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[macro_use]
mod declare;

pub mod aws;
pub mod azure;
pub mod gcp;
pub mod helm;
pub mod kubernetes;
pub mod sql;

/// A managed resource: `Self` is `spec.forProvider`, [`Managed::Status`] is `status.atProvider`.
pub trait Managed: Serialize + DeserializeOwned + JsonSchema {
    /// The kind, for the claims API and the namespaced API.
    const KIND: Kind;
    /// The fields of `status.atProvider` that we read. Every field is an `Option`.
    type Status: DeserializeOwned + Default + JsonSchema;
}

/// The scope of an XR and of its resources. It decides the envelope of every resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The claims API: a cluster-scoped XR of an XRD v1, and cluster-scoped managed resources.
    LegacyCluster,
    /// The namespaced API: all objects are in the XR's namespace.
    Namespaced,
}

/// The provider family that serves a kind. `providerConfigs` of Settings has its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// provider-upjet-aws
    Aws,
    /// provider-upjet-gcp
    Gcp,
    /// provider-upjet-azure
    Azure,
    /// provider-kubernetes
    Kubernetes,
    /// provider-helm
    Helm,
    /// provider-sql
    Sql,
}

/// A managed resource's kind. Its group and its version depend on the scope, and its versions
/// follow no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The kind's name, the same in both scopes: `Instance`.
    pub kind: &'static str,
    /// The first label of the group if the provider has several groups, as `ec2` in
    /// `ec2.aws.upbound.io`. Otherwise empty.
    pub service: &'static str,
    /// The provider family.
    pub provider: Provider,
    /// Newest version of the cluster-scoped kind.
    pub cluster_version: &'static str,
    /// Newest version of the namespaced kind.
    pub namespaced_version: &'static str,
    /// Path below `forProvider` of the map with tags or labels, for example `tags` or
    /// `settings.userLabels`.
    pub tags: Option<&'static str>,
    /// Fields of `spec` besides `forProvider` that we set, for example `readiness`.
    pub spec_fields: &'static [&'static str],
    /// Whether the provider may copy values that the cloud chose into `spec.forProvider`. False for
    /// clusters with versions that the cloud raises. Their provider would permanently request the
    /// copied version again. Only a kind that is found by its name can be false. If the cloud
    /// assigns an id, late initialization stores the id in the annotation.
    pub late_initialized: bool,
    /// The schema revision that added the kind. Environments of earlier revisions do not have it.
    pub since: u32,
}

impl Kind {
    /// A kind of `<service>.aws.upbound.io`. Like most of them, it is v1beta1 in both scopes and
    /// has `tags`.
    pub const fn aws(service: &'static str, kind: &'static str) -> Self {
        Self {
            kind,
            service,
            provider: Provider::Aws,
            cluster_version: "v1beta1",
            namespaced_version: "v1beta1",
            tags: Some("tags"),
            spec_fields: &[],
            late_initialized: true,
            since: 1,
        }
    }

    /// A kind of `<service>.gcp.upbound.io`. Like most of them, it is v1beta2 if cluster-scoped and
    /// v1beta1 if namespaced. The path of GCP's labels depends on the kind: see [`Kind::labelled`].
    pub const fn gcp(service: &'static str, kind: &'static str) -> Self {
        Self {
            provider: Provider::Gcp,
            cluster_version: "v1beta2",
            tags: None,
            ..Self::aws(service, kind)
        }
    }

    /// A kind of `<service>.azure.upbound.io`: v1beta2 if cluster-scoped, v1beta1 if namespaced,
    /// with `tags`.
    pub const fn azure(service: &'static str, kind: &'static str) -> Self {
        Self { provider: Provider::Azure, cluster_version: "v1beta2", ..Self::aws(service, kind) }
    }

    /// A kind of `kubernetes.crossplane.io`: v1alpha2 if cluster-scoped, v1alpha1 if namespaced.
    pub const fn kubernetes(kind: &'static str) -> Self {
        Self { provider: Provider::Kubernetes, ..Self::aws("", kind) }
            .versions("v1alpha2", "v1alpha1")
            .untagged()
    }

    /// A kind of `helm.crossplane.io`, v1beta1 in both scopes.
    pub const fn helm(kind: &'static str) -> Self {
        Self { provider: Provider::Helm, ..Self::aws("", kind) }.untagged()
    }

    /// A kind of `postgresql.sql.crossplane.io`, v1alpha1 in both scopes.
    pub const fn sql(kind: &'static str) -> Self {
        Self { provider: Provider::Sql, ..Self::aws("postgresql", kind) }
            .versions("v1alpha1", "v1alpha1")
            .untagged()
    }

    /// The same kind in other versions.
    pub const fn versions(self, cluster: &'static str, namespaced: &'static str) -> Self {
        Self { cluster_version: cluster, namespaced_version: namespaced, ..self }
    }

    /// The same kind, with its tags or labels at `path` below `forProvider`.
    pub const fn labelled(self, path: &'static str) -> Self {
        Self { tags: Some(path), ..self }
    }

    /// The same kind, without tags and labels.
    pub const fn untagged(self) -> Self {
        Self { tags: None, ..self }
    }

    /// The same kind, without late initialization.
    pub const fn without_late_initialization(self) -> Self {
        Self { late_initialized: false, ..self }
    }

    /// The same kind, added by a schema revision.
    pub const fn since(self, revision: u32) -> Self {
        Self { since: revision, ..self }
    }

    /// The same kind, with fields of `spec` besides `forProvider` that we set.
    pub const fn spec_fields(self, fields: &'static [&'static str]) -> Self {
        Self { spec_fields: fields, ..self }
    }
}

impl Kind {
    /// The `apiVersion` of this kind in a scope: `ec2.aws.m.upbound.io/v1beta1`.
    pub fn api_version(&self, scope: Scope) -> String {
        format!("{}/{}", self.group(scope), self.version(scope))
    }

    /// The API group of this kind in a scope: `ec2.aws.upbound.io`, `ec2.aws.m.upbound.io`.
    pub fn group(&self, scope: Scope) -> String {
        let dot = if self.service.is_empty() { "" } else { "." };
        let modern = if scope == Scope::Namespaced { "m." } else { "" };
        let (family, domain) = self.provider.group();
        format!("{}{dot}{family}.{modern}{domain}", self.service)
    }

    /// The newest version of this kind in a scope.
    pub fn version(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::LegacyCluster => self.cluster_version,
            Scope::Namespaced => self.namespaced_version,
        }
    }
}

impl Provider {
    /// Family and domain of its groups. Namespaced groups have an `m` between them.
    pub(crate) fn group(self) -> (&'static str, &'static str) {
        match self {
            Self::Aws => ("aws", "upbound.io"),
            Self::Gcp => ("gcp", "upbound.io"),
            Self::Azure => ("azure", "upbound.io"),
            Self::Kubernetes => ("kubernetes", "crossplane.io"),
            Self::Helm => ("helm", "crossplane.io"),
            Self::Sql => ("sql", "crossplane.io"),
        }
    }

    /// A tag in the form that this cloud accepts. Google's labels have at most 63 lowercase
    /// letters, digits, `_` and `-`, and a key begins with a letter. Azure's keys must not contain
    /// `<>%&\?/`.
    pub fn tag(self, key: &str, value: &str) -> (String, String) {
        let label = |text: &str| -> String {
            let fit = |c: char| {
                let c = c.to_ascii_lowercase();
                if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' { c } else { '_' }
            };
            text.chars().map(fit).take(63).collect()
        };
        match self {
            Self::Gcp if key.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                (label(key), label(value))
            }
            Self::Gcp => (label(&format!("x{key}")), label(value)),
            Self::Azure => {
                (key.replace(['<', '>', '%', '&', '\\', '?', '/'], "_"), value.to_owned())
            }
            _ => (key.to_owned(), value.to_owned()),
        }
    }
}

/// Selects the resource that a field refers to by its labels, for example in
/// `vpcSecurityGroupIdSelector`. The provider waits until the selected resource exists, so
/// resources may be created in any order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Only resources of the same composite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_controller_ref: Option<bool>,
    /// Only resources with these labels in their metadata.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// Prefix of the annotations that record a user's choices for resolved fields.
pub const CHOICE_PREFIX: &str = "paved-road.fn.crossplane.io/";

/// The only resource of the wanted kind in the same composite.
pub const SIBLING: Selector =
    Selector { match_controller_ref: Some(true), match_labels: BTreeMap::new() };

/// The resource with these labels, among several resources of the wanted kind in the same
/// composite.
pub fn siblings<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Selector {
    let match_labels =
        labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Selector { match_labels, ..SIBLING }
}

/// A reference to a secret value that a provider reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyRef {
    /// The Secret's name.
    pub name: String,
    /// Its namespace. It is required in the claims API. The namespaced API has no such field, and
    /// reads the resource's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key in its `data`.
    pub key: String,
}

model! {
    /// `status.atProvider` of a kind, if we read only its conditions.
    pub struct Unread {}
}

/// One model as data: the fields of a provider's CRD that our code depends on.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// The kind.
    pub kind: Kind,
    /// JSON schema of the fields of `spec.forProvider` that we write.
    pub for_provider: fn() -> Schema,
    /// JSON schema of the fields of `status.atProvider` that we read.
    pub status: fn() -> Schema,
}

impl KindInfo {
    const fn for_model<M: Managed>() -> Self {
        Self { kind: M::KIND, for_provider: inline_schema::<M>, status: inline_schema::<M::Status> }
    }
}

/// All models. The slices of the providers' CRDs, and the test that the models' fields exist there,
/// use this list.
pub static KINDS: &[KindInfo] = &[
    KindInfo::for_model::<aws::ec2::Instance>(),
    KindInfo::for_model::<aws::ec2::InstanceState>(),
    KindInfo::for_model::<aws::ec2::SecurityGroup>(),
    KindInfo::for_model::<aws::ec2::SecurityGroupIngressRule>(),
    KindInfo::for_model::<aws::ec2::SecurityGroupEgressRule>(),
    KindInfo::for_model::<aws::iam::Role>(),
    KindInfo::for_model::<aws::iam::RolePolicy>(),
    KindInfo::for_model::<aws::iam::RolePolicyAttachment>(),
    KindInfo::for_model::<aws::iam::InstanceProfile>(),
    KindInfo::for_model::<aws::s3::Bucket>(),
    KindInfo::for_model::<aws::s3::BucketOwnershipControls>(),
    KindInfo::for_model::<aws::s3::BucketPublicAccessBlock>(),
    KindInfo::for_model::<aws::s3::BucketServerSideEncryptionConfiguration>(),
    KindInfo::for_model::<aws::s3::BucketPolicy>(),
    KindInfo::for_model::<aws::cloudfront::OriginAccessControl>(),
    KindInfo::for_model::<aws::cloudfront::Function>(),
    KindInfo::for_model::<aws::cloudfront::Distribution>(),
    KindInfo::for_model::<aws::rds::Instance>(),
    KindInfo::for_model::<aws::eks::Cluster>(),
    KindInfo::for_model::<aws::eks::NodeGroup>(),
    KindInfo::for_model::<aws::eks::ClusterAuth>(),
    KindInfo::for_model::<aws::eks::Addon>(),
    KindInfo::for_model::<azure::KubernetesCluster>(),
    KindInfo::for_model::<gcp::Cluster>(),
    KindInfo::for_model::<gcp::NodePool>(),
    KindInfo::for_model::<gcp::DatabaseInstance>(),
    KindInfo::for_model::<gcp::Database>(),
    KindInfo::for_model::<gcp::User>(),
    KindInfo::for_model::<gcp::Bucket>(),
    KindInfo::for_model::<gcp::BucketIamMember>(),
    KindInfo::for_model::<gcp::ProjectIamMember>(),
    KindInfo::for_model::<kubernetes::Object>(),
    KindInfo::for_model::<helm::Release>(),
    KindInfo::for_model::<sql::Database>(),
    KindInfo::for_model::<sql::Role>(),
    KindInfo::for_model::<sql::Grant>(),
];

/// A schema without `$ref`, for comparisons with a CRD's schema, which has none either.
fn inline_schema<T: JsonSchema>() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

/// A field without a value is left out, because server-side apply takes ownership of all present
/// fields.
fn is_absent<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
