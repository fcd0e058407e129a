//! The fake package runtime. Crossplane runs packages with Deployments and Services. This runtime
//! does the same for our processes.
//!
//! With `--package-runtime=External`, a revision becomes healthy only when a runtime provides
//! certificates, an endpoint and a health report. The RBAC manager reads a provider's service
//! account from the revision's Deployment. So the runtime creates a Deployment without replicas.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    runtime::{Controller, WatchStreamExt, controller::Action, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};
use xtask::{workspace, yaml};

use super::{NAMESPACE, pki::Authority};

/// The fake package runtime, which runs until it is dropped.
pub struct Runtime {
    part: Arc<Part>,
    tasks: JoinSet<()>,
}

struct Part {
    client: Client,
    authority: Authority,
    /// Endpoints of functions, by the end of their package's address: `:v0.2.0`.
    endpoints: Mutex<BTreeMap<String, String>>,
    default_endpoint: String,
    /// Notifies of each change of the endpoints.
    moved: watch::Sender<()>,
    log: PathBuf,
}

impl Runtime {
    /// Starts the runtime. A function has the endpoint `endpoint` (host:port) unless
    /// [`Self::serve`] sets another.
    pub fn start(client: Client, authority: Authority, endpoint: String, logs: &Path) -> Self {
        let log = logs.join("package-runtime.log");
        let part = Part {
            client,
            authority,
            endpoints: Mutex::default(),
            default_endpoint: endpoint,
            moved: watch::Sender::default(),
            log,
        };
        let part = Arc::new(part);
        let mut tasks = JoinSet::new();
        for kind in ["FunctionRevision", "ProviderRevision"] {
            let resource = resource("v1", kind);
            let revisions = Api::all_with(part.client.clone(), &resource);
            let deployments: Api<Deployment> = Api::namespaced(part.client.clone(), NAMESPACE);
            let controller = Controller::new_with(revisions, watcher::Config::default(), resource)
                .owns(deployments, watcher::Config::default())
                .reconcile_all_on(changes(&part));
            let work = controller.run(
                revision,
                |one, error, part| again(&one, error, &part),
                part.clone(),
            );
            tasks.spawn(work.for_each(|_| std::future::ready(())));
        }
        Self { part, tasks }
    }

    /// Sets the endpoint of the function whose package's address has this end: `("v0.2.0",
    /// "127.0.0.1:9443")`.
    pub fn serve(&self, package: &str, endpoint: &str) {
        let mut endpoints = self.part.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.insert(package.to_owned(), endpoint.to_owned());
        self.part.moved.send_replace(());
    }

    /// The authority that signs for functions and providers.
    pub fn authority(&self) -> &Authority {
        &self.part.authority
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        !self.tasks.is_empty()
    }
}

/// A kind of Crossplane's package API.
fn resource(version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("pkg.crossplane.io", version, kind))
}

/// An item for each change that can affect a revision.
fn changes(part: &Part) -> impl Stream<Item = ()> + Send + 'static {
    let kinds = [("v1", "Function"), ("v1", "Provider"), ("v1beta1", "DeploymentRuntimeConfig")];
    let objects = kinds.map(|(version, kind)| {
        let all: Api<DynamicObject> = Api::all_with(part.client.clone(), &resource(version, kind));
        watcher(all, watcher::Config::default()).default_backoff().map(drop).boxed()
    });
    let moved = stream::unfold(part.moved.subscribe(), async |mut moved| {
        moved.changed().await.ok().map(|()| ((), moved))
    });
    stream::select(stream::select_all(objects), moved)
}

/// A provider's service account: the account of its runtime config, or the account with the
/// revision's name. Fake providers share one account, because one program runs all of them.
fn account<'n>(package: &str, config: &'n Value, revision: &'n str) -> &'n str {
    if !["provider-kubernetes", "provider-helm"].contains(&repository(package)) {
        return "fake-providers";
    }
    config["spec"]["serviceAccountTemplate"]["metadata"]["name"].as_str().unwrap_or(revision)
}

/// The runtime configs that these sources ship.
pub fn shipped(sources: &Path) -> Result<Vec<Value>> {
    yaml::read(&sources.join("package/runtime-config.yaml"))
}

