//! The common base of a control plane: its folder, its programs, its processes and its progress
//! output.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use xtask::tools::{self, Kubernetes, Tool};

use super::process::{Process, Program};

/// A folder, the programs and the started processes. Drop ends the processes and removes the
/// folder.
pub struct Workdir {
    /// Third-party programs.
    pub tools: Tools,
    processes: Mutex<Vec<Arc<Process>>>,
    folder: TempDir,
    start: Instant,
    quiet: bool,
    keep: bool,
}

/// Third-party programs, built if they are missing.
#[derive(Debug)]
#[allow(missing_docs, reason = "each field has the name of its program")]
pub struct Tools {
    pub etcd: PathBuf,
    pub api_server: PathBuf,
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
    pub kubectl: PathBuf,
    pub kwok: PathBuf,
    pub core: PathBuf,
    pub cli: PathBuf,
    pub crane: PathBuf,
    pub helm: PathBuf,
    pub provider_kubernetes: PathBuf,
    pub provider_helm: PathBuf,
}

impl Tools {
    /// Builds missing programs, which takes minutes the first time.
    pub fn ensure(core: &Tool, kubernetes: &Kubernetes) -> Result<Self> {
        Ok(Self {
            etcd: tools::path(&tools::ETCD)?,
            api_server: tools::path(&kubernetes.api_server)?,
            controller_manager: tools::path(&kubernetes.controller_manager)?,
            scheduler: tools::path(&kubernetes.scheduler)?,
            kubectl: tools::path(&kubernetes.kubectl)?,
            kwok: tools::path(&tools::KWOK)?,
            core: tools::path(core)?,
            cli: tools::path(&tools::CLI)?,
            crane: tools::path(&tools::CRANE)?,
            helm: tools::path(&tools::HELM)?,
            provider_kubernetes: tools::path(&tools::PROVIDER_KUBERNETES)?,
            provider_helm: tools::path(&tools::PROVIDER_HELM)?,
        })
    }
}

impl Workdir {
    /// Creates an empty folder in the system's folder for temporary files. Unless `quiet`, prints a
    /// line per component. With `keep`, drop leaves the folder.
    pub fn new(core: &Tool, kubernetes: &Kubernetes, quiet: bool, keep: bool) -> Result<Self> {
        let mut folder = tempfile::Builder::new().prefix("paved-road-").tempdir()?;
        folder.disable_cleanup(keep);
        std::fs::create_dir(folder.path().join("logs"))?;
        let tools = Tools::ensure(core, kubernetes)?;
        Ok(Self { tools, processes: Mutex::default(), folder, start: Instant::now(), quiet, keep })
    }

    /// Whether drop leaves the folder.
    pub fn keeps_folder(&self) -> bool {
        self.keep
    }

    /// The folder of all files that this control plane writes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a subfolder.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder().join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(folder)
    }

    /// The folder of the programs' logs.
    pub fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    /// Starts a program that keeps running.
    pub fn start(&self, program: Program) -> Result<Arc<Process>> {
        let process = Arc::new(Process::start(program, self.folder(), &self.logs())?);
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(process.clone());
        Ok(process)
    }

    /// Runs a program to its end and returns its output.
    pub async fn run(&self, program: Program) -> Result<String> {
        program.output(self.folder()).await
    }

    /// All started processes in the order of their start, whether or not they still run.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints that a component is ready, the seconds it took, and the seconds since the start.
    pub fn tell(&self, component: &str, since: Instant) {
        if !self.quiet {
            let (took, all) = (since.elapsed().as_secs_f64(), self.start.elapsed().as_secs_f64());
            println!("{component:34} {took:6.1} s  (at {all:5.1} s)");
        }
    }
}

impl Drop for Workdir {
    /// Ends the processes in reverse order, including those that other owners still hold.
    fn drop(&mut self) {
        self.processes().iter().rev().for_each(|process| process.kill());
    }
}
