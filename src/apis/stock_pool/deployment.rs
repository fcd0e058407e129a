//! The Deployment that a pool is.

use serde_json::{Value, json};

use super::{StockPool, StockPoolSettings};
use crate::compose::Composition;
use crate::error::Error;

/// The only slot.
pub(super) const SLOT: &str = "deployment";

/// The resource, and the taint, by which nodes offer GPUs.
const GPU: &str = "nvidia.com/gpu";

impl StockPool {
    /// Asks for it.
    pub(super) fn deployment(
        &self,
        settings: &StockPoolSettings,
        cx: &mut Composition<'_>,
    ) -> Result<(), Error> {
        let (name, namespace) = cx.xr.asked_as("a stock pool")?;
        let deployment = self.manifest(settings, name, namespace);
        cx.object(SLOT, deployment)
            .updatable(&[
                "metadata.labels",
                "spec.replicas",
                "spec.template.spec.containers.stock.image",
                "spec.template.spec.containers.stock.resources",
            ])
            // A class that Settings name later does not restart what runs; pools of earlier
            // releases keep their strategy.
            .resolved_from(
                "gpu",
                if self.gpu > 0 { "yes" } else { "no" },
                &[
                    "spec.strategy",
                    "spec.template.spec.runtimeClassName",
                    "spec.template.spec.tolerations",
                ],
            )
            .add()
    }

    fn manifest(&self, settings: &StockPoolSettings, name: &str, namespace: &str) -> Value {
        let labels =
            json!({"app.kubernetes.io/name": "stock-pool", "app.kubernetes.io/instance": name});
        let mut own = labels.clone();
        own["app.kubernetes.io/component"] = json!(self.spec_name);
        let mut spec = json!({
            "replicas": self.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": self.pod(settings)},
        });
        if self.gpu > 0 {
            // Old pods give their GPUs to new ones: where all GPUs are in use, a pod more would
            // never start. Kubernetes rounds a quarter down, and takes one pod where that is none.
            let rolling = json!({"maxSurge": 0, "maxUnavailable": "25%"});
            spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": format!("pool-{name}"), "namespace": namespace, "labels": own},
            "spec": spec,
        })
    }

    /// A pod without rights. It may run as root inside: images with GPU libraries mostly do.
    fn pod(&self, settings: &StockPoolSettings) -> Value {
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "stock",
                "image": self.image,
                "resources": self.resources(),
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        });
        if self.gpu > 0 {
            pod["tolerations"] =
                json!([{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]);
            if let Some(class) = &settings.runtime_class_name {
                pod["runtimeClassName"] = json!(class);
            }
        }
        pod
    }

    /// Requests and limits are the same: a stock that could be taken away is none.
    fn resources(&self) -> Value {
        let mut amounts = json!({});
        if let Some(memory) = &self.memory {
            amounts["memory"] = json!(memory);
        }
        if self.gpu > 0 {
            amounts[GPU] = json!(self.gpu.to_string());
        }
        json!({"requests": amounts, "limits": amounts})
    }
}
