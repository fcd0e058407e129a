//! Virtual environments: the order of their resources, the resources that they preserve, and the
//! removal of those that are not needed any more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod app;
mod changes;
mod clouds;
mod exposure;
mod leaving;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use function_paved_road::apis::Flavour;
use serde_json::{Value, json};
use support::virtual_environment::{TYPES, beginnings, running};
use support::world::{self, Mood, World, desired, is_fatal, status};

fn slots(world: &World) -> BTreeSet<String> {
    desired(&world.answer()).into_keys().filter(|slot| slot != "connection").collect()
}

/// The new slots of a call, without Usages.
fn new_slots(world: &mut World) -> Vec<String> {
    let before: BTreeSet<String> = world.composed.keys().cloned().collect();
    let response = world.reconcile(|_| Mood::Ready);
    assert!(!is_fatal(&response), "{:?}", response.results);
    let new = desired(&response).into_keys().filter(|slot| !before.contains(slot));
    new.filter(|slot| slot != "connection" && !slot.starts_with("usage-")).collect()
}

/// The entry of a slot in the status.
fn line(world: &World, slot: &str) -> Value {
    let status = status(&world.answer());
    let lines = status["resources"].as_array().unwrap();
    lines.iter().find(|line| line["slot"] == slot).cloned().unwrap_or_default()
}

#[test]
fn cluster_comes_first_then_its_content_then_custom_resources() {
    let first = [
        ("vcluster", vec!["helm-config", "host-namespace", "kubernetes-config", "vcluster"]),
        ("gke", vec!["cluster", "helm-config", "kubernetes-config", "node-pool"]),
        (
            "eks",
            vec![
                "cluster",
                "cluster-auth",
                "ebs-csi-policy",
                "ebs-csi-role",
                "helm-config",
                "kubernetes-config",
                "node-pool",
            ],
        ),
        ("aks", vec!["cluster", "helm-config", "kubernetes-config"]),
    ];
    for (cluster_type, first) in first {
        for mut world in beginnings(cluster_type) {
            assert_eq!(new_slots(&mut world), first, "{cluster_type}");
            let volumes = ["addon-ebs-csi", "addon-pod-identity", "storage-class"];
            let volumes = volumes.into_iter().filter(|_| cluster_type == "eks");
            let mut second: Vec<&str> =
                ["argocd", "knative", "knative-namespace"].into_iter().chain(volumes).collect();
            second.sort_unstable();
            assert_eq!(new_slots(&mut world), second);
            assert_eq!(new_slots(&mut world), ["app-application", "gitops", "knative-serving"]);
            assert_eq!(new_slots(&mut world), [""; 0]);
        }
    }
}

#[test]
fn environment_without_parameters_is_the_small_virtual_cluster() {
    for world in beginnings("vcluster") {
        let of = |parameters: Option<Value>| {
            let mut world = world.clone();
            let spec = world.xr["spec"].as_object_mut().unwrap();
            spec.remove("parameters");
            spec.extend(parameters.map(|parameters| ("parameters".to_owned(), parameters)));
            let world = world.settle(|_| Mood::Ready);
            (desired(&world.answer()), status(&world.answer()))
        };
        let (resources, status) = of(None);
        assert_eq!((&status["type"], &status["phase"]), (&json!("vcluster"), &json!("Ready")));
        for same in [json!({}), json!({"size": "small", "type": "vcluster"})] {
            assert_eq!((resources.clone(), status.clone()), of(Some(same)));
        }
        let (larger, _) = of(Some(json!({"size": "medium"})));
        assert_ne!(resources, larger);
    }
}

#[test]
fn app_waits_for_the_observed_kubeconfig() {
    for cluster_type in TYPES {
        for mut world in beginnings(cluster_type) {
            new_slots(&mut world);
            for composed in world.composed.values_mut() {
                composed.details.clear();
            }
            assert!(!slots(&world).contains("app-application"), "{cluster_type}");
            let told = status(&world.answer());
            assert_eq!(told.get("kubeconfigSecret"), None, "{cluster_type}");
            let lines = told["resources"].as_array().unwrap();
            let app = lines.iter().find(|line| line["slot"] == "app-application");
            assert_eq!(
                app.unwrap()["message"],
                "waits for the cluster's kubeconfig",
                "{cluster_type}"
            );
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
                    "gke" => {
                        json!({"type": "GoogleApplicationCredentials", "source": "InjectedIdentity"})
                    }
                    "aks" => {
                        json!({"type": "AzureWorkloadIdentityCredentials", "source": "Environment",
                                    "env": {"name": "AZURE_WORKLOAD_IDENTITY_CREDENTIALS"}})
                    }
                    _ => Value::Null,
                };
                assert_eq!(
                    spec.get("identity").unwrap_or(&Value::Null),
                    &identity,
                    "{cluster_type}"
                );
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
        let name =
            release["metadata"]["annotations"]["crossplane.io/external-name"].as_str().unwrap();
        let address = format!("{name}.{namespace}.svc");
        assert_eq!(values["exportKubeConfig"]["server"], format!("https://{address}:443"));
        assert_eq!(values["controlPlane"]["proxy"]["extraSANs"][0], address);
        let expected = if world.flavour == Flavour::Claims {
            "preview-7x9kd-5f0c9"
        } else {
            "team-shop-preview-1f53a"
        };
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

#[test]
fn exposed_cluster_has_its_load_balancer_address_in_the_status() {
    for mut world in running("vcluster") {
        let inner = status(&world.answer())["endpoint"].clone();
        world.xr["spec"]["parameters"]["expose"] = json!("loadBalancer");
        let release = &desired(&world.answer())["vcluster"];
        let values = &release["spec"]["forProvider"]["values"];
        assert_eq!(values["controlPlane"]["service"]["spec"]["type"], "LoadBalancer");
        world.reconcile(|_| Mood::Ready);
        let service = world.composed.get_mut("vcluster-service").unwrap();
        assert_eq!(service.object["spec"]["managementPolicies"], json!(["Observe"]));
        assert_eq!(service.object["spec"]["watch"], true, "or the new address stays unnoticed");
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
fn managed_clusters_allow_only_the_networks_of_settings() {
    let closed = [
        ("gke", "/privateClusterConfig/enablePrivateNodes", json!(true)),
        ("gke", "/masterAuthorizedNetworksConfig/gcpPublicCidrsAccessEnabled", json!(false)),
        (
            "gke",
            "/masterAuthorizedNetworksConfig/cidrBlocks",
            json!([{"cidrBlock": "198.51.100.0/24"}]),
        ),
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
            for (slot, config) in
                [("argocd", 0), ("app-application", 1), ("gitops", 1), ("knative-serving", 1)]
            {
                assert_eq!(
                    all[slot]["spec"]["providerConfigRef"]["name"], configs[config],
                    "{slot}"
                );
            }
            // A config with another name from an earlier release keeps its name.
            let observed =
                &mut world.composed.get_mut("helm-config").unwrap().object["metadata"]["name"];
            *observed = json!("an-earlier-name");
            world.composed.remove("knative");
            let now = desired(&world.answer());
            assert_eq!(now["helm-config"]["metadata"]["name"], "an-earlier-name");
            assert_eq!(now["knative"]["spec"]["providerConfigRef"]["name"], "an-earlier-name");
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
