//! A registry on loopback with our packages and those that they depend on, and their installation.

mod origin;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use function_paved_road::{
    apis::{APIS, Flavour},
    manifests,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::time::sleep;
use xtask::{
    composed,
    package::{self, Args, names},
    providers::Package,
    tools, workspace, yaml,
};

use super::{cluster::Cluster, ports, process::Program, workdir::Workdir};
use crate::fake_providers::schema;

const INSTALL_TIMEOUT: Duration = Duration::from_mins(5);

/// The registry hosts of the providers and of our packages. An ImageConfig points Crossplane to
/// loopback instead.
fn hosts() -> BTreeSet<String> {
    let ours = names::Registry::default();
    BTreeSet::from(["xpkg.crossplane.io".to_owned(), ours.host().to_owned()])
}

/// What packages are for that run on this machine.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };

/// The kinds of packages.
const KINDS: [&str; 3] = ["Configuration", "Function", "Provider"];

/// A registry that forgets everything when it ends.
pub struct Registry {
    /// `127.0.0.1:5000`
    pub address: String,
}

impl Registry {
    /// Starts one.
    pub async fn start(workdir: &Workdir) -> Result<Self> {
        let port = ports::free()?;
        let address = format!("127.0.0.1:{port}");
        let program = Program::new("registry", &workdir.tools.crane).args([
            "registry",
            "serve",
            "--address",
            &address,
        ]);
        let process = workdir.start(program)?;
        process.ready(Duration::from_secs(30), async || ports::answers(port).await).await?;
        Ok(Self { address })
    }

    /// Pushes packages as one, under their public address, for example
    /// `xpkg.crossplane.io/paved-road/function-paved-road:v0.1.0`.
    pub async fn push(&self, workdir: &Workdir, package: &str, files: &[PathBuf]) -> Result<()> {
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let program = Program::new("crossplane", &workdir.tools.cli)
            .args(["xpkg", "push", "--package-files", &files.join(",")])
            .arg(self.own(package));
        workdir.run(program).await.map(drop)
    }

    /// The address on loopback of a package with this public address.
    fn own(&self, package: &str) -> String {
        let path = package.split_once('/').map_or(package, |(_, path)| path);
        format!("{}/{path}", self.address)
    }

