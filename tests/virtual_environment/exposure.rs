//! Access to a virtual cluster, and the networks that its workloads can reach.

use serde_json::{Value, json};

use crate::support::virtual_environment::{beginnings, running};
use crate::support::world::{Mood, World, desired};

/// `spec.forProvider.values` of the virtual cluster's release.
fn values(world: &World) -> Value {
    desired(&world.answer())["vcluster"]["spec"]["forProvider"]["values"].clone()
}

fn expose(mut world: World, expose: &str) -> World {
    world.xr["spec"]["parameters"]["expose"] = json!(expose);
    world
}

/// The same environment as an earlier release composed it.
fn of_the_first_revision(mut world: World) -> World {
    for composed in world.composed.values_mut() {
        if let Some(annotations) = composed.object["metadata"]["annotations"].as_object_mut() {
            annotations.remove("paved-road.fn.crossplane.io/schema-revision");
        }
    }
    world
}

#[test]
fn workloads_do_not_reach_the_metadata_services_of_clouds() {
    for world in beginnings("vcluster") {
        let except =
            values(&world)["policies"]["networkPolicy"]["workload"]["publicEgress"]["except"]
                .clone();
        for network in [
            "10.0.0.0/8",
            "100.64.0.0/10",
            "169.254.169.254/32",
            "169.254.170.0/24",
            "168.63.129.16/32",
        ] {
            assert!(except.as_array().unwrap().contains(&json!(network)), "{network}: {except}");
        }
    }
}

#[test]
fn exceptions_have_the_name_that_an_earlier_chart_knows() {
    for mut world in beginnings("vcluster") {
        world.input["environment"]["charts"] = json!({"vcluster": "0.30.4"});
        let policy = values(&world)["policies"]["networkPolicy"].clone();
        assert!(policy["outgoingConnections"]["ipBlock"]["except"].is_array(), "{policy}");
        assert_eq!(policy.get("workload"), None);
    }
}

#[test]
fn virtual_clusters_send_no_telemetry() {
    for world in beginnings("vcluster") {
        assert_eq!(values(&world)["telemetry"], json!({"enabled": false}));
    }
}

#[test]
fn quota_has_room_for_the_default_limit_of_every_pod() {
    for size in ["small", "medium", "large"] {
        for mut world in beginnings("vcluster") {
            world.xr["spec"]["parameters"]["size"] = json!(size);
            let values = values(&world);
            let policies = &values["policies"];
            let (quota, limit) =
                (&policies["resourceQuota"]["quota"], &policies["limitRange"]["default"]);
            let number = |value: &Value| -> u32 {
                value.as_str().unwrap().trim_end_matches("Gi").parse().unwrap()
            };
            let pods = number(&quota["count/pods"]);
            for resource in ["cpu", "memory", "ephemeral-storage"] {
                let most = number(&quota[format!("limits.{resource}")]);
                assert!(most >= pods * number(&limit[resource]), "{size}: {resource}");
            }
            let api = &values["controlPlane"]["statefulSet"]["resources"];
            assert!(
                api["limits"]["cpu"].is_string(),
                "{size}: the default limit would be its limit"
            );
        }
    }
}

#[test]
fn services_are_reachable_from_outside_only_if_exposed() {
    for world in beginnings("vcluster") {
        let quota = |world: &World| {
            let quota = values(world)["policies"]["resourceQuota"]["quota"].clone();
            (quota["services.loadbalancers"].clone(), quota["services.nodeports"].clone())
        };
        assert_eq!(quota(&world), (json!("0"), json!("0")));
        assert_eq!(quota(&expose(world.clone(), "loadBalancer")), (json!("1"), json!("2")));
        let running = world.settle(|_| Mood::Ready);
        assert_eq!(quota(&expose(running.clone(), "loadBalancer")), (json!("1"), json!("2")));
        assert_eq!(quota(&running), (json!("0"), json!("0")));
    }
}

#[test]
fn load_balancer_has_the_networks_and_annotations_of_settings() {
    let internal = json!({"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"});
    for mut world in beginnings("vcluster") {
        world.input["environment"]["allowedCidrs"] = json!(["198.51.100.0/24", "10.0.0.0/8"]);
        world.input["environment"]["loadBalancerAnnotations"] = internal.clone();
        let service = |world: &World| values(world)["controlPlane"]["service"].clone();
        let closed = json!({"spec": {"type": "ClusterIP"}});
        assert_eq!(service(&world), closed);
        let open = json!({"annotations": internal, "spec": {
            "type": "LoadBalancer", "loadBalancerSourceRanges": ["198.51.100.0/24", "10.0.0.0/8"]}});
        let mut exposed = expose(world, "loadBalancer");
        assert_eq!(service(&exposed), open);
        exposed = exposed.settle(|_| Mood::Ready);
        assert_eq!(service(&exposed), open);
        exposed.input["environment"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
        assert_eq!(
            service(&exposed)["spec"]["loadBalancerSourceRanges"],
            json!(["203.0.113.0/24"])
        );
        assert_eq!(
            service(&expose(exposed, "cluster")),
            closed,
            "Kubernetes rejects source ranges there"
        );
    }
}

#[test]
fn load_balancer_of_an_earlier_release_stays_open_to_its_users() {
    for mut world in running("vcluster").map(|world| expose(world, "loadBalancer")) {
        world.input["environment"]["allowedCidrs"] = json!([]);
        let mut world = of_the_first_revision(world.settle(|_| Mood::Ready));
        world.input["environment"]["allowedCidrs"] = json!(["198.51.100.0/24"]);
        assert_eq!(
            values(&world)["controlPlane"]["service"]["spec"],
            json!({"type": "LoadBalancer"})
        );
    }
}

#[test]
fn platform_teams_can_forbid_new_load_balancers_and_running_ones_stay() {
    for mut world in beginnings("vcluster").map(|world| expose(world, "loadBalancer")) {
        let running = world.clone().settle(|_| Mood::Ready);
        world.input["environment"]["exposeAllowed"] = json!(false);
        let refused = world.answer();
        let told = refused.results.iter().map(|result| result.message.as_str()).collect::<String>();
        assert!(told.contains("the platform team does not allow load balancers"), "{told}");
        let mut running = running;
        let before = values(&running);
        running.input["environment"]["exposeAllowed"] = json!(false);
        assert_eq!(values(&running), before);
    }
}

#[test]
fn kourier_asks_for_no_load_balancer_inside_a_virtual_cluster() {
    for (cluster_type, service) in [("vcluster", json!("ClusterIP")), ("gke", Value::Null)] {
        for world in running(cluster_type) {
            let serving = &desired(&world.answer())["knative-serving"];
            let kourier = &serving["spec"]["forProvider"]["manifest"]["spec"]["ingress"]["kourier"];
            assert_eq!(kourier["service-type"], service, "{cluster_type}");
        }
    }
}
