//! Deletion: in any order that the Usages allow, no resource outlives its provider config,
//! credentials, namespace, cluster or server. Finally, all resources are deleted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod any_moment;
mod graph;
mod needs;
mod on_deletion;
#[path = "../support/mod.rs"]
mod support;

use graph::Graph;
use simulator::core::World;
use support::simulated::{self, Case};

/// The number of random orders for each environment, in addition to those that try to break each
/// need.
const ORDERS: u64 = 300;

#[test]
fn dependents_are_deleted_before_their_prerequisites() {
    are_deleted(&simulated::all(), Case::settled);
}

#[test]
fn stopped_environment_is_deleted_whole() {
    let all = simulated::all().into_iter().filter(Case::can_stop);
    are_deleted(&all.collect::<Vec<_>>(), Case::stopped);
}

#[test]
fn deletion_waits_for_few_usages() {
    for case in simulated::examples() {
        let graph = Graph::of(case.settled().resources());
        assert_eq!(graph.protected_twice(), Vec::<&str>::new(), "{}", case.name());
        assert!(graph.levels() <= 2, "{}: {} levels", case.name(), graph.levels());
    }
    for case in simulated::all() {
        // EKS: the cluster, its nodes, the provider config and an Application of Argo CD.
        let levels = Graph::of(case.settled().resources()).levels();
        assert!(levels <= 3, "{}: {levels} levels", case.name());
    }
}

