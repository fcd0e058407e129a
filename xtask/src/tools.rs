//! `cargo xtask tools`: programs of the Crossplane project, built from source with Go.
//!
//! `go install module@version` cannot install some of them, because their modules have `replace`
//! lines or no list of versions. So each program is built in a wrapper module that requires the
//! program as a tool. The name of the built file has a hash of the recipe. The file is moved to the
//! tools' folder only when it is complete.

use std::{
    env, fs,
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::workspace;

/// A program and its recipe. If the recipe changes, the name of the built file changes too.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The name of the program in this repository.
    pub name: &'static str,
    /// The version, which is the tag of its module.
    pub version: &'static str,
    /// The Go package of its `main`.
    package: &'static str,
    /// Modules with a version different from the program's requirement, as `module@version`.
    modules: &'static [&'static str],
    /// Modules that the program's module replaces with local folders, and their published version.
    staging: (&'static [&'static str], &'static str),
    /// Flags for the linker, for example the version that the program reports.
    ldflags: &'static str,
    /// Edits of the source of dependencies.
    edits: &'static [Edit],
}

/// A line of a dependency's source, and its replacement.
#[derive(Clone, Copy, Debug)]
struct Edit {
    module: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

/// A recipe with only a package.
const PLAIN: Tool = Tool {
    name: "",
    version: "",
    package: "",
    modules: &[],
    staging: (&[], ""),
    ldflags: "",
    edits: &[],
};

/// Crossplane's command line: renders compositions, validates resources, converts claims to XRs,
/// builds and pushes packages.
pub const CLI: Tool = Tool {
    name: "crossplane",
    version: "v2.5.0",
    package: "github.com/crossplane/cli/v2/cmd/crossplane",
    ..PLAIN
};

/// The command line of Crossplane 1.20, with `crossplane render`. It has no engine, and calls the
/// function itself.
pub const OLD_CLI: Tool = Tool {
    name: "old-crossplane",
    version: "v1.20.13",
    package: "github.com/crossplane/crossplane/cmd/crank",
    ..PLAIN
};

/// Crossplane: the engine of `crossplane composition render`, the control plane, and its RBAC
/// manager. `versions.yaml` has the reason for the patch release. Crossplane has flags for ports, but
/// not for addresses. The RBAC manager has no flag for the port of its metrics (8080), so the linker
/// sets it.
pub const CORE: Tool = Tool {
    name: "crossplane-core",
    version: "v2.4.0",
    package: "github.com/crossplane/crossplane/v2/cmd/crossplane",
    modules: &["github.com/crossplane/crossplane/apis/v2@v2.4.0"],
    ldflags: concat!(
        "-X=github.com/crossplane/crossplane-runtime/v2/pkg/version.version=v2.4.0 ",
        "-X=sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0"
    ),
    edits: CORE_EDITS,
    ..PLAIN
};

/// The same Crossplane, which checks every second instead of every 30 whether a Usage that is
/// being deleted is still needed. Tests that measure nothing wait less with it.
pub const FAST_CORE: Tool = Tool {
    name: "fast-crossplane-core",
    edits: &[CORE_EDITS[0], CORE_EDITS[1], SHORT_WAIT],
    ..CORE
};

/// The wait of [`FAST_CORE`] for Usages.
const SHORT_WAIT: Edit = Edit {
    module: CORE_MODULE,
    file: "internal/controller/protection/usage/reconciler.go",
    from: "waitPollInterval = 30 * time.Second",
    to: "waitPollInterval = time.Second",
};

/// The minor version before [`CORE`].
pub const CORE_2_3: Tool = Tool {
    name: "crossplane-core-2.3",
    version: "v2.3.4",
    package: "github.com/crossplane/crossplane/v2/cmd/crossplane",
    modules: &["github.com/crossplane/crossplane/apis/v2@v2.3.4"],
    ldflags: concat!(
        "-X=github.com/crossplane/crossplane-runtime/v2/pkg/version.version=v2.3.4 ",
        "-X=sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0"
    ),
    ..CORE
};

/// The Go module of [`CORE`].
const CORE_MODULE: &str = "github.com/crossplane/crossplane/v2";

const CORE_EDITS: &[Edit] = &[WEBHOOKS_OF_LOOPBACK, probes_and_metrics_of_loopback(CORE_MODULE)];

/// The oldest Crossplane that the claims API supports. It has no flags for the folders of
/// `core init`. With our edit, it uses the folder where it was started.
pub const OLD_CORE: Tool = Tool {
    name: "old-crossplane-core",
    version: "v1.20.13",
    package: "github.com/crossplane/crossplane/cmd/crossplane",
    ldflags: concat!(
        "-X=github.com/crossplane/crossplane/internal/version.version=v1.20.13 ",
        "-X=sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0"
    ),
    edits: OLD_CORE_EDITS,
    ..PLAIN
};

/// [`OLD_CORE`] with the shorter wait of [`FAST_CORE`].
pub const FAST_OLD_CORE: Tool = Tool {
    name: "fast-old-crossplane-core",
    edits: &[
        OLD_CORE_EDITS[0],
        OLD_CORE_EDITS[1],
        OLD_CORE_EDITS[2],
        OLD_CORE_EDITS[3],
        Edit {
            module: OLD_CORE_MODULE,
            file: "internal/controller/apiextensions/usage/reconciler.go",
            ..SHORT_WAIT
        },
    ],
    ..OLD_CORE
};

/// The Go module of [`OLD_CORE`].
const OLD_CORE_MODULE: &str = "github.com/crossplane/crossplane";

const OLD_CORE_EDITS: &[Edit] = &[
    Edit { from: "\"/crds\"", to: "\"crds\"", ..OLD_INIT },
    Edit { from: "\"/webhookconfigurations\"", to: "\"webhookconfigurations\"", ..OLD_INIT },
    WEBHOOKS_OF_LOOPBACK,
    probes_and_metrics_of_loopback(OLD_CORE_MODULE),
];

const OLD_INIT: Edit =
    Edit { module: OLD_CORE_MODULE, file: "cmd/crossplane/core/init.go", from: "", to: "" };

/// Kubernetes' database.
pub const ETCD: Tool =
    Tool { name: "etcd", version: "v3.6.14", package: "go.etcd.io/etcd/server/v3", ..PLAIN };

/// The programs of one version of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct Kubernetes {
    /// The API server.
    pub api_server: Tool,
    /// The controllers: garbage collection, Deployments, namespaces.
    pub controller_manager: Tool,
    /// The scheduler.
    pub scheduler: Tool,
    /// The command line.
    pub kubectl: Tool,
}

