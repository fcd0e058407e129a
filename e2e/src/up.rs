//! `cargo xtask up` and `down`: a control plane for developers.

mod background;

use std::{fmt::Write as _, fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use serde_json::json;
use xtask::workspace;

use crate::control_plane::{ControlPlane, CoreVersion, Options, packages, settings};
use crate::signals;
use background::State;

/// Flags of `up`.
#[derive(Clone, Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    /// Return when the control plane runs. `down` stops it.
    #[arg(long)]
    detach: bool,
    /// Start Kubernetes, Crossplane and the registry without our packages.
    #[arg(long)]
    no_install: bool,
    /// Publish our packages, and leave the installation of the chart to you.
    #[arg(long, conflicts_with = "no_install")]
    chart: bool,
    /// Version of Crossplane. On 1.20, only the claims API is installed.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    core_version: CoreVersion,
    /// Folder with packages of `cargo xtask package` [default: build them from the workspace].
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_install")]
    packages: Option<PathBuf>,
    /// Seconds of one round of a fake cloud; a cluster takes four rounds. 0 makes clouds instant.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=600))]
    pace: u16,
    /// Number of function processes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=9))]
    replicas: u8,
    /// Keep the folder with all logs.
    #[arg(long)]
    keep: bool,
    /// Run as the background process of `--detach`.
    #[arg(long, hide = true)]
    background: bool,
}

/// Starts a control plane, and runs until a signal stops it.
pub async fn up(args: &Args) -> Result<()> {
    let told = signals::told()?;
    if args.detach {
        return background::start(args, told).await;
    }
    tokio::select! {
        done = run(args) => done,
        () = told => Ok(()),
    }
}

/// Stops the control plane that `up --detach` started.
pub async fn down() -> Result<()> {
    let state =
        State::read()?.context("no control plane was started by `cargo xtask up --detach`")?;
    state.end().await
}

async fn run(args: &Args) -> Result<()> {
    let plane = ControlPlane::start(&args.options()).await?;
    if args.chart {
        let settings = settings::environment_config(plane.sources())?;
        let optional = json!({"optional": packages::OPTIONAL_PROVIDERS});
        let values = json!({"settings": settings["data"], "providers": optional});
        fs::write(values_of(&plane), format!("{values:#}\n")).context("writing the values")?;
    }
    println!("{}", usage(&plane, args));
    if args.background {
        State::from_plane(&plane)?.write()?;
    }
    if args.chart {
        plane.run_installed_providers(Duration::from_secs(args.pace.into())).await?;
    }
    std::future::pending().await
}

impl Args {
    fn options(&self) -> Options {
        Options {
            core: self.core_version,
            install: !(self.no_install || self.chart),
            publish: self.chart,
            packages: self.packages.clone(),
            replicas: self.replicas.into(),
            pace: Duration::from_secs(self.pace.into()),
            keep: self.keep,
            ..Options::default()
        }
    }
}

/// The values for the chart, with the Settings of the examples.
fn values_of(plane: &ControlPlane) -> PathBuf {
    plane.folder().join("values.yaml")
}

/// The commands to use the control plane. Without our packages, our kinds do not exist.
fn usage(plane: &ControlPlane, args: &Args) -> String {
    let memory: u64 = plane.processes().iter().filter_map(|process| process.memory()).sum();
    let mut text = format!(
        "\nThe control plane runs: {} processes, {} MiB. Logs: {}\n\n  export KUBECONFIG={}\n  alias kubectl={}\n",
        plane.processes().len(),
        memory / 1024,
        plane.folder().join("logs").display(),
        plane.kubeconfig().display(),
        plane.kubectl_path().display(),
    );
    if args.chart {
        _ = writeln!(
            text,
            "  {} install paved-road {} --namespace paved-road --create-namespace --values {} --set \
             group=platform.example.org",
            plane.workdir().tools.helm.display(),
            plane.chart().display(),
            values_of(plane).display(),
        );
    } else if !args.no_install {
        let example = workspace::root().join("examples/stock-pool/claim.yaml");
        _ = writeln!(text, "  kubectl apply -f {}\n  kubectl get paved -A", example.display());
    }
    text
}
