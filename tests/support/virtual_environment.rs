//! Virtual environments of every type, in the claims API and in the namespaced API.

use serde_json::{Value, json};

use function_paved_road::apis::Flavour;

use super::world::{Composed, Details, Mood, World};

/// The values of `type` in a claim.
pub const TYPES: [&str; 4] = ["vcluster", "gke", "eks", "aks"];

/// The slots of resources inside the environment's cluster.
pub const INSIDE: [&str; 6] =
    ["app-application", "argocd", "gitops", "knative", "knative-namespace", "knative-serving"];

/// An environment of a type in both APIs, before any resource exists.
pub fn beginnings(cluster_type: &str) -> [World; 2] {
    let examples = super::examples().into_iter();
    let examples =
        examples.filter(|it| it.api.info().name == "virtual-environment" && it.state == "nothing");
    let begin = |example: super::Example| {
        let mut world = World::new(&example);
        if cluster_type != "vcluster" {
            let variant = example.folder.join("variants").join(format!("{cluster_type}.yaml"));
            world.xr = super::stored(&variant);
        }
        world
    };
    let worlds: Vec<World> = examples.map(begin).collect();
    worlds.try_into().unwrap()
}

/// The same after all resources are ready.
pub fn running(cluster_type: &str) -> [World; 2] {
    beginnings(cluster_type).map(|world| world.settle(|_| Mood::Ready))
}

/// The Release of an application, as v0.1.0 installed it.
pub fn earlier_app(world: &World) -> Value {
    let app = &world.xr["spec"]["parameters"]["app"];
    let config = &world.composed["helm-config"].object["metadata"]["name"];
    let own = |field: &str| world.xr["metadata"][field].clone();
    let uid = "00000000-0000-4000-8000-0000000000a1";
    let mut release = json!({
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {
            "name": format!("{}-a1", own("name").as_str().unwrap()), "uid": uid, "generation": 1,
            "labels": {
                "crossplane.io/composite": own("name"),
                "paved-road.fn.crossplane.io/composed": "true",
            },
            "annotations": {
                "crossplane.io/composition-resource-name": "app",
                "crossplane.io/external-name": "app",
            },
            "ownerReferences": [],
        },
        "spec": {
            "forProvider": {
                "chart": app["chart"], "namespace": app["namespace"], "values": app["values"],
                "wait": true, "waitTimeout": "8m0s",
            },
            "providerConfigRef": {"name": config},
            "rollbackLimit": 3,
        },
        "status": {
            "atProvider": {"state": "deployed", "revision": 1},
            "conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
                {"type": "Ready", "status": "True", "reason": "Available"},
            ],
        },
    });
    let orphan = world.composed.contains_key("vcluster");
    match world.flavour {
        Flavour::Claims if orphan => release["spec"]["deletionPolicy"] = json!("Orphan"),
        Flavour::Claims => {}
        Flavour::Namespaced => {
            release["apiVersion"] = json!("helm.m.crossplane.io/v1beta1");
            release["metadata"]["namespace"] = own("namespace");
            release["spec"]["providerConfigRef"]["kind"] = json!("ProviderConfig");
            if orphan {
                release["spec"]["managementPolicies"] =
                    json!(["Observe", "Create", "Update", "LateInitialize"]);
            }
        }
    }
    release
}

/// A running environment with all add-ons that schema revision 2 created. Its software is deleted
/// before its managed cluster.
pub fn earlier(cluster_type: &str) -> [World; 2] {
    beginnings(cluster_type).map(|mut world| {
        world.input["schemaRevision"] = json!(2);
        let mut world = world.settle(|_| Mood::Ready);
        world.input["schemaRevision"] = json!(3);
        world.settle(|_| Mood::Ready)
    })
}

/// An environment whose application is a Release, as v0.1.0 made it. It has no other content.
pub fn with_earlier_app(cluster_type: &str) -> [World; 2] {
    beginnings(cluster_type).map(|mut world| {
        let parameters = world.xr["spec"]["parameters"].as_object_mut().unwrap();
        parameters.retain(|field, _| !["gitops", "knative"].contains(&field.as_str()));
        let app = parameters.remove("app").unwrap();
        let mut world = world.settle(|_| Mood::Ready);
        world.xr["spec"]["parameters"]["app"] = app;
        let release = Composed { object: earlier_app(&world), details: Details::new() };
        world.composed.insert("app".to_owned(), release);
        world.settle(|_| Mood::Ready)
    })
}
