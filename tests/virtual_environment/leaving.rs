//! Removal of resources that are not needed any more, and the resources that a deletion leaves
//! behind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::virtual_environment::{INSIDE, TYPES, beginnings, earlier, running};
use crate::support::world::{Mood, World, desired, is_fatal, status};
use crate::{line, slots};

/// The fate of each slot inside the cluster: `keep` if it is orphaned, or `delete`. A removed slot
/// is absent.
fn inside(world: &World) -> BTreeMap<String, &'static str> {
    let response = world.answer();
    assert!(!is_fatal(&response), "{:?}", response.results);
    let fate = |object: &serde_json::Map<String, Value>| {
        let spec = &object["spec"];
        let orphan = spec.get("deletionPolicy").is_some_and(|it| it == "Orphan")
            || spec.get("managementPolicies").is_some();
        if orphan { "keep" } else { "delete" }
    };
    let all = desired(&response).into_iter();
    all.filter(|(slot, _)| INSIDE.contains(&slot.as_str()))
        .map(|(slot, object)| (slot, fate(&object)))
        .collect()
}

/// The fates inside a managed cluster: software without resources in the cloud is deleted with the
/// cluster.
const RUNNING: [(&str, &str); 6] = [
    ("app-application", "delete"),
    ("argocd", "keep"),
    ("gitops", "delete"),
    ("knative", "keep"),
    ("knative-namespace", "keep"),
    ("knative-serving", "delete"),
];

