//! The application: an Application of Argo CD in new environments, a Release in earlier ones.

use serde_json::{Value, json};

use crate::slots;
use crate::support::{
    self,
    virtual_environment::{TYPES, beginnings, running, with_earlier_app},
    world::{Mood, World, desired, is_fatal, status},
};

fn with_only(cluster_type: &str, fields: &[&str]) -> [World; 2] {
    beginnings(cluster_type).map(|mut world| {
        let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
        for field in ["app", "gitops", "knative"] {
            if !fields.contains(&field) {
                parameters.remove(field);
            }
        }
        world.settle(|_| Mood::Ready)
    })
}

fn manifest(world: &World, slot: &str) -> Value {
    desired(&world.answer())[slot]["spec"]["forProvider"]["manifest"].clone()
}

/// Calls until the state does not change any more. Argo CD never goes while `holder` exists.
fn calls(world: &mut World, holder: &str) {
    for _ in 0..12 {
        let response = world.reconcile(|_| Mood::Ready);
        assert!(!is_fatal(&response), "{:?}", response.results);
        assert!(world.composed.contains_key("argocd"), "{:?}", world.composed.keys());
        assert!(world.composed.contains_key(holder), "{:?}", world.composed.keys());
    }
    assert_eq!(status(&world.answer())["phase"], "Ready");
}

#[test]
fn new_app_is_installed_by_argo_cd_inside_the_cluster() {
    for cluster_type in TYPES {
        for world in with_only(cluster_type, &["app"]) {
            let application = manifest(&world, "app-application");
            assert_eq!(
                application,
                json!({
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Application",
                    "metadata": {
                        "name": "app", "namespace": "argocd",
                        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                    },
                    "spec": {
                        "project": "default",
                        "source": {
                            "repoURL": "https://stefanprodan.github.io/podinfo",
                            "chart": "podinfo",
                            "targetRevision": "6.9.2",
                            "helm": {
                                "releaseName": "app",
                                "valuesObject": {
                                    "replicaCount": 2, "ui": {"message": "Hello from a preview"},
                                },
                            },
                        },
                        "destination": {
                            "server": "https://kubernetes.default.svc", "namespace": "conference",
                        },
                        "syncPolicy": {
                            "automated": {"prune": true, "selfHeal": true},
                            "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
                        },
                    },
                }),
                "{cluster_type}"
            );
            assert!(!slots(&world).contains("app"));
            assert_eq!(status(&world.answer())["phase"], "Ready");
        }
    }
}

#[test]
fn registry_is_written_in_the_notation_of_argo_cd() {
    for (repository, url) in [
        ("oci://ghcr.io/acme/charts", "ghcr.io/acme/charts"),
        ("oci://registry.example.org:5000/charts/", "registry.example.org:5000/charts"),
        ("https://charts.example.org/", "https://charts.example.org/"),
    ] {
        for mut world in running("vcluster") {
            world.xr["spec"]["parameters"]["app"]["chart"]["repository"] = json!(repository);
            let source = &manifest(&world, "app-application")["spec"]["source"];
            assert_eq!(source["repoURL"], url);
        }
    }
}

#[test]
fn app_follows_its_chart_and_its_values() {
    for mut world in running("vcluster") {
        let app = &mut world.xr["spec"]["parameters"]["app"];
        app["chart"]["version"] = json!("6.10.0");
        app["values"] = json!({"replicaCount": 3});
        let source = &manifest(&world, "app-application")["spec"]["source"];
        assert_eq!(source["targetRevision"], "6.10.0");
        assert_eq!(source["helm"]["valuesObject"], json!({"replicaCount": 3}));
        assert_eq!(status(&world.answer())["phase"], "Provisioning");
    }
}

#[test]
fn argo_cd_of_an_app_has_no_interface_unless_a_git_repository_needs_it() {
    let values = |world: &World| {
        desired(&world.answer())["argocd"]["spec"]["forProvider"].get("values").cloned()
    };
    let small = json!({
        "applicationSet": {"replicas": 0}, "dex": {"enabled": false},
        "notifications": {"enabled": false}, "server": {"replicas": 0},
    });
    for mut world in with_only("vcluster", &["app"]) {
        assert_eq!(values(&world), Some(small.clone()));
        let gitops = beginnings("vcluster")[0].xr["spec"]["parameters"]["gitops"].clone();
        world.xr["spec"]["parameters"]["gitops"] = gitops;
        assert_eq!(values(&world), None);
        calls(&mut world, "app-application");
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("gitops");
        assert_eq!(values(&world), Some(small.clone()));
        calls(&mut world, "app-application");
    }
}

