//! provider-upjet-azure.

use serde_json::json;

use super::manner::{Manner, UPJET, details};

pub(super) fn manner(kind: &str) -> Manner {
    match kind {
        "KubernetesCluster" => Manner {
            rounds: 4,
            // The version that AKS gives a cluster which asks for none.
            late: |_| json!({"kubernetesVersion": "1.34"}),
            at_provider: |f| json!({"fqdn": format!("{}.hcp.azmk8s.io", f.external())}),
            connection: |f| {
                let kubeconfig = super::kubeconfig(&format!("https://{}.hcp.azmk8s.io:443", f.external()));
                details([("kubeconfig", &kubeconfig)])
            },
            ..UPJET
        },
        _ => UPJET,
    }
}