impl Kubernetes {
    fn tools(self) -> [Tool; 4] {
        [self.api_server, self.controller_manager, self.scheduler, self.kubectl]
    }
}

/// The programs of a version of Kubernetes. Its modules in `staging/` have the published version of
/// the second argument, and are in the list of the third. The last argument is the end of the
/// programs' names.
macro_rules! kubernetes {
    ($version:literal, $staging:literal, $modules:ident, $suffix:literal) => {{
        const KUBERNETES: Tool = Tool {
            version: $version,
            staging: ($modules, $staging),
            ldflags: concat!("-X=k8s.io/component-base/version.gitVersion=", $version),
            ..PLAIN
        };
        Kubernetes {
            api_server: Tool {
                name: concat!("kube-apiserver", $suffix),
                package: "k8s.io/kubernetes/cmd/kube-apiserver",
                ..KUBERNETES
            },
            controller_manager: Tool {
                name: concat!("kube-controller-manager", $suffix),
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
                ..KUBERNETES
            },
            scheduler: Tool {
                name: concat!("kube-scheduler", $suffix),
                package: "k8s.io/kubernetes/cmd/kube-scheduler",
                ..KUBERNETES
            },
            kubectl: Tool {
                name: concat!("kubectl", $suffix),
                package: "k8s.io/kubernetes/cmd/kubectl",
                ..KUBERNETES
            },
        }
    }};
}

/// The Kubernetes of every run.
pub const KUBERNETES: Kubernetes = kubernetes!("v1.34.3", "v0.34.3", STAGING, "");

/// The newest Kubernetes. Only `.ci/run --all` uses it and the next two, and builds them then.
pub const KUBERNETES_1_37: Kubernetes = kubernetes!("v1.37.2", "v0.37.2", NEWER_STAGING, "-1.37");

