//! A registry on loopback with our packages and their dependencies, and the installation of the
//! packages.

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
use paved_render::packages::Package;
use serde_json::{Value, json};
use tokio::time::sleep;
use xtask::{
    composed,
    package::{self, Args, names},
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

/// The platform of packages that run on this machine.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };

/// The kinds of packages.
const KINDS: [&str; 3] = ["Configuration", "Function", "Provider"];

/// A registry that keeps packages only while it runs.
pub struct Registry {
    /// `127.0.0.1:5000`
    pub address: String,
}

impl Registry {
    /// Starts a registry.
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

    /// Pushes package files under one public address, for example
    /// `xpkg.crossplane.io/paved-road/function-paved-road:v0.1.0`.
    pub async fn push(&self, workdir: &Workdir, package: &str, files: &[PathBuf]) -> Result<()> {
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let program = Program::new("crossplane", &workdir.tools.cli)
            .args(["xpkg", "push", "--package-files", &files.join(",")])
            .arg(self.own(package));
        workdir.run(program).await.map(drop)
    }

    /// The loopback address of a package with this public address.
    fn own(&self, package: &str) -> String {
        let path = package.split_once('/').map_or(package, |(_, path)| path);
        format!("{}/{path}", self.address)
    }

    /// The ImageConfig that points Crossplane to this registry.
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

/// Pushes our packages of a release from the folder `built`, or from the current workspace. `built`
/// must come from `cargo xtask package` for its default registry.
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

/// Extracts the Function's program from its package for this machine, and returns its path. The
/// image's entrypoint names the file.
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
    let entry = entry.with_context(|| format!("the image of {package} has no entrypoint"))?;
    taken(workdir, &package, entry, "function-image").await
}

/// Extracts a file from a package for this machine into a folder.
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

/// Builds our packages as they are released, the Function's for both architectures. The images hold
/// a word instead of the program, which takes minutes to build. The function runs here from the
/// program that was built for tests.
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

/// Pushes our packages from a folder to the addresses of the flags.
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

/// Pushes only the Configurations from a folder.
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

/// Builds and pushes packages of the providers that ours depend on. They hold real CRDs if the
/// provider's program runs here, otherwise the repository's slices. `real_sql` says whether this is
/// so for provider-sql.
pub async fn providers(workdir: &Workdir, registry: &Registry, real_sql: bool) -> Result<()> {
    let start = Instant::now();
    let mut packages = BTreeMap::<Package, Vec<Value>>::new();
    for file in fs::read_dir(workspace::root().join("tests/schemas"))? {
        for mut crd in yaml::read(&file?.path())? {
            let group = crd["spec"]["group"].as_str().unwrap_or_default();
            // `aws.m.upbound.io` is the group of provider configs.
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
        let provider = Provider::from_package(&package, family, slices, real_sql)?;
        let file = output.join(format!("{}.xpkg", package.name));
        provider.build(workdir, &output.join(&package.name), &file).await?;
        registry
            .push(workdir, &format!("{}:{}", package.reference(), provider.version), &[file])
            .await?;
    }
    workdir.tell("packages of providers", start);
    Ok(())
}

/// The contents of a provider's package.
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
        real_sql: bool,
    ) -> Result<Self> {
        match package.name.as_str() {
            "provider-kubernetes" => Self::real(&package.name, &tools::PROVIDER_KUBERNETES),
            "provider-helm" => Self::real(&package.name, &tools::PROVIDER_HELM),
            "provider-sql" if real_sql => Self::real(&package.name, &tools::PROVIDER_SQL),
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

    /// The contents of `package/` in the provider's own module, without conversion webhooks. No
    /// object here has an old version.
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

/// The objects with which a user installs our function and the Configurations. Configurations of a
/// custom group get a prefix, so that they do not replace the others.
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

/// The names of the providers in [`optional`], for the values of the chart.
pub const OPTIONAL_PROVIDERS: [&str; 5] = [
    "provider-aws-eks",
    "provider-aws-iam",
    "provider-aws-rds",
    "provider-azure-containerservice",
    "provider-gcp-container",
];

/// The Providers that only some options of a claim need. No Configuration depends on them, so the
/// platform team installs them together with these options.
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

/// Assigns runtime configs of the same name to the providers that our packages brought. Our rights
/// are bound to the accounts of these runtime configs.
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

/// Waits until all packages and their dependencies are installed and healthy, and their XRDs are in
/// force. Returns the number of packages.
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
        // Dependencies appear one after another, and the packages that need them become healthy
        // afterwards. A healthy package has created its objects. The kinds that they define are
        // served a moment later.
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

/// Whether a Provider is installed.
pub async fn has_providers(cluster: &Cluster) -> Result<bool> {
    Ok(!list(cluster, "pkg.crossplane.io", "Provider").await?.is_empty())
}

async fn all(cluster: &Cluster) -> Result<Vec<(String, DynamicObject)>> {
    let mut packages = Vec::new();
    for kind in KINDS {
        packages.extend(list(cluster, "pkg.crossplane.io", kind).await?);
    }
    Ok(packages)
}

/// All objects of a kind, each with its kind and name.
async fn list(cluster: &Cluster, group: &str, kind: &str) -> Result<Vec<(String, DynamicObject)>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let objects = api.list(&ListParams::default()).await?.into_iter();
    let named = objects.map(|object| {
        (format!("{kind} {}", object.metadata.name.as_deref().unwrap_or_default()), object)
    });
    Ok(named.collect())
}

/// The first of these conditions that an object still lacks.
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
