//! The chart on a real API server: installed, upgraded, synchronized as from Git, uninstalled and
//! installed again. Running environments do not change. `paved platform uninstall` waits for the
//! last environment, and then removes all that the chart keeps.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use function_paved_road::apis::Flavour;
use function_paved_road::manifests;
use futures::future::try_join_all;
use serde_json::{Value, json};
use xtask::package::Args;
use xtask::workspace;

use super::helm::Helm;
use super::portrayed;
use super::upgrade::{self, NEXT};
use crate::control_plane::{ControlPlane, Options, packages, settings};
use crate::environment::{Desired, Environment};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::paved::Paved;

/// The release, and its namespace.
const RELEASE: &str = "paved-road";

/// A company's own group.
const GROUP: &str = "platform.company.example";

/// The objects that the chart keeps.
const KEPT: [(&str, &str); 9] = [
    ("apiextensions.crossplane.io/v1", "CompositeResourceDefinition"),
    ("apiextensions.crossplane.io/v1", "Composition"),
    ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"),
    ("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig"),
    ("pkg.crossplane.io/v1", "Function"),
    ("pkg.crossplane.io/v1", "Provider"),
    ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
];

pub(super) async fn running_environments_outlive_every_change(fixture: Fixture) -> Result<()> {
    let options = Options { install: false, packages: None, ..fixture.plane.beside() };
    let plane = ControlPlane::start(&options).await.context("a control plane for the chart")?;
    let fixture = Fixture::set(Arc::new(plane), "chart").await?;
    let played = match play(&fixture).await {
        Err(error) => {
            let packages = fixture.plane.kubectl(&["get", "pkg"]).await;
            let packages = packages.unwrap_or_else(|error| format!("{error:#}"));
            Err(anyhow!("{error:#}\n{packages}"))
        }
        done => done,
    };
    portrayed(played, &fixture, "chart").await
}

