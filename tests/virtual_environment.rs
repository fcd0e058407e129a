//! What a virtual environment asks for and when, what it keeps, and how it lets go of what nobody wants any more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::Flavour;
use serde_json::{Value, json};
use support::world::{self, Mood, World, desired, is_fatal, status};

const TYPES: [&str; 4] = ["vcluster", "gke", "eks", "aks"];

/// An environment of a type in both flavours, before anything exists.
fn beginnings(cluster_type: &str) -> Vec<World> {
    let examples = support::examples().into_iter();
    let examples = examples.filter(|it| it.api.info().name == "virtual-environment" && it.state == "nothing");
    let mut worlds = Vec::new();
    for example in examples {
        let mut world = World::new(&example);
        if cluster_type != "vcluster" {
            let variant = example.folder.join("variants").join(format!("{cluster_type}.yaml"));
            world.xr = support::stored(&variant);
        }
        worlds.push(world);
    }
    assert_eq!(worlds.len(), 2);
    worlds
}

/// The same with everything ready.
fn running(cluster_type: &str) -> Vec<World> {
    beginnings(cluster_type).into_iter().map(|world| world.settle(|_| Mood::Ready)).collect()
}

fn slots(world: &World) -> BTreeSet<String> {
    desired(&world.answer()).into_keys().filter(|slot| slot != "connection").collect()
}

/// The slots that a call asks for beside those that earlier ones did, without Usages.
fn new_slots(world: &mut World) -> Vec<String> {
    let before: BTreeSet<String> = world.composed.keys().cloned().collect();
    let response = world.reconcile(|_| Mood::Ready);
    assert!(!is_fatal(&response), "{:?}", response.results);
    let new = desired(&response).into_keys().filter(|slot| !before.contains(slot));
    new.filter(|slot| slot != "connection" && !slot.starts_with("usage-")).collect()
}

#[test]
fn first_a_cluster_then_what_is_inside_then_what_needs_kinds_of_theirs() {
    let first = [
        ("vcluster", vec!["helm-config", "host-namespace", "kubernetes-config", "vcluster"]),
        ("gke", vec!["cluster", "helm-config", "kubernetes-config", "node-pool"]),
        ("eks", vec!["cluster", "cluster-auth", "helm-config", "kubernetes-config", "node-pool"]),
        ("aks", vec!["cluster", "helm-config", "kubernetes-config"]),
    ];
    for (cluster_type, first) in first {
        for mut world in beginnings(cluster_type) {
            assert_eq!(new_slots(&mut world), first, "{cluster_type}");
            assert_eq!(new_slots(&mut world), ["app", "argocd", "knative", "knative-namespace"]);
            assert_eq!(new_slots(&mut world), ["gitops", "knative-serving"]);
            assert_eq!(new_slots(&mut world), [""; 0]);
        }
    }
}

#[test]
fn nothing_is_installed_before_the_kubeconfig_was_observed() {
    for cluster_type in TYPES {
        for mut world in beginnings(cluster_type) {
            new_slots(&mut world);
            for composed in world.composed.values_mut() {
                composed.details.clear();
            }
            assert!(!slots(&world).contains("app"), "{cluster_type}");
            let told = status(&world.answer());
            assert_eq!(told.get("kubeconfigSecret"), None, "{cluster_type}");
            let app = told["resources"].as_array().unwrap().iter().find(|line| line["slot"] == "app");
            assert_eq!(app.unwrap()["message"], "waits for the cluster's kubeconfig", "{cluster_type}");
        }
    }
}

#[test]
fn the_provider_configs_read_the_secret_that_the_cluster_writes() {
    for cluster_type in TYPES {
        for world in running(cluster_type) {
            let writer = match cluster_type {
                "vcluster" => "vcluster",
                "eks" => "cluster-auth",
                _ => "cluster",
            };
            let all = desired(&world.answer());
            let written = &all[writer]["spec"]["writeConnectionSecretToRef"];
            for config in ["helm-config", "kubernetes-config"] {
                let spec = &all[config]["spec"];
                let read = &spec["credentials"]["secretRef"];
                assert_eq!((&read["name"], &read["key"]), (&written["name"], &json!("kubeconfig")));
                if world.flavour == Flavour::Claims {
                    assert_eq!(read["namespace"], written["namespace"]);
                }
                let identity = match cluster_type {
                    "gke" => json!({"type": "GoogleApplicationCredentials", "source": "InjectedIdentity"}),
                    "aks" => json!({"type": "AzureWorkloadIdentityCredentials", "source": "Environment",
                                    "env": {"name": "AZURE_WORKLOAD_IDENTITY_CREDENTIALS"}}),
                    _ => Value::Null,
                };
                assert_eq!(spec.get("identity").unwrap_or(&Value::Null), &identity, "{cluster_type}");
            }
        }
    }
}

