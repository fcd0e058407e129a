//! Environments with the annotation `crossplane.io/paused`.

use kube::core::ApiResource;
use paved_client::environment::Environment;
use paved_client::names::PAUSED;

use super::check::Check;
use super::objects::{first, full_name};
use super::snapshot::{ClusterSnapshot, Environments, ListResult};

/// The objects of a line, and the effect of their pause.
const COMPOSITES: (&str, &str) =
    ("Paused composites", "Crossplane does not change them, and does not stop them at their end");
const CLAIMS: (&str, &str) = (
    "Paused claims",
    "Renewals and changes do not reach their composites, which continue and stop at their end",
);

/// A line for paused composites, a line for paused claims, and lines for kinds that were not read.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let all = &snapshot.environments;
    let paused = [(COMPOSITES, false), (CLAIMS, true)].into_iter().filter_map(
        |((what, effect), are_claims)| {
            let kinds = all.iter().filter(|kind| kind.are_claims == are_claims);
            let paused: Vec<String> = kinds.flat_map(Environments::paused).collect();
            let (count, named) = (paused.len(), first(&paused));
            let found = format!(
                "{count}: {named}. {effect}. To end the pause, remove the annotation {PAUSED}"
            );
            (count > 0).then(|| Check::open(what, found))
        },
    );
    let failed = all.iter().filter(|kind| matches!(kind.objects, ListResult::Failed(_)));
    let failed = failed.map(|kind| kind.objects.unread(kind.full_name()));
    paused.chain(failed).chain(hidden(all)).collect()
}

/// The line for kinds that the caller may not list.
fn hidden(all: &[Environments]) -> Option<Check> {
    let hidden = all.iter().filter(|kind| matches!(kind.objects, ListResult::Hidden));
    let hidden: Vec<String> = hidden.map(Environments::full_name).collect();
    let found = format!("you may not list {} in all namespaces", first(&hidden));
    (!hidden.is_empty()).then(|| Check::open("Paused environments", found))
}

impl Environments {
    fn full_name(&self) -> String {
        let ApiResource { kind, group, .. } = &self.resource;
        format!("{kind}.{group}")
    }

    /// Kind and name of each paused object.
    fn paused(&self) -> Vec<String> {
        let ListResult::All(objects) = &self.objects else { return Vec::new() };
        let paused = objects.iter().filter(|one| Environment::from_object(one).is_paused());
        paused.map(|one| format!("{} {}", self.resource.kind, full_name(one))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::kinds;
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::environment_kinds;
    use crate::style::Mark;

    /// The lines for a cluster in which the objects of each kind are as given.
    fn told(objects_of: impl Fn(&ApiResource) -> ListResult) -> Vec<Check> {
        let kinds = kinds();
        let environments = environment_kinds(&kinds).map(|(resource, are_claims)| {
            let objects = objects_of(&resource);
            Environments { resource, are_claims, objects }
        });
        check(&ClusterSnapshot { environments: environments.collect(), ..snapshot() })
    }

    fn object(namespace: Option<&str>, name: &str, paused: &str) -> Value {
        let annotations = json!({PAUSED: paused});
        json!({"metadata": {"namespace": namespace, "name": name, "annotations": annotations}})
    }

    #[test]
    fn composites_behind_claims_are_read_too() {
        let kinds: Vec<String> = environment_kinds(&kinds())
            .map(|(resource, are_claims)| {
                let what = if are_claims { "claims" } else { "composites" };
                format!("{what}: {}.{}", resource.plural, resource.group)
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "composites: environments.dev.example.org",
                "claims: environments.platform.acme.io",
                "composites: xenvironments.platform.acme.io",
                "claims: gpudevworkspaceclaims.platform.acme.io",
                "composites: gpudevworkspaces.platform.acme.io",
            ]
        );
    }

    #[test]
    fn paused_claims_and_composites_are_counted_and_named() {
        let checks = told(|resource| match resource.kind.as_str() {
            "GpuDevWorkspaceClaim" => objects(&[object(Some("team"), "ada", "true")]),
            "GpuDevWorkspace" => objects(&[object(None, "grace-1f53a", "true")]),
            "Environment" if resource.group == "dev.example.org" => objects(&[
                object(Some("team"), "demo", "true"),
                object(Some("team"), "other", "false"),
            ]),
            _ => ListResult::NoSuchKind,
        });
        let lines: Vec<(Mark, &str)> =
            checks.iter().map(|check| (check.mark, check.what.as_str())).collect();
        assert_eq!(lines, [(Mark::Busy, "Paused composites"), (Mark::Busy, "Paused claims")]);
        for (check, words) in [
            (&checks[0], "2: Environment team/demo, GpuDevWorkspace grace-1f53a. Crossplane"),
            (&checks[0], "does not stop them at their end"),
            (&checks[1], "1: GpuDevWorkspaceClaim team/ada. Renewals and changes do not reach"),
        ] {
            assert!(check.found.contains(words), "{words}: {}", check.found);
        }
    }

    #[test]
    fn cluster_without_pauses_has_no_line() {
        assert_eq!(told(|_| objects(&[object(Some("team"), "ada", "false")])), []);
    }

    #[test]
    fn hidden_kinds_share_a_line_and_failed_kinds_are_red() {
        let checks = told(|_| ListResult::Hidden);
        assert_eq!((checks.len(), checks[0].mark), (1, Mark::Busy));
        let words = "you may not list Environment.dev.example.org, ";
        assert!(checks[0].found.starts_with(words), "{}", checks[0].found);
        let checks = told(|_| ListResult::Failed("etcd has no leader".to_owned()));
        assert!(checks.iter().all(|check| check.mark == Mark::Bad), "{checks:?}");
    }
}
