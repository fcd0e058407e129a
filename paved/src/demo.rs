//! `paved demo`: the portal in front of a fake cluster in this process.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use demo::{Demo, seed};
use paved_client::cluster::Access;
use paved_portal::Flags;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::style::BOLD;
use crate::{Console, cli, signals};

/// A folder in memory that containers have. The demo's image has no other folder to write to.
const MEMORY: &str = "/dev/shm";

/// Serves until a signal. The portal serves on all processors, beside the fake cluster.
pub(crate) fn run(args: &cli::Demo, console: &mut Console<'_>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(args, console));
    // The fake cluster ends with the process.
    runtime.shutdown_background();
    done
}

async fn serve(args: &cli::Demo, console: &mut Console<'_>) -> Result<(), Failure> {
    let listen = SocketAddr::new(args.address, args.port);
    // The portal would name its own flag.
    drop(TcpListener::bind(listen).map_err(|error| unusable(args, &error))?);
    let demo = Demo::start(args.pace, &seed::all())
        .await
        .map_err(|error| Failure::Usage(format!("could not start the demo: {error:#}")))?;
    let folder = folder()?;
    let kubeconfig = folder.path().join("kubeconfig");
    demo.write_kubeconfig(&kubeconfig).map_err(io::Error::other)?;
    let access = Access { kubeconfig: Some(kubeconfig.clone()), ..Access::default() };
    let portal = paved_portal::listen(&Flags::demo(listen), &access).await?;
    welcome(portal.address(), &kubeconfig, console)?;
    portal.serve(signals::asked()).await.map_err(|message| io::Error::other(message).into())
}

fn unusable(args: &cli::Demo, error: &io::Error) -> Failure {
    let (address, port) = (args.address, args.port);
    if error.kind() == io::ErrorKind::AddrInUse {
        Failure::Usage(format!("--port: {port} is in use; allowed: a free port, or no --port"))
    } else {
        Failure::Usage(format!(
            "--address, --port: could not listen on {address}, port {port}: {error}; allowed: an \
             address of this machine, for example 127.0.0.1, and a port from 1024"
        ))
    }
}

/// A folder for the kubeconfig.
fn folder() -> io::Result<TempDir> {
    let named = |folder: &mut tempfile::Builder<'_, '_>| folder.prefix("paved-demo-").tempdir();
    let mut builder = tempfile::Builder::new();
    named(&mut builder).or_else(|_| builder.tempdir_in(MEMORY))
}

/// Prints the address, and what to try.
fn welcome(address: SocketAddr, kubeconfig: &Path, console: &mut Console<'_>) -> io::Result<()> {
    let host = if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    };
    let kubeconfig = kubeconfig.display();
    writeln!(
        console.out,
        "\
Open {BOLD}http://{host}{BOLD:#} in a browser. You are the user ada, with all rights.
The demo uses no real cluster and no cloud, and keeps no data.

Try this in the browser:
  training         has failed: read why, and choose a g4dn.xlarge
  ada              ends within an hour: extend it
  New environment  create a GPU workspace, which is ready within a minute

Or in another terminal:
  export KUBECONFIG={kubeconfig}
  paved list -A
  paved status training
  paved extend ada 8h
  paved init gpu-workspace mine --set owner=ada -f mine.yaml
  paved apply mine.yaml --wait

Press Ctrl-C to stop the demo."
    )?;
    console.out.flush()
}