#[test]
fn a_kubeconfig_is_for_a_name_that_the_certificate_has() {
    for world in running("vcluster") {
        let release = &desired(&world.answer())["vcluster"];
        let params = &release["spec"]["forProvider"];
        let (values, namespace) = (&params["values"], params["namespace"].as_str().unwrap());
        let name = release["metadata"]["annotations"]["crossplane.io/external-name"].as_str().unwrap();
        let address = format!("{name}.{namespace}.svc");
        assert_eq!(values["exportKubeConfig"]["server"], format!("https://{address}:443"));
        assert_eq!(values["controlPlane"]["proxy"]["extraSANs"][0], address);
        let expected =
            if world.flavour == Flavour::Claims { "preview-7x9kd" } else { "team-shop-preview-1f53a" };
        assert_eq!(namespace, expected);
        let details = &release["spec"]["connectionDetails"][0];
        assert_eq!(
            (&details["name"], &details["namespace"]),
            (&json!(format!("vc-{name}")), &json!(namespace))
        );
        let told = status(&world.answer());
        assert_eq!(told["url"], format!("https://{address}"));
        assert_eq!(told["endpoint"], format!("https://{address}:443"));
    }
}

/// What becomes of each slot inside: `keep` as it is left behind, `delete`; absent when it is let go. With the Usages.
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
    all.filter(|(slot, _)| support::INSIDE.contains(&slot.as_str()))
        .map(|(slot, object)| (slot, fate(&object)))
        .collect()
}

fn without_add_ons(world: &mut World) {
    let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
    for field in ["app", "gitops", "knative"] {
        parameters.remove(field);
    }
}

#[test]
fn add_ons_leave_a_virtual_cluster_step_by_step_and_in_order() {
    for mut world in running("vcluster") {
        assert!(inside(&world).values().all(|fate| *fate == "keep"));
        assert_eq!(inside(&world).len(), 6);
        without_add_ons(&mut world);
        let waiting = [("argocd", "keep"), ("knative", "keep"), ("knative-namespace", "keep")];
        let users = [("app", "delete"), ("gitops", "delete"), ("knative-serving", "delete")];
        let rest = waiting.map(|(slot, _)| (slot, "delete"));
        let steps = [
            [waiting, users.map(|(slot, _)| (slot, "keep"))].concat(),
            // Their Usages are in force.
            [waiting, users].concat(),
            waiting.into(),
            // Gone, and so are their Usages after this call.
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
            world.reconcile(|_| Mood::Ready);
        }
        assert_eq!(status(&world.answer())["phase"], "Ready");
    }
}

/// The Usages by what is inside.
fn usages(world: &World) -> Vec<String> {
    let beneath = ["-config", "-by-vcluster", "-by-node-pool", "-by-cluster-auth"];
    let inside = |slot: &String| slot.starts_with("usage-") && !beneath.iter().any(|end| slot.ends_with(end));
    slots(world).into_iter().filter(inside).collect()
}

