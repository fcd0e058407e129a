//! provider-upjet-azure.

use serde_json::json;

use super::kind_behaviour::{KindBehaviour, UPJET, details};
use super::rules::{Replaced, Rules};

/// The error when changing a machine type without a temporary pool.
const ROTATION: &str = "`temporary_name_for_rotation` must be specified when updating any of the \
     following properties [\"default_node_pool.0.vm_size\"]";

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "KubernetesCluster" => KindBehaviour {
            rounds: 4,
            at_provider: |f| json!({"fqdn": format!("{}.hcp.azmk8s.io", f.external())}),
            connection: |f| {
                let server = format!("https://{}.hcp.azmk8s.io:443", f.external());
                details([("kubeconfig", &super::kubeconfig(&server))])
            },
            rules: Rules {
                // AKS supports some changes of the network in place, but we do not use them.
                immutable: &[
                    "defaultNodePool.name",
                    "networkProfile.networkDataPlane",
                    "networkProfile.networkPluginMode",
                    "networkProfile.networkPolicy",
                ],
                rises: &[("kubernetesVersion", "version down")],
                replaced: const {
                    &[Replaced {
                        path: "defaultNodePool.vmSize",
                        by: "defaultNodePool.temporaryNameForRotation",
                        words: ROTATION,
                    }]
                },
                ..Rules::NONE
            },
            ..UPJET
        },
        _ => UPJET,
    }
}
