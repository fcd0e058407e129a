//! The content of a cluster of any type: the application, Argo CD and Knative. The provider configs
//! for access to the cluster are here too.

use serde_json::{Value, json};

use super::settings::Charts;
use super::{
    App, Cluster, GitOps, KUBECONFIG, Parameters, VirtualEnvironmentSettings, WAIT_TIMEOUT,
};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::Scope;
use crate::models::helm::{Chart, Release};
use crate::models::kubernetes::Object;
use crate::observe::SecretName;

const HELM: &str = "helm-config";
const KUBERNETES: &str = "kubernetes-config";

/// The namespace of Argo CD and of its Applications, and the slot of its Release.
pub(super) const ARGOCD: &str = "argocd";

/// The slot of an application that an earlier release installed: a Release of provider-helm.
pub(super) const RELEASE: &str = "app";

/// The slot of an application of today: an Application of Argo CD.
pub(super) const APPLICATION: &str = "app-application";

/// The slot of the Application that follows the user's Git repository.
const GITOPS: &str = "gitops";

/// The choice that is noted on Argo CD's Release: whether a Git repository needs it.
const ARGOCD_FOR: &str = "argocd-for";

/// The slots of Knative's operator, and of the namespace of Knative Serving.
const KNATIVE: &str = "knative";
const KNATIVE_NAMESPACE: &str = "knative-namespace";

/// The namespace of Knative's operator.
const KNATIVE_OPERATOR: &str = "knative-operator";

/// The namespace of Knative Serving, as the operator expects it.
pub(super) const KNATIVE_SERVING: &str = "knative-serving";

/// Software without resources in the cloud, and without objects that other resources inside have to
/// outlive. A new one is an orphan, so the deletion of an environment waits for no Usage by it.
const STAYING: [&str; 3] = [ARGOCD, KNATIVE, KNATIVE_NAMESPACE];

impl Parameters {
    /// Installs the requested software, and removes software that is no longer requested.
    pub(super) fn inside(
        &self,
        cluster: &Cluster,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        let charts = &settings.charts;
        let mut inside = Inside { cluster, cx };
        inside.configs()?;
        if let Some(class) = &cluster.storage_class {
            inside.storage_class(class.clone())?;
        }
        inside.argocd(self, &charts.argocd)?;
        match &self.gitops {
            Some(gitops) => inside.application(GITOPS, gitops.application())?,
            None => inside.leave_application(GITOPS)?,
        }
        inside.app(self.app.as_ref())?;
        if self.knative.enabled { inside.knative(&charts.knative) } else { inside.leave_knative() }
    }
}

/// A cluster, and the composition of its content.
struct Inside<'i, 'r> {
    cluster: &'i Cluster,
    cx: &'i mut Composer<'r>,
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

    /// The application. A new one is an Application, so that Argo CD renders its chart inside the
    /// cluster. The provider of the host cluster keeps charts by name and version only, so a user's
    /// chart must not reach it. An application that an earlier release installed keeps its Release.
    fn app(&mut self, app: Option<&App>) -> Result<(), Error> {
        let has_release = self.cx.exists(RELEASE);
        match app {
            Some(app) if has_release => {
                self.release(RELEASE, "app", app.release(), &["chart", "values"], &[])?;
                self.leave_application(APPLICATION)
            }
            Some(app) => {
                let gone = self.cx.is_gone(RELEASE);
                self.leave_app_release()?;
                let earlier = gone.then_some(()).ok_or("the earlier app to be deleted");
                self.application_once(earlier, APPLICATION, app.application())
            }
            None => {
                self.leave_app_release()?;
                self.leave_application(APPLICATION)
            }
        }
    }

    /// Argo CD, as long as an Application needs it. Without a Git repository it has no user
    /// interface.
    fn argocd(&mut self, parameters: &Parameters, version: &str) -> Result<(), Error> {
        let follows_git = parameters.gitops.is_some();
        let has_app = parameters.app.is_some() && !self.cx.exists(RELEASE);
        if !(follows_git || has_app) {
            // Argo CD deletes the objects of its Applications.
            return self.leave_release(ARGOCD, &[GITOPS, APPLICATION]);
        }
        let version = Charts::own_version(version);
        let chart = release("https://argoproj.github.io/argo-helm", "argo-cd", &version, ARGOCD);
        let chart = Release { values: (!follows_git).then(without_interface), ..chart };
        let choice = if follows_git { GITOPS } else { "app" };
        // An Argo CD of an earlier release has no note, and keeps all its parts.
        let has_note = self.cx.noted(ARGOCD, ARGOCD_FOR).is_some();
        let keeps_all = self.cx.exists(ARGOCD) && !has_note;
        let choices: &[Choice] = if keeps_all { &[] } else { &[(ARGOCD_FOR, choice, &["values"])] };
        self.release(ARGOCD, ARGOCD, chart, &[], choices)
    }

