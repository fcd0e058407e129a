//! The Deployment of a pool.

use serde_json::{Value, json};

use super::{StockPool, StockPoolSettings};
use crate::compose::Composer;
use crate::error::Error;
use crate::observe::label;

/// The only slot.
pub(super) const SLOT: &str = "deployment";

/// The resource, and the taint, of nodes with GPUs.
const GPU: &str = "nvidia.com/gpu";

impl StockPool {
    /// Composes the Deployment.
    pub(super) fn deployment(
        &self,
        settings: &StockPoolSettings,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let (name, namespace) = cx.xr.asked_as("a stock pool")?;
        let own = label(&["pool", name, &cx.xr.uid5()]);
        let deployment = self.manifest(settings, name, &own, namespace);
        cx.object(SLOT, deployment)
            .updatable(&[
                "metadata.labels",
                "spec.replicas",
                "spec.template.spec.containers.stock.image",
                "spec.template.spec.containers.stock.resources",
            ])
            // A class that Settings name later does not restart running pods. Pools of earlier
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

    /// The Deployment `deployment` of the pool `name`. Its name has a part of the uid, because the
    /// user's namespace has other Deployments.
    fn manifest(
        &self,
        settings: &StockPoolSettings,
        name: &str,
        deployment: &str,
        namespace: &str,
    ) -> Value {
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
            // Old pods release their GPUs for new pods. If all GPUs are in use, an additional pod
            // would never start. Kubernetes rounds a quarter down, and uses one pod if the result
            // is zero.
            let rolling = json!({"maxSurge": 0, "maxUnavailable": "25%"});
            spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment, "namespace": namespace, "labels": own},
            "spec": spec,
        })
    }

    /// A pod without rights. It may run as root inside, because most images with GPU libraries do.
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

    /// Requests and limits are equal, because capacity that could be taken away is not in stock.
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
