//! `paved offers`: the values of fields that users can choose, with size and price. `paved init`
//! shows the same tables.

use std::path::Path;

use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::check::{self, suggestion};
use function_paved_road::offers::{Offer, Offered};
use function_paved_road::settings::Settings;
use paved_render::subject::kind::Target;
use serde_json::{Value, json};

use crate::Console;
use crate::cli::{Offers, TextOrJson};
use crate::failure::Failure;
use crate::prepare::{Sources, settings};
use crate::style::{BOLD, Column, DIM, Row, Table};
use crate::target;

/// The note of an offer without the Settings of a platform.
pub(crate) const WITHOUT_SETTINGS: &str = "this is the offer without Settings. Pass the platform \
                                           team's Settings with --settings";

/// Prints the offers of one API or of all.
pub(crate) fn run(args: &Offers, console: &mut Console<'_>) -> Result<(), Failure> {
    let wanted = match &args.kind {
        Some(kind) => vec![target::named(kind)?],
        None => APIS.iter().map(|api| (*api, Flavour::Claims)).collect(),
    };
    let settings = settings_for(&wanted, args, console)?;
    if settings.iter().any(Option::is_none) {
        writeln!(console.err, "note: {WITHOUT_SETTINGS} or --composition")?;
    }
    let offers = |(api, _): &Wanted, settings: Option<Settings>| {
        (*api, api.offers(&settings.unwrap_or_default(), args.region.as_deref()))
    };
    let mut all: Vec<_> =
        wanted.iter().zip(settings).map(|(wanted, settings)| offers(wanted, settings)).collect();
    if let Some(field) = &args.field {
        all = with_field(field, all)?;
    }
    match args.output {
        TextOrJson::Text => text(&all, console),
        TextOrJson::Json => json(&all, console),
    }
}