/// A program's container in the shipped runtime config of this name.
pub fn container(config: &str) -> Result<Value> {
    let configs = shipped(workspace::root())?;
    let found = configs.iter().find(|one| one["metadata"]["name"] == config);
    let found = found.with_context(|| format!("package/runtime-config.yaml has no {config}"))?;
    Ok(found["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"][0].clone())
}

/// The last segment of a package's address, without its version.
fn repository(package: &str) -> &str {
    let last = package.rsplit('/').next().unwrap_or(package);
    last.split([':', '@']).next().unwrap_or(last)
}

/// The runtime config that a package names.
enum Config {
    /// The package names no runtime config.
    None,
    There(Value),
    /// The runtime config does not exist. Crossplane then creates no pods, and reports this
    /// message.
    Missing(String),
}

/// An error in the work on a revision.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(#[from] anyhow::Error);

fn again(revision: &DynamicObject, error: &Failed, part: &Part) -> Action {
    // Crossplane wrote in between, which is normal.
    let is_conflict =
        |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 409);
    if error.0.downcast_ref().is_some_and(is_conflict) {
        return Action::requeue(Duration::from_millis(200));
    }
    // A failure to write the log cannot be reported.
    if let Ok(mut log) = OpenOptions::new().create(true).append(true).open(&part.log) {
        let _ = writeln!(log, "{}: {}", revision.name_any(), error.0);
    }
    Action::requeue(Duration::from_secs(1))
}

async fn revision(revision: Arc<DynamicObject>, part: Arc<Part>) -> Result<Action, Failed> {
    if revision.metadata.deletion_timestamp.is_none() {
        if revision.data["spec"]["desiredState"] == "Active" {
            part.play(&revision).await?;
        } else {
            part.stop(&revision).await?;
        }
    }
    Ok(Action::await_change())
}

impl Part {
    async fn play(&self, revision: &DynamicObject) -> Result<()> {
        let package =
            revision.data["spec"]["image"].as_str().context("a revision without image")?;
        let is_function =
            revision.types.as_ref().is_some_and(|types| types.kind == "FunctionRevision");
        // Crossplane 1.20 requests a Secret by name. Newer versions use the Secret in the status.
        let wanted = revision.data["spec"]["tlsServerSecretName"].as_str().map(str::to_owned);
        let secret = wanted.unwrap_or_else(|| format!("{}-tls-server", revision.name_any()));
        self.certificates(&secret).await?;
        let mut status = json!({"tlsServerSecretName": secret});
        let config = match self.config(revision).await? {
            Config::None => Value::Null,
            Config::There(config) => config,
            Config::Missing(complaint) => {
                return self.tell(revision, status, Some(complaint)).await;
            }
        };
        if is_function {
            status["endpoint"] = self.endpoint(package).into();
        } else {
            self.deployment(revision, account(package, &config, &revision.name_any())).await?;
        }
        self.tell(revision, status, None).await
    }

    /// Deletes the Deployment of a replaced revision. Since Crossplane 2.4, every change of a
    /// package's spec makes another revision.
    async fn stop(&self, revision: &DynamicObject) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        match deployments.delete(&revision.name_any(), &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// The runtime config that a revision's package names.
    async fn config(&self, revision: &DynamicObject) -> Result<Config> {
        let kind =
            revision.types.as_ref().map_or("", |types| types.kind.trim_end_matches("Revision"));
        let api = |version, kind| {
            Api::<DynamicObject>::all_with(self.client.clone(), &resource(version, kind))
        };
        let Some(package) = revision.labels().get("pkg.crossplane.io/package") else {
            return Ok(Config::None);
        };
        let package = api("v1", kind).get_opt(package).await?;
        let reference =
            package.map(|package| package.data["spec"]["runtimeConfigRef"]["name"].clone());
        let Some(name) = reference.as_ref().and_then(Value::as_str) else {
            return Ok(Config::None);
        };
        let complaint =
            format!("cannot get referenced deployment runtime config: {name} not found");
        let config = api("v1beta1", "DeploymentRuntimeConfig").get_opt(name).await?;
        Ok(config.map_or(Config::Missing(complaint), |config| Config::There(config.data)))
    }

    fn endpoint(&self, package: &str) -> String {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let found = endpoints.iter().find(|(end, _)| package.ends_with(end.as_str()));
        found.map_or_else(|| self.default_endpoint.clone(), |(_, endpoint)| endpoint.clone())
    }

    /// Creates the Secret from which Crossplane reads the authority of a provider's webhooks.
    async fn certificates(&self, name: &str) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        if secrets.get_opt(name).await?.is_some() {
            return Ok(());
        }
        let signed = self.authority.sign(["127.0.0.1"])?;
        let secret = serde_json::from_value(json!({
            "metadata": {"name": name},
            "type": "Opaque",
            "stringData": {"ca.crt": signed.authority, "tls.crt": signed.chain, "tls.key": signed.key},
        }))?;
        secrets.create(&PostParams::default(), &secret).await?;
        Ok(())
    }