    /// The ImageConfig that points Crossplane here.
    pub fn image_config(&self) -> Value {
        let prefixes = hosts().into_iter().map(|host| format!("{host}/"));
        let prefixes: Vec<_> =
            prefixes.map(|prefix| json!({"type": "Prefix", "prefix": prefix})).collect();
        json!({
            "apiVersion": "pkg.crossplane.io/v1beta1",
            "kind": "ImageConfig",
            "metadata": {"name": "loopback"},
            "spec": {
                "matchImages": prefixes,
                "rewriteImage": {"prefix": format!("{}/", self.address)},
            },
        })
    }
}

/// Pushes our packages of a release: those in `built`, where `cargo xtask package` has left them
/// for its default registry; without it those of the workspace as it is.
pub async fn ours(
    workdir: &Workdir,
    registry: &Registry,
    args: &Args,
    built: Option<&Path>,
) -> Result<()> {
    let start = Instant::now();
    let folder = if let Some(folder) = built {
        folder.canonicalize().with_context(|| format!("finding {}", folder.display()))?
    } else {
        let output = workdir.subfolder("packages")?;
        build(args, output.clone()).await?;
        output
    };
    push(workdir, registry, args, &folder).await?;
    if built.is_some() {
        let package =
            registry.own(&tagged(&args.registry.configuration(APIS[0], Flavour::Claims), args));
        let contents = taken(workdir, &package, "package.yaml", "configuration-package").await?;
        origin::check(&yaml::read(&contents)?, args)
            .with_context(|| folder.display().to_string())?;
    }
    workdir.tell("our packages", start);
    Ok(())
}

/// Takes the Function's program out of its package, as whoever pulls that for this machine finds
/// it; gives its file. Its image says which of its files it starts.
pub async fn program(workdir: &Workdir, registry: &Registry, args: &Args) -> Result<PathBuf> {
    let package = registry.own(&tagged(&args.registry.function(), args));
    let crane = Program::new("crane", &workdir.tools.crane).args([
        "--platform",
        PLATFORM,
        "config",
        &package,
    ]);
    let config: Value = serde_json::from_str(&workdir.run(crane).await?)?;
    let entry =
        config["config"]["Entrypoint"][0].as_str().and_then(|entry| entry.strip_prefix('/'));
    let entry =
        entry.with_context(|| format!("the image of {package} does not say what to start"))?;
    taken(workdir, &package, entry, "function-image").await
}

/// Takes a file out of a package into a folder, as whoever pulls that for this machine finds it.
async fn taken(workdir: &Workdir, package: &str, file: &str, folder: &str) -> Result<PathBuf> {
    let folder = workdir.subfolder(folder)?;
    let files = folder.with_extension("tar").display().to_string();
    let crane = Program::new("crane", &workdir.tools.crane);
    workdir.run(crane.args(["--platform", PLATFORM, "export", package, &files])).await?;
    let tar =
        Program::new("tar", Path::new("tar")).args(["--extract", "--file", &files, "--directory"]);
    workdir.run(tar.arg(folder.display().to_string()).arg(file)).await?;
    Ok(folder.join(file))
}

/// Builds our packages as they are released, the Function's for both architectures. In the
/// program's place there is a word: the real ones take minutes to build, and what runs here is the
/// one that was built for tests.
pub async fn build(args: &Args, output: PathBuf) -> Result<()> {
    let args = args.clone();
    tokio::task::spawn_blocking(move || {
        for architecture in args.architectures() {
            package::function::pack(architecture.name().as_bytes(), &args, architecture, &output)?;
        }
        package::configuration::packages(&args, &output).map(drop)
    })
    .await?
}

/// Pushes what is in a folder of our packages to where the flags say that it will be.
pub async fn push(
    workdir: &Workdir,
    registry: &Registry,
    args: &Args,
    folder: &Path,
) -> Result<()> {
    let function = xpkgs(folder, manifests::FUNCTION)?;
    registry.push(workdir, &tagged(&args.registry.function(), args), &function).await?;
    push_configurations(workdir, registry, args, folder).await
}

/// The same of the Configurations alone.
pub async fn push_configurations(
    workdir: &Workdir,
    registry: &Registry,
    args: &Args,
    folder: &Path,
) -> Result<()> {
    for api in APIS {
        for flavour in args.flavours() {
            let files = xpkgs(folder, &names::configuration(*api, flavour))?;
            let package = args.registry.configuration(*api, flavour);
            registry.push(workdir, &tagged(&package, args), &files).await?;
        }
    }
    Ok(())
}

/// The files of a package: one, or one per architecture.
fn xpkgs(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = entry?.path();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let is_one = file.extension().is_some_and(|end| end == "xpkg");
        if is_one
            && [name, &format!("{name}-amd64"), &format!("{name}-arm64")].contains(&stem.as_ref())
        {
            files.push(file);
        }
    }
    ensure!(
        !files.is_empty(),
        "{} has no {name}.xpkg. Run `cargo xtask package`",
        folder.display()
    );
    files.sort();
    Ok(files)
}

fn tagged(package: &str, args: &Args) -> String {
    format!("{package}:{}", args.release)
}

