//! The fixture of a scenario: its own namespace, users with our roles, and the clouds.

mod add_ons;
mod shared_fixtures;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use crossplane::json::merge_patch;
use function_paved_road::apis::{AnyApi, Flavour};
use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

pub use self::add_ons::{AddOns, is_part};
use crate::control_plane::ControlPlane;
use crate::environment::{Environment, is_ready};
use crate::eventually::eventually;
use crate::examples;
use crate::fake_providers;
use crate::fake_providers::faults::{self, Rule};
use crate::fake_providers::state::External;
use crate::kubectl::Kubectl;
use crate::objects::Objects;

/// The platform team's Settings, as arguments for kubectl.
const SETTINGS: [&str; 2] = ["environmentconfigs.apiextensions.crossplane.io", "paved-road"];

/// The fixture of a scenario.
#[derive(Clone)]
pub struct Fixture {
    /// The control plane.
    pub plane: Arc<ControlPlane>,
    /// The scenario's own namespace.
    pub namespace: String,
    /// The administrator's kubectl, for actions that no user may do.
    pub admin: Kubectl,
    /// A user with the role `paved-road-user` in the namespace.
    pub user: Kubectl,
    /// Any object of the cluster.
    pub objects: Objects,
    /// How many resources of half-made environments were deleted by hand.
    freed: Arc<AtomicUsize>,
    /// Whether the scenario uses the shared environments.
    uses_shared: Arc<AtomicBool>,
}

