//! Built and pushed packages are installed, together with their dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use crossplane::conditions;
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use futures::future::try_join_all;
use serde_json::{Value, json};
use xtask::guide::{self, INSTALLATION};
use xtask::package::{self, Args, Part, names};
use xtask::yaml;

use super::guides;
use crate::control_plane::{Program, packages};
use crate::examples;
use crate::fixture::Fixture;
use crate::paved::{Paved, address};

const PACKAGES: &str = "pkg.crossplane.io/v1";

/// The registry path of the providers' packages.
const PROVIDERS: &str = "xpkg.crossplane.io/crossplane-contrib";

/// Configurations depend on the documented providers. Only these, the families of their clouds and
/// the providers for some options are installed.
pub(super) async fn packages_bring_the_providers_that_they_need(fixture: Fixture) -> Result<()> {
    packages::healthy(&fixture.plane.outer).await?;
    let lock = fixture.objects.get("pkg.crossplane.io/v1beta1", "Lock", "", "lock").await?;
    let lock = lock.context("Crossplane has no Lock")?;
    let mut wanted = BTreeSet::from(["provider-family-aws", "provider-family-gcp"]);
    wanted.extend(["provider-aws-rds", "provider-aws-eks", "provider-azure-containerservice"]);
    // The Function of the same release, or of a later one.
    let args = Args::default();
    let function = format!("Function {} >={}-0", args.registry.function(), args.release);
    for (api, flavour) in fixture.apis() {
        let needed = providers(api.info().name, flavour)?;
        let of_provider =
            |(name, versions): (&str, &str)| format!("Provider {PROVIDERS}/{name} {versions}");
        let mut lines: BTreeSet<_> = needed.iter().copied().map(of_provider).collect();
        lines.insert(function.clone());
        let name = names::configuration(api, flavour);
        let told = dependencies(&fixture, &lock, &name).await?;
        ensure!(told == lines, "{name} depends on {told:?}; wanted: {lines:?}");
        wanted.extend(needed.into_iter().map(|(name, _)| name));
    }
    let wanted: BTreeSet<_> =
        wanted.into_iter().map(|name| format!("{PROVIDERS}/{name}")).collect();
    let package = |provider: &Value| {
        let (package, _) = provider["spec"]["package"].as_str()?.rsplit_once(':')?;
        Some(package.to_owned())
    };
    let installed = fixture.objects.list(PACKAGES, "Provider", "").await?;
    let installed: BTreeSet<_> = installed.iter().filter_map(package).collect();
    ensure!(installed == wanted, "installed: {installed:?}; wanted: {wanted:?}");
    kinds_are_activated(&fixture).await
}

/// Every kind in one of our policies is a kind of a provider, and active.
async fn kinds_are_activated(fixture: &Fixture) -> Result<()> {
    const VERSION: &str = "apiextensions.crossplane.io/v1alpha1";
    let mut policies = 0;
    for policy in fixture.objects.list(VERSION, "ManagedResourceActivationPolicy", "").await? {
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        if !name.ends_with(Flavour::Namespaced.default_group()) {
            continue;
        }
        let names = |list: &Value| -> BTreeSet<String> {
            list.as_array().into_iter().flatten().map(ToString::to_string).collect()
        };
        let (wanted, found) =
            (names(&policy["spec"]["activate"]), names(&policy["status"]["activated"]));
        ensure!(wanted == found, "{name} activates {found:?}, not {wanted:?}");
        policies += 1;
    }
    ensure!(policies == 4, "{policies} APIs have a policy; stock pools need none");
    Ok(())
}

/// The table of docs/reference/provider-versions.md: the providers of an API, with their versions.
/// It is written by hand, because computed values would only agree with themselves.
fn providers(api: &str, flavour: Flavour) -> Result<Vec<(&'static str, &'static str)>> {
    const AWS: &str = ">=v2.6.0, <v3.0.0";
    const GCP: &str = ">=v3.0.0, <v4.0.0";
    let kubernetes = ("provider-kubernetes", ">=v1.2.0, <v2.0.0");
    let mut needed = match api {
        "gpu-workspace" => vec![("provider-aws-ec2", AWS), ("provider-aws-iam", AWS)],
        "application-environment" => {
            vec![
                ("provider-gcp-cloudplatform", GCP),
                ("provider-gcp-container", GCP),
                ("provider-gcp-sql", GCP),
                ("provider-gcp-storage", GCP),
            ]
        }
        "unified-environment" => vec![
            ("provider-aws-cloudfront", AWS),
            ("provider-aws-s3", AWS),
            ("provider-sql", ">=v0.16.0, <v1.0.0"),
        ],
        "stock-pool" => vec![],
        "virtual-environment" => vec![("provider-helm", ">=v1.0.0, <v2.0.0"), kubernetes],
        _ => bail!("no scenario knows the providers of {api}"),
    };
    // As namespaced APIs, these two consist of Kubernetes' own objects.
    if flavour == Flavour::Claims && ["unified-environment", "stock-pool"].contains(&api) {
        needed.push(kubernetes);
    }
    Ok(needed)
}

