//! Our clusters with a version of Kubernetes in their spec. In an earlier release, the provider
//! copied the version there.
//!
//! The provider requests that version permanently. After the cloud has upgraded the cluster, the
//! cloud rejects the request. The cluster is then out of sync, and no other field can change.

use kube::api::DynamicObject;
use kube::core::ApiResource;

use super::check::Check;
use super::objects::{first, full_name};
use super::snapshot::{ClusterSnapshot, Clusters, ListResult};
use crate::style::harmless;

/// A line for each kind with clusters that have their version in their spec.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    snapshot.clusters.iter().filter_map(Clusters::check).collect()
}

impl Clusters {
    fn check(&self) -> Option<Check> {
        let ApiResource { group, kind, plural, .. } = &self.resource;
        let what = format!("{kind}.{group}");
        let objects = match &self.objects {
            ListResult::All(objects) => objects,
            ListResult::Failed(_) => return Some(self.objects.unread(what)),
            ListResult::Hidden | ListResult::NoSuchKind => return None,
        };
        let versions: Vec<String> = objects.iter().filter_map(|one| self.version(one)).collect();
        if versions.is_empty() {
            return None;
        }
        let (named, field) = (first(&versions), self.field);
        let found = format!(
            "spec.forProvider.{field} of {named}: the provider requests this version \
             permanently, even after the cloud has upgraded the cluster. Remove the field: \
             kubectl patch {plural}.{group} NAME \
             --type=json -p='[{{\"op\":\"remove\",\"path\":\"/spec/forProvider/{field}\"}}]'"
        );
        Some(Check::open(what, found))
    }

    /// A cluster's name, and the version in its spec.
    fn version(&self, cluster: &DynamicObject) -> Option<String> {
        let version = cluster.data["spec"]["forProvider"][self.field].as_str()?;
        Some(format!("{} ({})", full_name(cluster), harmless(version)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use function_paved_road::models::Kind;
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::{CLUSTERS, cluster_kinds};
    use crate::style::Mark;

    #[test]
    fn cluster_with_its_version_in_its_spec_is_named() {
        let told = |params: Value| {
            let (resource, field) = cluster_kinds().nth(1).unwrap();
            let cluster = json!({"metadata": {"name": "demo-1f53a", "namespace": "team"},
                                 "spec": {"forProvider": params}});
            check(&ClusterSnapshot {
                clusters: vec![Clusters { resource, field, objects: objects(&[cluster]) }],
                ..snapshot()
            })
        };
        assert_eq!(told(json!({"region": "eu-west-1"})), []);
        let checks = told(json!({"version": "1.34"}));
        assert_eq!(
            (checks[0].mark, checks[0].what.as_str()),
            (Mark::Busy, "Cluster.eks.aws.m.upbound.io")
        );
        for words in ["team/demo-1f53a (1.34)", "kubectl patch clusters.eks.aws.m.upbound.io NAME"]
        {
            assert!(checks[0].found.contains(words), "{words}: {}", checks[0].found);
        }
    }

    #[test]
    fn kinds_are_those_without_late_initialization() {
        let all = function_paved_road::models::KINDS.iter().map(|info| info.kind);
        let without: Vec<Kind> = all.filter(|kind| !kind.late_initialized).collect();
        assert_eq!(without, CLUSTERS.map(|(kind, _)| kind));
    }
}
