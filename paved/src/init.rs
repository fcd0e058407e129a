//! `paved init`: writes a first claim from the schema.

mod draft;
mod ssh_keys;
mod write;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use function_paved_road::offers::Offer;
use function_paved_road::settings::Settings;
use jiff::Timestamp;
use paved_client::environment::Price;
use paved_render::composed;
use paved_render::function::no_key;
use paved_render::subject::Stored;
use paved_render::subject::observed::Observed;
use paved_render::subject::pipeline_step::Step;
use serde_json::Value;

use crate::Console;
#[cfg(feature = "cluster")]
use crate::cli::Access;
use crate::cli::Init;
use crate::failure::Failure;
use crate::prepare::Sources;
use crate::style::{BOLD, DIM, YELLOW};
use crate::target::Target;
use crate::{offers, validate};
use draft::{Draft, Needed};

/// Writes a claim with the given fields, and asks for missing required fields.
pub(crate) fn run(args: &Init, console: &mut Console<'_>) -> Result<(), Failure> {
    let target = Target::find(args)?;
    if let Some(file) = args.file.as_deref().filter(|file| file.exists() && !args.force) {
        return Err(exists(file));
    }
    let mut draft = Draft::new(&target, args)?;
    for (path, value) in &args.set {
        draft.set(path, value)?;
    }
    ssh_keys::add(&mut draft, &target, &args.ssh_key)?;
    let sources = Sources { settings: args.settings.clone(), ..Sources::default() };
    let missing = draft.missing();
    if !missing.is_empty() {
        let settings = settings(args, &target, &sources, console)?;
        let offers = target.api.offers(&settings, None);
        complete(&mut draft, &missing, &offers, console)?;
        choose(&mut draft, &offers, console)?;
    }
    let text = write::document(&target, &draft)?;
    let name = args.file.clone().unwrap_or_else(|| "claim.yaml".into());
    validate::generated(name, &text, &sources, console)?;
    if let Some(note) = no_key(target.api.info().composite.kind, &draft.object["spec"]) {
        writeln!(console.err, "note: {note}")?;
    }
    if target.api.info().name == "gpu-workspace" && !allows_networks(&text) {
        let note = "SSH is closed unless the platform team's Settings allow a network. Add \
                    networks to spec.parameters.allowedCidrs";
        writeln!(console.err, "note: {note}")?;
    }
    if let Some(price) = list_price(&target, &draft.object) {
        writeln!(console.err, "note: list price: {price}")?;
    }
    match &args.file {
        None => write!(console.out, "{text}")?,
        Some(file) => {
            save(file, &text, args.force)?;
            writeln!(
                console.err,
                "wrote {}. Run `paved apply {0}` to create the environment",
                file.display()
            )?;
        }
    }
    Ok(())
}

/// The Settings with the offer: those of the file, or else those of the cluster. Only a person who is
/// asked needs them.
fn settings(
    args: &Init,
    target: &Target,
    sources: &Sources,
    console: &mut Console<'_>,
) -> Result<Settings, Failure> {
    if args.settings.is_some() {
        return offers::from_files(target.api, target.flavour, sources, console);
    }
    if console.answer.is_none() {
        return Ok(Settings::default());
    }
    #[cfg(feature = "cluster")]
    if let Some(Some(found)) =
        offers::from_cluster(&[target.api], &Access::default(), console)?.pop()
    {
        return Ok(found);
    }
    writeln!(console.err, "note: {}", offers::WITHOUT_SETTINGS)?;
    Ok(Settings::default())
}

/// The estimated price without the platform team's Settings. `None` if a part has no list price.
fn list_price(target: &Target, claim: &Value) -> Option<Price> {
    let none = Observed::default();
    let stored = Stored::in_flavour(claim, &none, Some(target.flavour)).ok()?;
    let composite = stored.composite(&none).ok()?;
    let step = Step::example(&stored.target, &stored.object["spec"]).ok()?;
    let subject = stored.among(composite, step, String::new());
    Price::from_status(&composed::status(&subject, Timestamp::now()).ok()?)
}

/// Whether a workspace names networks that may connect by SSH.
fn allows_networks(text: &str) -> bool {
    let claim: Value = serde_saphyr::from_str(text).unwrap_or_default();
    claim["spec"]["parameters"]["allowedCidrs"].as_array().is_some_and(|all| !all.is_empty())
}

/// Asks for each field until the answer is allowed. Without a terminal, reports all missing fields.
fn complete(
    draft: &mut Draft,
    missing: &[Needed],
    offers: &[Offer],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if console.answer.is_none() {
        return Err(needed(missing));
    }
    for field in missing {
        writeln!(console.err, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", field.path, field.about)?;
        let offer = offers.iter().find(|offer| offer.field == field.path);
        if let Some(offer) = offer {
            offers::print(offer, offers::room(console), &mut console.err)?;
        }
        loop {
            write!(console.err, "> ")?;
            console.err.flush()?;
            let Some(answer) = console.answer.as_mut() else { return Err(needed(missing)) };
            let line = answer()?;
            if line.is_empty() {
                return Err(Failure::Usage(format!(
                    "no value for {}. Run the command again, or use --set",
                    field.path
                )));
            }
            let chosen = offer.map_or(Ok(line.trim()), |offer| offers::chosen(offer, line.trim()));
            match chosen.and_then(|value| draft.answer(&field.path, value)) {
                Ok(()) => break,
                Err(why) => writeln!(console.err, "{YELLOW}{why}{YELLOW:#}")?,
            }
        }
    }
    // An answer can make further fields required.
    let missing = draft.missing();
    if missing.is_empty() { Ok(()) } else { complete(draft, &missing, offers, console) }
}

/// Asks for the fields with a closed offer that have no value yet. An empty line keeps the default.
fn choose(draft: &mut Draft, offers: &[Offer], console: &mut Console<'_>) -> Result<(), Failure> {
    let is_open =
        |offer: &&Offer| offer.closed && offer.values.len() > 1 && !draft.has(offer.field);
    let open: Vec<&Offer> = offers.iter().filter(is_open).collect();
    for offer in open {
        let default = draft.default(offer.field).unwrap_or_else(|| "none".to_owned());
        writeln!(console.err, "{BOLD}{}{BOLD:#}", offer.field)?;
        offers::print(offer, offers::room(console), &mut console.err)?;
        loop {
            write!(console.err, "Number or value [{default}] > ")?;
            console.err.flush()?;
            let Some(answer) = console.answer.as_mut() else { return Ok(()) };
            let line = answer()?;
            // The end of the input, for example Ctrl-D.
            if line.is_empty() {
                return Err(Failure::Usage("stopped: no file is written".to_owned()));
            }
            let typed = line.trim();
            if typed.is_empty() {
                break;
            }
            let chosen = offers::chosen(offer, typed);
            match chosen.and_then(|value| draft.answer(offer.field, value)) {
                Ok(()) => break,
                Err(why) => writeln!(console.err, "{YELLOW}{why}{YELLOW:#}")?,
            }
        }
    }
    Ok(())
}

fn needed(missing: &[Needed]) -> Failure {
    let fields: Vec<String> =
        missing.iter().map(|field| format!("  {}  {}", field.flag(), field.about)).collect();
    Failure::Usage(format!("these are required:\n{}", fields.join("\n")))
}

/// Replaces an existing file only with --force, even if another program created it in the meantime.
fn save(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!force);
    let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(file),
        _ => Failure::Usage(format!("could not write {}: {error}", file.display())),
    })
}

fn exists(file: &Path) -> Failure {
    Failure::Usage(format!("{} already exists. Use --force to replace it", file.display()))
}
