//! The function of a later release, for upgrades. [`e2e::next_release`] lists its differences from
//! today's function.

use anyhow::Result;
use clap::Parser;
use e2e::next_release;
use function_paved_road::apis;
use function_paved_road::server::{self, Flags, Server};
use function_proto::v1::RunFunctionRequest;

#[tokio::main]
async fn main() -> Result<()> {
    let flags = Flags::parse();
    function_sdk_rust::logging::configure(flags.sdk.debug);
    let stop = server::stop_signal()?;
    let function = |request: RunFunctionRequest| server::with_apis(next_release::find, request);
    Server::bind(function, apis::kinds(), &flags).await?.serve(stop).await?;
    Ok(())
}
