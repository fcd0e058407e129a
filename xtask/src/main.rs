//! Developer's tasks: `cargo xtask --help` lists them.

use std::process::ExitCode;

use clap::Parser;
use xtask::{
    bench, chart, eol, forward, generate, opencv, package, pages, prose, render, schemas, tools, words,
    workspace,
};

/// The program of whole control planes, and those that it starts.
const E2E: [&str; 4] = ["e2e", "function", "function-later", "paved"];

/// Developer's tasks of Paved Road.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Write everything that follows from the types: XRDs, Compositions, the input's CRD, the reference.
    Generate(generate::Args),
    /// Build the tools that tests need and registries of crates do not have, from source with Go.
    Tools(tools::Args),
    /// Cut the providers' CRDs to what our resources touch: `tests/schemas/`.
    Schemas(schemas::Args),
    /// Compare the table of OpenCV releases with PyPI, by pip.
    Opencv,
    /// Build what is released: packages for Crossplane, the command line, what they are made of.
    Package(package::Args),
    /// Build the portal's pages, where they are older than their sources; install what drives them in a browser.
    Pages,
    /// Render the portal's chart with the real Helm, or hold it against what it promises.
    Chart(chart::Args),
    /// Serve the portal with its pages before a pretended cluster, to click through everything: `demo --help`.
    #[command(disable_help_flag = true)]
    Demo(forward::Args),
    /// Start a whole control plane on this machine, with our packages installed: `up --help`.
    #[command(disable_help_flag = true)]
    Up(forward::Args),
    /// End the control plane that `up --detach` started.
    #[command(disable_help_flag = true)]
    Down(forward::Args),
    /// Prove the product on a control plane of its own: `e2e --help`.
    #[command(disable_help_flag = true)]
    E2e(forward::Args),
    /// Render every example with the real Crossplane and compare with `paved preview`.
    Render(render::Args),
    /// List the default versions that end their support soon; fail where there is one.
    Eol(eol::Args),
    /// Record how many indirect words documents and comments have; `--check` fails where there are more than recorded.
    Prose(prose::Args),
    /// Check that a commit changes comments and strings only.
    Words(words::Args),
    /// Measure the function over gRPC against a no-op on the SDK's server: speed, latency, memory.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Generate(args) => generate::run(&args, workspace::root()),
        Task::Tools(args) => tools::run(&args),
        Task::Schemas(args) => schemas::run(&args),
        Task::Opencv => opencv::run(),
        Task::Package(args) => package::run(&args),
        Task::Pages => pages::run(),
        Task::Chart(args) => chart::run(&args),
        Task::Demo(args) => forward::run(&["demo", "paved"], None, &args),
        Task::Up(args) => forward::run(&E2E, Some("up"), &args),
        Task::Down(args) => forward::run(&E2E, Some("down"), &args),
        Task::E2e(args) => forward::run(&E2E, Some("e2e"), &args),
        Task::Render(args) => render::run(&args),
        Task::Eol(args) => eol::run(&args),
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