/// Makes packages of the providers that ours depend on, and pushes them: real CRDs where the
/// provider's program runs here, else the repository's slices.
pub async fn providers(workdir: &Workdir, registry: &Registry) -> Result<()> {
    let start = Instant::now();
    let mut packages = BTreeMap::<Package, Vec<Value>>::new();
    for file in fs::read_dir(workspace::root().join("tests/schemas"))? {
        for mut crd in yaml::read(&file?.path())? {
            let group = crd["spec"]["group"].as_str().unwrap_or_default();
            // `aws.m.upbound.io` is that of provider configs.
            let family =
                || group.strip_suffix(".upbound.io").map(|cloud| cloud.trim_end_matches(".m"));
            if let Some(package) = Package::serving(group).or_else(|| Package::family(family()?)) {
                schema::widen(&mut crd);
                packages.entry(package).or_default().push(crd);
            }
        }
    }
    let output = workdir.subfolder("providers")?;
    let names: BTreeSet<_> = packages.keys().cloned().collect();
    for (package, slices) in packages {
        let family = Package::family(package.cloud()).and_then(|family| names.get(&family));
        let provider = Provider::from_package(&package, family, slices)?;
        let file = output.join(format!("{}.xpkg", package.name));
        provider.build(workdir, &output.join(&package.name), &file).await?;
        registry
            .push(workdir, &format!("{}:{}", package.reference(), provider.version), &[file])
            .await?;
    }
    workdir.tell("packages of providers", start);
    Ok(())
}

/// What a provider's package holds.
struct Provider {
    meta: Value,
    crds: Vec<Value>,
    version: String,
}

impl Provider {
    fn from_package(
        package: &Package,
        family: Option<&Package>,
        slices: Vec<Value>,
    ) -> Result<Self> {
        match package.name.as_str() {
            "provider-kubernetes" => Self::real(&package.name, &tools::PROVIDER_KUBERNETES),
            "provider-helm" => Self::real(&package.name, &tools::PROVIDER_HELM),
            name => {
                let needed = family.iter().map(
                    |family| json!({"provider": family.reference(), "version": family.versions()}),
                );
                let meta = json!({
                    "apiVersion": "meta.pkg.crossplane.io/v1",
                    "kind": "Provider",
                    "metadata": {"name": name},
                    "spec": {"dependsOn": needed.collect::<Vec<_>>()},
                });
                Ok(Self { meta, crds: slices, version: format!("v{}.0", package.since) })
            }
        }
    }

    /// What the provider's own module has in `package/`, without webhooks that convert: nothing of
    /// an old version is here.
    fn real(name: &str, tool: &tools::Tool) -> Result<Self> {
        let source =
            tools::source(&format!("github.com/crossplane-contrib/{name}"), tool)?.join("package");
        let meta = yaml::read(&source.join("crossplane.yaml"))?.into_iter().next();
        let mut crds = Vec::new();
        for file in fs::read_dir(source.join("crds"))? {
            for mut crd in yaml::read(&file?.path())? {
                if let Some(spec) = crd["spec"].as_object_mut() {
                    spec.remove("conversion");
                }
                crds.push(crd);
            }
        }
        let meta = meta.with_context(|| format!("{name} has no crossplane.yaml"))?;
        Ok(Self { meta, crds, version: tool.version.to_owned() })
    }

    async fn build(&self, workdir: &Workdir, folder: &Path, file: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        yaml::write(&folder.join("crossplane.yaml"), std::slice::from_ref(&self.meta))?;
        yaml::write(&folder.join("crds.yaml"), &self.crds)?;
        let program = Program::new("crossplane", &workdir.tools.cli)
            .args(["xpkg", "build", "--package-root"])
            .arg(folder.display().to_string())
            .arg("--package-file")
            .arg(file.display().to_string());
        workdir.run(program).await.map(drop)
    }
}

/// The objects by which a user installs our function and the Configurations. Those of a group of
/// one's own stand beside the others.
pub fn installation(args: &Args) -> Vec<Value> {
    let installed =
        |kind: &str, name: &str, package: &str| installed(kind, name, &tagged(package, args));
    let mut function =
        installed("Function", &args.registry.installed_function(), &args.registry.function());
    function["spec"]["runtimeConfigRef"] = json!({"name": manifests::FUNCTION});
    let mut objects = vec![function];
    let prefix = if args.group.is_some() { "own-" } else { "" };
    for api in APIS {
        for flavour in args.flavours() {
            let package = args.registry.configuration(*api, flavour);
            let name = format!("{prefix}{}", names::configuration(*api, flavour));
            objects.push(installed("Configuration", &name, &package));
        }
    }
    objects
}

