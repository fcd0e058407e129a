//! `e2e`: a whole control plane on this machine, and the scenarios that run on it.

use std::process::ExitCode;

use clap::Parser;
use e2e::{scenarios, stand_in, up};

/// A control plane on this machine, and what is proven on it.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Start a whole control plane on loopback, with our packages installed; Ctrl-C ends it.
    Up(up::Args),
    /// End the control plane that `up --detach` started.
    Down,
    /// Play the scenarios on a control plane of their own.
    E2e(scenarios::Args),
    /// Play the providers of clouds in a cluster, until interrupted.
    StandIn(stand_in::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Up(args) => up::up(&args).await,
        Task::Down => up::down().await,
        Task::E2e(args) => scenarios::e2e(&args).await,
        Task::StandIn(args) => stand_in::main(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
