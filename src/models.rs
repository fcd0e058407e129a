//! Managed resources, narrow: each struct *is* a kind's `spec.forProvider`, cut to the fields we set or read.
//!
//! A field that stands in a struct is ours: what a running resource has there is kept (see
//! [`Composition`](crate::compose::Composition)); a field that does not is the provider's own business.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// A managed resource: `Self` is `spec.forProvider`, [`Managed::Status`] is `status.atProvider`.
pub trait Managed: Serialize + DeserializeOwned + JsonSchema {
    /// Which kind it is, in both flavours.
    const KIND: Kind;
    /// What we read of `status.atProvider`; every field is an `Option`.
    type Status: DeserializeOwned + Default + JsonSchema;
}

/// The provider family that serves a kind; its configuration is chosen by Settings' `providerConfigs`.
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

/// A managed resource's kind. Its two flavours differ in group, and unpredictably in version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The kind's name, the same in both flavours: `Instance`.
    pub kind: &'static str,
    /// The first label of the group where the provider has several, as in `ec2` of `ec2.aws.upbound.io`; else empty.
    pub service: &'static str,
    /// The provider family.
    pub provider: Provider,
    /// Newest version of the cluster-scoped kind.
    pub cluster_version: &'static str,
    /// Newest version of the namespaced kind.
    pub namespaced_version: &'static str,
    /// Path below `forProvider` of the map that carries tags or labels, such as `tags` or `settings.userLabels`.
    pub tags: Option<&'static str>,
}