/// The version before the newest.
pub const KUBERNETES_1_36: Kubernetes = kubernetes!("v1.36.5", "v0.36.5", NEWER_STAGING, "-1.36");

/// The oldest version that Kubernetes supports.
pub const KUBERNETES_1_35: Kubernetes = kubernetes!("v1.35.8", "v0.35.8", NEWER_STAGING, "-1.35");

/// Fake nodes, which report pods as running.
pub const KWOK: Tool =
    Tool { name: "kwok", version: "v0.7.0", package: "sigs.k8s.io/kwok/cmd/kwok", ..PLAIN };

/// A registry for packages, and a client of registries.
pub const CRANE: Tool = Tool {
    name: "crane",
    version: "v0.21.9",
    package: "github.com/google/go-containerregistry/cmd/crane",
    ..PLAIN
};

/// Helm, which renders Crossplane's own chart. The control plane uses the roles of this chart.
pub const HELM: Tool =
    Tool { name: "helm", version: "v3.19.0", package: "helm.sh/helm/v3/cmd/helm", ..PLAIN };

/// Signs and verifies the release.
pub const COSIGN: Tool = Tool {
    name: "cosign",
    version: "v3.1.3",
    package: "github.com/sigstore/cosign/v3/cmd/cosign",
    ..PLAIN
};

/// Checks the workflows of GitHub Actions.
const ACTIONLINT: Tool = Tool {
    name: "actionlint",
    version: "v1.7.12",
    package: "github.com/rhysd/actionlint/cmd/actionlint",
    ..PLAIN
};

/// The provider for Kubernetes objects. It has no flags for the ports of metrics and webhook.
pub const PROVIDER_KUBERNETES: Tool = Tool {
    name: "provider-kubernetes",
    version: "v1.2.1",
    package: "github.com/crossplane-contrib/provider-kubernetes/cmd/provider",
    ldflags: ANY_METRICS_PORT,
    edits: &[
        WEBHOOKS_OF_LOOPBACK,
        Edit { from: "var DefaultPort = 9443", to: "var DefaultPort = 0", ..WEBHOOKS_OF_LOOPBACK },
    ],
    ..PLAIN
};

/// The provider for Helm releases. It has no flags for the port of its metrics and for the folder
/// of charts, which is the same for the whole machine. With our edit, the charts are in the folder
/// where the provider was started.
pub const PROVIDER_HELM: Tool = Tool {
    name: "provider-helm",
    version: "v1.3.0",
    package: "github.com/crossplane-contrib/provider-helm/cmd/provider",
    ldflags: ANY_METRICS_PORT,
    edits: &[Edit {
        module: "github.com/crossplane-contrib/provider-helm",
        file: "pkg/clients/helm/client.go",
        from: "= \"/tmp/charts\"",
        to: "= \"charts\"",
    }],
    ..PLAIN
};

/// The provider for objects on PostgreSQL servers.
pub const PROVIDER_SQL: Tool = Tool {
    name: "provider-sql",
    version: "v0.16.0",
    package: "github.com/crossplane-contrib/provider-sql/cmd/provider",
    ..PLAIN
};

/// Runs the checks in clouds: see `cargo xtask cloud-check`.
pub const CHAINSAW: Tool = Tool {
    name: "chainsaw",
    version: "v0.2.12",
    package: "github.com/kyverno/chainsaw",
    // The package `testing` of Go 1.26 requires one more method.
    edits: &[Edit {
        module: "github.com/kyverno/chainsaw",
        file: "pkg/runner/internal/test_deps.go",
        from: "func (*TestDeps) ImportPath()",
        to: "func (*TestDeps) ModulePath() string { return \"\" }\n\nfunc (*TestDeps) ImportPath()",
    }],
    ..PLAIN
};

/// Serves metrics on a free port of loopback.
const ANY_METRICS_PORT: &str =
    "-X=sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0";

/// Serves webhooks on loopback. Without the edit, they use all addresses of the machine.
const WEBHOOKS_OF_LOOPBACK: Edit = Edit {
    module: "sigs.k8s.io/controller-runtime",
    file: "pkg/webhook/server.go",
    from: "net.JoinHostPort(s.Options.Host, ",
    to: "net.JoinHostPort(\"127.0.0.1\", ",
};