fn are_deleted(cases: &[Case], made: fn(&Case) -> World) {
    let problems: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let graph = Graph::of(made(case).resources());
            let name = case.name();
            problems(&graph).into_iter().map(move |problem| format!("{name}: {problem}"))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// All errors that some order can cause, and all that the random orders cause.
fn problems(graph: &Graph) -> Vec<String> {
    let mut problems = graph.problems();
    problems.extend((1..=ORDERS).filter_map(|seed| graph.delete(seed).err()));
    problems.sort();
    problems.dedup();
    problems
}

mod that_it_can_fail {
    //! Graphs made by hand, which show that the tests find missing Usages.

    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::Graph;

    /// A cluster, provider configs for its inside, and resources there.
    fn inside() -> BTreeMap<String, Value> {
        let resource = |api_version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        let secret =
            json!({"name": "kubeconfig", "namespace": "crossplane-system", "key": "kubeconfig"});
        let config = json!({"credentials": {"source": "Secret", "secretRef": secret}});
        let app =
            json!({"providerConfigRef": {"name": "inner"}, "forProvider": {"namespace": "shop"}});
        let namespace = json!({
            "providerConfigRef": {"name": "inner-kubernetes"},
            "forProvider": {"manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}},
        });
        [
            (
                "cluster",
                resource(
                    "container.gcp.upbound.io/v1beta2",
                    "Cluster",
                    "c",
                    json!({"forProvider": {}, "writeConnectionSecretToRef": secret}),
                ),
            ),
            (
                "helm-config",
                resource("helm.crossplane.io/v1beta1", "ProviderConfig", "inner", config.clone()),
            ),
            (
                "kubernetes-config",
                resource(
                    "kubernetes.crossplane.io/v1alpha1",
                    "ProviderConfig",
                    "inner-kubernetes",
                    config,
                ),
            ),
            ("namespace", resource("kubernetes.crossplane.io/v1alpha2", "Object", "n", namespace)),
            ("app", resource("helm.crossplane.io/v1beta1", "Release", "a", app)),
        ]
        .map(|(slot, object)| (slot.to_owned(), object))
        .into()
    }

    fn usage(resources: &mut BTreeMap<String, Value>, of: &str, by: &str) {
        let end = |slot: &str| {
            let object = &resources[slot];
            json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
                   "resourceRef": {"name": object["metadata"]["name"]}})
        };
        let spec = json!({"of": end(of), "by": end(by), "replayDeletion": true});
        let usage = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "Usage",
                           "metadata": {"name": format!("{of}-{by}")}, "spec": spec});
        resources.insert(format!("usage-{of}-by-{by}"), usage);
    }

    /// The Usages that [`inside`] needs.
    const USAGES: [(&str, &str); 6] = [
        ("cluster", "app"),
        ("cluster", "namespace"),
        ("helm-config", "app"),
        ("kubernetes-config", "namespace"),
        ("namespace", "app"),
        ("cluster", "helm-config"),
    ];

    fn problems(usages: &[(&str, &str)]) -> Vec<String> {
        let mut resources = inside();
        for (of, by) in usages {
            usage(&mut resources, of, by);
        }
        super::problems(&Graph::of(&resources))
    }

    #[test]
    fn a_graph_with_all_its_usages_is_fine() {
        assert_eq!(problems(&USAGES), Vec::<String>::new());
    }

    #[test]
    fn each_usage_that_is_missing_is_seen() {
        let needed = |(of, by): &&(&str, &str)| (*of, *by) != ("cluster", "helm-config");
        for missing in USAGES.iter().filter(needed) {
            let rest: Vec<_> = USAGES.into_iter().filter(|usage| usage != missing).collect();
            // A Usage that follows from two others may be missing.
            if *missing == ("cluster", "app") {
                assert_eq!(problems(&rest), Vec::<String>::new());
                continue;
            }
            let expected = format!("{} needs {}", missing.1, missing.0);
            let found = problems(&rest);
            assert!(
                found.iter().any(|problem| problem.starts_with(&expected)),
                "{missing:?}: {found:?}"
            );
        }
    }

    #[test]
    fn orphans_need_no_deletion_order() {
        let mut resources = inside();
        for slot in ["app", "namespace"] {
            resources.get_mut(slot).unwrap()["spec"]["deletionPolicy"] = json!("Orphan");
        }
        assert_eq!(super::problems(&Graph::of(&resources)), Vec::<String>::new());
        resources.get_mut("app").unwrap()["spec"] = json!({"providerConfigRef": {"name": "inner"}, "forProvider": {}, "managementPolicies": ["Observe"]});
        assert_eq!(super::problems(&Graph::of(&resources)), Vec::<String>::new());
    }

    #[test]
    fn paused_resource_is_never_gone_with_all_that_it_needs() {
        let mut resources = inside();
        for (of, by) in USAGES {
            usage(&mut resources, of, by);
        }
        resources.get_mut("app").unwrap()["metadata"]["annotations"] =
            json!({"crossplane.io/paused": "true"});
        let found = super::problems(&Graph::of(&resources));
        assert_eq!(found, ["never gone: app, cluster, helm-config, kubernetes-config, namespace"]);
    }

    #[test]
    fn usages_in_a_cycle_are_reported() {
        let circle: Vec<_> = USAGES.into_iter().chain([("app", "cluster")]).collect();
        let found = problems(&circle);
        assert!(found.iter().any(|problem| problem.starts_with("never gone: ")), "{found:?}");
    }

    #[test]
    fn databases_are_deleted_after_their_grants_and_users_and_before_their_owner() {
        let sql = |kind: &str| {
            json!({"apiVersion": "postgresql.sql.m.crossplane.io/v1alpha1", "kind": kind,
                   "metadata": {"name": kind.to_lowercase()}, "spec": {"forProvider": {}}})
        };
        let native =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
        let wrapped = json!({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
            "metadata": {"name": "d"}, "spec": {"forProvider": {"manifest": native}}});
        for deployment in [native, wrapped] {
            let resources = [
                ("db", sql("Database")),
                ("role", sql("Role")),
                ("grant", sql("Grant")),
                ("web", deployment),
            ];
            let resources = resources.map(|(slot, object)| (slot.to_owned(), object)).into();
            let found: Vec<String> = super::problems(&Graph::of(&resources))
                .iter()
                .filter_map(|problem| problem.split_once(',').map(|(need, _)| need.to_owned()))
                .collect();
            assert_eq!(
                found,
                ["db needs role", "grant needs db", "grant needs role", "web needs db"]
            );
        }
    }

    #[test]
    fn usage_of_a_missing_resource_is_found() {
        let mut resources = inside();
        usage(&mut resources, "namespace", "app");
        resources.remove("namespace");
        let found = super::problems(&Graph::of(&resources));
        assert!(
            found.iter().any(|problem| problem.contains("usage-namespace-by-app")),
            "{found:?}"
        );
    }
}
