//! Composites that Argo CD takes for objects of its own.

use std::collections::BTreeMap;

use super::check::Check;
use super::objects::{first, full_name};
use super::snapshot::{ClusterSnapshot, Environments, ListResult};

/// The label with the claim's name on a composite that Crossplane made from the claim.
const CLAIM_NAME: &str = "crossplane.io/claim-name";

/// A line for composites with Argo CD's tracking label. Crossplane copies the label from the claim.
/// Argo CD deletes an object with its label that is not in Git.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Option<Check> {
    let composites = snapshot.environments.iter().filter(|kind| !kind.are_claims);
    let tracked: Vec<String> = composites.flat_map(Environments::tracked).collect();
    let (count, named) = (tracked.len(), first(&tracked));
    (count > 0).then(|| {
        Check::bad(
            "Composites that Argo CD may delete",
            format!(
                "{count}: {named}. They have Argo CD's tracking label, and automated pruning \
                 deletes composites with all their resources"
            ),
            "set application.resourceTrackingMethod: annotation in the ConfigMap argocd-cm, and \
             sync; see docs/reference/status-and-conditions.md",
        )
    })
}

impl Environments {
    /// Kind and name of each composite of a claim with a tracking label.
    fn tracked(&self) -> Vec<String> {
        let ListResult::All(objects) = &self.objects else { return Vec::new() };
        let tracked = objects.iter().filter(|one| {
            let labels = one.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.contains_key(CLAIM_NAME) && is_tracked(labels))
        });
        tracked.map(|one| format!("{} {}", self.resource.kind, full_name(one))).collect()
    }
}

/// Whether the labels have Argo CD's label. The default of Argo CD 2 is a label that Helm sets too.
fn is_tracked(labels: &BTreeMap<String, String>) -> bool {
    let is_of_helm = labels.get("app.kubernetes.io/managed-by").is_some_and(|tool| tool == "Helm");
    labels.contains_key("argocd.argoproj.io/instance")
        || (labels.contains_key("app.kubernetes.io/instance") && !is_of_helm)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::kinds;
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::environment_kinds;

    fn told(labels: &Value) -> Option<Check> {
        let kinds = kinds();
        let object = json!({"metadata": {"name": "ada-x7k2p", "labels": labels}});
        let environments = environment_kinds(&kinds).map(|(resource, are_claims)| {
            let found = resource.kind == "GpuDevWorkspace" || are_claims;
            let objects =
                if found { objects(std::slice::from_ref(&object)) } else { ListResult::NoSuchKind };
            Environments { resource, are_claims, objects }
        });
        check(&ClusterSnapshot { environments: environments.collect(), ..snapshot() })
    }

    #[test]
    fn composite_with_a_tracking_label_is_red() {
        let check =
            told(&json!({CLAIM_NAME: "ada", "argocd.argoproj.io/instance": "apps"})).unwrap();
        assert!(check.found.starts_with("1: GpuDevWorkspace ada-x7k2p. "), "{}", check.found);
        let labels = json!({CLAIM_NAME: "ada", "app.kubernetes.io/instance": "apps"});
        assert!(told(&labels).is_some(), "the label of Argo CD 2");
    }

    #[test]
    fn label_of_helm_or_on_the_applied_object_is_no_line() {
        for labels in [
            json!({}),
            json!({CLAIM_NAME: "ada"}),
            json!({"argocd.argoproj.io/instance": "apps"}),
            json!({CLAIM_NAME: "ada", "app.kubernetes.io/instance": "a",
                "app.kubernetes.io/managed-by": "Helm"}),
        ] {
            assert!(told(&labels).is_none(), "{labels}");
        }
    }
}
