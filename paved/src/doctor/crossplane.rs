//! The version of Crossplane, and whether it is new enough and runs.

use crossplane::releases::{PROBLEMS, Version};
use kube::api::DynamicObject;

use super::check::Check;
use super::snapshot::{ClusterSnapshot, ListResult};

/// The remediation for a missing or outdated Crossplane.
const WANTED: &str = "install 1.20 for claims, or 2.x for both APIs";

/// The version from Crossplane's Deployment, or else an estimate from the served kinds.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Check {
    if matches!(snapshot.definitions, ListResult::NoSuchKind) {
        return Check::bad("Crossplane", "is not installed", WANTED);
    }
    let deployments = match &snapshot.crossplane {
        ListResult::All(deployments) => deployments.as_slice(),
        _ => &[],
    };
    if let Some(first) = deployments.first().filter(|_| !deployments.iter().any(is_available)) {
        return down(first);
    }
    match deployments.iter().find_map(version) {
        Some((version, number)) => judged(&version, number),
        None => by_kinds(snapshot),
    }
}

/// Warns of the known problems of this Crossplane.
pub(super) fn problems(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let ListResult::All(deployments) = &snapshot.crossplane else { return Vec::new() };
    let Some((version, number)) = deployments.iter().find_map(version) else { return Vec::new() };
    let affecting = PROBLEMS.iter().filter(|problem| problem.affects(number));
    affecting
        .map(|problem| {
            let (fixes, advice) = (problem.fixes(), problem.advice);
            let found = format!("{version} {}; update to {fixes} or later{advice}", problem.effect);
            Check::open(problem.id, found)
        })
        .collect()
}

pub(super) fn is_available(deployment: &DynamicObject) -> bool {
    deployment.data["status"]["availableReplicas"].as_i64().is_some_and(|pods| pods > 0)
}

/// Objects keep their last status without Crossplane, so all other checks may pass.
fn down(deployment: &DynamicObject) -> Check {
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or("crossplane-system");
    let helps = format!("run `kubectl -n {namespace} get pods -l app=crossplane`");
    Check::bad("Crossplane", "no pod is available", &helps)
}

fn judged(version: &str, number: Version) -> Check {
    match number {
        (2.., ..) => Check::good("Crossplane", format!("{version} serves both APIs")),
        (1, 20.., _) => Check::good(
            "Crossplane",
            format!(
                "{version} serves claims; the namespaced API needs \
                 2.x"
            ),
        ),
        _ => Check::bad("Crossplane", format!("{version} is too old"), WANTED),
    }
}

/// XRDs have version v2 since Crossplane 2.0, and Usages have v1beta1 since 1.19.
fn by_kinds(snapshot: &ClusterSnapshot) -> Check {
    const UNSEEN: &str = "exact version unknown, because you may not read its Deployment";
    let Some(served) = &snapshot.served else {
        return Check::open("Crossplane", format!("is installed; {UNSEEN}"));
    };
    let has = |version: &str, kind: &str| {
        let (group, version, kind) =
            ("apiextensions.crossplane.io".to_owned(), version.to_owned(), kind.to_owned());
        served.contains(&(group, version, kind))
    };
    if has("v2", "CompositeResourceDefinition") {
        Check::good("Crossplane", format!("2.x serves both APIs; {UNSEEN}"))
    } else if has("v1beta1", "Usage") {
        let found = format!("1.19 or 1.20; the namespaced API needs 2.x; {UNSEEN}");
        Check::open("Crossplane", found)
    } else {
        Check::bad("Crossplane", "is older than 1.19, and has no Usage in v1beta1", WANTED)
    }
}

