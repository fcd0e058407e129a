//! The no-op function for the comparison. It uses only the SDK's server and helper.

use std::net::SocketAddr;

use anyhow::Result;
use clap::Parser as _;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use tonic::{Request, Response, Status};

/// Copies the desired state forward.
struct NoOp;

#[tonic::async_trait]
impl FunctionRunnerService for NoOp {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let response = function_sdk_rust::response::to(
            request.get_ref(),
            function_sdk_rust::response::DEFAULT_TTL,
        );
        Ok(Response::new(response))
    }
}

/// Serves until the process ends.
pub(super) fn serve(address: SocketAddr) -> Result<()> {
    let flags = ["no-op", "--insecure", "--address", &address.to_string(), "--metrics-address", ""];
    let args = function_sdk_rust::Args::parse_from(flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(function_sdk_rust::serve(NoOp, &args))?)
}