/// Serves Crossplane's probes and metrics on loopback. `module` is the module of its version.
const fn probes_and_metrics_of_loopback(module: &'static str) -> Edit {
    let file = "cmd/crossplane/core/core.go";
    Edit { module, file, from: "fmt.Sprintf(\":%d\", ", to: "fmt.Sprintf(\"127.0.0.1:%d\", " }
}

/// The modules that Kubernetes keeps in `staging/`.
const STAGING: &[&str] = &[
    "k8s.io/api",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/apimachinery",
    "k8s.io/apiserver",
    "k8s.io/cli-runtime",
    "k8s.io/client-go",
    "k8s.io/cloud-provider",
    "k8s.io/cluster-bootstrap",
    "k8s.io/code-generator",
    "k8s.io/component-base",
    "k8s.io/component-helpers",
    "k8s.io/controller-manager",
    "k8s.io/cri-api",
    "k8s.io/cri-client",
    "k8s.io/csi-translation-lib",
    "k8s.io/dynamic-resource-allocation",
    "k8s.io/endpointslice",
    "k8s.io/externaljwt",
    "k8s.io/kms",
    "k8s.io/kube-aggregator",
    "k8s.io/kube-controller-manager",
    "k8s.io/kube-proxy",
    "k8s.io/kube-scheduler",
    "k8s.io/kubectl",
    "k8s.io/kubelet",
    "k8s.io/metrics",
    "k8s.io/mount-utils",
    "k8s.io/pod-security-admission",
    "k8s.io/sample-apiserver",
    "k8s.io/sample-cli-plugin",
    "k8s.io/sample-controller",
];

/// The same since Kubernetes 1.35. The oldest of them have some of the modules only.
const NEWER_STAGING: &[&str] = &[
    "k8s.io/api",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/apimachinery",
    "k8s.io/apiserver",
    "k8s.io/cli-runtime",
    "k8s.io/client-go",
    "k8s.io/cloud-provider",
    "k8s.io/cluster-bootstrap",
    "k8s.io/code-generator",
    "k8s.io/component-base",
    "k8s.io/component-helpers",
    "k8s.io/controller-manager",
    "k8s.io/cri-api",
    "k8s.io/cri-client",
    "k8s.io/cri-streaming",
    "k8s.io/csi-translation-lib",
    "k8s.io/dynamic-resource-allocation",
    "k8s.io/endpointslice",
    "k8s.io/externaljwt",
    "k8s.io/kms",
    "k8s.io/kube-aggregator",
    "k8s.io/kube-controller-manager",
    "k8s.io/kube-proxy",
    "k8s.io/kube-scheduler",
    "k8s.io/kubectl",
    "k8s.io/kubelet",
    "k8s.io/metrics",
    "k8s.io/mount-utils",
    "k8s.io/pod-security-admission",
    "k8s.io/sample-apiserver",
    "k8s.io/sample-cli-plugin",
    "k8s.io/sample-controller",
    "k8s.io/streaming",
];

/// The tools of every run.
const TOOLS: &[&Tool] = &[
    &CLI,
    &CORE,
    &FAST_CORE,
    &CORE_2_3,
    &KUBERNETES.api_server,
    &KUBERNETES.controller_manager,
    &KUBERNETES.scheduler,
    &KUBERNETES.kubectl,
    &ETCD,
    &CRANE,
    &COSIGN,
    &ACTIONLINT,
    &PROVIDER_KUBERNETES,
    &PROVIDER_HELM,
    &PROVIDER_SQL,
    &KWOK,
    &HELM,
    &OLD_CORE,
    &CHAINSAW,
    &FAST_OLD_CORE,
    &OLD_CLI,
];

/// The tools of every run, and those that only `.ci/run --all` uses.
pub(crate) fn all() -> Vec<Tool> {
    let others = [KUBERNETES_1_37, KUBERNETES_1_36, KUBERNETES_1_35];
    let others = others.into_iter().flat_map(Kubernetes::tools);
    TOOLS.iter().map(|tool| **tool).chain(others).collect()
}

