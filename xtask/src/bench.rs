//! Compares the function over gRPC with a no-op function on the SDK's own server, on one core in
//! the same run. Then it measures the memory of both during a hundred large parallel requests.

mod client;
mod cpus;
mod no_op;
mod report;
mod requests;
mod servers;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use client::Figures;
use requests::Case;
use servers::{Kind, Server};

/// Flags of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Number of measurements for each figure. The figure is their median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Address to serve only the no-op on. The benchmark compares the function with the no-op.
    #[arg(long, value_name = "ADDRESS")]
    serve_no_op: Option<SocketAddr>,
    /// Run without a build on the current core. The benchmark starts itself with this flag.
    #[arg(long, hide = true)]
    inner: bool,
}

/// The numbers of composed resources.
const SIZES: [usize; 3] = [10, 30, 100];

/// The numbers of parallel requests.
const IN_FLIGHT: [usize; 2] = [1, 32];

/// Runs the benchmark and prints a report in Markdown.
pub fn run(args: &Args) -> Result<()> {
    if let Some(address) = args.serve_no_op {
        return no_op::serve(address);
    }
    if !args.inner {
        return build_and_run(args);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(args))
}

/// Builds the servers and this client in release mode, and runs the benchmark.
fn build_and_run(args: &Args) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--release",
        "--package=function-paved-road",
        "--package=xtask",
        "--bins",
    ]);
    succeed(build.current_dir(crate::workspace::root()))?;
    let (_, client) = cpus::two()?;
    let mut inner = cpus::pinned(client, servers::folder().join("xtask"));
    inner.args([
        "bench",
        "--inner",
        "--seconds",
        &args.seconds.to_string(),
        "--rounds",
        &args.rounds.to_string(),
    ]);
    succeed(&mut inner)
}

fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let status = command.status().with_context(|| format!("starting {program}"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// One line of the report: the same load on each server.
struct Line {
    environment: String,
    resources: usize,
    in_flight: usize,
    /// The bytes of the request and of the function's response.
    bytes: (usize, usize),
    function: Figures,
    no_op: Figures,
    /// The no-op with the function's resources, so it reads and writes the same bytes.
    carrying: Figures,
}

async fn measure(args: &Args) -> Result<()> {
    let mut cases = requests::every_api()?;
    for resources in SIZES {
        cases.push(requests::gpu_workspace(resources)?);
    }
    let mut lines = Vec::new();
    let mut memory = Vec::new();
    for case in &cases {
        for in_flight in IN_FLIGHT {
            eprintln!("{}, {} resources, {in_flight} in flight", case.environment, case.resources);
            let (line, [idle, after]) = compare(args, case, in_flight).await?;
            memory.push((
                format!("{}, {}", case.environment, case.resources),
                in_flight,
                idle,
                after,
            ));
            lines.push(line);
        }
    }
    report::speed(&lines);
    report::memory(&memory);
    report::hundred(&hundred().await?);
    Ok(())
}

/// Runs the same load on the function and on the no-op. Returns the function's memory before and
/// after.
async fn compare(
    args: &Args,
    case: &Case,
    in_flight: usize,
) -> Result<(Line, [servers::Memory; 2])> {
    let core = Some(cpus::two()?.0);
    let server = Server::start(Kind::Function, core, &[]).await?;
    let other = Server::start(Kind::NoOp, core, &[]).await?;
    let idle = server.memory()?;
    let load = Load { args, in_flight };
    let figures = load
        .rounds([(&server, &case.request), (&other, &case.request), (&other, &case.carrying)])
        .await?;
    let [function, no_op, carrying] = figures;
    let (environment, resources) = (case.environment.clone(), case.resources);
    let bytes = (case.request.len(), case.answer);
    let line = Line { environment, resources, in_flight, bytes, function, no_op, carrying };
    Ok((line, [idle, server.memory()?]))
}

/// A load that is measured several times on each server in turn, so that other work on the machine
/// affects all servers.
struct Load<'a> {
    args: &'a Args,
    in_flight: usize,
}

impl Load<'_> {
    async fn rounds(&self, targets: [(&Server, &Bytes); 3]) -> Result<[Figures; 3]> {
        let mut rounds: [Vec<Figures>; 3] = Default::default();
        for _ in 0..self.args.rounds.max(1) {
            for ((server, message), figures) in targets.iter().zip(&mut rounds) {
                let channel = server.connect().await?;
                let span = Duration::from_secs_f64(self.args.seconds.clamp(0.1, 60.0));
                client::load(&channel, message, self.in_flight, span / 5).await?;
                figures.push(client::load(&channel, message, self.in_flight, span).await?);
            }
        }
        Ok(rounds.map(|mut figures| {
            figures.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
            figures.swap_remove(figures.len() / 2)
        }))
    }
}

/// Sends a hundred parallel requests of nearly 4 MiB on all cores. Returns the peak memory and the
/// duration for each server.
async fn hundred() -> Result<Vec<(&'static str, servers::Memory, Duration)>> {
    let message = requests::large()?;
    let mut rows = Vec::new();
    let unbound = ["--max-concurrent-requests=100"];
    let cases: [(_, _, &[&str]); 3] = [
        ("the function", Kind::Function, &[]),
        ("the function, all at once", Kind::Function, &unbound),
        ("the no-op on the SDK's server", Kind::NoOp, &[]),
    ];
    for (name, kind, flags) in cases {
        eprintln!("a hundred large requests: {name}");
        let server = Server::start(kind, None, flags).await?;
        let took = client::burst(&server.connect().await?, &message, 100).await?;
        rows.push((name, server.memory()?, took));
    }
    Ok(rows)
}