impl Fixture {
    /// Creates the fixture for the scenario of that name: the namespace, and its users' roles.
    pub async fn set(plane: Arc<ControlPlane>, name: &str) -> Result<Self> {
        let namespace = format!("e2e-{}", name.replace([':', '_'], "-"));
        let admin = Kubectl {
            program: plane.kubectl_path().to_owned(),
            kubeconfig: plane.kubeconfig().to_owned(),
            person: None,
        };
        let objects = Objects::new(plane.client());
        objects
            .apply(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await?;
        let person = |role: &str| format!("{role}@{namespace}");
        objects.apply(&binding(&namespace, "paved-road-user", &person("user"))).await?;
        objects.apply(&binding(&namespace, "paved-road-viewer", &person("viewer"))).await?;
        objects
            .apply(&cluster_binding(&namespace, "paved-road-operator", &person("operator")))
            .await?;
        Ok(Self {
            user: admin.for_person(&person("user")),
            plane,
            namespace,
            admin,
            objects,
            freed: Arc::default(),
            uses_shared: Arc::default(),
        })
    }

    /// Waits until all roles are in force. Our packages must be installed.
    pub async fn with_rights(self) -> Result<Self> {
        let environments = format!("stockpools.{}", Flavour::Namespaced.default_group());
        for who in [&self.user, &self.viewer(), &self.operator()] {
            self.may(who, "get", &environments).await?;
        }
        Ok(self)
    }

    /// Gives the user and the operator the roles of a company's own group, which came with its
    /// packages.
    pub async fn has_roles_of(&self, group: &str) -> Result<()> {
        let environments = format!("stockpools.{group}");
        let user = self.user.person.as_deref().context("the user has no name")?;
        self.objects
            .apply(&binding(&self.namespace, &format!("paved-road-user-{group}"), user))
            .await?;
        self.may(&self.user, "get", &environments).await?;
        let (operator, role) = (self.operator(), format!("paved-road-operator-{group}"));
        let person = operator.person.as_deref().context("the operator has no name")?;
        self.objects.apply(&cluster_binding(&self.namespace, &role, person)).await?;
        self.may(&operator, "get", &environments).await
    }

    /// Whether the API server allows a person's action in the namespace. `kind` is `plural.group`.
    pub async fn can(&self, who: &Kubectl, verb: &str, kind: &str) -> Result<bool> {
        let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: who.person.clone(),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.namespace.clone()),
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = Api::all(self.plane.client()).create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Waits until a new right is in force. The API server receives bindings through its own watch.
    async fn may(&self, who: &Kubectl, verb: &str, kind: &str) -> Result<()> {
        eventually("rights are in force", async || {
            Ok(self.can(who, verb, kind).await?.then_some(()))
        })
        .await
    }

    /// Objects, with the rights of the namespace's user.
    pub async fn user_objects(&self) -> Result<Objects> {
        let user = self.user.person.as_deref().context("the user has no name")?;
        Ok(Objects::new(self.plane.outer.person(user).await?))
    }

    /// A person with the role `paved-road-operator` in the cluster.
    pub fn operator(&self) -> Kubectl {
        self.admin.for_person(&format!("operator@{}", self.namespace))
    }

    /// Also gives the namespace's user the role `paved-road-catalogue`.
    pub async fn show_catalogue(&self) -> Result<()> {
        let user = self.user.person.as_deref().context("the user has no name")?;
        self.objects.apply(&cluster_binding(&self.namespace, "paved-road-catalogue", user)).await?;
        self.may(&self.user, "list", "compositions.apiextensions.crossplane.io").await
    }

    /// A person with the role `paved-road-viewer` in the namespace.
    pub fn viewer(&self) -> Kubectl {
        self.admin.for_person(&format!("viewer@{}", self.namespace))
    }

    /// A person without a role.
    pub fn stranger(&self) -> Kubectl {
        self.admin.for_person("stranger")
    }

    /// The kinds of APIs that this Crossplane serves.
    pub fn flavours(&self) -> Vec<Flavour> {
        self.plane.args().flavours()
    }

    /// Every API of these kinds.
    pub fn apis(&self) -> impl Iterator<Item = (&'static dyn AnyApi, Flavour)> + use<> {
        examples::all(self.flavours())
    }

    /// The managed clusters that a virtual environment can be on, for each kind of API.
    pub fn clusters(&self) -> impl Iterator<Item = (&'static str, Flavour)> + use<> {
        examples::clusters(self.flavours())
    }

    /// An API's example in this namespace, of the release that was installed at the start.
    pub fn manifest(&self, api: &str, flavour: Flavour) -> Result<Value> {
        examples::example(self.plane.sources(), api, flavour, &self.namespace)
    }

    /// An API's example in this namespace, not applied yet. `change` is merged into it.
    ///
    /// All virtual clusters share one cluster, so only the holder of the lock has an app and
    /// add-ons. Apps of v0.1.0 need no Argo CD, so each has its own namespace there.
    pub fn example(&self, api: &str, flavour: Flavour, change: Value) -> Result<Environment> {
        let mut manifest = self.manifest(api, flavour)?;
        if api == "virtual-environment" {
            let app = if self.has_earlier_apps() { json!({"namespace": ""}) } else { Value::Null };
            let without = json!({"app": app, "gitops": null, "knative": null});
            merge_patch(&mut manifest, json!({"spec": {"parameters": without}}));
        }
        merge_patch(&mut manifest, change);
        if manifest["spec"]["parameters"]["app"]["namespace"] == "" {
            let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
            let whole = format!("{}-{name}-{flavour:?}", self.namespace).to_lowercase();
            let longest = &whole[whole.len().saturating_sub(60)..];
            manifest["spec"]["parameters"]["app"]["namespace"] =
                format!("in-{}", longest.trim_start_matches('-')).into();
        }
        Ok(self.environment(manifest))
    }

    /// Whether the control plane began with a release that installs apps by provider-helm.
    fn has_earlier_apps(&self) -> bool {
        self.plane.sources() != xtask::workspace::root()
    }

    /// A virtual environment on a managed cluster, not applied yet. Access to the clusters of
    /// Google and Azure needs an identity of their clouds.
    pub fn cluster(&self, cluster: &str, flavour: Flavour) -> Result<Environment> {
        let mut change =
            json!({"metadata": {"name": cluster}, "spec": {"parameters": {"type": cluster}}});
        if cluster != "eks" {
            change["spec"]["parameters"]["app"] = Value::Null;
        }
        if flavour == Flavour::Claims {
            change["spec"]["writeConnectionSecretToRef"] =
                json!({"name": format!("{cluster}-conn")});
        }
        self.example("virtual-environment", flavour, change)
    }

    /// Waits for the lock for add-ons. Without it, Argo CD and Knative would be installed twice in
    /// the cluster that all virtual clusters share.
    pub async fn add_ons(&self) -> Result<AddOns> {
        let turn = self.plane.add_ons.clone().lock_owned().await;
        let example = self.manifest("virtual-environment", Flavour::Claims)?;
        let parameters = &example["spec"]["parameters"];
        let mut add_ons = json!({"gitops": parameters["gitops"], "knative": parameters["knative"]});
        if !self.has_earlier_apps() {
            // An app that an environment has left behind in the shared cluster has another one.
            static TURNS: AtomicUsize = AtomicUsize::new(0);
            let number = TURNS.fetch_add(1, Ordering::Relaxed);
            add_ons["app"] = parameters["app"].clone();
            add_ons["app"]["namespace"] = format!("in-turn-{number}").into();
        }
        Ok(AddOns { parameters: add_ons, _turn: turn })
    }

    /// The same fixture, in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// Waits for the end of an environment that was deleted during its creation. Overlooked
    /// resources are deleted by hand, counted and returned.
    pub async fn gone_or_freed(&self, environment: &Environment) -> Result<Vec<Value>> {
        let freed = environment.gone_or_freed(&self.operator()).await?;
        self.freed.fetch_add(freed.len(), Ordering::Relaxed);
        Ok(freed)
    }

    /// How many overlooked resources were deleted by hand.
    pub fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }

    /// Removes the rules for the clouds, deletes every environment of the namespace, and waits
    /// until all are gone. Environments that are not ready may be half-made.
    pub async fn clear(&self) -> Result<()> {
        faults::clear(&self.plane.client(), &self.rule_name("")).await?;
        let left = self.environments().await?;
        let gone = left.iter().map(async |environment| {
            self.objects.delete(&environment.manifest).await?;
            if is_ready(&environment.manifest) {
                environment.gone().await
            } else {
                self.gone_or_freed(environment).await.map(drop)
            }
        });
        try_join_all(gone).await.map(drop)
    }

    /// Every environment of the namespace. An API that was uninstalled has none.
    pub async fn environments(&self) -> Result<Vec<Environment>> {
        let mut found = Vec::new();
        for (api, flavour) in self.apis() {
            let example = self.manifest(api.info().name, flavour)?;
            let text = |key: &str| example[key].as_str().unwrap_or_default();
            if !self.objects.knows(text("apiVersion"), text("kind")).await? {
                continue;
            }
            let all = self.objects.list(text("apiVersion"), text("kind"), &self.namespace).await?;
            found.extend(all.into_iter().map(|object| self.environment(object)));
        }
        Ok(found)
    }

    /// An environment with this manifest, not applied yet.
    pub fn environment(&self, manifest: Value) -> Environment {
        Environment::new(self.user.clone(), self.objects.clone(), manifest)
    }

    /// An API's example, applied by the user, and ready.
    pub async fn ready(&self, api: &str, flavour: Flavour, change: Value) -> Result<Environment> {
        let environment = self.example(api, flavour, change)?;
        environment.apply().await?;
        environment.ready().await?;
        Ok(environment)
    }

    /// Sets a rule for the clouds' behaviour.
    pub async fn rule(&self, name: &str, rule: &Rule) -> Result<()> {
        faults::set(&self.plane.client(), &self.rule_name(name), Some(rule)).await
    }

    /// Removes the rule of this name.
    pub async fn no_rule(&self, name: &str) -> Result<()> {
        faults::set(&self.plane.client(), &self.rule_name(name), None).await
    }

    fn rule_name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// Removes the external resource of a managed resource from its cloud, without notice to
    /// Kubernetes.
    pub async fn vanishes(&self, managed: &Value) -> Result<()> {
        let all = self.objects.list("v1", "ConfigMap", fake_providers::NAMESPACE).await?;
        let owner = |map: &Value| External::from_config_map(map).map(|external| external.owner.uid);
        let held =
            all.iter().find(|map| owner(map).is_some_and(|uid| managed["metadata"]["uid"] == *uid));
        let held = held.with_context(|| {
            format!("found no external resource of {}", managed["metadata"]["name"])
        })?;
        self.admin.delete(held).await
    }