#[test]
fn argo_cd_stays_as_long_as_an_app_or_a_git_repository_needs_it() {
    for cluster_type in TYPES {
        for (left, stays) in [("gitops", "app-application"), ("app", "gitops")] {
            for mut world in with_only(cluster_type, &["app", "gitops"]) {
                let parameters = world.xr["spec"]["parameters"].clone();
                let without = world.xr["spec"]["parameters"].as_object_mut().unwrap();
                without.remove(left).unwrap();
                calls(&mut world, stays);
                let gone = if left == "app" { "app-application" } else { left };
                assert!(!world.composed.contains_key(gone), "{cluster_type}: {gone}");
                world.xr["spec"]["parameters"] = parameters;
                calls(&mut world, stays);
                assert!(world.composed.contains_key(gone), "{cluster_type}: {gone}");
            }
        }
    }
}

#[test]
fn argo_cd_leaves_after_the_last_of_its_applications() {
    for cluster_type in TYPES {
        for mut world in with_only(cluster_type, &["app", "gitops"]) {
            let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
            parameters.remove("app");
            parameters.remove("gitops");
            world.held = ["app-application"].into();
            for _ in 0..10 {
                world.reconcile(|_| Mood::Ready);
            }
            assert!(world.composed.contains_key("argocd"), "{cluster_type}");
            world.held.clear();
            for _ in 0..10 {
                world.reconcile(|_| Mood::Ready);
            }
            let left = slots(&world);
            for slot in ["argocd", "app-application", "app-application-leaving", "gitops"] {
                assert!(!left.contains(slot), "{cluster_type}: {left:?}");
            }
            assert_eq!(status(&world.answer())["phase"], "Ready", "{cluster_type}");
        }
    }
}

#[test]
fn app_of_an_earlier_release_keeps_its_release() {
    for cluster_type in TYPES {
        for mut world in with_earlier_app(cluster_type) {
            let all = desired(&world.answer());
            assert_eq!(all["app"]["kind"], "Release", "{cluster_type}");
            for slot in ["app-application", "argocd"] {
                assert!(!all.contains_key(slot), "{cluster_type}: {slot}");
            }
            assert_eq!(status(&world.answer())["phase"], "Ready");
            let app = &mut world.xr["spec"]["parameters"]["app"];
            app["chart"]["version"] = json!("6.10.0");
            app["values"] = json!({"replicaCount": 1});
            let params = desired(&world.answer())["app"]["spec"]["forProvider"].clone();
            assert_eq!(params["chart"]["version"], "6.10.0");
            assert_eq!(params["values"], json!({"replicaCount": 1}));
            // Argo CD for a Git repository does not take over the app.
            let gitops = beginnings("vcluster")[0].xr["spec"]["parameters"]["gitops"].clone();
            world.xr["spec"]["parameters"]["gitops"] = gitops;
            let world = world.settle(|_| Mood::Ready);
            let left = slots(&world);
            assert!(left.contains("gitops") && left.contains("app"), "{left:?}");
            assert!(!left.contains("app-application"), "{left:?}");
        }
    }
}

#[test]
fn app_of_an_earlier_release_moves_when_it_is_removed_and_added_again() {
    for cluster_type in TYPES {
        for mut world in with_earlier_app(cluster_type) {
            let app = world.xr["spec"]["parameters"]["app"].clone();
            world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("app");
            let mut world = world.settle(|_| Mood::Ready);
            assert!(!world.composed.contains_key("app"), "{cluster_type}");
            assert_eq!(status(&world.answer())["phase"], "Ready", "{cluster_type}");
            world.xr["spec"]["parameters"]["app"] = app;
            let world = world.settle(|_| Mood::Ready);
            assert!(world.composed.contains_key("app-application"), "{cluster_type}");
            assert!(!world.composed.contains_key("app"), "{cluster_type}");
            assert_eq!(status(&world.answer())["phase"], "Ready", "{cluster_type}");
        }
    }
}

