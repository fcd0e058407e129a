//! Static binaries for both architectures, built on either one. cargo uses Zig as C compiler and
//! linker.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use object::{
    Endianness, Object,
    read::elf::{ElfFile64, ProgramHeader},
};

use super::Architecture;
use crate::{pages, tools, workspace};

/// Zig and cargo-zigbuild, which lets cargo use it. Both are Python packages.
const PINNED: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// A folder with sources, and cargo's target folder for them.
#[derive(Clone, Debug)]
pub struct Place {
    root: PathBuf,
    target: PathBuf,
}

impl Place {
    /// The workspace.
    pub fn here() -> Self {
        Self { root: workspace::root().to_owned(), target: workspace::target().join("static") }
    }

    /// A copy of the sources in `folder`: the files in git, and new files that git does not ignore.
    pub fn copy(folder: &Path) -> Result<Self> {
        let root = folder.join("sources");
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = git.current_dir(workspace::root()).output().context("starting git")?;
        ensure!(
            listed.status.success(),
            "git ls-files: {}",
            String::from_utf8_lossy(&listed.stderr)
        );
        let listed = String::from_utf8(listed.stdout)?;
        for file in listed.split_terminator('\0') {
            let (from, to) = (workspace::root().join(file), root.join(file));
            fs::create_dir_all(to.parent().unwrap_or(&root))?;
            fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        }
        Ok(Self { root, target: folder.join("target") })
    }

    /// The folder of the sources.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Builds a release binary of one of the workspace's packages, and returns its path. Before
    /// `paved`, builds the pages that it embeds.
    pub fn static_binary(
        &self,
        package: &str,
        binary: &str,
        architecture: Architecture,
    ) -> Result<PathBuf> {
        if binary == "paved" {
            pages::build_in(&self.root)?;
        }
        let programs = zig()?;
        let target = architecture.target();
        let rustup =
            run(Command::new("rustup").args(["target", "add", target]).current_dir(&self.root));
        rustup.with_context(|| format!("static binaries need rustup, which installs {target}"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([programs.clone()].into_iter().chain(env::split_paths(&path)))?;
        let mut cargo = Command::new(programs.join("cargo-zigbuild"));
        cargo.args([
            "zigbuild",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            package,
            "--bin",
            binary,
        ]);
        cargo
            .args(["--target", target])
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(&self.root);
        cargo.env("PATH", path).env("RUSTFLAGS", self.without_paths()?.join(" "));
        run(&mut cargo)?;
        let file = self.target.join(target).join("release").join(binary);
        let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        ensure_static(&content, architecture).with_context(|| file.display().to_string())?;
        Ok(file)
    }

    /// Panic messages contain paths of source files. These flags replace the folders, so that the
    /// bytes are the same everywhere.
    fn without_paths(&self) -> Result<Vec<String>> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
        let home = home.context("neither CARGO_HOME nor HOME is set")?;
        let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
        // If several prefixes match, rustc uses the last one.
        Ok(vec![
            remap(&home, "/cargo"),
            remap(&self.root, "/source"),
            remap(&self.target, "/target"),
        ])
    }
}

/// Fails unless a program can start without a loader and libraries, which images do not have.
fn ensure_static(program: &[u8], architecture: Architecture) -> Result<()> {
    let elf = ElfFile64::<Endianness>::parse(program)?;
    let expected = match architecture {
        Architecture::Amd64 => object::Architecture::X86_64,
        Architecture::Arm64 => object::Architecture::Aarch64,
    };
    ensure!(
        elf.architecture() == expected,
        "is for {:?}, not for {expected:?}",
        elf.architecture()
    );
    for header in elf.elf_program_headers() {
        let loader = header.interpreter(elf.endian(), program)?;
        let loader = loader.map(String::from_utf8_lossy);
        ensure!(loader.is_none(), "is not static: it needs {}", loader.unwrap_or_default());
    }
    Ok(())
}

/// The folder with `cargo-zigbuild` and Zig, in a virtual environment of Python. Creates it if it
/// does not exist.
fn zig() -> Result<PathBuf> {
    let name = PINNED.join("-").replace("==", "-");
    let folder = tools::folder()?.join(name);
    let programs = folder.join("bin");
    if programs.join("cargo-zigbuild").is_file() {
        return Ok(programs);
    }
    // Python writes the path of an environment into its programs, so it is created in its final
    // folder. `cargo-zigbuild` is installed last, and marks a complete environment.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let python = run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    python.context("Zig comes as a Python package, and needs Python 3 with venv")?;
    for package in PINNED.iter().rev() {
        run(Command::new(programs.join("pip")).args(["install", "--quiet", package]))?;
    }
    Ok(programs)
}

/// Runs a program and shows its output.
fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {program}"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use object::{elf::PT_INTERP, read::elf::FileHeader};

    use super::*;

    #[test]
    fn program_with_a_loader_or_for_another_machine_is_rejected() {
        let this = Architecture::host();
        let other =
            if this == Architecture::Amd64 { Architecture::Arm64 } else { Architecture::Amd64 };
        let mut program = fs::read(env::current_exe().unwrap()).unwrap();
        let error = ensure_static(&program, this).unwrap_err().to_string();
        assert!(error.starts_with("is not static: it needs /"), "{error}");

        without_loader(&mut program);
        ensure_static(&program, this).unwrap();

        let error = ensure_static(&program, other).unwrap_err().to_string();
        assert!(error.starts_with("is for "), "{error}");
        ensure_static(b"#!/bin/sh", this).unwrap_err();
    }

    fn without_loader(program: &mut [u8]) {
        let elf = ElfFile64::<Endianness>::parse(&*program).unwrap();
        let (header, endian) = (elf.elf_header(), elf.endian());
        let start = usize::try_from(header.e_phoff(endian)).unwrap();
        let size = usize::from(header.e_phentsize(endian));
        let loader =
            elf.elf_program_headers().iter().position(|one| one.p_type(endian) == PT_INTERP);
        // A header's type is its first field.
        program[start + loader.unwrap() * size..][..4].fill(0);
    }
}
