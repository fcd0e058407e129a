//! `paved kinds`: lists the cluster's kinds of environment and their Compositions.

use paved_client::cluster::{Kinds, compositions};

use crate::Console;
use crate::cli;
use crate::failure::Failure;
use crate::style::{BOLD, DIM};

/// Lists the kinds. A note says whether the caller may not list Compositions.
pub(crate) async fn run(args: &cli::Kinds, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let compositions = compositions(&cluster).await?;
    for kind in kinds.all() {
        let summary = kind.paved_api().map_or("", |api| api.info().summary);
        writeln!(console.out, "{BOLD}{}{BOLD:#}  {}", kind.name(), kind.resource.api_version)?;
        if !summary.is_empty() {
            writeln!(console.out, "  {summary}")?;
        }
        for one in compositions.iter().flatten().filter(|one| one.serves(kind)) {
            writeln!(
                console.out,
                "  {DIM}compositionRef:{DIM:#} {}{}",
                one.name(),
                labels(one.own_labels())
            )?;
        }
    }
    if compositions.is_none() {
        writeln!(console.err, "note: you may not list Compositions, so paved does not show them")?;
    }
    Ok(())
}

fn labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let own: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) }
}
