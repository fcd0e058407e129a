//! `cargo xtask tools`: programs of the Crossplane project, built from source with Go.
//!
//! Some of them cannot be had by `go install module@version`: their modules hold `replace` lines, or lack a
//! list of versions. So each gets a wrapper module that requires it as a tool, and is built in there. What was
//! built is kept under a name that tells the recipe, and is moved there only once it is whole.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::workspace;

/// A program and its recipe. Any change of it gives another file in the tools' folder.
#[derive(Debug)]
pub struct Tool {
    /// What the program is called here.
    pub name: &'static str,
    /// The version, as its module is tagged.
    pub version: &'static str,
    /// The Go package of its `main`.
    package: &'static str,
    /// Modules that must be taken at a version of their own, as `module@version`.
    modules: &'static [&'static str],
    /// Flags for the linker, such as the version that the program reports.
    ldflags: &'static str,
}

/// The command line: renders compositions, validates resources, makes XRs of claims.
pub const CLI: Tool = Tool {
    name: "crossplane",
    version: "v2.5.0",
    package: "github.com/crossplane/cli/v2/cmd/crossplane",
    modules: &[],
    ldflags: "",
};

/// The core: the engine that `crossplane composition render` runs, and the control plane itself.
pub const CORE: Tool = Tool {
    name: "crossplane-core",
    version: "v2.3.4",
    package: "github.com/crossplane/crossplane/v2/cmd/crossplane",
    modules: &["github.com/crossplane/crossplane/apis/v2@v2.3.4"],
    ldflags: "-X=github.com/crossplane/crossplane-runtime/v2/pkg/version.version=v2.3.4",
};

/// Every tool; a later one is one entry more.
const TOOLS: &[&Tool] = &[&CLI, &CORE];

/// Overrides the folder that keeps the tools, so that a cache can outlive a clone.
const FOLDER: &str = "PAVED_ROAD_TOOLS";

/// Flags of `cargo xtask tools`.
#[derive(clap::Args)]
#[command(after_help = "Tools are kept in target/tools, or in the folder that PAVED_ROAD_TOOLS names.")]
pub struct Args {
    /// Only these; every tool when none is named.
    names: Vec<String>,
}

/// Builds what is not there yet; prints a line per tool.
pub fn run(args: &Args) -> Result<()> {
    if let Some(unknown) = args.names.iter().find(|name| TOOLS.iter().all(|tool| tool.name != *name)) {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        bail!("no tool is called {unknown:?}; there are: {}", names.join(", "));
    }
    let wanted = |tool: &&&Tool| args.names.is_empty() || args.names.iter().any(|name| name == tool.name);
    for tool in TOOLS.iter().filter(wanted) {
        ensure(tool)?;
    }
    Ok(())
}

/// The tool's path; builds it first when it is not there.
pub fn ensure(tool: &Tool) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let folder = folder()?;
    let program = folder.join(tool.key());
    if program.is_file() {
        println!("{name:16} {version:8} kept   {}", program.display());
        return Ok(program);
    }
    println!("{name:16} {version:8} building: minutes, the first time");
    let start = Instant::now();
    tool.build(&folder, &program).with_context(|| format!("building {name} {version}"))?;
    println!("{name:16} {version:8} {:4} s {}", start.elapsed().as_secs(), program.display());
    Ok(program)
}

fn folder() -> Result<PathBuf> {
    let folder = env::var_os(FOLDER).map_or_else(|| workspace::target().join("tools"), PathBuf::from);
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

    fn build(&self, folder: &Path, program: &Path) -> Result<()> {
        let wrapper = tempfile::Builder::new().prefix(".building-").tempdir_in(folder)?;
        let built = wrapper.path().join("program");
        go(wrapper.path(), &["mod", "init", "tools"])?;
        let main = format!("{}@{}", self.package, self.version);
        go(wrapper.path(), &[&["get", "-tool", &main], self.modules].concat())?;
        let output = built.display().to_string();
        go(wrapper.path(), &["build", "-trimpath", "-ldflags", self.ldflags, "-o", &output, self.package])?;
        fs::rename(&built, program).with_context(|| format!("moving it to {}", program.display()))
    }
}

fn go(folder: &Path, args: &[&str]) -> Result<()> {
    let answer = Command::new("go")
        .args(args)
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!(
                "no `go` on the PATH: Crossplane's tools are built from source, install Go 1.25 or newer"
            ),
            _ => error.into(),
        })?;
    if !answer.status.success() {
        bail!("go {}: {}\n{}", args.join(" "), answer.status, String::from_utf8_lossy(&answer.stderr));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_recipe_gives_another_file() {
        let changed = Tool { ldflags: "-s", ..CORE };
        assert_ne!(changed.key(), CORE.key());
        assert!(CORE.key().starts_with("crossplane-core-v2.3.4-"), "{}", CORE.key());
    }
}
