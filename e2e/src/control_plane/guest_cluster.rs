//! Simulates the programs inside virtual clusters, because the charts' pods run no programs here.
//!
//! A vcluster's syncer writes the kubeconfig of its cluster. Here, this kubeconfig leads to a real
//! API server, which all virtual clusters share. A load balancer gets an address at once. Argo CD
//! installs the charts of its Applications with Helm, and reports Applications of Git repositories
//! as in sync. Knative's operator reports that Knative is installed.

use std::path::PathBuf;
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
use super::process::Program;
use super::proxy::Proxy;
use super::workdir::Workdir;
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
    helm: Helm,
}

/// Helm as Argo CD runs it: inside the virtual clusters, with a cache of its own.
struct Helm {
    program: Program,
    folder: PathBuf,
}

impl GuestCluster {
    /// Starts the simulation. `inner` serves the virtual clusters of `outer` through a proxy.
    pub fn start(
        outer: &Cluster,
        inner: &Cluster,
        proxy: &Proxy,
        workdir: &Workdir,
    ) -> Result<Self> {
        let folder = workdir.subfolder("argocd")?;
        let program = Program::new("helm", &workdir.tools.helm)
            .env("KUBECONFIG", inner.kubeconfig.display().to_string())
            .env("HTTPS_PROXY", &proxy.url)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("SSL_CERT_FILE", proxy.trusted.display().to_string());
        let part = Part {
            helm: Helm { program, folder },
            outer: outer.client.clone(),
            inner: inner.client.clone(),
            kubeconfig: kubeconfig::through(&proxy.url, &inner.authority, &inner.token),
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
        Ok(Self { task })
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

    /// Brings changed Applications in sync, and removes Argo CD's finalizer from deleted ones.
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
            let (spec, before) =
                (&application.data["spec"], &application.data["status"]["sync"]["comparedTo"]);
            let compared = json!({"source": spec["source"], "destination": spec["destination"]});
            let patch = if application.metadata.deletion_timestamp.is_some() {
                self.helm.uninstall(before).await;
                json!({"metadata": {"finalizers": null}})
            } else if *before == compared {
                continue;
            } else {
                if before["destination"] != compared["destination"] {
                    self.helm.uninstall(before).await;
                }
                let uid = application.uid().unwrap_or_default();
                status(&compared, self.helm.install(&uid, &compared).await.err())
            };
            let (name, params) = (application.name_any(), PatchParams::default());
            // A merge would keep fields that are gone from the source.
            let cleared = json!({"status": {"sync": {"comparedTo": null}}});
            if patch["status"].is_object() {
                api.patch(&name, &params, &Patch::Merge(cleared)).await?;
            }
            api.patch(&name, &params, &Patch::Merge(patch)).await?;
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

/// The patch of an Application's status after a comparison.
fn status(compared: &Value, error: Option<anyhow::Error>) -> Value {
    let sync = if error.is_some() { "Unknown" } else { "Synced" };
    let conditions = error.map(|error| {
        json!([{
            "type": "ComparisonError",
            "message": format!(
                "Failed to load target state: failed to generate manifest for source 1 of 1: rpc \
                 error: code = Unknown desc = error fetching chart: {error:#}"
            ),
        }])
    });
    json!({"status": {
        "conditions": conditions,
        "health": {"status": "Healthy"},
        "sync": {"status": sync, "comparedTo": compared},
    }})
}

impl Helm {
    /// Installs the chart of a source, if the source is a chart. The error has the words of Helm
    /// in the form of Argo CD.
    async fn install(&self, uid: &str, compared: &Value) -> Result<()> {
        let (source, Some(namespace)) =
            (&compared["source"], compared["destination"]["namespace"].as_str())
        else {
            return Ok(());
        };
        let text = |field: &str| source[field].as_str().unwrap_or_default();
        if text("chart").is_empty() {
            return Ok(());
        }
        let values = self.folder.join(format!("{uid}.yaml"));
        let content = match &source["helm"]["valuesObject"] {
            Value::Null => json!({}),
            values => values.clone(),
        };
        std::fs::write(&values, content.to_string())?;
        let url = text("repoURL");
        let chart = if url.contains("://") {
            vec![text("chart").to_owned(), "--repo".to_owned(), url.to_owned()]
        } else {
            vec![format!("oci://{url}/{}", text("chart"))]
        };
        let release = source["helm"]["releaseName"].as_str().unwrap_or("app");
        let program = self
            .program
            .clone()
            .env("HELM_CACHE_HOME", self.folder.join(uid).display().to_string())
            .args(["upgrade", "--install", "--create-namespace", "--namespace", namespace])
            .args(["--version", text("targetRevision")])
            .args(["--values".to_owned(), values.display().to_string(), release.to_owned()])
            .args(chart);
        let Err(error) = program.output(&self.folder).await else { return Ok(()) };
        let error = format!("{error:#}");
        let words = error.split_once("Error: ").map_or(error.as_str(), |(_, words)| words);
        anyhow::bail!(
            "failed to fetch chart: failed to get command args to log: `helm pull --destination \
             {}` failed exit status 1: Error: {words}",
            self.folder.join(uid).display()
        )
    }

    /// Uninstalls the chart that an Application was compared with.
    async fn uninstall(&self, compared: &Value) {
        let namespace = compared["destination"]["namespace"].as_str();
        let release = compared["source"]["helm"]["releaseName"].as_str();
        let (Some(namespace), Some(release)) = (namespace, release) else { return };
        let program = self.program.clone().args(["uninstall", "--ignore-not-found", "--namespace"]);
        // A failure is repeated with the Application's next change.
        let _ = program.args([namespace, release]).output(&self.folder).await;
    }
}
