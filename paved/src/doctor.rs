//! `paved doctor`: checks whether a cluster can serve environments, and whether the caller may
//! create them. Each check is one line. A failed check has a remediation.

mod apps;
mod check;
mod checks;
mod clusters;
mod compositions;
mod crossplane;
mod databases;
mod dump;
mod family;
mod namespaces;
mod objects;
mod packages;
mod paused;
mod provider_configs;
mod references;
mod required_kinds;
mod revisions;
mod rights;
mod settings;
mod snapshot;
mod tracked;

use paved_client::cluster::{ASK, Kinds, one_line};

use crate::Console;
use crate::cli;
use crate::failure::Failure;
use crate::style::{self, Leaf, Mark};
use check::Check;

/// Checks all requirements of an environment.
pub(crate) async fn run(args: &cli::Doctor, console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(path) = &args.dump {
        return Box::pin(dump::run(args, path, console)).await;
    }
    let cluster = args.access.connect().await?;
    let kinds = Kinds::ask(&cluster).await?;
    let version = cluster.client.apiserver_version().await;
    let version = version.map_err(|error| cluster.explain(&error, "read the version"))?;
    let mut all = vec![Check::good(
        "Kubernetes",
        format!("{} at {}", one_line(&version.git_version), cluster.server),
    )];
    all.extend(checks::all(&snapshot::take(&cluster, &kinds).await));
    let broken = count(&all);
    let (rights, denied) = rights::check(&cluster, &kinds).await?;
    all.extend(rights);
    let leaves: Vec<Leaf> = all.iter().map(Check::leaf).collect();
    style::tree(&leaves, &mut console.out)?;
    console.out.flush()?;
    if broken > 0 {
        return Err(Failure::Provisioning {
            what: cluster.server,
            message: format!("failed {broken} of {} checks", all.len()),
        });
    }
    if denied {
        return Err(Failure::NoAccess {
            message: format!("you may not create environments in namespace {}", cluster.namespace),
            check: format!("-n and --context, or {ASK}"),
        });
    }
    Ok(style::next("paved kinds", console)?)
}

fn count(checks: &[Check]) -> usize {
    checks.iter().filter(|check| check.mark == Mark::Bad).count()
}