fn owned((slot, fate): (&str, &'static str)) -> (String, &'static str) {
    (slot.to_owned(), fate)
}

fn without_add_ons(world: &mut World) {
    let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
    for field in ["app", "gitops", "knative"] {
        parameters.remove(field);
    }
}

#[test]
fn add_ons_are_removed_from_a_virtual_cluster_in_order() {
    for mut world in running("vcluster") {
        assert!(inside(&world).values().all(|fate| *fate == "keep"));
        assert_eq!(inside(&world).len(), 6);
        without_add_ons(&mut world);
        let waiting = [("argocd", "keep"), ("knative", "keep"), ("knative-namespace", "keep")];
        let users =
            [("app-application", "delete"), ("gitops", "delete"), ("knative-serving", "delete")];
        let rest = waiting.map(|(slot, _)| (slot, "delete"));
        let steps = [
            [waiting, users.map(|(slot, _)| (slot, "keep"))].concat(),
            // Their Usages are in force.
            [waiting, users].concat(),
            waiting.into(),
            // The resources are deleted. Their Usages are deleted after this call.
            waiting.into(),
            waiting.into(),
            rest.into(),
            vec![],
            vec![],
        ];
        for step in steps {
            let expected: BTreeMap<_, _> =
                step.into_iter().map(|(slot, fate)| (slot.to_owned(), fate)).collect();
            assert_eq!(inside(&world), expected);
            let phase = status(&world.answer())["phase"].clone();
            assert!(phase == "Provisioning" || expected.is_empty(), "{phase}: {expected:?}");
            world.reconcile(|_| Mood::Ready);
        }
        assert_eq!(status(&world.answer())["phase"], "Ready");
    }
}

/// The Usages by resources inside the cluster.
fn usages(world: &World) -> Vec<String> {
    let by_inside = |slot: &String| INSIDE.iter().any(|by| slot.ends_with(&format!("-by-{by}")));
    let inside = |slot: &String| slot.starts_with("usage-") && by_inside(slot);
    slots(world).into_iter().filter(inside).collect()
}

#[test]
fn removed_add_ons_keep_the_virtual_cluster_until_they_are_gone() {
    for mut world in running("vcluster") {
        assert_eq!(usages(&world), [""; 0]);
        without_add_ons(&mut world);
        let users = [
            "usage-kubernetes-config-by-app-application",
            "usage-kubernetes-config-by-gitops",
            "usage-kubernetes-config-by-knative-serving",
            "usage-vcluster-by-app-application",
            "usage-vcluster-by-gitops",
            "usage-vcluster-by-knative-serving",
        ];
        let rest = [
            "usage-helm-config-by-argocd",
            "usage-helm-config-by-knative",
            "usage-kubernetes-config-by-knative-namespace",
            "usage-vcluster-by-argocd",
            "usage-vcluster-by-knative",
            "usage-vcluster-by-knative-namespace",
        ];
        for step in [users.as_slice(), &users, &users, &[], &rest, &rest, &rest, &[]] {
            assert_eq!(usages(&world), step);
            world.reconcile(|_| Mood::Ready);
        }
    }
}

#[test]
fn add_ons_are_removed_from_a_managed_cluster_before_their_usages() {
    for cluster_type in ["gke", "eks", "aks"] {
        for mut world in running(cluster_type) {
            assert_eq!(inside(&world), RUNNING.map(owned).into(), "{cluster_type}");
            let users = [
                "usage-kubernetes-config-by-app-application",
                "usage-kubernetes-config-by-gitops",
                "usage-kubernetes-config-by-knative-serving",
            ];
            let rest = [
                "usage-helm-config-by-argocd",
                "usage-helm-config-by-knative",
                "usage-kubernetes-config-by-knative-namespace",
            ];
            assert_eq!(usages(&world), users, "{cluster_type}");
            without_add_ons(&mut world);
            let software = ["argocd", "knative", "knative-namespace"];
            let steps: [(&[&str], &[&str]); 7] = [
                (&INSIDE, &users),
                (&software, &users),
                (&software, &[]),
                (&software, &rest),
                (&software, &rest),
                (&[], &rest),
                (&[], &[]),
            ];
            for (number, (left, held)) in steps.into_iter().enumerate() {
                let slots: Vec<_> = inside(&world).into_keys().collect();
                assert_eq!(slots, left, "{cluster_type}, call {number}");
                assert_eq!(usages(&world), held, "{cluster_type}, call {number}");
                let phase = if number < 6 { "Provisioning" } else { "Ready" };
                assert_eq!(status(&world.answer())["phase"], phase, "{cluster_type}, {number}");
                world.reconcile(|_| Mood::Ready);
            }
        }
    }
}

#[test]
fn software_of_an_earlier_environment_is_deleted_before_its_managed_cluster() {
    for cluster_type in ["gke", "eks", "aks"] {
        for mut world in earlier(cluster_type) {
            assert!(inside(&world).values().all(|fate| *fate == "delete"), "{cluster_type}");
            let all = [
                "usage-argocd-by-app-application",
                "usage-argocd-by-gitops",
                "usage-helm-config-by-argocd",
                "usage-helm-config-by-knative",
                "usage-knative-by-knative-serving",
                "usage-knative-namespace-by-knative-serving",
                "usage-kubernetes-config-by-app-application",
                "usage-kubernetes-config-by-gitops",
                "usage-kubernetes-config-by-knative-namespace",
                "usage-kubernetes-config-by-knative-serving",
            ];
            let waiting = [all[2], all[3], all[8]];
            assert_eq!(usages(&world), all, "{cluster_type}");
            without_add_ons(&mut world);
            let steps: [(&[&str], &[&str]); 5] = [
                (&INSIDE, &all),
                (&["argocd", "knative", "knative-namespace"], &all),
                (&["argocd", "knative", "knative-namespace"], &waiting),
                (&[], &waiting),
                (&[], &[]),
            ];
            for (number, (left, held)) in steps.into_iter().enumerate() {
                let slots: Vec<_> = inside(&world).into_keys().collect();
                assert_eq!(slots, left, "{cluster_type}, call {number}");
                assert_eq!(usages(&world), held, "{cluster_type}, call {number}");
                world.reconcile(|_| Mood::Ready);
            }
            assert_eq!(status(&world.answer())["phase"], "Ready");
        }
    }
}

#[test]
fn resources_inside_are_orphaned_until_usages_are_in_force() {
    for cluster_type in ["gke", "eks", "aks"] {
        for beginning in beginnings(cluster_type) {
            let running = beginning.clone().settle(|_| Mood::Ready);
            let after = inside(&running);
            let expected = RUNNING.map(owned).into_iter();
            let expected = expected.filter(|(slot, _)| after.contains_key(slot)).collect();
            assert_eq!(after, expected, "{cluster_type}");
            assert!(after.len() > 1);
            for usage in usages(&running) {
                let (_, by) = usage.rsplit_once("-by-").unwrap();
                let mood = |slot: &str| if slot == usage { Mood::Silent } else { Mood::Ready };
                let world = beginning.clone().settle(mood);
                assert_eq!(inside(&world)[by], "keep", "{cluster_type}: {by} without {usage}");
                assert_ne!(status(&world.answer())["phase"], "Ready");
                assert_eq!(inside(&world.settle(|_| Mood::Ready)), after, "{cluster_type}");
            }
            // If a Usage disappears later, the resources are still deleted.
            let mut world = running;
            world.composed.retain(|slot, _| !slot.starts_with("usage-"));
            assert_eq!(inside(&world), after, "{cluster_type}");
        }
    }
}

/// The Usages of resources that give access to a managed cluster, each with the slots inside that
/// need this access.
fn beneath(cluster_type: &str) -> Vec<(String, &'static [&'static str])> {
    let (configs, others): (&[&str], &[&str]) = match cluster_type {
        "eks" => (&["node-pool", "cluster-auth"], &["cluster-by-node-pool"]),
        _ => (&["cluster"], &[]),
    };
    let ways_in: [(&str, &'static [&'static str]); 2] = [
        ("helm-config", &["argocd", "knative"]),
        (
            "kubernetes-config",
            &["app-application", "gitops", "knative-namespace", "knative-serving"],
        ),
    ];
    let by_ways_in = configs.iter().flat_map(|of| {
        ways_in.map(|(config, reached)| (format!("usage-{of}-by-{config}"), reached))
    });
    let by_others = others.iter().map(|usage| (format!("usage-{usage}"), INSIDE.as_slice()));
    by_ways_in.chain(by_others).collect()
}