/// Overrides the folder that keeps the tools, so that a cache can outlive a clone.
pub const FOLDER: &str = "PAVED_ROAD_TOOLS";

/// Flags of `cargo xtask tools`.
#[derive(clap::Args)]
#[command(
    after_help = "The tools are in target/tools, or in the folder that PAVED_ROAD_TOOLS names."
)]
pub struct Args {
    /// Tools to build [default: all tools].
    names: Vec<String>,
}

/// Builds the missing tools and prints one line for each tool. Each tool also has a link with its
/// plain name.
pub fn run(args: &Args) -> Result<()> {
    if let Some(unknown) =
        args.names.iter().find(|name| TOOLS.iter().all(|tool| tool.name != *name))
    {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        bail!("unknown tools: {unknown:?}; allowed: {}", names.join(", "));
    }
    let wanted =
        |tool: &&&Tool| args.names.is_empty() || args.names.iter().any(|name| name == tool.name);
    for tool in TOOLS.iter().filter(wanted) {
        ensure(tool)?;
        tool.link(&folder()?)?;
    }
    Ok(())
}

/// Returns the tool's path, and builds the tool if it does not exist. Prints a line in both cases.
pub fn ensure(tool: &Tool) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let program = folder()?.join(tool.key());
    if program.is_file() {
        println!("{name:24} {version:8} kept   {}", program.display());
        return Ok(program);
    }
    path(tool)
}

/// Returns the tool's path if the tool is already built.
pub fn built(tool: &Tool) -> Option<PathBuf> {
    let program = folder().ok()?.join(tool.key());
    program.is_file().then_some(program)
}

/// Returns the tool's path. If the tool does not exist, prints a line and builds it.
pub fn path(tool: &Tool) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let folder = folder()?;
    let program = folder.join(tool.key());
    if program.is_file() {
        return Ok(program);
    }
    println!("{name:24} {version:8} building: minutes, the first time");
    let start = Instant::now();
    tool.build(&folder, &program).with_context(|| format!("building {name} {version}"))?;
    tool.link(&folder)?;
    println!("{name:24} {version:8} {:4} s {}", start.elapsed().as_secs(), program.display());
    Ok(program)
}

/// Links the plain name of a tool to today's program, which is built if it does not exist.
pub fn link(tool: &Tool) -> Result<()> {
    path(tool)?;
    tool.link(&folder()?)
}

/// Returns the folder with the source of a tool's module, and downloads it if it does not exist.
pub fn source(module: &str, tool: &Tool) -> Result<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Download {
        dir: PathBuf,
    }
    let named = format!("{module}@{}", tool.version);
    let answer = go(&env::temp_dir(), &["mod", "download", "-json", &named])?;
    let download: Download =
        serde_json::from_str(&answer).with_context(|| format!("downloading {named}"))?;
    Ok(download.dir)
}

/// Returns the folder of the tools, which is created if it does not exist.
pub fn folder() -> Result<PathBuf> {
    let folder =
        env::var_os(FOLDER).map_or_else(|| workspace::target().join("tools"), PathBuf::from);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    folder.canonicalize().with_context(|| format!("finding {}", folder.display()))
}

impl Tool {
    /// The file's name: the tool, its version, and the first digits of the recipe's hash.
    fn key(&self) -> String {
        let recipe = format!("{self:?}");
        let hash: [u8; 32] = Sha256::digest(recipe).into();
        let start = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        format!("{}-{}-{start:08x}", self.name, self.version)
    }

    /// Links the tool's plain name to the program. The link is replaced atomically.
    fn link(&self, folder: &Path) -> Result<()> {
        let aside = tempfile::Builder::new().prefix(".linking-").tempdir_in(folder)?;
        let (new, link) = (aside.path().join(self.name), folder.join(self.name));
        symlink(self.key(), &new)?;
        fs::rename(&new, &link).with_context(|| format!("making {}", link.display()))
    }

