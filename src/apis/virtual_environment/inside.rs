//! The content of a cluster of any type: the application, Argo CD and Knative. The provider configs
//! for access to the cluster are here too.

use serde_json::{Value, json};

use super::settings::Charts;
use super::{
    App, Cluster, GitOps, KUBECONFIG, Parameters, VirtualEnvironmentSettings, WAIT_TIMEOUT,
};
use crate::compose::{Composition, SecretName};
use crate::error::Error;
use crate::models::Scope;
use crate::models::helm::{Chart, Release};
use crate::models::kubernetes::Object;

const HELM: &str = "helm-config";
const KUBERNETES: &str = "kubernetes-config";

/// The namespace of Argo CD and of its Applications.
const ARGOCD: &str = "argocd";

/// The namespace of Knative's operator.
const KNATIVE_OPERATOR: &str = "knative-operator";

/// The namespace of Knative Serving, as the operator expects it.
pub(super) const KNATIVE_SERVING: &str = "knative-serving";

impl Parameters {
    /// Installs the requested software, and removes software that is no longer requested.
    pub(super) fn inside(
        &self,
        cluster: &Cluster,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composition<'_>,
    ) -> Result<(), Error> {
        let charts = &settings.charts;
        let mut inside = Inside { cluster, cx };
        inside.configs()?;
        if let Some(class) = &cluster.storage_class {
            inside.storage_class(class.clone())?;
        }
        match &self.app {
            Some(app) => inside.app(app)?,
            None => inside.leave_app()?,
        }
        match &self.gitops {
            Some(gitops) => inside.gitops(gitops, &charts.argocd)?,
            None => inside.leave_gitops()?,
        }
        if self.knative.enabled { inside.knative(&charts.knative) } else { inside.leave_knative() }
    }
}

/// A cluster, and the composition of its content.
struct Inside<'i, 'r> {
    cluster: &'i Cluster,
    cx: &'i mut Composition<'r>,
}

impl Inside<'_, '_> {
    /// The class of volumes. It has no resources in the cloud, so it is deleted only with the
    /// cluster.
    fn storage_class(&mut self, class: Value) -> Result<(), Error> {
        let (config, known) = (self.config_name(KUBERNETES), self.cluster.kubeconfig.is_some());
        let class = self.cx.inside(config, "storage-class", class).orphan(true);
        class.needs(known, "the cluster's kubeconfig").add().map(drop)
    }

    /// The provider configs for access to the content.
    fn configs(&mut self) -> Result<(), Error> {
        let known = self.cluster.kubeconfig.is_some();
        for (slot, family, version) in
            [(HELM, "helm", "v1beta1"), (KUBERNETES, "kubernetes", "v1alpha1")]
        {
            let modern = if self.cx.xr.scope == Scope::Namespaced { "m." } else { "" };
            let mut spec = json!({"credentials": credentials(&self.cluster.secret(self.cx))});
            if let Some(identity) = &self.cluster.identity {
                spec["identity"] = identity.clone();
            }
            let config = json!({
                "apiVersion": format!("{family}.{modern}crossplane.io/{version}"),
                "kind": "ProviderConfig",
                "metadata": {"name": self.config_name(slot)},
                "spec": spec,
            });
            self.cx.provider_config(slot, config, known)?;
            self.cluster.beneath.iter().try_for_each(|beneath| self.cx.usage(beneath, slot))?;
        }
        Ok(())
    }

    fn app(&mut self, app: &App) -> Result<(), Error> {
        let chart = &app.chart;
        let release = Release {
            values: Some(Value::Object(app.values.clone())).filter(|_| !app.values.is_empty()),
            ..release(&chart.repository, &chart.name, &chart.version, &app.namespace)
        };
        self.release("app", "app", release, &["chart", "values"])
    }

    fn gitops(&mut self, gitops: &GitOps, version: &str) -> Result<(), Error> {
        let version = Charts::own_version(version);
        let chart = release("https://argoproj.github.io/argo-helm", "argo-cd", &version, ARGOCD);
        self.release(ARGOCD, ARGOCD, chart, &[])?;
        let installed = self.cx.is_ready(ARGOCD).then_some(()).ok_or("Argo CD to be installed");
        let needs = [KUBERNETES, ARGOCD];
        self.object("gitops", application(gitops), &["spec.source"], installed, &needs)?;
        self.cx.cancel_removal("gitops")
    }