#[test]
fn what_leaves_a_virtual_cluster_keeps_the_cluster_until_it_is_gone() {
    for mut world in running("vcluster") {
        assert_eq!(usages(&world), [""; 0]);
        without_add_ons(&mut world);
        let users = [
            "usage-helm-config-by-app",
            "usage-kubernetes-config-by-gitops",
            "usage-kubernetes-config-by-knative-serving",
            "usage-vcluster-by-app",
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
fn add_ons_leave_a_managed_cluster_in_order_and_their_usages_after_them() {
    for cluster_type in ["gke", "eks", "aks"] {
        for mut world in running(cluster_type) {
            assert!(inside(&world).values().all(|fate| *fate == "delete"));
            let all = [
                "usage-argocd-by-gitops",
                "usage-helm-config-by-app",
                "usage-helm-config-by-argocd",
                "usage-helm-config-by-knative",
                "usage-knative-by-knative-serving",
                "usage-knative-namespace-by-knative-serving",
                "usage-kubernetes-config-by-gitops",
                "usage-kubernetes-config-by-knative-namespace",
                "usage-kubernetes-config-by-knative-serving",
            ];
            let waiting = [all[2], all[3], all[7]];
            let without_app: Vec<_> = all.into_iter().filter(|it| !it.ends_with("-app")).collect();
            assert_eq!(usages(&world), all, "{cluster_type}");
            without_add_ons(&mut world);
            let others = ["argocd", "gitops", "knative", "knative-namespace", "knative-serving"];
            let steps: [(&[&str], &[&str]); 6] = [
                (&others, &all),
                (&["argocd", "knative", "knative-namespace"], &without_app),
                (&["argocd", "knative", "knative-namespace"], &waiting),
                (&[], &waiting),
                (&[], &[]),
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
fn what_a_managed_cluster_has_inside_is_left_behind_until_its_usages_are_in_force() {
    for cluster_type in ["gke", "eks", "aks"] {
        for beginning in beginnings(cluster_type) {
            let running = beginning.clone().settle(|_| Mood::Ready);
            let after = inside(&running);
            assert!(
                after.len() > 1 && after.values().all(|fate| *fate == "delete"),
                "{cluster_type}: {after:?}"
            );
            for usage in usages(&running) {
                let (_, by) = usage.rsplit_once("-by-").unwrap();
                let mood = |slot: &str| if slot == usage { Mood::Silent } else { Mood::Ready };
                let world = beginning.clone().settle(mood);
                assert_eq!(inside(&world)[by], "keep", "{cluster_type}: {by} without {usage}");
                assert_ne!(status(&world.answer())["phase"], "Ready");
                assert_eq!(inside(&world.settle(|_| Mood::Ready)), after, "{cluster_type}");
            }
            // Whatever becomes of a Usage: it stays so.
            let mut world = running;
            world.composed.retain(|slot, _| !slot.starts_with("usage-"));
            assert_eq!(inside(&world), after, "{cluster_type}");
        }
    }
}

#[test]
fn what_a_managed_cluster_has_inside_is_left_behind_until_its_way_in_is_kept() {
    for cluster_type in ["gke", "eks", "aks"] {
        for beginning in beginnings(cluster_type) {
            let is_beneath = |slot: &str| slot.starts_with("usage-") && slot.ends_with("-by-helm-config");
            let world = beginning.settle(|slot| if is_beneath(slot) { Mood::Silent } else { Mood::Ready });
            assert_eq!(inside(&world)["app"], "keep", "{cluster_type}");
        }
    }
}

#[test]
fn who_deletes_stays_for_as_long_as_there_is_something_to_delete() {
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
            assert!(!world.composed.contains_key("gitops"), "core forgets what nobody asks for");
            world.held.clear();
            for _ in 0..4 {
                world.reconcile(|_| Mood::Ready);
            }
            assert_eq!(inside(&world), BTreeMap::new(), "{cluster_type}");
        }
    }
}

/// The line of a slot in status.
fn line(world: &World, slot: &str) -> Value {
    let status = status(&world.answer());
    let lines = status["resources"].as_array().unwrap();
    lines.iter().find(|line| line["slot"] == slot).cloned().unwrap_or_default()
}

#[test]
fn an_add_on_that_cannot_leave_is_told_of() {
    for cluster_type in TYPES {
        for mut world in running(cluster_type) {
            without_add_ons(&mut world);
            world.held = ["gitops", "app"].into();
            for _ in 0..6 {
                world.reconcile(|_| Mood::Ready);
            }
            let watch = &world.composed["gitops-leaving"].object;
            assert_eq!(watch["spec"]["watch"], true, "or nobody sees it go");
            let answer = world.answer();
            assert_eq!(status(&answer)["phase"], "Provisioning", "{cluster_type}");
            let condition = |answer: &function_sdk_rust::proto::v1::RunFunctionResponse| {
                (
                    answer.conditions[0].reason.clone(),
                    answer.conditions[0].message.clone().unwrap_or_default(),
                )
            };
            let (reason, message) = condition(&answer);
            assert_eq!(reason, "Waiting");
            assert!(message.starts_with("gitops-leaving (Application): is being deleted"), "{message}");
            let shown = line(&world, "gitops-leaving");
            assert_eq!((&shown["ready"], &shown["reason"]), (&json!(false), &json!("Deleting")));
            let app = line(&world, "usage-helm-config-by-app");
            assert_eq!(app["message"], "waits for app to be deleted");
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
fn an_add_on_that_is_wanted_again_stays() {
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
fn settings_reach_nothing_that_runs_but_by_networks() {
    for cluster_type in TYPES {
        for mut world in running(cluster_type) {
            let before = desired(&world.answer());
            let section = world.input["environment"].as_object_mut().unwrap();
            section.insert(
                "charts".into(),
                json!({"vcluster": "0.40.0", "argocd": "11.0.0", "knative": "v2.0.0"}),
            );
            section.insert(
                "machineTypes".into(),
                json!({"gke": {"medium": "n2-standard-8"}, "eks": {"medium": "c7i.large"}, "aks": {"medium": "Standard_E4s_v5"}}),
            );
            section.insert("gke".into(), json!({"location": "us-central1", "projectId": "other"}));
            assert_eq!(desired(&world.answer()), before, "{cluster_type}");
            world.input["environment"] = json!({});
            assert_eq!(desired(&world.answer()), before, "{cluster_type}: without Settings");
        }
    }
}

#[test]
fn networks_of_settings_reach_a_managed_cluster_that_runs() {
    let paths = [
        ("gke", "/spec/forProvider/masterAuthorizedNetworksConfig/cidrBlocks/0/cidrBlock"),
        ("eks", "/spec/forProvider/vpcConfig/publicAccessCidrs/0"),
        ("aks", "/spec/forProvider/apiServerAccessProfile/authorizedIpRanges/0"),
    ];
    for (cluster_type, path) in paths {
        for mut world in running(cluster_type) {
            let network = |world: &World| {
                let cluster = Value::Object(desired(&world.answer())["cluster"].clone());
                cluster.pointer(path).cloned().unwrap_or_default()
            };
            assert_eq!(network(&world), "198.51.100.0/24");
            world.input["environment"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
            assert_eq!(network(&world), "203.0.113.0/24");
            world.reconcile(|_| Mood::Ready);
            world.input["environment"]["allowedCidrs"] = json!([]);
            assert_eq!(network(&world), "203.0.113.0/24");
        }
    }
}

#[test]
fn a_type_that_settings_chose_stays() {
    for cluster_type in TYPES {
        for mut world in beginnings(cluster_type) {
            world.xr["spec"]["parameters"].as_object_mut().unwrap().remove("type");
            world.input["environment"]["typeBySize"] = json!({"small": cluster_type, "medium": cluster_type});
            let mut world = world.settle(|_| Mood::Ready);
            let before = slots(&world);
            world.input["environment"]["typeBySize"] = json!({"small": "aks", "medium": "gke"});
            assert_eq!(slots(&world), before);
            assert_eq!(status(&world.answer())["type"], cluster_type);
        }
    }
}

#[test]
fn a_new_size_changes_what_follows_from_it_and_nothing_else() {
    for mut world in running("vcluster") {
        let before = Value::Object(desired(&world.answer())["vcluster"].clone());
        world.xr["spec"]["parameters"]["size"] = json!("large");
        let now = Value::Object(desired(&world.answer())["vcluster"].clone());
        let changed = support::rewritten(&before, &now);
        let allowed = ["resources", "resourceQuota", "limitRange", "paved-road.fn.crossplane.io/size"];
        assert!(changed.len() > 5, "{changed:?}");
        for path in changed {
            assert!(allowed.iter().any(|part| path.contains(part)), "{path}");
        }
    }
    for mut world in running("gke") {
        world.xr["spec"]["parameters"]["size"] = json!("large");
        let pool = &desired(&world.answer())["node-pool"];
        assert_eq!(pool["spec"]["forProvider"]["nodeConfig"]["machineType"], "e2-standard-8");
    }
}

#[test]
fn an_exposed_cluster_tells_the_address_of_its_load_balancer() {
    for mut world in running("vcluster") {
        let inner = status(&world.answer())["endpoint"].clone();
        world.xr["spec"]["parameters"]["expose"] = json!("loadBalancer");
        let release = &desired(&world.answer())["vcluster"];
        let values = &release["spec"]["forProvider"]["values"];
        assert_eq!(values["controlPlane"]["service"]["spec"]["type"], "LoadBalancer");
        world.reconcile(|_| Mood::Ready);
        let service = world.composed.get_mut("vcluster-service").unwrap();
        assert_eq!(service.object["spec"]["managementPolicies"], json!(["Observe"]));
        assert_eq!(service.object["spec"]["watch"], true, "or nobody sees the address come");
        let balanced = service.object["status"]["atProvider"]["manifest"].clone();
        for (kind, ingress) in [
            ("ClusterIP", json!(null)),
            ("LoadBalancer", json!(null)),
            ("LoadBalancer", json!([])),
            ("LoadBalancer", json!([{}])),
        ] {
            let service = world.composed.get_mut("vcluster-service").unwrap();
            let seen = &mut service.object["status"]["atProvider"]["manifest"];
            seen["spec"]["type"] = json!(kind);
            seen["status"]["loadBalancer"] = json!({"ingress": ingress});
            let told = status(&world.answer());
            assert_eq!(
                (&told["phase"], &told["endpoint"]),
                (&json!("Provisioning"), &inner),
                "{kind} {ingress}"
            );
            assert_eq!(line(&world, "vcluster-service")["ready"], false);
        }
        let service = world.composed.get_mut("vcluster-service").unwrap();
        service.object["status"]["atProvider"]["manifest"] = balanced;
        for (ingress, endpoint) in [
            (json!({"hostname": "lb.example.org"}), "https://lb.example.org"),
            (json!({"ip": "203.0.113.9"}), "https://203.0.113.9"),
            (json!({"ip": "2001:db8::9"}), "https://[2001:db8::9]"),
        ] {
            let service = world.composed.get_mut("vcluster-service").unwrap();
            service.object["status"]["atProvider"]["manifest"]["status"]["loadBalancer"]["ingress"] =
                json!([ingress]);
            assert_eq!(status(&world.answer())["endpoint"], endpoint);
        }
        let service = world.composed.get_mut("vcluster-service").unwrap();
        service.object["status"]["atProvider"] = json!({});
        assert_eq!(status(&world.answer())["endpoint"], inner);
        world.xr["spec"]["parameters"]["expose"] = json!("cluster");
        world.reconcile(|_| Mood::Ready);
        assert!(!world.composed.contains_key("vcluster-service"));
        assert_eq!(status(&world.answer())["endpoint"], inner);
    }
}

#[test]
fn managed_clusters_are_closed_but_to_the_networks_of_settings() {
    let closed = [
        ("gke", "/privateClusterConfig/enablePrivateNodes", json!(true)),
        ("gke", "/masterAuthorizedNetworksConfig/gcpPublicCidrsAccessEnabled", json!(false)),
        ("gke", "/masterAuthorizedNetworksConfig/cidrBlocks", json!([{"cidrBlock": "198.51.100.0/24"}])),
        ("gke", "/releaseChannel/channel", json!("REGULAR")),
        ("eks", "/vpcConfig/endpointPrivateAccess", json!(true)),
        ("eks", "/vpcConfig/publicAccessCidrs", json!(["198.51.100.0/24"])),
        ("eks", "/accessConfig/authenticationMode", json!("API")),
        ("aks", "/localAccountDisabled", json!(true)),
        ("aks", "/apiServerAccessProfile/authorizedIpRanges", json!(["198.51.100.0/24"])),
        ("aks", "/azureActiveDirectoryRoleBasedAccessControl/azureRbacEnabled", json!(true)),
        ("aks", "/automaticUpgradeChannel", json!("stable")),
    ];
    for (cluster_type, path, value) in closed {
        for world in beginnings(cluster_type) {
            let params = world::desired(&world.answer())["cluster"]["spec"]["forProvider"].clone();
            assert_eq!(params.pointer(path), Some(&value), "{cluster_type}{path}");
        }
    }
}

#[test]
fn names_of_provider_configs_fit_into_a_label() {
    let name = "x".repeat(63);
    let twin = format!("{}y", &name[..62]);
    for world in beginnings("vcluster") {
        let names = |name: &str| -> Vec<String> {
            let mut world = world.clone();
            world.xr["metadata"]["name"] = json!(name);
            let mut world = world.settle(|_| Mood::Ready);
            let all = desired(&world.answer());
            let name = |slot: &str| all[slot]["metadata"]["name"].as_str().unwrap().to_owned();
            let configs = [name("helm-config"), name("kubernetes-config")];
            for (slot, config) in [("app", 0), ("argocd", 0), ("gitops", 1), ("knative-serving", 1)] {
                assert_eq!(all[slot]["spec"]["providerConfigRef"]["name"], configs[config], "{slot}");
            }
            // What an earlier release called otherwise keeps its name.
            let observed = &mut world.composed.get_mut("helm-config").unwrap().object["metadata"]["name"];
            *observed = json!("an-earlier-name");
            world.composed.remove("app");
            let now = desired(&world.answer());
            assert_eq!(now["helm-config"]["metadata"]["name"], "an-earlier-name");
            assert_eq!(now["app"]["spec"]["providerConfigRef"]["name"], "an-earlier-name");
            configs.into()
        };
        let (one, other) = (names(&name), names(&twin));
        let all: BTreeSet<&String> = one.iter().chain(&other).collect();
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(all.iter().all(|name| name.len() <= 63), "{all:?}");
        let uid5 = if world.flavour == Flavour::Claims { "5f0c9" } else { "1f53a" };
        assert_eq!(names("preview")[0], format!("preview-helm-config-{uid5}"));
    }
}