#[test]
fn resources_inside_are_orphaned_until_their_access_is_kept() {
    for cluster_type in ["gke", "eks", "aks"] {
        for beginning in beginnings(cluster_type) {
            let after = inside(&beginning.clone().settle(|_| Mood::Ready));
            for (usage, reached) in beneath(cluster_type) {
                let mood = |slot: &str| if slot == usage { Mood::Silent } else { Mood::Ready };
                let world = beginning.clone().settle(mood);
                assert!(world.composed.contains_key(&usage), "{cluster_type} has no {usage}");
                let mut gone = world.clone();
                gone.composed.remove(&usage);
                for fates in [inside(&world), inside(&gone)] {
                    for slot in reached {
                        assert_eq!(fates[*slot], "keep", "{cluster_type}: {slot} without {usage}");
                    }
                }
                assert_eq!(
                    inside(&world.settle(|_| Mood::Ready)),
                    after,
                    "{cluster_type}: after {usage}"
                );
            }
        }
    }
}

#[test]
fn add_on_is_removed_after_its_access_to_the_managed_cluster_is_kept() {
    for cluster_type in ["gke", "eks", "aks"] {
        for beginning in beginnings(cluster_type) {
            for (usage, reached) in beneath(cluster_type) {
                let mood = |slot: &str| if slot == usage { Mood::Silent } else { Mood::Ready };
                let mut world = beginning.clone().settle(mood);
                without_add_ons(&mut world);
                let world = world.settle(mood);
                for (slot, fate) in inside(&world) {
                    assert!(
                        fate == "keep" || !reached.contains(&slot.as_str()),
                        "{cluster_type}: {slot} without {usage}"
                    );
                }
                let users = ["app-application", "gitops", "knative-serving"]
                    .into_iter()
                    .filter(|slot| reached.contains(slot));
                for slot in users {
                    assert!(
                        world.composed.contains_key(slot),
                        "{cluster_type}: {slot} left without {usage}"
                    );
                }
                let world = world.settle(|_| Mood::Ready);
                assert_eq!(inside(&world), BTreeMap::new(), "{cluster_type}: after {usage}");
            }
        }
    }
}

