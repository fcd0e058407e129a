//! The function binary: flags, logging, serve.

use std::process::ExitCode;

use clap::Parser;
use function_paved_road::apis;
use function_paved_road::server::{self, Error, Flags, Server};

/// A request allocates thousands of small strings and maps. mimalloc is faster than glibc at that.
/// With several threads it is much faster than musl. docs/contributing/benchmarks.md has the
/// figures. Without huge pages an idle function stays small.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    function_sdk_rust::logging::configure(flags.sdk.debug);
    match serve(&flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "cannot serve");
            ExitCode::FAILURE
        }
    }
}

async fn serve(flags: &Flags) -> Result<(), Error> {
    let stop = server::stop_signal()?;
    Server::bind(server::paved_road, apis::kinds(), flags).await?.serve(stop).await
}