    fn knative(&mut self, version: &str) -> Result<(), Error> {
        let version = Charts::own_version(version);
        let chart = release(
            "https://knative.github.io/operator",
            "knative-operator",
            &version,
            KNATIVE_OPERATOR,
        );
        self.release("knative", KNATIVE_OPERATOR, chart, &[])?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KNATIVE_SERVING}});
        self.object("knative-namespace", namespace, &[], Ok(()), &[KUBERNETES])?;
        let installed =
            self.cx.is_ready("knative").then_some(()).ok_or("Knative's operator to be installed");
        self.object(
            KNATIVE_SERVING,
            serving(self.cluster.is_virtual()),
            &[],
            installed,
            &[KUBERNETES, "knative", "knative-namespace"],
        )?;
        self.cx.cancel_removal(KNATIVE_SERVING)
    }

    fn leave_app(&mut self) -> Result<(), Error> {
        self.cx.remove_ordered::<Release>("app", &self.needs(&[HELM]))
    }

    /// Argo CD has to exist as long as its Application, to delete the Application's objects.
    fn leave_gitops(&mut self) -> Result<(), Error> {
        self.leave_release(ARGOCD, "gitops")?;
        self.cx.remove_ordered_inside("gitops", &self.needs(&[KUBERNETES, ARGOCD]))
    }

    /// The operator, and the namespace of Knative Serving, have to exist as long as Knative
    /// Serving.
    fn leave_knative(&mut self) -> Result<(), Error> {
        self.leave_release("knative", KNATIVE_SERVING)?;
        if self.cx.is_gone(KNATIVE_SERVING) {
            self.cx.remove_ordered::<Object>("knative-namespace", &self.needs(&[KUBERNETES]))?;
        } else {
            self.cx.retain::<Object>("knative-namespace")?;
            self.held("knative-namespace", &[KUBERNETES])?;
        }
        self.cx.remove_ordered_inside(
            KNATIVE_SERVING,
            &self.needs(&[KUBERNETES, "knative", "knative-namespace"]),
        )
    }

    /// Removes a release once `user`, which needs it, is gone.
    fn leave_release(&mut self, slot: &str, user: &str) -> Result<(), Error> {
        if self.cx.is_gone(user) {
            return self.cx.remove_ordered::<Release>(slot, &self.needs(&[HELM]));
        }
        self.cx.retain::<Release>(slot)?;
        self.held(slot, &[HELM])
    }

    /// The slots that the deletion of an object inside needs. For a virtual cluster, these are the
    /// provider configs among `slots`, and the cluster. The other slots are deleted with the
    /// cluster.
    fn needs<'s>(&self, slots: &[&'s str]) -> Vec<&'s str> {
        if !self.cluster.takes_all {
            return slots.to_vec();
        }
        let beneath = slots.iter().copied().filter(|slot| [HELM, KUBERNETES].contains(slot));
        beneath.chain([self.cluster.slot]).collect()
    }

    /// A release inside, once the kubeconfig is known.
    fn release(
        &mut self,
        slot: &str,
        name: &str,
        release: Release,
        updatable: &[&'static str],
    ) -> Result<(), Error> {
        let (config, known) = (self.config_name(HELM), self.cluster.kubeconfig.is_some());
        let orphan = self.is_left_behind(slot, &[HELM]);
        self.cx
            .managed(slot, release)
            .provider_config(config)
            .external_name(name)
            .updatable(updatable)
            .spec_field("rollbackLimit", 3)
            .orphan(orphan)
            .needs(known, "the cluster's kubeconfig")
            .add()?;
        self.holds(slot, &[HELM])
    }

    /// An object inside, once the kubeconfig is known and `installed` is `Ok`. `needs` are the
    /// slots that its deletion needs.
    fn object(
        &mut self,
        slot: &str,
        object: Value,
        updatable: &[&'static str],
        installed: Result<(), &str>,
        needs: &[&str],
    ) -> Result<(), Error> {
        let (config, known) = (self.config_name(KUBERNETES), self.cluster.kubeconfig.is_some());
        let orphan = self.is_left_behind(slot, needs);
        self.cx
            .inside(config, slot, object)
            .updatable(updatable)
            .orphan(orphan)
            .needs(known, "the cluster's kubeconfig")
            .needs(installed.is_ok(), installed.err().unwrap_or_default())
            .add()?;
        self.holds(slot, needs)
    }

    /// Whether an object is orphaned in its cluster if a user deletes the environment now. A
    /// virtual cluster deletes its whole content. In other clusters, objects are orphans until
    /// Usages protect all slots that their deletion needs, down to the cluster. Otherwise the
    /// provider config could be deleted first, or the cluster, which a cloud may delete with all
    /// its nodes. The object's deletion would then never end.
    fn is_left_behind(&self, slot: &str, needs: &[&str]) -> bool {
        // An object that became deletable stays deletable, regardless of its Usages.
        self.cluster.takes_all
            || !(self.cx.is_deleted_with(slot) || self.cx.is_secured(slot, needs))
    }

    /// The name of a provider config: the observed name, or the name of a new one.
    fn config_name(&self, slot: &str) -> String {
        let running = self.cx.observed_name(slot).filter(|name| !name.is_empty());
        running.map_or_else(|| self.cx.xr.config_name(slot), str::to_owned)
    }

    /// Protects the slots that the deletion of `by` needs, as long as `by` exists. An orphan in a
    /// virtual cluster needs no protection. Its Usages are removed, if a removal of the object was
    /// cancelled.
    fn holds(&mut self, by: &str, needs: &[&str]) -> Result<(), Error> {
        if self.cluster.takes_all && !self.cx.is_deleted_with(by) {
            self.cx.remove_usages_by(by);
            return Ok(());
        }
        self.needs(needs).into_iter().try_for_each(|of| self.cx.usage(of, by))
    }

    /// Like [`holds`](Self::holds), for a resource that is being removed, as long as it exists.
    fn held(&mut self, by: &str, needs: &[&str]) -> Result<(), Error> {
        if self.cx.exists(by) { self.holds(by, needs) } else { Ok(()) }
    }
}

/// `credentials` of a provider config. The namespaced API ignores the namespace, and reads its own
/// namespace.
fn credentials(secret: &SecretName) -> Value {
    let reference = json!({"name": secret.name, "namespace": secret.namespace, "key": KUBECONFIG});
    json!({"source": "Secret", "secretRef": reference})
}

fn release(repository: &str, chart: &str, version: &str, namespace: &str) -> Release {
    Release {
        chart: Some(Chart {
            repository: Some(repository.to_owned()),
            name: Some(chart.to_owned()),
            version: Some(version.to_owned()),
        }),
        namespace: Some(namespace.to_owned()),
        wait: Some(true),
        wait_timeout: Some(WAIT_TIMEOUT.to_owned()),
        ..Release::default()
    }
}

/// An Application that follows the repository. Manual changes are reverted, and objects that are
/// removed from the repository are deleted. All its objects are deleted with the Application.
fn application(gitops: &GitOps) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "gitops",
            "namespace": ARGOCD,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": "default",
            "source": {
                "repoURL": gitops.repo_url,
                "path": gitops.path,
                "targetRevision": gitops.target_revision,
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {
                "automated": {"prune": true, "selfHeal": true},
                "syncOptions": ["CreateNamespace=true"],
            },
        },
    })
}

/// Knative Serving. The network policy of a virtual cluster blocks traffic from outside, so a load
/// balancer for Kourier would only cost money there.
fn serving(is_virtual: bool) -> Value {
    let mut kourier = json!({"enabled": true});
    if is_virtual {
        kourier["service-type"] = "ClusterIP".into();
    }
    json!({
        "apiVersion": "operator.knative.dev/v1beta1",
        "kind": "KnativeServing",
        "metadata": {"name": KNATIVE_SERVING, "namespace": KNATIVE_SERVING},
        "spec": {
            "ingress": {"kourier": kourier},
            "config": {"network": {"ingress-class": "kourier.ingress.networking.knative.dev"}},
        },
    })
}