/// The dependencies of an installed Configuration in Crossplane's Lock. Each line has kind, package
/// and versions.
async fn dependencies(fixture: &Fixture, lock: &Value, name: &str) -> Result<BTreeSet<String>> {
    let configuration = fixture.objects.get(PACKAGES, "Configuration", "", name).await?;
    let configuration = configuration.with_context(|| format!("{name} is not installed"))?;
    let revision = &configuration["status"]["currentRevision"];
    let mut locked = lock["packages"].as_array().into_iter().flatten();
    let locked = locked.find(|package| package["name"] == *revision);
    let locked = locked.with_context(|| format!("Crossplane's Lock has no {revision}: {lock}"))?;
    let line = |dependency: &Value| {
        let text = |key: &str| dependency[key].as_str().unwrap_or_default();
        format!("{} {} {}", text("kind"), text("package"), text("constraints"))
    };
    Ok(locked["dependencies"].as_array().into_iter().flatten().map(line).collect())
}

/// `cargo xtask package`, as in the installation guide.
#[derive(Parser)]
struct Documented {
    #[command(flatten)]
    args: Args,
}

/// The commands push both architectures under one tag, and all Configurations, from exactly the
/// packages built before. The programs in them do not matter here, so two files replace the
/// binaries, which take minutes to build.
pub(super) async fn packages_are_pushed_as_the_readme_says(fixture: Fixture) -> Result<()> {
    let workdir = fixture.plane.workdir();
    let folder = workdir.subfolder("as-the-readme-says")?;
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs)?;
    std::os::unix::fs::symlink(&workdir.tools.cli, programs.join("crossplane"))?;

    let here = format!("{}/readme", fixture.plane.registry.address);
    let blocks = guides::blocks(&guide::text(INSTALLATION)?);
    let mut blocks = blocks.iter().filter(|block| block.contains("crossplane xpkg push"));
    let (Some(released), Some(ours), None) = (blocks.next(), blocks.next(), blocks.next()) else {
        bail!("the guide does not push packages in two blocks");
    };
    let released = released.replacen(manifests::REGISTRY, &here, 1);
    ensure!(released.contains(&here), "the guide has other commands by now:\n{released}");
    let script = built(&released, &here, &folder)?;
    guides::run(&script, &folder, &programs, &[]).await?;
    let script = built(ours, &here, &folder)?;
    guides::run(&script, &folder, &programs, &[("REGISTRY", Path::new(&here))]).await?;

    let args = Args::default();
    let manifest = async |name: &str| -> Result<Value> {
        let crane = Program::new("crane", &workdir.tools.crane);
        let reference = format!("{here}/{name}:{}", args.release);
        let told = workdir.run(crane.args(["manifest", "--insecure", &reference])).await?;
        serde_json::from_str(&told).with_context(|| format!("{reference}: {told}"))
    };
    let index = manifest("function-paved-road").await?;
    let platforms = index["manifests"].as_array().into_iter().flatten();
    let platforms: Vec<_> = platforms.map(|one| one["platform"]["architecture"].clone()).collect();
    ensure!(platforms == ["amd64", "arm64"], "the Function exists for {platforms:?}");
    for (api, flavour) in fixture.apis() {
        let name = names::configuration(api, flavour);
        manifest(&name).await?;
        if flavour == Flavour::Namespaced {
            manifest(&format!("ours/{name}")).await?;
        }
    }
    Ok(())
}

/// Builds the packages of a block of the guide, for the registry `here`, with `folder` as the
/// clone. Returns the block's other commands.
fn built(block: &str, here: &str, folder: &Path) -> Result<String> {
    let (build, rest): (Vec<_>, Vec<_>) =
        block.lines().partition(|line| line.starts_with("cargo xtask package "));
    ensure!(build.len() == 1, "the guide has other commands by now:\n{block}");
    let build = build[0].replace("$REGISTRY", here);
    let Documented { args } = Documented::try_parse_from(build.split_whitespace().skip(2))?;
    ensure!(
        !args.parts.is_empty(),
        "the guide has all that is released built, which takes Node.js: {build}"
    );
    let output = folder.join(args.output.as_deref().unwrap_or(Path::new("target/packages")));
    std::fs::create_dir_all(&output)?;
    for part in &args.parts {
        match part {
            Part::Function => {
                for architecture in args.architectures() {
                    package::function::pack(
                        architecture.name().as_bytes(),
                        &args,
                        architecture,
                        &output,
                    )?;
                }
            }
            Part::Configurations => drop(package::configuration::packages(&args, &output)?),
            Part::Chart => drop(package::chart::write(&args, &output)?),
            other => bail!("the guide has {other:?} built, and pushes none of it: {build}"),
        }
    }
    Ok(rest.join("\n"))
}

