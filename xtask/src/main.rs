//! Developer's tasks: `cargo xtask --help` lists them.

mod schemas;
mod tools;
mod workspace;

use clap::Parser;

/// Developer's tasks of Paved Road.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Build the tools that tests need and registries of crates do not have, from source with Go.
    Tools(tools::Args),
    /// Cut the providers' CRDs to what our resources touch: `tests/schemas/`.
    Schemas(schemas::Args),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Tools(args) => tools::run(&args),
        Task::Schemas(args) => schemas::run(&args),
    }
}
