//! Virtual environments of every type, in both flavours.

use super::world::{Mood, World};

/// What a claim's `type` may be.
pub const TYPES: [&str; 4] = ["vcluster", "gke", "eks", "aks"];

/// What an environment has inside its cluster.
pub const INSIDE: [&str; 6] =
    ["app", "argocd", "gitops", "knative", "knative-namespace", "knative-serving"];

/// An environment of a type in both flavours, before anything exists.
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

/// The same with everything ready.
pub fn running(cluster_type: &str) -> [World; 2] {
    beginnings(cluster_type).map(|world| world.settle(|_| Mood::Ready))
}
