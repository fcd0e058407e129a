//! The commands of the operator's guide have their documented effects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use crossplane::conditions;
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use serde_json::{Value, json};
use tokio::time::sleep;
use xtask::guide::{self, OPERATIONS};
use xtask::package::Args;
use xtask::workspace;

use super::guides::{blocks_of, looks_of, run};
use super::helm::{Helm, with_chart};
use super::portrayed;
use super::upgrade::{self, NEXT};
use crate::control_plane::packages::OPTIONAL_PROVIDERS;
use crate::control_plane::{CircuitBreakers, ControlPlane, Function, NAMESPACE, Options, packages};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::Objects;

/// Starts with Crossplane alone. Installs and removes the namespaced APIs, then the claims APIs,
/// which find the providers installed.
pub(super) async fn its_documented_commands_run(fixture: Fixture) -> Result<()> {
    let options = Options { install: false, packages: None, ..fixture.plane.beside() };
    let plane =
        ControlPlane::start(&options).await.context("a control plane with Crossplane alone")?;
    let plane = Arc::new(plane);
    let fixture = Fixture::set(plane.clone(), "operations").await?;
    let team = Team::with(&fixture).await?;
    let result = async {
        for flavour in [Flavour::Namespaced, Flavour::Claims] {
            team.follows_the_guide(flavour).await.with_context(|| format!("{flavour}"))?;
        }
        CircuitBreakers::from_plane(&plane)
            .await?
            .have_not_opened_since(&CircuitBreakers::default())
    };
    let result = match result.await {
        Err(error) => {
            let packages =
                plane.kubectl(&["get", "pkg"]).await.unwrap_or_else(|error| format!("{error:#}"));
            let team = fixture.in_namespace(TEAM).portrait().await;
            Err(anyhow!("{error:#}\n{packages}\n{team}"))
        }
        done => done,
    };
    portrayed(result, &fixture, "operations").await
}

/// The guide's commands that install and upgrade the chart.
const INSTALL: &str = "helm upgrade --install paved-road";
const UPGRADE: &str = "helm upgrade paved-road";

/// The namespace of the guide's team.
const TEAM: &str = "team-vision";

/// The time in which the package runtime reports a missing runtime config. It watches them.
const GRACE: Duration = Duration::from_secs(5);

/// A platform team with the guide and a cluster.
struct Team {
    fixture: Fixture,
    plane: Arc<ControlPlane>,
    objects: Objects,
    /// The folder with the programs of the guide.
    programs: PathBuf,
    /// The charts of both releases.
    charts: [PathBuf; 2],
    /// The processes of the later release's function.
    _later: Function,
}

impl Team {
    /// Pushes both releases to the registry.
    async fn with(fixture: &Fixture) -> Result<Self> {
        let plane = fixture.plane.clone();
        packages::providers(plane.workdir(), &plane.registry, false).await?;
        packages::ours(plane.workdir(), &plane.registry, &Args::default(), None).await?;
        upgrade::publish(&plane).await?;
        let later = upgrade::function(&plane, 1).await?;
        plane.outer.apply(&[plane.registry.image_config()]).await?;
        let helm = Helm::new(&plane);
        let programs = helm.programs()?;
        std::os::unix::fs::symlink(workspace::built("paved")?, programs.join("paved"))?;
        let charts = [helm.pack(&Args::default().release).await?, helm.pack(NEXT).await?];
        let objects = fixture.objects.clone();
        let fixture = fixture.clone();
        Ok(Self { fixture, plane, objects, programs, charts, _later: later })
    }

    /// Runs the guide block by block, and checks the results of known blocks.
    async fn follows_the_guide(&self, flavour: Flavour) -> Result<()> {
        let guide = guide::text(OPERATIONS)?;
        let mut blocks = blocks_of(&guide, Some(flavour)).into_iter();
        let variables = variables(&blocks.next().context("the guide has no commands")?, flavour)?;
        let looks = looks_of(&guide);
        ensure!(!looks.is_empty(), "the guide has no `kubectl get …`");
        let mut looked = 0;
        for block in blocks {
            let block = self.prepared(&block)?;
            let printed = self.runs(&format!("{variables}\n{block}")).await?;
            looked +=
                usize::from(self.look(&block, &printed, flavour).await.context(block.clone())?);
            if block.contains(INSTALL) {
                self.runs(&looks.join("\n")).await?;
            }
        }
        ensure!(looked == 4, "{looked} blocks of the guide were recognized, not 4");
        Ok(())
    }