#[test]
fn app_that_is_added_again_waits_for_the_end_of_its_earlier_release() {
    for mut world in with_earlier_app("vcluster") {
        let app = world.xr["spec"]["parameters"]["app"].clone();
        world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("app");
        world.held = ["app"].into();
        for _ in 0..6 {
            world.reconcile(|_| Mood::Ready);
        }
        assert!(world.leaving.contains_key("app"));
        world.xr["spec"]["parameters"]["app"] = app;
        for _ in 0..6 {
            world.reconcile(|_| Mood::Ready);
            assert!(!world.composed.contains_key("app-application"));
        }
        let message = crate::line(&world, "app-application")["message"].clone();
        assert_eq!(message, "waits for the earlier app to be deleted");
        world.held.clear();
        let world = world.settle(|_| Mood::Ready);
        assert!(world.composed.contains_key("app-application"));
    }
}

/// An app that runs is not stopped by a rule that came later. Only a change of its chart is
/// rejected.
#[test]
fn app_with_a_private_repository_continues_and_cannot_change_its_chart() {
    for mut world in with_earlier_app("vcluster") {
        let private = json!("http://10.0.0.1:8080/charts");
        world.xr["spec"]["parameters"]["app"]["chart"]["repository"] = private.clone();
        let release = &mut world.composed.get_mut("app").unwrap().object;
        release["spec"]["forProvider"]["chart"]["repository"] = private;
        assert_eq!(status(&world.answer())["phase"], "Ready");
        world.xr["spec"]["parameters"]["app"]["values"] = json!({"replicaCount": 5});
        assert!(!is_fatal(&world.answer()));
        world.input["environment"]["chartRepositories"] = json!(["https://charts.acme.io"]);
        assert!(!is_fatal(&world.answer()));
        world.xr["spec"]["parameters"]["app"]["chart"]["version"] = json!("6.9.3");
        assert!(is_fatal(&world.answer()));
    }
    for mut world in running("vcluster") {
        world.input["environment"]["chartRepositories"] = json!(["https://charts.acme.io"]);
        assert_eq!(status(&world.answer())["phase"], "Ready");
        world.xr["spec"]["parameters"]["app"]["chart"]["version"] = json!("6.9.3");
        assert!(is_fatal(&world.answer()));
    }
}

#[test]
fn deep_values_of_an_earlier_app_continue() {
    let deep = (0..25).fold(json!(1), |inner, _| json!({"a": inner}));
    for mut world in with_earlier_app("vcluster") {
        world.xr["spec"]["parameters"]["app"]["values"] = deep.clone();
        assert!(is_fatal(&world.answer()));
        let release = &mut world.composed.get_mut("app").unwrap().object;
        release["spec"]["forProvider"]["values"] = deep.clone();
        assert!(!is_fatal(&world.answer()));
    }
}

/// The provider of Releases keeps charts by name and version only. A chart of a user must not
/// reach it, in any API and at any schema revision.
#[test]
fn release_of_a_new_environment_has_no_repository_of_a_user() {
    let mut worlds: Vec<World> = support::examples()
        .iter()
        .filter(|example| example.state == "nothing")
        .map(World::new)
        .collect();
    worlds.extend(TYPES.into_iter().flat_map(beginnings));
    let mut releases = 0;
    for world in worlds {
        for revision in [1, 2, 3] {
            let mut world = world.clone();
            world.input["schemaRevision"] = json!(revision);
            let mut urls = Vec::new();
            name_urls(&mut world.xr["spec"], &mut urls);
            let world = world.settle(|_| Mood::Ready);
            for (slot, object) in desired(&world.answer()) {
                if object["kind"] != "Release" {
                    continue;
                }
                releases += 1;
                let text = Value::from(object).to_string();
                for url in &urls {
                    assert!(!text.contains(url), "{slot}, revision {revision}: {url}");
                }
            }
        }
    }
    assert!(releases > 20, "{releases}");
}

/// Gives every URL of a spec a host of its own.
fn name_urls(value: &mut Value, hosts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| name_urls(field, hosts)),
        Value::Array(items) => items.iter_mut().for_each(|item| name_urls(item, hosts)),
        Value::String(text) if text.contains("://") => {
            let host = format!("user{}.example.org", hosts.len());
            *text = format!("https://{host}/x");
            hosts.push(host);
        }
        _ => {}
    }
}
