//! `e2e`: a control plane on this machine, and the scenarios that run on it.

use std::process::ExitCode;

use clap::Parser;
use e2e::{fake_providers, scenarios, up};

/// Run a control plane on this machine, and scenarios on it.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Start a control plane with our packages on loopback. Ctrl-C stops it.
    Up(up::Args),
    /// Stop the control plane that `up --detach` started.
    Down,
    /// Run the scenarios on a new control plane.
    E2e(scenarios::Args),
    /// Run the fake providers of clouds in a cluster until Ctrl-C.
    FakeProviders(fake_providers::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Up(args) => up::up(&args).await,
        Task::Down => up::down().await,
        Task::E2e(args) => scenarios::e2e(&args).await,
        Task::FakeProviders(args) => fake_providers::main(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
