//! The developer tasks. `cargo xtask --help` lists them.

use std::process::ExitCode;

use clap::Parser;
use xtask::{
    behaviour, bench, chart, cloud_check, eol, forward, generate, opencv, package, pages, prices,
    prose, release, released, render, schemas, tools, versions, words, workspace,
};

/// The program `e2e` and the programs that it starts.
const E2E: [&str; 4] = ["e2e", "function", "function-next-release", "paved"];

/// Run a developer task of Paved Road.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Generate XRDs, Compositions, the input's CRD and the reference from the Rust types.
    Generate(generate::Args),
    /// Build the test tools that are not Rust crates, from source with Go.
    Tools(tools::Args),
    /// Build the packages of v0.1.0 from its commit, for the scenarios that upgrade from it.
    Released,
    /// Cut the providers' CRDs to the fields of our resources, in `tests/schemas/`.
    Schemas(schemas::Args),
    /// Cut the facts about providers to what the simulator uses of our kinds.
    Behaviour(behaviour::Args),
    /// Cut the facts about prices to the table of the function.
    Prices(prices::Args),
    /// Compare the table of OpenCV releases with PyPI, using pip.
    Opencv,
    /// Build the release: Crossplane packages, the command line, the portal and the SBOMs.
    Package(package::Args),
    /// Push the packages to the registry, and sign them, or rehearse both on this machine.
    Release(release::Args),
    /// Build the portal's pages if their sources are newer, and install the browser test tools.
    Pages,
    /// Render the chart with the real Helm, or check it.
    Chart(chart::Args),
    /// Build the pages and `paved`, and serve the demo: see `paved demo --help`.
    #[command(disable_help_flag = true)]
    Demo(forward::Args),
    /// Start a control plane with our packages on this machine: see `up --help`.
    #[command(disable_help_flag = true)]
    Up(forward::Args),
    /// Stop the control plane that `up --detach` started.
    #[command(disable_help_flag = true)]
    Down(forward::Args),
    /// Run the scenarios on a new control plane: see `e2e --help`.
    #[command(disable_help_flag = true)]
    E2e(forward::Args),
    /// Render every example with the real Crossplane, and compare it with `paved preview`.
    Render(render::Args),
    /// Create and delete environments in real clouds, with a limit for the price.
    CloudCheck(cloud_check::Args),
    /// List default versions whose support ends soon. Fail if the list is not empty.
    Eol(eol::Args),
    /// List programs of others that are past the end of their support: see `versions.yaml`.
    Versions(versions::Args),
    /// Record the number of indirect words in documents and comments, or check the record.
    Prose(prose::Args),
    /// Check that a commit changes only comments and strings.
    Words(words::Args),
    /// Compare the function with a no-op on the SDK's server: speed, latency and memory.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Generate(args) => generate::run(&args, workspace::root()),
        Task::Tools(args) => tools::run(&args),
        Task::Released => released::run(),
        Task::Schemas(args) => schemas::run(&args),
        Task::Behaviour(args) => behaviour::run(&args),
        Task::Prices(args) => prices::run(&args),
        Task::Opencv => opencv::run(),
        Task::Package(args) => package::run(&args),
        Task::Release(args) => release::run(&args),
        Task::Pages => pages::run(),
        Task::Chart(args) => chart::run(&args),
        Task::Demo(args) => {
            pages::build().and_then(|()| forward::run(&["paved"], Some("demo"), &args))
        }
        Task::Up(args) => forward::run(&E2E, Some("up"), &args),
        Task::Down(args) => forward::run(&E2E, Some("down"), &args),
        Task::E2e(args) => forward::run(&E2E, Some("e2e"), &args),
        Task::Render(args) => render::run(&args),
        Task::CloudCheck(args) => cloud_check::run(&args),
        Task::Eol(args) => eol::run(&args),
        Task::Versions(args) => versions::run(&args),
        Task::Prose(args) => prose::run(&args),
        Task::Words(args) => words::run(&args),
        Task::Bench(args) => bench::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let chain: Vec<_> = error.chain().map(ToString::to_string).collect();
            eprintln!("error: {}", chain.join(": "));
            ExitCode::FAILURE
        }
    }
}