async fn play(fixture: &Fixture) -> Result<()> {
    let team = Team::with(fixture).await?;
    let now = team.helm.pack(&Args::default().release).await?;
    team.install(&now.display().to_string()).await?;
    team.fixture.has_roles_of(GROUP).await?;
    fixture.plane.run_providers(Duration::ZERO).await?;
    let environments =
        try_join_all(["gpu-workspace", "stock-pool"].map(|api| team.make(api))).await?;

    let next = team.helm.pack(NEXT).await?.display().to_string();
    team.install(&next).await.context("helm upgrade")?;
    team.are_unchanged(&environments, NEXT).await.context("helm upgrade")?;

    team.sync(&next).await.context("the first sync from Git")?;
    let before = team.versions().await?;
    team.sync(&next).await.context("the second sync from Git")?;
    ensure!(before == team.versions().await?, "the second sync from Git has changed objects");
    team.are_unchanged(&environments, NEXT).await.context("a sync from Git")?;

    let kept = team.names().await?;
    team.is_refused().await?;
    team.helm.run(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await?;
    ensure!(team.names().await? == kept, "helm uninstall has removed kept objects");
    ensure!(team.programs().await? == 0, "helm uninstall has left the controller");
    team.are_unchanged(&environments, NEXT).await.context("helm uninstall")?;
    team.is_refused().await.context("without the release")?;
    team.install(&next).await.context("helm install again")?;
    team.are_unchanged(&environments, NEXT).await.context("helm install again")?;

    for (_, environment) in &environments {
        environment.delete().await?;
        environment.gone().await?;
    }
    team.helm.run(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await?;
    team.uninstall().await
}

/// A platform team with the chart.
struct Team {
    fixture: Fixture,
    helm: Helm,
    values: String,
    /// The process of the later release's function.
    _later: crate::control_plane::Function,
}

impl Team {
    /// Pushes both releases to the registry.
    async fn with(fixture: &Fixture) -> Result<Self> {
        let plane = &fixture.plane;
        packages::providers(plane.workdir(), &plane.registry, false).await?;
        packages::ours(plane.workdir(), &plane.registry, &Args::default(), None).await?;
        upgrade::publish(plane).await?;
        let later = upgrade::function(plane, 1).await?;
        plane.outer.apply(&[plane.registry.image_config()]).await?;
        let settings = settings::environment_config(workspace::root())?;
        let values = json!({
            "group": GROUP,
            "settings": settings["data"],
            "providers": {"optional": packages::OPTIONAL_PROVIDERS},
        });
        let file = plane.workdir().subfolder("values")?.join("values.yaml");
        std::fs::write(&file, values.to_string())?;
        let helm = Helm::new(plane);
        let values = file.display().to_string();
        Ok(Self { fixture: fixture.clone(), helm, values, _later: later })
    }

    /// Installs a chart, or upgrades to it, and waits for its packages.
    async fn install(&self, chart: &str) -> Result<()> {
        let flags = ["--namespace", RELEASE, "--create-namespace", "--values", &self.values];
        self.helm.run(&[&["upgrade", "--install", RELEASE, chart], &flags[..]].concat()).await?;
        packages::healthy(&self.fixture.plane.outer).await.map(drop)
    }

    /// Applies the rendered chart as a tool does that synchronizes it from Git.
    async fn sync(&self, chart: &str) -> Result<()> {
        let flags = ["--namespace", RELEASE, "--kube-version", "1.34.0", "--values", &self.values];
        let text = self.helm.run(&[&["template", RELEASE, chart], &flags[..]].concat()).await?;
        ensure!(!text.contains("helm.sh/hook"), "the chart has hooks");
        // Argo CD and Flux take over the fields of other managers, too.
        let manager = ["--server-side", "--force-conflicts", "--field-manager=git"];
        let apply = [&["apply"], &manager[..], &["-n", RELEASE, "-f", "-"]].concat();
        self.fixture.admin.with(&apply, &text).await.map(drop)
    }

    /// An environment in the company's group, ready and idle.
    async fn make(&self, api: &str) -> Result<(Desired, Environment)> {
        let mut environment = self.fixture.example(api, Flavour::Namespaced, json!({}))?;
        environment.manifest["apiVersion"] = manifests::api_version(GROUP).into();
        environment.apply().await?;
        environment.ready().await?;
        Ok((environment.rests().await?, environment))
    }

    /// The environments follow the Compositions of a release, are ready, and have the same
    /// resources.
    async fn are_unchanged(
        &self,
        environments: &[(Desired, Environment)],
        release: &str,
    ) -> Result<()> {
        for (before, environment) in environments {
            upgrade::follows(&self.fixture, environment, release).await?;
            environment.poke().await?;
            environment.ready().await?;
            let after = environment.rests().await?;
            ensure!(*before == after, "{} changed: {before:?}, {after:?}", environment.resource());
        }
        Ok(())
    }

    /// `paved platform uninstall` names the environments, and removes no object.
    async fn is_refused(&self) -> Result<()> {
        let before = self.names().await?;
        let ran = self.paved()?.run(&["platform", "uninstall", "--yes", "--providers"]).await?;
        let words = ["2 environments exist: ", "Nothing was deleted", "paved delete ", "--wait"];
        ran.is(1, &words)?;
        ensure!(self.names().await? == before, "the refused command has removed objects");
        Ok(())
    }

    /// Removes the platform. Providers stay while provider configs exist.
    async fn uninstall(&self) -> Result<()> {
        let paved = self.paved()?;
        let ran = paved.run(&["platform", "uninstall", "--yes"]).await?;
        ran.is(0, &["Paved Road is uninstalled", "left: Crossplane and the providers "])?;
        let left: Vec<String> = self.names().await?;
        let is_ours = |title: &&String| {
            let is_provider = title.starts_with("Provider ");
            let is_config = title.ends_with(" provider-helm") || title.ends_with("-kubernetes");
            !(is_provider || is_config && title.starts_with("DeploymentRuntimeConfig "))
        };
        let ours: Vec<_> = left.iter().filter(is_ours).collect();
        ensure!(ours.is_empty(), "objects are left: {ours:?}");
        for kind in ["providerconfigs", "clusterproviderconfigs"] {
            let listed = self.fixture.plane.kubectl(&["api-resources", "-o", "name"]).await?;
            for resource in listed.lines().filter(|one| one.starts_with(&format!("{kind}."))) {
                self.fixture.plane.kubectl(&["delete", resource, "--all", "--wait=true"]).await?;
            }
        }
        let ran = paved.run(&["platform", "uninstall", "--yes", "--providers"]).await?;
        ran.is(0, &["Provider crossplane-contrib-provider-helm deleted"])?;
        eventually("no object is left", async || Ok(self.names().await?.is_empty().then_some(())))
            .await?;
        paved.run(&["platform", "uninstall", "--yes"]).await?.is(0, &["is not installed at"])
    }

    /// `paved` as the administrator.
    fn paved(&self) -> Result<Paved> {
        Ok(Paved::from_fixture(&self.fixture)?.by(None))
    }

    /// The kept objects with their versions.
    async fn versions(&self) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        for object in self.kept().await? {
            let version = object["metadata"]["resourceVersion"].to_string();
            // Crossplane writes the status of packages and APIs at any time.
            let generation = &object["metadata"]["generation"];
            all.push((title(&object), generation.as_u64().map_or(version, |one| one.to_string())));
        }
        Ok(all)
    }

    /// The kept objects by kind and name.
    async fn names(&self) -> Result<Vec<String>> {
        Ok(self.kept().await?.iter().map(title).collect())
    }

    /// The objects of the platform, without those of Crossplane and Kubernetes.
    async fn kept(&self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for (api_version, kind) in KEPT {
            let found = self.fixture.objects.list(api_version, kind, "").await?;
            all.extend(found.into_iter().map(|mut object| {
                object["kind"] = kind.into();
                object
            }));
        }
        all.retain(|object| object["metadata"]["labels"]["app.kubernetes.io/part-of"] == RELEASE);
        // The controller's objects are not kept.
        all.retain(|object| object["metadata"]["labels"]["app.kubernetes.io/name"].is_null());
        Ok(all)
    }

    /// The number of our Deployments.
    async fn programs(&self) -> Result<usize> {
        Ok(self.fixture.objects.list("apps/v1", "Deployment", RELEASE).await?.len())
    }
}

/// `Kind name`.
fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