    /// A block with the packed charts. Roles of the default groups have no group in their names.
    /// The guide's provider configs need the providers of all options.
    fn prepared(&self, block: &str) -> Result<String> {
        let [now, next] = &self.charts;
        let block = block.replace("-$GROUP ", " ");
        if block.contains(INSTALL) {
            let block = with_chart(&block, now)?;
            let optional = OPTIONAL_PROVIDERS.join(",");
            let flag = format!("{INSTALL} --set 'providers.optional={{{optional}}}'");
            return Ok(block.replacen(INSTALL, &flag, 1));
        }
        if block.contains(UPGRADE) { with_chart(&block, next) } else { Ok(block) }
    }

    /// Runs a script as the cluster's administrator, in the clone.
    async fn runs(&self, script: &str) -> Result<String> {
        let environment = [("KUBECONFIG", self.plane.kubeconfig())];
        run(script, workspace::root(), &self.programs, &environment).await
    }

    /// Checks the result of a block. Returns whether the block is known.
    async fn look(&self, block: &str, printed: &str, flavour: Flavour) -> Result<bool> {
        match block {
            _ if block.contains(INSTALL) => {
                self.has(flavour, &Args::default().release).await?;
                // Start the programs that the package runtime would start.
                self.provided(flavour).await?;
            }
            _ if block.contains(UPGRADE) => self.has(flavour, NEXT).await?,
            _ if block.contains("helm uninstall") => self.has(flavour, NEXT).await?,
            _ if block.contains("platform uninstall") => {
                ensure!(printed.contains("left: Crossplane and the providers"), "{printed}");
                self.without_apis(flavour).await?;
                self.without_function().await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The providers of the APIs start to work, with the accounts that our rights are bound to.
    async fn provided(&self, flavour: Flavour) -> Result<()> {
        self.run_as(|account| ["provider-kubernetes", "provider-helm"].contains(&account)).await?;
        if self.plane.process("fake-providers").is_err() {
            self.plane.run_providers(Duration::ZERO).await?;
        }
        match flavour {
            Flavour::Namespaced => self.exposes_a_virtual_cluster().await,
            // On Crossplane 1.20, only these rights exist, and every claim becomes ready there.
            Flavour::Claims => Ok(()),
        }
    }

    /// Creates and deletes a virtual cluster behind a load balancer. Here, provider-kubernetes has
    /// only the rights of the namespaced APIs. It needs them for the namespace and for the Service,
    /// which it compares by a dry run. In other scenarios, it also has the rights of the claims
    /// APIs.
    async fn exposes_a_virtual_cluster(&self) -> Result<()> {
        let fixture = self.fixture.clone().with_rights().await?;
        let exposed = json!({"spec": {"parameters": {"expose": "loadBalancer"}}});
        let environment =
            fixture.ready("virtual-environment", Flavour::Namespaced, exposed).await?;
        environment.slot("vcluster-service").await?;
        environment.delete().await?;
        environment.gone().await
    }

    /// The function and one kind of APIs have a release. The function is healthy, as the guide has
    /// waited for.
    async fn has(&self, flavour: Flavour, release: &str) -> Result<()> {
        let registry = Args::default().registry;
        let (name, package) = (registry.installed_function(), registry.function());
        eventually(&format!("Function {name} is of {release}, and healthy"), async || {
            let found = self.objects.get("pkg.crossplane.io/v1", "Function", "", &name).await?;
            let found = found.with_context(|| format!("found no Function {name}"))?;
            let is_it = found["status"]["currentIdentifier"] == format!("{package}:{release}");
            let is_healthy = conditions::get(&found, "Healthy")["status"] == "True";
            Ok((is_it && is_healthy).then_some(()))
        })
        .await?;
        for api in APIS {
            let plural = manifests::names(api.info(), flavour).plural;
            let name = format!("{plural}.{}", flavour.default_group());
            for kind in ["CompositeResourceDefinition", "Composition"] {
                let found = self.objects.get("apiextensions.crossplane.io/v1", kind, "", &name);
                let found = found.await?.with_context(|| format!("found no {kind} {name}"))?;
                let version = &found["metadata"]["labels"]["app.kubernetes.io/version"];
                let is_it = kind != "Composition" || version == release;
                ensure!(is_it, "{kind} {name} is of {version}");
            }
        }
        Ok(())
    }

    /// These XRDs and all Compositions are gone, so the function has no users left.
    async fn without_apis(&self, flavour: Flavour) -> Result<()> {
        eventually("the APIs are gone", async || {
            let group = flavour.default_group();
            let xrds = self.objects.list(
                "apiextensions.crossplane.io/v1",
                "CompositeResourceDefinition",
                "",
            );
            let is_left = |xrd: &Value| xrd["spec"]["group"] == group;
            let compositions =
                self.objects.list("apiextensions.crossplane.io/v1", "Composition", "").await?;
            Ok((!xrds.await?.iter().any(is_left) && compositions.is_empty()).then_some(()))
        })
        .await
    }

    /// Our own objects are gone. The providers, which others may use, are still healthy.
    async fn without_function(&self) -> Result<()> {
        let roles = self.objects.list("rbac.authorization.k8s.io/v1", "ClusterRole", "").await?;
        let is_ours = |role: &Value| {
            role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("paved-road"))
        };
        let left: Vec<_> = roles.iter().filter(|role| is_ours(role)).collect();
        ensure!(left.is_empty(), "roles are left: {left:?}");
        let functions = self.objects.list("pkg.crossplane.io/v1", "Function", "").await?;
        ensure!(functions.is_empty(), "a Function is left");
        self.configured(&["default", "provider-helm", "provider-kubernetes"]).await?;
        self.providers_stay_healthy().await
    }

    /// Waits until both providers run with accounts that meet a condition.
    async fn run_as(&self, is: impl Fn(&str) -> bool) -> Result<()> {
        eventually("the providers run with the expected accounts", async || {
            let deployments = self.objects.list("apps/v1", "Deployment", NAMESPACE).await?;
            let accounts = deployments.iter().filter_map(|one| {
                let name = one["metadata"]["name"].as_str()?;
                let is_ours = ["kubernetes", "helm"]
                    .iter()
                    .any(|end| name.contains(&format!("-provider-{end}-")));
                one["spec"]["template"]["spec"]["serviceAccountName"].as_str().filter(|_| is_ours)
            });
            Ok((accounts.filter(|account| is(account)).count() == 2).then_some(()))
        })
        .await
    }

    /// Checks the names of the runtime configs.
    async fn configured(&self, expected: &[&str]) -> Result<()> {
        let configs =
            self.objects.list("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "").await?;
        let mut names: Vec<_> =
            configs.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
        names.sort_unstable();
        ensure!(names == expected, "there are the runtime configs {names:?}");
        Ok(())
    }

    /// Checks the providers after the package runtime has had time to report missing objects.
    async fn providers_stay_healthy(&self) -> Result<()> {
        sleep(GRACE).await;
        let providers = self.objects.list("pkg.crossplane.io/v1", "Provider", "").await?;
        ensure!(!providers.is_empty(), "the providers are gone");
        for provider in providers {
            let health = conditions::get(&provider, "Healthy");
            ensure!(health["status"] == "True", "{}: {health}", provider["metadata"]["name"]);
        }
        Ok(())
    }
}

/// The guide's variables, with a team's changes. The examples in the guide have the default group.
fn variables(block: &str, flavour: Flavour) -> Result<String> {
    let (chosen, group) = ("APIS=namespaced", "GROUP=platform.example.org");
    let is_known = block.contains(chosen) && block.contains(group);
    ensure!(is_known, "the guide begins with other variables:\n{block}");
    let block = block.replace(chosen, &format!("APIS={flavour}"));
    Ok(block.replace(group, &format!("GROUP={}", flavour.default_group())))
}