pub(super) async fn compositions_are_selected_by_their_provider(fixture: Fixture) -> Result<()> {
    for (api, flavour, environment) in fixture.shared_examples().await? {
        let composite = environment.composite().await?;
        let name = composition(&composite)["name"].as_str().unwrap_or_default();
        let found =
            fixture.objects.get("apiextensions.crossplane.io/v1", "Composition", "", name).await?;
        let provider = found.unwrap_or_default()["metadata"]["labels"]["provider"].clone();
        let info = api.info();
        ensure!(provider == info.provider, "{} in {flavour:?} has {name} of {provider}", info.name);
    }
    // A claim does not report this itself. Only `paved` does.
    let claim = fixture.example(
        "stock-pool",
        Flavour::Claims,
        examples::selecting(Flavour::Claims, "nobody"),
    )?;
    let flags = ["--wait", "--patience", "5s", "--timeout", "8m"];
    Paved::from_fixture(&fixture)?
        .apply(&claim, &flags)
        .await?
        .is(4, &["Crossplane does not compose this environment"])?;
    claim.delete().await?;
    claim.gone().await?;
    let nobody = fixture.example(
        "stock-pool",
        Flavour::Namespaced,
        examples::selecting(Flavour::Namespaced, "nobody"),
    )?;
    nobody.apply().await?;
    let object = nobody
        .until("rejected without a Composition", |object| {
            conditions::get(object, "Synced")["status"] == "False"
        })
        .await?;
    ensure!(composition(&object).is_null(), "a Composition was found: {object}");
    nobody.delete().await?;
    nobody.gone().await
}

fn composition(composite: &Value) -> &Value {
    let spec = &composite["spec"];
    if spec["crossplane"].is_null() {
        &spec["compositionRef"]
    } else {
        &spec["crossplane"]["compositionRef"]
    }
}

/// Builds and pushes APIs as docs/how-to/use-your-own-api-group.md says: for the existing function,
/// under a separate registry path.
pub(super) async fn a_team_has_apis_in_a_group_of_its_own(fixture: Fixture) -> Result<()> {
    let args = Args {
        flavour: Some(Flavour::Namespaced),
        group: Some("platform.team.example".to_owned()),
        ..Args::default()
    };
    let workdir = fixture.plane.workdir();
    let output = workdir.subfolder("packages-of-a-team")?;
    packages::build(&args, output.clone()).await?;
    let place = format!("{}/ours", args.registry).parse().map_err(anyhow::Error::msg)?;
    let place = Args { registry: place, ..args.clone() };
    packages::push_configurations(workdir, &fixture.plane.registry, &place, &output).await?;
    for object in roles(output).await? {
        fixture.admin.apply(&object).await?;
    }
    let group = args.group.as_deref().context("a group")?;
    fixture.has_roles_of(group).await?;
    for object in packages::installation(&place) {
        if object["kind"] == "Configuration" {
            fixture.admin.apply(&object).await?;
        }
    }
    packages::healthy(&fixture.plane.outer).await?;
    let own = APIS.iter().map(async |api| {
        let mut environment = fixture.example(
            api.info().name,
            Flavour::Namespaced,
            json!({"metadata": {"name": "own"}}),
        )?;
        environment.manifest["apiVersion"] = manifests::api_version(group).into();
        // The command line finds the kinds by their definitions in the cluster.
        let paved = Paved::from_fixture(&fixture)?;
        let address = address(&environment);
        paved
            .apply(&environment, &["--wait", "--timeout", "8m"])
            .await?
            .is(0, &["is ready after"])?;
        paved.run(&["status", &address]).await?.is(0, &["Ready "])?;
        // A running environment has fields that Crossplane wrote. The cluster tells claims and
        // namespaced composites apart.
        environment.manifest["metadata"]["labels"]["edited"] = "true".into();
        let operator = paved.by(fixture.operator().person.as_deref());
        let compared = operator.apply(&environment, &["--dry-run=server", "--diff"]).await?;
        compared.is(0, &["its resources"])?;
        paved.run(&["list", &address[..address.len() - "/own".len()]]).await?.is(0, &["own"])?;
        paved
            .run(&["delete", &address, "--yes", "--wait", "--timeout", "10m"])
            .await?
            .is(0, &["deleted after"])
    });
    try_join_all(own).await?;
    let doctor = Paved::from_fixture(&fixture)?
        .by(fixture.operator().person.as_deref())
        .run(&["doctor"])
        .await?;
    doctor.is(
        0,
        &[
            &format!("✓ Function {}", args.registry.installed_function()),
            "✓ XRD stockpools.platform.team.example",
            "✓ Admission policies",
            "✓ Crossplane's rights",
            "✓ your rights",
        ],
    )
}

/// The roles for people and the admission policies, which are written beside the packages.
async fn roles(output: PathBuf) -> Result<Vec<Value>> {
    tokio::task::spawn_blocking(move || {
        let [people, policy] =
            ["people.yaml", "policy.yaml"].map(|file| yaml::read(&output.join(file)));
        Ok([people?, policy?].concat())
    })
    .await?
}