/// The version from a Deployment's image or else from its label, as text and as numbers.
fn version(deployment: &DynamicObject) -> Option<(String, Version)> {
    let containers = deployment.data.pointer("/spec/template/spec/containers")?.as_array()?;
    let container =
        containers.iter().find(|one| one["name"] == "crossplane").or(containers.first());
    let image = container.and_then(|one| one["image"].as_str()).unwrap_or_default();
    let tag = image.split('@').next().and_then(|name| name.rsplit_once(':')).map(|(_, tag)| tag);
    let label =
        deployment.metadata.labels.as_ref()?.get("app.kubernetes.io/version").map(String::as_str);
    [tag, label].into_iter().flatten().find_map(|text| {
        let text = text.trim_start_matches('v');
        let mut parts = text.split(['.', '-', '+']);
        let mut number = || parts.next()?.parse().ok();
        Some((text.to_owned(), (number()?, number()?, number().unwrap_or_default())))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::style::Mark;

    fn told(image: &str, label: &str) -> (Mark, String) {
        let deployment = json!({"metadata": {"name": "x", "labels": {"app.kubernetes.io/version": label}},
            "spec": {"template": {"spec": {"containers": [
                {"name": "sidecar", "image": "mesh:v9.9.9"}, {"name": "crossplane", "image": image}]}}},
            "status": {"availableReplicas": 1}});
        let crossplane = ListResult::All(vec![serde_json::from_value(deployment).unwrap()]);
        let check = check(&ClusterSnapshot { crossplane, ..snapshot() });
        (check.mark, check.found)
    }

    #[test]
    fn version_is_read_from_the_image_tag_then_the_label() {
        for (image, label, mark, words) in [
            (
                "xpkg.crossplane.io/crossplane/crossplane:v2.3.4",
                "1.1.1",
                Mark::Good,
                "2.3.4 serves both",
            ),
            ("registry:5000/crossplane@sha256:0123", "2.0.1", Mark::Good, "2.0.1 serves both"),
            (
                "r.example.org/crossplane:v1.20.11-up.1@sha256:01",
                "",
                Mark::Good,
                "1.20.11-up.1 serves claims",
            ),
            ("crossplane/crossplane:v1.17.2", "", Mark::Bad, "1.17.2 is too old; install 1.20"),
            ("crossplane/crossplane:latest", "0.9.0", Mark::Bad, "0.9.0 is too old"),
            ("crossplane/crossplane:latest", "main", Mark::Good, "2.x serves both"),
        ] {
            let (found, text) = told(image, label);
            assert!(found == mark && text.contains(words), "{image}: {text}");
        }
    }

    #[test]
    fn crossplane_without_pods_is_red() {
        for status in [json!({}), json!({"replicas": 1, "availableReplicas": 0})] {
            let mut deployment = json!({"metadata": {"name": "crossplane", "namespace": "upbound-system", "labels": {}},
                "spec": {"template": {"spec": {"containers": [{"name": "crossplane", "image": "crossplane:v2.3.4"}]}}}});
            deployment["status"] = status;
            let check =
                check(&ClusterSnapshot { crossplane: objects(&[deployment]), ..snapshot() });
            assert_eq!(check.mark, Mark::Bad);
            assert_eq!(
                check.found,
                "no pod is available; run `kubectl -n upbound-system get pods -l app=crossplane`"
            );
        }
    }

    #[test]
    fn affected_release_is_warned_of() {
        const GHSA: &str = "GHSA-77cv-mrm6-fr3c";
        for (version, expected) in [
            ("1.14.9", &[][..]),
            ("1.15.0", &[GHSA]),
            ("1.20.10-up.1", &[GHSA, "Updates of Usages", "Issue 7859"]),
            ("2.3.9", &[GHSA, "Issue 7859"]),
            ("2.4.0", &["Issue 7859"]),
            ("2.5.1", &[]),
        ] {
            let deployment = json!({"metadata": {"name": "x", "labels": {"app.kubernetes.io/version": version}},
                "spec": {"template": {"spec": {"containers": [{"name": "crossplane", "image": "crossplane:latest"}]}}}});
            let found =
                problems(&ClusterSnapshot { crossplane: objects(&[deployment]), ..snapshot() });
            assert!(found.iter().all(|check| check.mark == Mark::Busy));
            assert!(found.iter().map(|check| &check.what).eq(expected), "{version}: {found:?}");
        }
        assert!(
            problems(&ClusterSnapshot { crossplane: ListResult::Hidden, ..snapshot() }).is_empty()
        );
    }

    #[test]
    fn served_kinds_give_the_version_without_the_deployment() {
        for (version, kind, mark) in [
            ("v2", "CompositeResourceDefinition", Mark::Good),
            ("v1beta1", "Usage", Mark::Busy),
            ("v1alpha1", "Usage", Mark::Bad),
        ] {
            let served =
                ("apiextensions.crossplane.io".to_owned(), version.to_owned(), kind.to_owned());
            let snapshot = ClusterSnapshot {
                crossplane: ListResult::Hidden,
                served: Some([served].into()),
                ..snapshot()
            };
            assert_eq!(check(&snapshot).mark, mark, "{version} {kind}");
        }
        assert_eq!(
            check(&ClusterSnapshot { crossplane: ListResult::Hidden, served: None, ..snapshot() })
                .mark,
            Mark::Busy
        );
    }
}