#[test]
fn operators_stay_until_their_resources_are_deleted() {
    for cluster_type in TYPES {
        for mut world in running(cluster_type) {
            without_add_ons(&mut world);
            world.held = ["gitops", "knative-serving"].into();
            for _ in 0..6 {
                world.reconcile(|_| Mood::Ready);
                let left = inside(&world);
                for slot in ["argocd", "knative", "knative-namespace"] {
                    assert!(left.contains_key(slot), "{cluster_type}: {slot}");
                }
            }
            assert!(!world.composed.contains_key("gitops"), "no longer desired");
            world.held.clear();
            for _ in 0..4 {
                world.reconcile(|_| Mood::Ready);
            }
            assert_eq!(inside(&world), BTreeMap::new(), "{cluster_type}");
        }
    }
}

#[test]
fn blocked_removal_of_an_add_on_is_reported() {
    for cluster_type in TYPES {
        for mut world in running(cluster_type) {
            without_add_ons(&mut world);
            world.held = ["gitops"].into();
            for _ in 0..6 {
                world.reconcile(|_| Mood::Ready);
            }
            let watch = &world.composed["gitops-leaving"].object;
            assert_eq!(watch["spec"]["watch"], true, "or the deletion stays unnoticed");
            let answer = world.answer();
            assert_eq!(status(&answer)["phase"], "Provisioning", "{cluster_type}");
            let condition = |answer: &function_proto::v1::RunFunctionResponse| {
                (
                    answer.conditions[0].reason.clone(),
                    answer.conditions[0].message.clone().unwrap_or_default(),
                )
            };
            let (reason, message) = condition(&answer);
            assert_eq!(reason, "Waiting");
            assert!(
                message.starts_with("gitops-leaving (Application): is being deleted"),
                "{message}"
            );
            let shown = line(&world, "gitops-leaving");
            assert_eq!((&shown["ready"], &shown["reason"]), (&json!(false), &json!("Deleting")));
            let usage = line(&world, "usage-kubernetes-config-by-gitops");
            assert_eq!(usage["message"], "waits for gitops to be deleted");
            let seen = &mut world.composed.get_mut("gitops-leaving").unwrap().object["status"]["atProvider"]
                ["manifest"];
            seen["metadata"]["deletionTimestamp"] = json!("2026-11-21T08:00:00Z");
            seen["status"]["conditions"] =
                json!([{"type": "DeletionError", "message": "cannot delete: the cluster says no"}]);
            let (reason, message) = condition(&world.answer());
            assert_eq!(reason, "Waiting");
            assert_eq!(
                message,
                "gitops-leaving (Application): is being deleted: cannot delete: the cluster says no"
            );
        }
    }
}

#[test]
fn add_on_that_is_requested_again_is_kept() {
    for mut world in running("vcluster") {
        let before = inside(&world);
        let parameters = world.xr["spec"]["parameters"].clone();
        without_add_ons(&mut world);
        world.reconcile(|_| Mood::Ready);
        world.xr["spec"]["parameters"] = parameters;
        world.reconcile(|_| Mood::Ready);
        assert_eq!(inside(&world), before);
    }
}

#[test]
fn add_ons_that_a_stopped_environment_loses_are_removed_after_its_start() {
    for cluster_type in ["gke", "eks"] {
        for mut world in running(cluster_type) {
            let all = inside(&world).into_keys().collect::<Vec<_>>();
            without_add_ons(&mut world);
            world.xr["spec"]["lifecycle"] = json!({"power": "Stopped"});
            let mut world = world.settle(|_| Mood::Ready);
            assert_eq!(status(&world.answer())["phase"], "Stopped", "{cluster_type}");
            assert_eq!(inside(&world).into_keys().collect::<Vec<_>>(), all, "{cluster_type}");

            world.xr["spec"]["lifecycle"] = json!({"power": "Running"});
            assert_eq!(inside(&world), RUNNING.map(owned).into(), "{cluster_type}");
            world.reconcile(|_| Mood::Ready);
            let world = world.settle(|_| Mood::Ready);
            assert_eq!(inside(&world), BTreeMap::new(), "{cluster_type}");
            assert_eq!(status(&world.answer())["phase"], "Ready", "{cluster_type}");
        }
    }
}