    fn build(&self, folder: &Path, program: &Path) -> Result<()> {
        let wrapper = tempfile::Builder::new().prefix(".building-").tempdir_in(folder)?;
        let here = wrapper.path();
        let built = here.join("program");
        go(here, &["mod", "init", "tools"])?;
        let (staging, published) = self.staging;
        for module in staging {
            go(here, &["mod", "edit", "-replace", &format!("{module}={module}@{published}")])?;
        }
        let main = format!("{}@{}", self.package, self.version);
        go(here, &[&["get", "-tool", &main], self.modules].concat())?;
        self.edit(here)?;
        let output = built.display().to_string();
        go(
            here,
            &[
                "build",
                "-mod=mod",
                "-trimpath",
                "-ldflags",
                self.ldflags,
                "-o",
                &output,
                self.package,
            ],
        )?;
        fs::rename(&built, program).with_context(|| format!("moving it to {}", program.display()))
    }

    /// Replaces the edited modules with copies in the wrapper, because Go's cache is read-only.
    fn edit(&self, wrapper: &Path) -> Result<()> {
        for edit in self.edits {
            let original = go(wrapper, &["list", "-m", "-f", "{{.Dir}}", edit.module])?;
            let copy = wrapper.join("edited").join(edit.module);
            copy_module(Path::new(original.trim()), &copy)?;
            let file = copy.join(edit.file);
            let source =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            if !source.contains(edit.from) {
                bail!("{} lacks {:?}", file.display(), edit.from);
            }
            fs::write(&file, source.replace(edit.from, edit.to))?;
            go(
                wrapper,
                &["mod", "edit", "-replace", &format!("{}={}", edit.module, copy.display())],
            )?;
        }
        Ok(())
    }
}

/// Copies a read-only folder of Go's cache to a writable folder.
fn copy_module(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_module(&entry.path(), &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Runs `go` and returns its output.
fn go(folder: &Path, args: &[&str]) -> Result<String> {
    let answer = Command::new("go")
        .args(args)
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!(
                "no `go` on the PATH. Crossplane's tools are built from source. Install Go 1.26 or newer"
            ),
            _ => error.into(),
        })?;
    if !answer.status.success() {
        bail!(
            "go {}: {}\n{}",
            args.join(" "),
            answer.status,
            String::from_utf8_lossy(&answer.stderr)
        );
    }
    String::from_utf8(answer.stdout).context("the output of go is not UTF-8")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn plain_name_links_to_the_program_of_the_current_recipe() {
        let folder = tempfile::tempdir().unwrap();
        for tool in [Tool { ldflags: "-s", ..CORE }, CORE, CORE] {
            fs::write(folder.path().join(tool.key()), tool.key()).unwrap();
            tool.link(folder.path()).unwrap();
            assert_eq!(
                fs::read_to_string(folder.path().join("crossplane-core")).unwrap(),
                tool.key()
            );
        }
        // Only two programs and the link remain.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_changed_recipe_gives_another_file() {
        let changed = Tool { ldflags: "-s", ..CORE };
        assert_ne!(changed.key(), CORE.key());
        assert!(CORE.key().starts_with("crossplane-core-v2.4.0-"), "{}", CORE.key());
    }

    #[test]
    fn staging_modules_have_the_version_of_their_kubernetes() {
        for kubernetes in [KUBERNETES, KUBERNETES_1_37, KUBERNETES_1_36, KUBERNETES_1_35] {
            let Tool { version, staging, .. } = kubernetes.api_server;
            assert_eq!(version.strip_prefix("v1."), staging.1.strip_prefix("v0."));
        }
    }

    /// Renovate finds versions by patterns, so another form of a recipe would be overlooked.
    #[test]
    fn renovate_finds_the_version_of_each_tool() {
        let read = |file: &str| fs::read_to_string(workspace::root().join(file)).unwrap();
        let config: serde_json::Value =
            serde_json::from_str(&read(".github/renovate.json")).unwrap();
        let source = read("xtask/src/tools.rs");
        let mut found = Vec::new();
        for manager in config["customManagers"].as_array().unwrap() {
            if manager["managerFilePatterns"][0] == "xtask/src/tools.rs" {
                let pattern = manager["matchStrings"][0].as_str().unwrap();
                let pattern = regex_lite::Regex::new(pattern).unwrap();
                let versions = pattern.captures_iter(&source);
                found.extend(versions.map(|version| version["currentValue"].to_owned()));
            }
        }
        for tool in all() {
            assert!(found.iter().any(|version| version == tool.version), "{}", tool.name);
        }
    }
}
