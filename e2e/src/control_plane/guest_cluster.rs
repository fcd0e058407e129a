//! Simulates the programs inside virtual clusters, because the charts' pods run no programs here.
//!
//! A vcluster's syncer writes the kubeconfig of its cluster. Here, this kubeconfig leads to a real
//! API server, which all virtual clusters share. A load balancer gets an address at once. Argo CD
//! reports its Applications as in sync. Knative's operator reports that Knative is installed.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Secret, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};

use super::cluster::Cluster;
use crate::kubeconfig;

const PERIOD: Duration = Duration::from_secs(1);

/// The annotation of the chart's StatefulSet with the server address for the kubeconfig.
const SERVER: &str = "vcluster.loft.sh/server";

/// The address of all load balancers. No client connects to it.
const ADDRESS: &str = "198.51.100.80";

/// Simulates until it is dropped.
pub struct GuestCluster {
    task: JoinHandle<()>,
}

struct Part {
    outer: Client,
    inner: Client,
    /// The kubeconfig of virtual clusters, without an address.
    kubeconfig: Value,
}

impl GuestCluster {
    /// Starts the simulation. `inner` serves the virtual clusters of `outer` through a proxy.
    pub fn start(outer: &Cluster, inner: &Cluster, proxy: &str) -> Self {
        let part = Part {
            outer: outer.client.clone(),
            inner: inner.client.clone(),
            kubeconfig: kubeconfig::through(proxy, &inner.authority, &inner.token),
        };
        let task = tokio::spawn(async move {
            loop {
                // Failures are retried, for example while an API server is down or a kind is not
                // installed.
                let _ = part.syncers().await;
                let _ = part.load_balancers().await;
                let _ = part.argocd().await;
                let _ = part.knative().await;
                sleep(PERIOD).await;
            }
        });
        Self { task }
    }
}

impl Drop for GuestCluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Part {
    /// Creates the Secret `vc-<release>` beside each vcluster.
    async fn syncers(&self) -> Result<()> {
        let all: Api<StatefulSet> = Api::all(self.outer.clone());
        for set in all.list(&ListParams::default().labels("app=vcluster")).await? {
            let (Some(namespace), Some(server)) = (set.namespace(), set.annotations().get(SERVER))
            else {
                continue;
            };
            let secrets: Api<Secret> = Api::namespaced(self.outer.clone(), &namespace);
            let name = format!("vc-{}", set.name_any());
            if set.metadata.deletion_timestamp.is_some() || secrets.get_opt(&name).await?.is_some()
            {
                continue;
            }
            let secret = json!({
                "metadata": {"name": name, "ownerReferences": set.owner_ref(&()).into_iter().collect::<Vec<_>>()},
                "stringData": {"config": kubeconfig::at(server, &self.kubeconfig).to_string()},
            });
            secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        }
        Ok(())
    }

    /// Assigns an address to each vcluster's Service of type LoadBalancer.
    async fn load_balancers(&self) -> Result<()> {
        let all: Api<Service> = Api::all(self.outer.clone());
        for service in all.list(&ListParams::default().labels("app=vcluster")).await? {
            let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
            let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
            let has_address = balancer.is_some_and(|balancer| balancer.ingress.is_some());
            if kind != Some("LoadBalancer") || has_address {
                continue;
            }
            let services: Api<Service> =
                Api::namespaced(self.outer.clone(), &service.namespace().unwrap_or_default());
            let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
            services
                .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(status))
                .await?;
        }
        Ok(())
    }

    /// Reports new Applications as in sync, and removes Argo CD's finalizer from deleted ones.
    async fn argocd(&self) -> Result<()> {
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application"));
        let all: Api<DynamicObject> = Api::all_with(self.inner.clone(), &resource);
        for application in all.list(&ListParams::default()).await? {
            let api: Api<DynamicObject> = Api::namespaced_with(
                self.inner.clone(),
                &application.namespace().unwrap_or_default(),
                &resource,
            );
            let patch = if application.metadata.deletion_timestamp.is_some() {
                json!({"metadata": {"finalizers": null}})
            } else if application.data["status"]["health"]["status"] == "Healthy" {
                continue;
            } else {
                json!({"status": {"health": {"status": "Healthy"}, "sync": {"status": "Synced"}}})
            };
            api.patch(&application.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        Ok(())
    }

    async fn knative(&self) -> Result<()> {
        let kind = GroupVersionKind::gvk("operator.knative.dev", "v1beta1", "KnativeServing");
        let resource = ApiResource::from_gvk(&kind);
        let all: Api<DynamicObject> = Api::all_with(self.inner.clone(), &resource);
        for serving in all.list(&ListParams::default()).await? {
            if serving.data["status"]["conditions"].is_array() {
                continue;
            }
            let api: Api<DynamicObject> = Api::namespaced_with(
                self.inner.clone(),
                &serving.namespace().unwrap_or_default(),
                &resource,
            );
            let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            api.patch_status(&serving.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        Ok(())
    }
}