    /// The external resources of a composite in the clouds: kinds and names.
    pub async fn in_the_clouds(&self, composite: &Value) -> Result<Vec<String>> {
        let metadata = &composite["metadata"];
        let mut left = Vec::new();
        for object in self.objects.list("v1", "ConfigMap", fake_providers::NAMESPACE).await? {
            let Some(external) = External::from_config_map(&object) else { continue };
            let owner = &external.owner;
            let of_its_own = owner.namespace.is_empty() || metadata["namespace"] == owner.namespace;
            if metadata["name"] == owner.composite && of_its_own {
                left.push(format!("{} {}", external.kind, external.name));
            }
        }
        Ok(left)
    }

    /// The Deployments of an environment's app, inside its virtual cluster.
    pub async fn app_inside(&self, environment: &Environment) -> Result<Vec<Value>> {
        let namespace = |object: &Value| {
            object["spec"]["parameters"]["app"]["namespace"].as_str().map(str::to_owned)
        };
        let namespace = match namespace(&environment.manifest) {
            Some(namespace) => namespace,
            None => namespace(&environment.object().await?).context("the app has no namespace")?,
        };
        let inside = Objects::new(self.plane.inner.client.clone());
        inside.list("apps/v1", "Deployment", &namespace).await
    }

    /// Waits until an environment's app is inside its virtual cluster. Returns the app's Deployments.
    /// An Application that another environment left behind in the shared cluster keeps its status
    /// until Argo CD compares it again.
    pub async fn app_arrives(&self, environment: &Environment) -> Result<Vec<Value>> {
        eventually(&format!("the app of {} is inside", environment.resource()), async || {
            let deployments = self.app_inside(environment).await?;
            Ok((!deployments.is_empty()).then_some(deployments))
        })
        .await
    }

    /// The environments that the scenario created or used, with their resources, to diagnose a
    /// failure.
    pub async fn portrait(&self) -> String {
        let own = self.portrait_of_own().await;
        if !self.uses_shared.load(Ordering::Relaxed) {
            return own;
        }
        match self.shared_fixture().await {
            Ok(standing) => own + &standing.portrait_of_own().await,
            Err(error) => format!("{own}the shared environments cannot be read: {error:#}\n"),
        }
    }

    /// Every environment of the namespace, in any group.
    async fn portrait_of_own(&self) -> String {
        let all = match self.admin.get(&["paved", "-A"]).await {
            Ok(list) => list["items"].as_array().cloned().unwrap_or_default(),
            Err(error) => return format!("cannot read {}: {error:#}", self.namespace),
        };
        let mut text = format!("environments in {}:\n", self.namespace);
        for object in all.into_iter().filter(|one| one["metadata"]["namespace"] == *self.namespace)
        {
            text += &self.environment(object).tree().await;
        }
        text
    }

    /// Changes the platform team's Settings, for all environments.
    pub async fn patch_settings(&self, patch: &Value) -> Result<()> {
        let patch = patch.to_string();
        self.operator()
            .run(&["patch", SETTINGS[0], SETTINGS[1], "--type=merge", "-p", &patch])
            .await
            .map(drop)
    }

    /// The current Settings, to restore them later.
    pub async fn settings(&self) -> Result<Value> {
        Ok(self.operator().get(&SETTINGS).await?["data"].clone())
    }

    /// Restores Settings, without any additions.
    pub async fn put_settings(&self, data: &Value) -> Result<()> {
        let patch = json!([{"op": "replace", "path": "/data", "value": data}]).to_string();
        self.operator()
            .run(&["patch", SETTINGS[0], SETTINGS[1], "--type=json", "-p", &patch])
            .await
            .map(drop)
    }
}

fn binding(namespace: &str, role: &str, person: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
    })
}

fn cluster_binding(namespace: &str, role: &str, person: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        // The name has no `paved-road` in it, because a scenario checks that no binding of ours is
        // left.
        "metadata": {"name": format!("{namespace}-{}", role.strip_prefix("paved-road-").unwrap_or(role))},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
    })
}
