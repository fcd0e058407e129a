//! Developer's tasks: `cargo xtask --help` lists them.

mod generate;

use std::path::Path;

use clap::Parser;

/// Developer's tasks of Paved Road.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Write everything that follows from the types: XRDs, Compositions, the input's CRD, the reference.
    Generate(generate::Args),
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match Task::parse() {
        Task::Generate(args) => generate::run(&args, &root),
    }
}
