//! `demo`: the portal with its pages and a fake cluster.

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

/// Serve the portal with its pages and a fake cluster, without any setup. Ctrl-C stops it.
#[derive(Parser)]
#[command(name = "cargo xtask demo", bin_name = "cargo xtask demo")]
struct Args {
    /// Loopback address and port to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Factor for the duration of all actions. With 0.2, they take a fifth of the time.
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

/// Builds the pages, starts the fake cluster and the portal, and waits until the portal ends.
async fn run(args: &Args) -> Result<()> {
    tokio::task::spawn_blocking(pages::build).await.context("building the pages")??;
    // An address that is in use is reported before any program starts.
    let listen = free(&args.listen).await?;
    let demo = Demo::start(args.pace, &seed::all()).await?;
    let folder = tempfile::tempdir().context("making a folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    demo.write_kubeconfig(&kubeconfig)?;
    let mut portal = Command::new(workspace::built("paved")?);
    portal.args(["portal", "--auth", "none", "--log-level", "warn", "--kubeconfig"]);
    portal
        .arg(&kubeconfig)
        .args(["--listen", &listen.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let mut portal = portal.spawn().context("starting the portal")?;
    tokio::select! {
        ended = portal.wait() => bail!("the portal ended with {}", ended.context("waiting for the portal")?),
        () = answers(listen) => {}
    }
    println!("Open http://{listen}. The portal uses no real cluster and no cloud.");
    println!(
        "The command line works too: export KUBECONFIG={}; paved list -A",
        kubeconfig.display()
    );
    println!("Press Ctrl-C to stop.");
    tokio::select! {
        ended = portal.wait() => {
            let status = ended.context("waiting for the portal")?;
            ensure!(status.success(), "the portal ended with {status}");
        }
        stopped = stopped() => {
            stopped?;
            // The portal receives Ctrl-C itself. After the timeout, it ends with this program.
            let _ = tokio::time::timeout(Duration::from_secs(3), portal.wait()).await;
        }
    }
    Ok(())
}

/// Resolves the portal's address, and fails if the address is in use.
async fn free(listen: &str) -> Result<SocketAddr> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("could not listen on {listen}"))?;
    listener.local_addr().context("reading the address of the listener")
}

/// Waits until the address accepts connections.
async fn answers(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn stopped() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for signals")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listening for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}