fn installed(kind: &str, name: &str, package: &str) -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"package": package},
    })
}

/// The Providers that only some choices of a claim need: no Configuration brings them, whoever
/// offers these choices installs them.
pub fn optional(args: &Args) -> Result<Vec<Value>> {
    let (mut needed, mut optional) = (BTreeSet::new(), BTreeSet::new());
    for api in APIS {
        for flavour in args.flavours() {
            let composed = composed::by(*api, flavour)?;
            needed.extend(composed.needed());
            optional.extend(composed.optional());
        }
    }
    let alone = optional.difference(&needed);
    Ok(alone
        .map(|one| {
            installed("Provider", &one.name, &format!("{}:v{}.0", one.reference(), one.since))
        })
        .collect())
}

/// Has the providers that came with our packages run as those whom their rights are bound to: by
/// runtime configs called like them.
pub async fn configure(cluster: &Cluster) -> Result<()> {
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("pkg.crossplane.io", "v1", "Provider"));
    let providers: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    for name in ["provider-kubernetes", "provider-helm"] {
        let patch = Patch::Merge(json!({"spec": {"runtimeConfigRef": {"name": name}}}));
        let installed = format!("crossplane-contrib-{name}");
        let configured = providers.patch(&installed, &PatchParams::default(), &patch).await;
        configured.with_context(|| format!("giving {installed} its runtime config"))?;
    }
    Ok(())
}

/// Waits until every package that there is, dependencies too, is installed and healthy, and the
/// kinds are there that they bring; how many packages there are.
pub async fn healthy(cluster: &Cluster) -> Result<usize> {
    let start = Instant::now();
    loop {
        let packages = all(cluster).await?;
        let unhealthy = packages
            .iter()
            .filter_map(|(name, object)| missing(name, object, &["Installed", "Healthy"]));
        let kinds =
            list(cluster, "apiextensions.crossplane.io", "CompositeResourceDefinition").await?;
        let absent = kinds.iter().filter_map(|(name, object)| {
            let claimed = !object.data["spec"]["claimNames"].is_null();
            missing(
                name,
                object,
                if claimed { &["Established", "Offered"] } else { &["Established"] },
            )
        });
        let waiting: Vec<_> = unhealthy.chain(absent).collect();
        // Dependencies appear one after another, and only with them the packages that wanted them
        // become healthy. A package counts as healthy once its objects are there; what they define
        // is served a moment later.
        if waiting.is_empty() && !packages.is_empty() {
            return Ok(packages.len());
        }
        if start.elapsed() > INSTALL_TIMEOUT {
            bail!(
                "packages are not healthy after {} s:\n{}",
                INSTALL_TIMEOUT.as_secs(),
                waiting.join("\n")
            );
        }
        sleep(Duration::from_millis(500)).await;
    }
}

async fn all(cluster: &Cluster) -> Result<Vec<(String, DynamicObject)>> {
    let mut packages = Vec::new();
    for kind in KINDS {
        packages.extend(list(cluster, "pkg.crossplane.io", kind).await?);
    }
    Ok(packages)
}

/// All objects of a kind, each with what it is called.
async fn list(cluster: &Cluster, group: &str, kind: &str) -> Result<Vec<(String, DynamicObject)>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let objects = api.list(&ListParams::default()).await?.into_iter();
    let named = objects.map(|object| {
        (format!("{kind} {}", object.metadata.name.as_deref().unwrap_or_default()), object)
    });
    Ok(named.collect())
}

/// Which of these conditions something still waits for.
fn missing(name: &str, object: &DynamicObject, wanted: &[&str]) -> Option<String> {
    let conditions = object.data["status"]["conditions"].as_array();
    let of_type =
        |wanted: &str| conditions.and_then(|all| all.iter().find(|one| one["type"] == wanted));
    wanted.iter().find_map(|wanted| match of_type(wanted) {
        Some(condition) if condition["status"] == "True" => None,
        Some(condition) => Some(format!("{name}: not {wanted}: {}", condition["message"])),
        None => Some(format!("{name}: not {wanted} yet")),
    })
}
