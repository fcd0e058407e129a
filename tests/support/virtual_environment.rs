//! Virtual environments of every type, in the claims API and in the namespaced API.

use super::world::{Mood, World};

/// The values of `type` in a claim.
pub const TYPES: [&str; 4] = ["vcluster", "gke", "eks", "aks"];

/// The slots of resources inside the environment's cluster.
pub const INSIDE: [&str; 6] =
    ["app", "argocd", "gitops", "knative", "knative-namespace", "knative-serving"];

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
