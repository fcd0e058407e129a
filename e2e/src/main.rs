//! `e2e`: a whole control plane on this machine, and the scenarios that run on it.

use clap::{Parser, Subcommand};

/// A whole control plane on this machine, and the scenarios that run on it
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play the providers of clouds in a cluster, until interrupted
    StandIn(e2e::stand_in::Args),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::StandIn(args) => e2e::stand_in::main(args).await,
    }
}