    /// Creates the provider's service account, and the Deployment from which the RBAC manager reads
    /// it.
    async fn deployment(&self, revision: &DynamicObject, account: &str) -> Result<()> {
        let force = PatchParams::apply("package-runtime").force();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), NAMESPACE);
        let wanted =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
        accounts.patch(account, &force, &Patch::Apply(wanted)).await?;
        let name = revision.name_any();
        let labels = json!({"pkg.crossplane.io/revision": name});
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": name,
                "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "pkg.crossplane.io/v1",
                    "kind": "ProviderRevision",
                    "name": name,
                    "uid": revision.uid(),
                    "controller": true,
                }],
            },
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "serviceAccountName": account,
                        "containers": [{"name": "package-runtime", "image": "runs.as/a-process"}],
                    },
                },
            },
        });
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        deployments.patch(&name, &force, &Patch::Apply(deployment)).await?;
        Ok(())
    }

    /// Updates a revision's status if it changes: the package runs, or an error.
    async fn tell(
        &self,
        revision: &DynamicObject,
        mut status: Value,
        wrong: Option<String>,
    ) -> Result<()> {
        let said = &revision.data["status"];
        let mut conditions = said["conditions"].as_array().cloned().unwrap_or_default();
        let verdict = if wrong.is_some() { "False" } else { "True" };
        let is_said = |one: &Value| one["type"] == "RuntimeHealthy" && one["status"] == verdict;
        // All fields are written together. Crossplane 1.20 drops the Secret's name.
        let is_known = wrong.is_some() || said["endpoint"] == status["endpoint"];
        if is_known && conditions.iter().any(is_said) {
            return Ok(());
        }
        conditions.retain(|one| one["type"] != "RuntimeHealthy");
        conditions.push(json!({
            "type": "RuntimeHealthy",
            "status": verdict,
            "reason": if wrong.is_some() { "UnhealthyPackageRevision" } else { "HealthyPackageRevision" },
            "message": wrong.unwrap_or_default(),
            "lastTransitionTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }));
        status["conditions"] = conditions.into();
        // With the resource version, a write by Crossplane in between causes a conflict, and the
        // revision is read again.
        let patch =
            json!({"metadata": {"resourceVersion": revision.resource_version()}, "status": status});
        let kind = revision.types.as_ref().map_or("", |types| &types.kind);
        let revisions: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &resource("v1", kind));
        let patch = Patch::Merge(patch);
        revisions.patch_status(&revision.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_providers_have_the_accounts_of_their_runtime_configs() {
        let config =
            json!({"spec": {"serviceAccountTemplate": {"metadata": {"name": "helm-for-us"}}}});
        let helm = "xpkg.crossplane.io/crossplane-contrib/provider-helm:v1.0.6";
        assert_eq!(account(helm, &config, "provider-helm-1a2b"), "helm-for-us");
        assert_eq!(account(helm, &Value::Null, "provider-helm-1a2b"), "provider-helm-1a2b");
        assert_eq!(
            account("xpkg.upbound.io/upbound/provider-aws-ec2:v2.6.0", &config, "x"),
            "fake-providers"
        );
    }
}
