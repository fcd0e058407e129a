//! `paved portal` in the caller's process.

use paved_portal::{Failure, MakeWriter};
pub use paved_portal::{Limits, Server};

use crate::cli::{self, Cli};

/// Starts a portal with the flags of `paved portal`, and with the caller's limits and log, as in
/// [`Server::start`]. An error is the message of `paved portal`.
pub async fn start(
    flags: &[String],
    limits: &Limits,
    log: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> Result<Server, String> {
    let args = ["paved", "portal"].into_iter().map(str::to_owned).chain(flags.iter().cloned());
    let Cli { command } = crate::parse(&args.map(Into::into).collect::<Vec<_>>())
        .map_err(|error| error.to_string())?;
    let cli::Command::Online(cli::Online::Portal(args)) = command else {
        return Err("the flags belong to another command".to_owned());
    };
    let server = Server::start(&args.flags, &(&args.access).into(), limits, log).await;
    server.map_err(|failure: Failure| failure.to_string())
}
