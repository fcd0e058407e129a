//! Apps of virtual environments that provider-helm installs, as in an earlier release.
//!
//! provider-helm keeps charts by name and version only. The chart of one user can therefore be
//! installed for another user who named another repository. Argo CD installs newer apps inside
//! their own cluster.

use kube::api::DynamicObject;

use super::check::Check;
use super::objects::{environment, first};
use super::snapshot::{ClusterSnapshot, ListResult};

/// The annotation with the slot of a composed resource.
const SLOT: &str = "crossplane.io/composition-resource-name";

/// The slot of such an app.
const APP: &str = "app";

/// A line with the environments of such apps.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let what = "Apps in provider-helm";
    let failed = snapshot.releases.iter().filter(|list| matches!(list, ListResult::Failed(_)));
    let mut checks: Vec<Check> = failed.map(|list| list.unread(what)).collect();
    let lists = snapshot.releases.iter().filter_map(|list| match list {
        ListResult::All(objects) => Some(objects),
        _ => None,
    });
    let is_app = |one: &&DynamicObject| {
        one.metadata.annotations.as_ref().and_then(|all| all.get(SLOT)).is_some_and(|it| it == APP)
    };
    let found: Vec<String> = lists.flatten().filter(is_app).map(environment).collect();
    if !found.is_empty() {
        checks.push(Check::open(
            what,
            format!(
                "{}: {}. The provider that installs them also installs virtual clusters, and \
                 keeps charts by name and version only. To move an app into its cluster, remove \
                 `app` from the claim, wait until the environment is ready, and add it again",
                found.len(),
                first(&found)
            ),
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::style::Mark;

    fn release(slot: &str, namespace: Option<&str>, labels: &Value) -> Value {
        json!({"metadata": {
            "name": format!("{slot}-release"), "namespace": namespace, "labels": labels,
            "annotations": {SLOT: slot},
        }})
    }

    fn told(releases: Vec<ListResult>) -> Vec<Check> {
        check(&ClusterSnapshot { releases, ..snapshot() })
    }

    #[test]
    fn apps_of_an_earlier_release_are_listed_by_their_environment() {
        let claim = json!({
            "crossplane.io/claim-namespace": "team-shop", "crossplane.io/claim-name": "preview",
            "crossplane.io/composite": "preview-7x9kd",
        });
        let composite = json!({"crossplane.io/composite": "trial"});
        let checks = told(vec![
            objects(&[release("app", None, &claim), release("vcluster", None, &claim)]),
            objects(&[
                release("app", Some("team-vision"), &composite),
                release("argocd", Some("team-vision"), &composite),
            ]),
        ]);
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].mark, Mark::Busy);
        assert!(
            checks[0].found.starts_with("2: team-shop/preview, team-vision/trial. "),
            "{}",
            checks[0].found
        );
    }

    #[test]
    fn platform_charts_and_hidden_releases_are_no_line() {
        let platform = release("vcluster", None, &json!({}));
        let checks = told(vec![objects(&[platform]), ListResult::Hidden, ListResult::NoSuchKind]);
        assert!(checks.is_empty());
    }
}
