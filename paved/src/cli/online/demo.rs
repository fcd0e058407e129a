//! Flags of `paved demo`.

use std::net::IpAddr;

use clap::Args;

pub(super) const HELP: &str = "\
Examples:
  paved demo                     serve on a free port, and print its address
  paved demo --port 8080         serve on this port
  paved demo --pace 0.2          let everything take a fifth of the time

Exit codes:
  0  stopped by Ctrl-C or SIGTERM
  1  usage: a bad flag, or a port that is in use";

/// Flags of `paved demo`.
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Demo {
    /// Port to listen on [default: a free port].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,

    /// Address to listen on. Another address than loopback is for containers.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) address: IpAddr,

    /// Factor for the duration of all actions.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = pace)]
    pub(crate) pace: f64,
}

fn pace(text: &str) -> Result<f64, String> {
    let fits = |pace: &f64| (0.001..=100.0).contains(pace);
    text.parse().ok().filter(fits).ok_or_else(|| "allowed: 0.001 to 100".to_owned())
}
