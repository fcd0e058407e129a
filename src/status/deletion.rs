//! The resources that a deletion of the environment deletes, and the resources that it keeps.

use std::collections::BTreeSet;

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compose::{Desired, is_orphan};
use crate::models::{Provider, gcp};
use crate::observe::{as_running, status_of};
use crate::power::Composed;
use crate::value::{Object, at, text};

/// Resources that a deletion of the environment deletes, and resources that it keeps. The form is
/// `{deletes: [{slot, kind, name, hasData}], keeps: [{slot, kind, name, until}]}`. Both lists are
/// sorted by slot. Every created resource is in one of the two lists. Neither list contains Usages,
/// provider configs, objects that are only observed, and resources that still wait to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnDeletion {
    /// Deleted resources.
    pub deletes: Vec<Deleted>,
    /// Resources that stay when the environment is deleted. Resources in a cloud may continue to
    /// cost money.
    pub keeps: Vec<Kept>,
}

/// A resource that a deletion of the environment deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// Permanent name of the resource in the environment.
    pub slot: String,
    /// Kubernetes kind of the resource.
    pub kind: String,
    /// Name or ID of the resource in the cloud. For a Kubernetes object, the name in its cluster.
    /// Absent until the name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if user data is deleted with the resource. True for databases, buckets, machines with a
    /// disk, and clusters.
    pub has_data: bool,
}

/// An item that stays when the environment is deleted. The item is a resource, or a leftover of a
/// deleted resource, for example a final snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Permanent name of the resource in the environment.
    pub slot: String,
    /// Kind of the kept item: the resource's Kubernetes kind, or for example Snapshot.
    pub kind: String,
    /// Name or ID of the kept item in the cloud. Absent until the name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// End of the retention, in words that follow "until": "deleted by hand", or for example "7
    /// days after the deletion". Absent if the end is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The end of the retention of items that are not deleted automatically.
const BY_HAND: &str = "deleted by hand";

/// Kinds with user data: the provider family, the first label of its groups if it has several
/// groups, and the kind.
const WITH_DATA: &[(Provider, &str, &str)] = &[
    (Provider::Aws, "ec2", "EBSSnapshot"),
    (Provider::Aws, "ec2", "EBSVolume"),
    (Provider::Aws, "ec2", "Instance"),
    (Provider::Aws, "eks", "Cluster"),
    (Provider::Aws, "rds", "Instance"),
    (Provider::Aws, "s3", "Bucket"),
    (Provider::Azure, "containerservice", "KubernetesCluster"),
    (Provider::Gcp, "container", "Cluster"),
    (Provider::Gcp, "sql", "Database"),
    (Provider::Gcp, "sql", "DatabaseInstance"),
    (Provider::Gcp, "storage", "Bucket"),
    (Provider::Sql, "postgresql", "Database"),
];

/// Charts that are clusters. Their releases have user data, like a managed cluster.
const CLUSTER_CHARTS: &[&str] = &["vcluster"];

/// Kinds that exist only inside a resource of another kind. They are deleted with that resource,
/// regardless of their own policy.
const INSIDE: &[(&str, &str)] = &[
    ("Addon", "Cluster"),
    ("ClusterAuth", "Cluster"),
    ("Database", "DatabaseInstance"),
    ("Grant", "Database"),
    ("NodePool", "Cluster"),
    ("RolePolicyAttachment", "Role"),
    ("User", "DatabaseInstance"),
];

impl Composed<'_> {
    /// The resources that a deletion would delete and keep once this answer is applied.
    ///
    /// `Orphan` means that the provider keeps the resource in the cloud. A resource inside another
    /// deleted resource is deleted all the same, for example all objects in a cluster that the
    /// environment composes.
    pub(super) fn on_deletion(&self) -> OnDeletion {
        let mut lists = OnDeletion::default();
        let clusters = self.composed_configs();
        for (slot, desired) in &self.desired {
            if !desired.counted || is_only_observed(&desired.object) {
                continue;
            }
            let kind = desired.kind();
            let name = self.name_on_deletion(slot, &desired.object);
            if self.is_kept(desired, &clusters) {
                lists.keeps.push(kept(slot, kind, name, BY_HAND));
                continue;
            }
            let observed = self.observation.resources.get(slot).map(|seen| &seen.object);
            lists.keeps.extend(left_behind(slot, &desired.object, observed, name.as_deref()));
            let has_data = has_data(&desired.object);
            lists.deletes.push(Deleted {
                slot: slot.clone(),
                kind: kind.to_owned(),
                name,
                has_data,
            });
        }
        lists
    }

    fn is_kept(&self, desired: &Desired, clusters: &BTreeSet<&str>) -> bool {
        let object = &desired.object;
        let config = text(object, &["spec", "providerConfigRef", "name"]);
        if !is_orphan(object, self.observation.xr.scope)
            || config.is_some_and(|config| clusters.contains(config))
        {
            return false;
        }
        let kind = text(object, &["kind"]).unwrap_or_default();
        let Some((_, outer)) = INSIDE.iter().find(|(inner, _)| *inner == kind) else { return true };
        let outer = self.desired.values().filter(|one| text(&one.object, &["kind"]) == Some(outer));
        outer.into_iter().all(|outer| is_orphan(&outer.object, self.observation.xr.scope))
    }

    /// The provider configs that the environment composes. They connect to its own cluster.
    fn composed_configs(&self) -> BTreeSet<&str> {
        let configs = self
            .desired
            .values()
            .filter(|one| text(&one.object, &["kind"]) == Some("ProviderConfig"));
        configs.filter_map(|config| text(&config.object, &["metadata", "name"])).collect()
    }

    /// The name of a resource for people: its name in the cloud or, without one, its name in the
    /// cluster.
    fn name_on_deletion(&self, slot: &str, object: &Object) -> Option<String> {
        let wrapped = text(object, &["spec", "forProvider", "manifest", "metadata", "name"]);
        let asked = || text(object, &["metadata", "annotations", EXTERNAL_NAME]);
        let observed = || self.observation.resources.get(slot)?.annotation(EXTERNAL_NAME);
        // A managed resource has no name in its cloud before its provider reports one.
        let own = || {
            let is_native = at(object, &["spec", "forProvider"]).is_none();
            text(object, &["metadata", "name"]).filter(|_| is_native)
        };
        let name = wrapped.or_else(asked).or_else(observed).or_else(own);
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    }
}

