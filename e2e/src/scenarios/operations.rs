//! The commands of the operator's guide have their documented effects.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use crossplane::conditions;
use crossplane::names::PAUSED;
use function_paved_road::apis::{APIS, Flavour, find};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;
use xtask::guide::{self, INSTALLATION, OPERATIONS};
use xtask::package::{Args, names};
use xtask::workspace;

use super::portrayed;
use super::upgrade::{self, NEXT};
use crate::control_plane::{CircuitBreakers, ControlPlane, Function, NAMESPACE, Options, packages};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::{Objects, reference};
use crate::{examples, kubectl, next_release};

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
        team.installs_one_api().await.context("docs/how-to/install.md")?;
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

/// The guide's variable for the release of an upgrade.
const RELEASE: &str = "RELEASE=";

/// The namespace of the guide's team.
const TEAM: &str = "team-vision";

/// The time in which the package runtime reports a missing runtime config. It watches them.
const GRACE: Duration = Duration::from_secs(5);

/// A platform team with the guide and a cluster.
struct Team {
    fixture: Fixture,
    plane: Arc<ControlPlane>,
    objects: Objects,
    /// The folder with kubectl.
    programs: PathBuf,
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
        let programs = plane.workdir().subfolder("operations")?;
        std::os::unix::fs::symlink(plane.kubectl_path(), programs.join("kubectl"))?;
        let objects = fixture.objects.clone();
        Ok(Self { fixture: fixture.clone(), plane, objects, programs, _later: later })
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
            let block = block.replace(
                &format!("{RELEASE}{}", Args::default().release),
                &format!("{RELEASE}{NEXT}"),
            );
            let printed = self.runs(&format!("{variables}\n{block}")).await?;
            looked +=
                usize::from(self.look(&block, &printed, flavour).await.context(block.clone())?);
            if block.contains("kind: Function") {
                self.runs(&looks.join("\n")).await?;
            }
        }
        ensure!(looked == 7, "{looked} blocks of the guide were recognized, not 7");
        Ok(())
    }

    /// Follows the short installation after all objects of the guide are gone: the function, and
    /// one API.
    async fn installs_one_api(&self) -> Result<()> {
        let has = |part: &'static str| move |block: &String| block.contains(part);
        let guide = guide::text(INSTALLATION)?;
        let (manifest, commands) = (fenced(&guide, |line| line == "```yaml"), blocks(&guide));
        let manifest = manifest
            .into_iter()
            .find(has("kind: Configuration"))
            .context("the guide has no Configuration")?;
        let commands = commands
            .into_iter()
            .find(has("-f install.yaml"))
            .context("the guide has no command for install.yaml")?;
        let file = self.programs.join("install.yaml");
        std::fs::write(&file, manifest)?;
        self.runs(&commands.replace("install.yaml", &file.display().to_string())).await?;
        packages::healthy(&self.plane.outer).await?;
        let api = find("GpuDevWorkspace").context("there are no workspaces")?.info();
        let api = format!("{}.{}", api.composite.plural, Flavour::Claims.default_group());
        self.runs(&format!("kubectl wait --for=condition=Offered --timeout=1m xrd {api}")).await?;
        self.configured(&["default", "function-paved-road", "provider-helm", "provider-kubernetes"])
            .await
    }

    /// Runs a script as the cluster's administrator, in the clone.
    async fn runs(&self, script: &str) -> Result<String> {
        let environment = [("KUBECONFIG", self.plane.kubeconfig())];
        run(script, workspace::root(), &self.programs, &environment).await
    }

    /// Checks the result of a block. Returns whether the block is known.
    async fn look(&self, block: &str, printed: &str, flavour: Flavour) -> Result<bool> {
        match block {
            _ if block.contains("kind: Function") => {
                self.has(flavour, &Args::default().release).await?;
            }
            _ if block.contains(RELEASE) => self.upgraded(flavour).await?,
            _ if block.contains("kubectl get paved") => {
                ensure!(printed.trim().is_empty(), "environments are left:\n{printed}");
                if flavour == Flavour::Claims {
                    self.shows_what_no_claim_has(block).await?;
                }
            }
            _ if block.contains("delete configurations") => self.without_apis(flavour).await?,
            _ if block.contains("delete functions") => self.without_function().await?,
            _ if block.contains("\"default\"") => self.without_rights().await?,
            // Start the programs that the package runtime would start.
            _ if block.contains("runtimeConfigRef") => self.provided(flavour).await?,
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

    /// Function and APIs have the later release, and the APIs have the new field.
    async fn upgraded(&self, flavour: Flavour) -> Result<()> {
        self.has(flavour, NEXT).await?;
        for api in APIS {
            let names = if flavour == Flavour::Claims {
                &api.info().composite
            } else {
                &api.info().namespaced
            };
            let name = format!("{}.{}", names.plural, flavour.default_group());
            let kind = "CompositeResourceDefinition";
            let xrd = self.objects.get("apiextensions.crossplane.io/v1", kind, "", &name).await?;
            let xrd = xrd.with_context(|| format!("found no XRD {name}"))?;
            let schema =
                &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
            ensure!(
                schema["properties"][next_release::FIELD].is_object(),
                "{name} is not of {NEXT}"
            );
        }
        Ok(())
    }

    /// The function and one kind of APIs have a release and are healthy, as the guide has waited
    /// for. Crossplane may still report a package as unhealthy while another package's revisions
    /// change in its lock (`node … already exists`).
    async fn has(&self, flavour: Flavour, release: &str) -> Result<()> {
        let registry = Args::default().registry;
        let apis = APIS.iter().map(|api| {
            (
                "Configuration",
                names::configuration(*api, flavour),
                registry.configuration(*api, flavour),
            )
        });
        let function = ("Function", registry.installed_function(), registry.function());
        for (kind, name, package) in apis.chain([function]) {
            eventually(&format!("{kind} {name} is of {release}, and healthy"), async || {
                let found = self.objects.get("pkg.crossplane.io/v1", kind, "", &name).await?;
                let found = found.with_context(|| format!("found no {kind} {name}"))?;
                let is_it = found["status"]["currentIdentifier"] == format!("{package}:{release}");
                let is_healthy = conditions::get(&found, "Healthy")["status"] == "True";
                ensure!(is_it, "it is of another release: {}", found["status"]);
                Ok(is_healthy.then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// The guide's command also lists composites without a claim, which would be deleted with their
    /// kind.
    async fn shows_what_no_claim_has(&self, block: &str) -> Result<()> {
        let info = find("XStockPool").context("there are no stock pools")?.info();
        let mut composite = examples::example(workspace::root(), info.name, Flavour::Claims, TEAM)?;
        composite["kind"] = info.composite.kind.into();
        // Paused, because it needs no resources.
        composite["metadata"] = json!({"name": "without-claim", "annotations": {PAUSED: "true"}});
        self.objects.apply(&composite).await?;
        let printed = self.runs(block).await?;
        self.objects.delete(&composite).await?;
        ensure!(
            printed.contains("without-claim"),
            "a composite without a claim is not shown:\n{printed}"
        );
        eventually("the composite is gone", async || {
            Ok(self.objects.referred(&reference(&composite), "").await?.is_none().then_some(()))
        })
        .await
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
        for role in
            ["paved-road-catalogue", "paved-road-viewer", "paved-road-user", "paved-road-operator"]
        {
            let found =
                self.objects.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", role).await?;
            ensure!(found.is_none(), "{role} is left");
        }
        let functions = self.objects.list("pkg.crossplane.io/v1", "Function", "").await?;
        ensure!(functions.is_empty(), "a Function is left");
        self.configured(&["default", "provider-helm", "provider-kubernetes"]).await?;
        self.providers_stay_healthy().await
    }

    /// The providers run like any others, each with its own account and without our rights.
    async fn without_rights(&self) -> Result<()> {
        let roles =
            self.objects.list("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "").await?;
        let ours = |role: &Value| {
            role["metadata"]["name"].as_str().is_some_and(|name| name.contains("paved-road"))
        };
        ensure!(!roles.iter().any(ours), "rights are left");
        self.configured(&["default"]).await?;
        self.run_as(|account| account.starts_with("crossplane-contrib-provider-")).await?;
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

/// The guide's variables, with a team's changes.
fn variables(block: &str, flavour: Flavour) -> Result<String> {
    let chosen = "FLAVOUR=namespaced";
    ensure!(block.contains(chosen), "the guide begins with other variables:\n{block}");
    Ok(block.replace(chosen, &format!("FLAVOUR={flavour}")))
}

/// The blocks of a document that are marked `sh`.
pub(super) fn blocks(document: &str) -> Vec<String> {
    blocks_of(document, None)
}

/// The same, and the blocks for one kind of API: `sh claims`.
fn blocks_of(document: &str, flavour: Option<Flavour>) -> Vec<String> {
    let own = flavour.map(|flavour| format!("```sh {flavour}"));
    fenced(document, |line| line == "```sh" || own.as_deref() == Some(line))
}

/// The blocks of a document with a matching first line.
fn fenced(document: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while lines.any(&begins) {
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// The `kubectl get` commands within a document's sentences.
fn looks_of(document: &str) -> Vec<String> {
    let looks =
        document.split('`').filter(|span| span.starts_with("kubectl get ") && !span.contains('\n'));
    looks.map(str::to_owned).collect()
}

/// Runs commands in a folder with these programs, as in a terminal. Stops at the first failure.
/// Returns their output.
pub(super) async fn run(
    block: &str,
    folder: &Path,
    programs: &Path,
    environment: &[(&str, &Path)],
) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", block]).current_dir(folder).kill_on_drop(true);
    command.env("PATH", format!("{}:{path}", programs.display())).envs(environment.iter().copied());
    command.env(kubectl::CACHE, programs.join("cache"));
    let output = command.stdin(Stdio::null()).output().await?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "running\n{block}\n{}", complaint.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
