//! `paved kinds`: lists the cluster's kinds of environment and their Compositions, and writes JSON
//! schemas of the kinds for editors.

mod schemas;

use std::path::Path;

use function_paved_road::apis::AnyApi;
use paved_client::cluster::{Kinds, compositions};

use crate::Console;
use crate::cli;
use crate::failure::Failure;
use crate::style::{self, BOLD, DIM};
use schemas::Wanted;

/// Lists the kinds. A note says whether the caller may not list Compositions.
pub(crate) async fn run(args: &cli::Kinds, console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(folder) = args.schemas.as_deref().filter(|_| args.offline) {
        return write(folder, &schemas::built_in(args.group.as_deref()), console);
    }
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    if let Some(folder) = &args.schemas {
        let ours = kinds.all().iter().filter_map(|kind| {
            let (api, flavour) = (kind.paved_api()?, kind.flavour());
            Some(Wanted { api, flavour, group: kind.resource.group.clone() })
        });
        return write(folder, &ours.collect::<Vec<_>>(), console);
    }
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
    if let Some(kind) = kinds.all().first() {
        // The name of an API means its claim.
        let api = kind.paved_api().map(AnyApi::info);
        let name = api.filter(|api| api.claim.kind == kind.name());
        let name = name.map_or(kind.name(), |api| api.name);
        style::next(&format!("paved init {name} NAME -f NAME.yaml"), console)?;
    }
    if compositions.is_none() {
        writeln!(console.err, "note: you may not list Compositions, so paved does not show them")?;
    }
    Ok(())
}

/// Writes the schemas, and says how an editor finds them.
fn write(folder: &Path, all: &[Wanted], console: &mut Console<'_>) -> Result<(), Failure> {
    let count = schemas::write(folder, all)?;
    let folder = folder.display();
    writeln!(
        console.out,
        "{count} schemas are in {folder}. The first line of a claim for editors:"
    )?;
    let file = schemas::ALL;
    console.out.whole(|out| writeln!(out, "# yaml-language-server: $schema={folder}/{file}"))?;
    Ok(())
}

fn labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let own: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) }
}