    /// An Application of Argo CD.
    fn application(&mut self, slot: &str, object: Value) -> Result<(), Error> {
        self.application_once(Ok(()), slot, object)
    }

    /// An Application of Argo CD, once `ready` is `Ok`.
    fn application_once(
        &mut self,
        ready: Result<(), &str>,
        slot: &str,
        object: Value,
    ) -> Result<(), Error> {
        let installed = self.cx.is_ready(ARGOCD).then_some(()).ok_or("Argo CD to be installed");
        let needs = [KUBERNETES, ARGOCD];
        self.object(slot, object, &["spec.source"], ready.and(installed), &needs)?;
        self.cx.cancel_removal(slot)
    }

    fn leave_application(&mut self, slot: &str) -> Result<(), Error> {
        self.cx.remove_ordered_inside(slot, &self.needs(&[KUBERNETES, ARGOCD]))
    }

    fn knative(&mut self, version: &str) -> Result<(), Error> {
        let version = Charts::own_version(version);
        let chart = release(
            "https://knative.github.io/operator",
            "knative-operator",
            &version,
            KNATIVE_OPERATOR,
        );
        self.release(KNATIVE, KNATIVE_OPERATOR, chart, &[], &[])?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KNATIVE_SERVING}});
        self.object(KNATIVE_NAMESPACE, namespace, &[], Ok(()), &[KUBERNETES])?;
        let installed =
            self.cx.is_ready(KNATIVE).then_some(()).ok_or("Knative's operator to be installed");
        self.object(
            KNATIVE_SERVING,
            serving(self.cluster.is_virtual()),
            &[],
            installed,
            &[KUBERNETES, KNATIVE, KNATIVE_NAMESPACE],
        )?;
        self.cx.cancel_removal(KNATIVE_SERVING)
    }

    fn leave_app_release(&mut self) -> Result<(), Error> {
        self.cx.remove_ordered::<Release>(RELEASE, &self.needs(&[HELM]))
    }

    /// The operator, and the namespace of Knative Serving, have to exist as long as Knative
    /// Serving.
    fn leave_knative(&mut self) -> Result<(), Error> {
        self.leave_release(KNATIVE, &[KNATIVE_SERVING])?;
        if self.cx.is_gone(KNATIVE_SERVING) {
            self.cx.remove_ordered::<Object>(KNATIVE_NAMESPACE, &self.needs(&[KUBERNETES]))?;
        } else {
            self.cx.retain::<Object>(KNATIVE_NAMESPACE)?;
            self.held(KNATIVE_NAMESPACE, &[KUBERNETES])?;
        }
        self.cx.remove_ordered_inside(
            KNATIVE_SERVING,
            &self.needs(&[KUBERNETES, KNATIVE, KNATIVE_NAMESPACE]),
        )
    }

    /// Removes a release once its `users`, which need it, are gone.
    fn leave_release(&mut self, slot: &str, users: &[&str]) -> Result<(), Error> {
        if users.iter().all(|user| self.cx.is_gone(user)) {
            return self.cx.remove_ordered::<Release>(slot, &self.needs(&[HELM]));
        }
        self.cx.retain::<Release>(slot)?;
        self.held(slot, &[HELM])
    }

    /// The slots that the deletion of an object inside needs: those of `slots` that are not deleted
    /// with the cluster. For a virtual cluster, these are the provider configs, and the cluster
    /// itself is added.
    fn needs<'s>(&self, slots: &[&'s str]) -> Vec<&'s str> {
        if !self.cluster.takes_all {
            return slots
                .iter()
                .copied()
                .filter(|slot| !self.is_deleted_with_the_cluster(slot))
                .collect();
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
        choices: &[Choice],
    ) -> Result<(), Error> {
        let (config, known) = (self.config_name(HELM), self.cluster.kubeconfig.is_some());
        let orphan = self.is_left_behind(slot, &[HELM]);
        let mut release = self
            .cx
            .managed(slot, release)
            .provider_config(config)
            .external_name(name)
            .updatable(updatable)
            .spec_field("rollbackLimit", 3)
            .orphan(orphan)
            .needs(known, "the cluster's kubeconfig");
        for (choice, value, paths) in choices {
            release = release.resolved_from(choice, *value, paths);
        }
        release.add()?;
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
    /// virtual cluster deletes its whole content. In other clusters, other objects are orphans until
    /// Usages protect all slots that their deletion needs, down to the cluster. Otherwise the
    /// provider config could be deleted first, or the cluster, which a cloud may delete with all
    /// its nodes. The object's deletion would then never end.
    fn is_left_behind(&self, slot: &str, needs: &[&str]) -> bool {
        // An object that became deletable stays deletable, regardless of its Usages.
        self.is_part_of_the_cluster(slot)
            || !(self.cx.is_deleted_with(slot) || self.cx.is_secured(slot, &self.needs(needs)))
    }

    /// Whether the content in a slot is deleted with its cluster. Environments of earlier schema
    /// revisions delete all content of a managed cluster first.
    fn is_part_of_the_cluster(&self, slot: &str) -> bool {
        self.cluster.takes_all || STAYING.contains(&slot) && self.cx.is_since(3)
    }

    /// Like [`is_part_of_the_cluster`](Self::is_part_of_the_cluster), unless the content is
    /// deletable now because its user removed it.
    fn is_deleted_with_the_cluster(&self, slot: &str) -> bool {
        self.is_part_of_the_cluster(slot) && !self.cx.is_deleted_with(slot)
    }

    /// The name of a provider config: the observed name, or the name of a new one.
    fn config_name(&self, slot: &str) -> String {
        let running = self.cx.observed_name(slot).filter(|name| !name.is_empty());
        running.map_or_else(|| self.cx.xr.config_name(slot), str::to_owned)
    }

    /// Protects the slots that the deletion of `by` needs, as long as `by` exists. Content that is
    /// deleted with the cluster needs no protection. Its Usages are removed, if a removal of the
    /// object was cancelled.
    fn holds(&mut self, by: &str, needs: &[&str]) -> Result<(), Error> {
        if self.is_deleted_with_the_cluster(by) {
            self.cx.remove_usages_by(by);
            return Ok(());
        }
        let slots = needs;
        let needs = self.needs(slots);
        for unneeded in slots.iter().filter(|slot| !needs.contains(slot)) {
            self.cx.remove_usage(unneeded, by);
        }
        needs.into_iter().try_for_each(|of| self.cx.usage(of, by))
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

/// A choice of a user that is noted on a release: its name, its value and the fields that follow it.
type Choice = (&'static str, &'static str, &'static [&'static str]);

/// A release of a chart inside.
pub(super) fn release(repository: &str, chart: &str, version: &str, namespace: &str) -> Release {
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

/// Values of Argo CD's chart that leave out all that only its users and other sources of
/// Applications need. What installs an Application is left.
fn without_interface() -> Value {
    json!({
        "applicationSet": {"replicas": 0},
        "dex": {"enabled": false},
        "notifications": {"enabled": false},
        "server": {"replicas": 0},
    })
}

/// An Application with a source. Manual changes are reverted, and objects that are removed from the
/// source are deleted. All its objects are deleted with the Application.
pub(super) fn application(name: &str, source: &Value, namespace: &str, options: &[&str]) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": ARGOCD,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
            "syncPolicy": {
                "automated": {"prune": true, "selfHeal": true},
                "syncOptions": options,
            },
        },
    })
}

impl GitOps {
    /// An Application that follows the repository.
    fn application(&self) -> Value {
        let source = json!({
            "repoURL": self.repo_url,
            "path": self.path,
            "targetRevision": self.target_revision,
        });
        application(GITOPS, &source, "default", &["CreateNamespace=true"])
    }
}

/// The URL of the Git repository that the environment follows now.
pub(super) fn running_repository<'c>(cx: &'c Composer<'_>) -> Option<&'c str> {
    cx.running(GITOPS, &["manifest", "spec", "source", "repoURL"])?.as_str()
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