fn kept(slot: &str, kind: &str, name: Option<String>, until: &str) -> Kept {
    Kept { slot: slot.to_owned(), kind: kind.to_owned(), name, until: Some(until.to_owned()) }
}

/// Whether the provider only observes a resource, also while the environment runs.
fn is_only_observed(object: &Object) -> bool {
    let running = as_running(object);
    let policies = at(running.as_ref().unwrap_or(object), &["spec", "managementPolicies"])
        .and_then(Value::as_array);
    policies.is_some_and(|all| !all.is_empty() && all.iter().all(|one| one == "Observe"))
}

pub(crate) fn has_data(object: &Object) -> bool {
    let is = |(provider, service, kind): &(Provider, &str, &str)| {
        is_of(object, *provider, service, kind)
    };
    WITH_DATA.iter().any(is)
        || is_of(object, Provider::Helm, "", "Release")
            && text(object, &["spec", "forProvider", "chart", "name"])
                .is_some_and(|chart| CLUSTER_CHARTS.contains(&chart))
}

/// Whether an object has a kind, in the claims API or the namespaced API.
fn is_of(object: &Object, provider: Provider, service: &str, kind: &str) -> bool {
    if text(object, &["kind"]) != Some(kind) {
        return false;
    }
    let (family, domain) = provider.group();
    let dot = if service.is_empty() { "" } else { "." };
    let group = text(object, &["apiVersion"]).map(api_version::group);
    let of_group = |group: &str| {
        let rest = group.strip_prefix(service).and_then(|rest| rest.strip_prefix(dot));
        let rest = rest.and_then(|rest| rest.strip_prefix(family)?.strip_prefix('.'));
        rest.is_some_and(|rest| rest.strip_prefix("m.").unwrap_or(rest) == domain)
    };
    group.is_some_and(of_group)
}

/// The item that the cloud keeps after a resource was deleted.
fn left_behind(
    slot: &str,
    object: &Object,
    observed: Option<&Object>,
    name: Option<&str>,
) -> Option<Kept> {
    let asked = |path: &[&str]| at(object, &[&["spec", "forProvider"], path].concat());
    if is_of(object, Provider::Aws, "rds", "Instance") {
        let snapshot = asked(&["finalSnapshotIdentifier"]).and_then(Value::as_str);
        let skips = asked(&["skipFinalSnapshot"]).and_then(Value::as_bool).unwrap_or(false);
        return snapshot
            .filter(|_| !skips)
            .map(|snapshot| kept(slot, "Snapshot", Some(snapshot.to_owned()), BY_HAND));
    }
    if is_of(object, Provider::Aws, "eks", "Cluster") {
        let logs = asked(&["enabledClusterLogTypes"]).and_then(Value::as_array);
        let group = name.map(|name| format!("/aws/eks/{name}/cluster"));
        return logs
            .filter(|logs| !logs.is_empty())
            .map(|_| kept(slot, "LogGroup", group, BY_HAND));
    }
    if is_of(object, Provider::Gcp, "storage", "Bucket") {
        let policy = observed.and_then(status_of::<gcp::Bucket>)?.soft_delete_policy;
        let seconds = policy.and_then(|policy| policy.retention_duration_seconds);
        let days = seconds.map(|seconds| seconds / (24 * 60 * 60)).filter(|days| *days > 0)?;
        let until = format!("{days} days after the deletion");
        return Some(kept(slot, "SoftDeletedObjects", name.map(str::to_owned), &until));
    }
    None
}
