//! `demo`: the portal with its pages, before a pretended cluster.

use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use demo::{Demo, seed};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use xtask::{pages, workspace};

/// The portal with its pages, before a pretended cluster: nothing else is needed. Ctrl-C ends it.
#[derive(Parser)]
#[command(name = "cargo xtask demo", bin_name = "cargo xtask demo")]
struct Args {
    /// Where the portal listens, on loopback.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// How long everything takes: 0.2 is a fifth of what it takes otherwise.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = pace)]
    pace: f64,
}

fn pace(text: &str) -> Result<f64, String> {
    let fits = |pace: &f64| (0.001..=100.0).contains(pace);
    text.parse().ok().filter(fits).ok_or_else(|| "0.001 to 100 is allowed".to_owned())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the pages, starts the cluster and the portal before it, and stays until the portal ends.
async fn run(args: &Args) -> Result<()> {
    tokio::task::spawn_blocking(pages::build).await.context("building the pages")??;
    // Taken already? Then it is said before anything is started.
    let listen = free(&args.listen).await?;
    let demo = Demo::start(args.pace, &seed::all()).await?;
    let folder = tempfile::tempdir().context("making a folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    demo.write_kubeconfig(&kubeconfig)?;
    let mut portal = Command::new(workspace::built("paved")?);
    portal.args(["portal", "--auth", "none", "--log-level", "warn", "--kubeconfig"]);
    portal.arg(&kubeconfig).args(["--listen", &listen.to_string()]).stdin(Stdio::null()).kill_on_drop(true);
    let mut portal = portal.spawn().context("starting the portal")?;
    tokio::select! {
        ended = portal.wait() => bail!("the portal ended with {}", ended.context("waiting for the portal")?),
        () = answers(listen) => {}
    }
    println!("Open http://{listen} and make something: no cluster and no cloud is touched.");
    println!("The command line works too: export KUBECONFIG={}; paved list -A", kubeconfig.display());
    println!("Ctrl-C ends it.");
    tokio::select! {
        ended = portal.wait() => {
            let status = ended.context("waiting for the portal")?;
            ensure!(status.success(), "the portal ended with {status}");
        }
        stopped = stopped() => {
            stopped?;
            // Of Ctrl-C it has heard itself. Whatever is left after that ends with this program.
            let _ = tokio::time::timeout(Duration::from_secs(3), portal.wait()).await;
        }
    }
    Ok(())
}

/// The address where the portal is to listen, where nobody else does.
async fn free(listen: &str) -> Result<SocketAddr> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("--listen {listen} cannot be taken"))?;
    listener.local_addr().context("taking a port")
}

/// Waits until somebody answers there.
async fn answers(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until somebody wants it to end.
async fn stopped() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for signals")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listening for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}