/// An API, and the API style that the user names.
type Wanted = (&'static dyn AnyApi, Flavour);

/// An API and its offers.
type ApiOffers = (&'static dyn AnyApi, Vec<Offer>);

/// The Settings of each API: those of the files, or else those of the cluster.
fn settings_for(
    wanted: &[Wanted],
    args: &Offers,
    console: &mut Console<'_>,
) -> Result<Vec<Option<Settings>>, Failure> {
    let sources = Sources::from_flags(&args.sources);
    if sources.settings.is_some() || sources.composition.is_some() {
        let settings = wanted
            .iter()
            .map(|(api, flavour)| from_files(*api, *flavour, &sources, console).map(Some));
        return settings.collect();
    }
    let apis: Vec<&dyn AnyApi> = wanted.iter().map(|(api, _)| *api).collect();
    #[cfg(feature = "cluster")]
    return from_cluster(&apis, &args.access, console);
    // A build without a client has no cluster.
    #[cfg(not(feature = "cluster"))]
    Ok(vec![None; apis.len()])
}

/// Only the offers of a field: its path, or the end of its path.
fn with_field(field: &str, mut all: Vec<ApiOffers>) -> Result<Vec<ApiOffers>, Failure> {
    let known: Vec<&str> =
        all.iter().flat_map(|(_, offers)| offers.iter().map(|offer| offer.field)).collect();
    let unknown = format!("--field: found {field:?}; allowed: {}", suggestion(field, &known));
    let end = format!(".{field}");
    for (_, offers) in &mut all {
        offers.retain(|offer| offer.field == field || offer.field.ends_with(&end));
    }
    all.retain(|(_, offers)| !offers.is_empty());
    if all.is_empty() { Err(Failure::Usage(unknown)) } else { Ok(all) }
}

fn text(all: &[ApiOffers], console: &mut Console<'_>) -> Result<(), Failure> {
    let room = room(console);
    for (index, (api, offers)) in all.iter().enumerate() {
        if index > 0 {
            writeln!(console.out)?;
        }
        writeln!(console.out, "{BOLD}{}{BOLD:#}", api.info().heading())?;
        for offer in offers {
            writeln!(console.out, "\n{}", heading(offer))?;
            print(offer, room, &mut console.out)?;
        }
        if offers.is_empty() {
            writeln!(console.out, "\nNo field has a list of values.")?;
        }
    }
    Ok(())
}

fn json(all: &[ApiOffers], console: &mut Console<'_>) -> Result<(), Failure> {
    let list = |(api, offers): &ApiOffers| json!({"api": api.info().name, "offers": offers});
    let all: Vec<Value> = all.iter().map(list).collect();
    let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::other)?;
    writeln!(console.out, "{text}")?;
    Ok(())
}

/// The field, and whether it takes other values too.
fn heading(offer: &Offer) -> String {
    let other = if offer.closed { "" } else { " (other values may be valid)" };
    format!("{BOLD}{}{BOLD:#}{DIM}{other}{DIM:#}", offer.field)
}

/// The width of the terminal, if there is one.
pub(crate) fn room(console: &Console<'_>) -> Option<usize> {
    console.terminal.as_ref().map(|terminal| (terminal.size)().1)
}

/// Prints the numbered table of an offer.
pub(crate) fn print(
    offer: &Offer,
    room: Option<usize>,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let has_machines = offer.values.iter().any(|offered| offered.gpu.is_some());
    let has_prices = offer.values.iter().any(|offered| offered.hourly_usd.is_some());
    let has_words = offer.values.iter().any(|offered| offered.description.is_some());
    let mut columns = vec![Column::fixed("#"), Column::fixed("VALUE")];
    if has_machines {
        columns.extend(["GPU", "VCPU", "MEMORY"].map(Column::fixed));
    }
    if has_prices {
        columns.push(Column::fixed("USD/H"));
    }
    if has_words && !has_machines {
        columns.push(Column::free("DESCRIPTION"));
    }
    let rows: Vec<Row> = offer
        .values
        .iter()
        .enumerate()
        .map(|(index, offered)| {
            let mut cells = vec![(index + 1).to_string(), offered.value.clone()];
            if has_machines {
                cells.extend(machine(offered));
            }
            if has_prices {
                let price = offered.hourly_usd.map(|usd| usd.to_string());
                cells.push(price.unwrap_or_else(|| "?".to_owned()));
            }
            if has_words && !has_machines {
                cells.push(offered.description.clone().unwrap_or_default());
            }
            Row { cells, mark: None, note: String::new() }
        })
        .collect();
    Table::new(columns).print(&rows, room, out)
}

/// GPUs, vCPUs and memory of a machine type.
fn machine(offered: &Offered) -> [String; 3] {
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let gpu = offered.gpu.unwrap_or_default();
    let memory = number(offered.gpu_memory_gib);
    [
        format!("{} x {gpu}, {memory} GiB", number(offered.gpus)),
        number(offered.vcpus),
        format!("{} GiB", number(offered.memory_gib)),
    ]
}

/// The value that a user typed: a number of the table, or the value itself.
///
/// # Errors
/// The offer has no such value. The message has the offer and the nearest value.
pub(crate) fn chosen<'o>(offer: &'o Offer, typed: &'o str) -> Result<&'o str, String> {
    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some(offered) = number.and_then(|index| offer.values.get(index)) {
        return Ok(&offered.value);
    }
    let values: Vec<&str> = offer.values.iter().map(|offered| offered.value.as_str()).collect();
    if !offer.closed || values.contains(&typed) {
        return Ok(typed);
    }
    Err(format!(
        "found {typed:?}; allowed: 1 to {}, or {}",
        values.len(),
        check::offer(typed, &values)
    ))
}

/// The Settings of files.
pub(crate) fn from_files(
    api: &'static dyn AnyApi,
    flavour: Flavour,
    sources: &Sources,
    console: &mut Console<'_>,
) -> Result<Settings, Failure> {
    let group = flavour.default_group().to_owned();
    let target = Target { api, flavour, is_claim: flavour == Flavour::Claims, group };
    let step = settings::find(&target, Path::new("-"), sources, &[], console)?;
    step.settings().ok_or_else(|| {
        let file = sources.settings.as_ref().or(sources.composition.as_ref());
        let file = file.map(|file| file.display().to_string()).unwrap_or_default();
        Failure::Usage(format!("the Settings are invalid. Run `paved validate {file}`"))
    })
}

/// The Settings of the cluster, if there is one that the caller can read.
#[cfg(feature = "cluster")]
pub(crate) fn from_cluster(
    apis: &[&'static dyn AnyApi],
    access: &crate::cli::Access,
    console: &mut Console<'_>,
) -> Result<Vec<Option<Settings>>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = Box::pin(crate::apply::composition::settings_of(apis, access));
    let found = runtime.block_on(crate::signals::unless_asked(asked, ""));
    // The process need not wait for pending DNS lookups and credential plugins.
    runtime.shutdown_background();
    match found {
        Ok(settings) => Ok(settings),
        Err(failure @ Failure::Interrupted(_)) => Err(failure),
        // With a flag for a cluster, the user wants the Settings of this cluster.
        Err(failure) if access.is_named() => Err(failure),
        Err(failure) => {
            writeln!(console.err, "note: {failure}")?;
            Ok(vec![None; apis.len()])
        }
    }
}
