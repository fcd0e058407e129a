//! The plan of `paved apply`, and its announcement before anything is applied.

use function_paved_road::status::{Deleted, Kept};
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::environment::{Environment, Price};
use paved_client::restart::{Restart, restarts};
use paved_render::composed;
use paved_render::subject::observed::Observed;
use serde_json::{Value, json};

use super::composition::{Source, document};
use super::plan::Step;
use super::{budget, diff, own_fields};
use crate::Console;
use crate::ask::agrees;
use crate::cli::Apply;
use crate::failure::Failure;
use crate::plan::{Change, Item, Resources, differences, state};
use crate::prepare;
use crate::style::BOLD;

/// The effects of all steps.
pub(super) fn items(
    steps: &[Step],
    sources: &[Source],
    args: &Apply,
    console: &mut Console<'_>,
) -> Result<Vec<Item>, Failure> {
    steps.iter().zip(sources).map(|(step, source)| item(step, source, args, console)).collect()
}

fn item(
    step: &Step,
    source: &Source,
    args: &Apply,
    console: &mut Console<'_>,
) -> Result<Item, Failure> {
    let Some(rehearsed) = &step.rehearsed else {
        return Err(Failure::Usage(format!("{}: the dry run has no result", step.what())));
    };
    let own = |object: &DynamicObject| own_fields(object, &step.object);
    let before = step.live.as_ref().map(own).unwrap_or_default();
    let after = own(rehearsed);
    let (resources, deleted, note) = match resources(step, source, console) {
        Ok((resources, deleted)) => (Some(resources), deleted, None),
        Err(Failure::Output(error)) => return Err(Failure::Output(error)),
        Err(why) => (None, Vec::new(), Some(format!("its resources are not compared: {why}"))),
    };
    let pipeline = match source {
        Source::Cluster(pipeline) => Some((**pipeline).clone()),
        _ => budget::pipeline(step, source, console),
    };
    let settings = pipeline.map(|pipeline| {
        let data: Vec<&Value> = pipeline.configs.iter().map(|config| &config["data"]).collect();
        json!({"input": pipeline.input, "data": data})
    });
    let basis = json!({
        "live": step.live.as_ref().map(state),
        "after": after,
        "settings": settings,
        "force": args.force_conflicts,
        "validate": !args.no_validate,
    });
    let item = Item::new(&step.kind, rehearsed, change(step))
        .with_diff(differences(&step.kind, &before, &after))
        .with_prices(price(step).as_ref(), step.price.as_ref())
        .with_restarts(&interruptions(step))
        .with_resources(resources)
        .with_deletions(&deleted, &[] as &[Kept])
        .based_on(basis);
    Ok(match note {
        Some(note) => item.with_note(&note),
        None => item,
    })
}

/// The change of a step, as the API server's dry run shows it.
fn change(step: &Step) -> Change {
    let own = |object: &DynamicObject| own_fields(object, &step.object);
    match (&step.live, &step.rehearsed) {
        (None, _) => Change::Create,
        (Some(live), Some(after)) if own(live) == own(after) => Change::None,
        _ => Change::Update,
    }
}

/// The price of the existing environment.
fn price(step: &Step) -> Option<Price> {
    Environment::from_object(step.live.as_ref()?).price
}

fn interruptions(step: &Step) -> Vec<Restart> {
    match (&step.live, &step.rehearsed) {
        (Some(live), Some(after)) => restarts(step.kind.name(), &document(live), &document(after)),
        _ => Vec::new(),
    }
}

/// The resources that the change creates, changes and deletes.
fn resources(
    step: &Step,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<(Resources, Vec<Deleted>), Failure> {
    if let Source::Unknown(why) = source {
        return Err(Failure::Usage(why.clone()));
    }
    let Some((before, after)) = diff::settled(step, source, console)? else {
        let Some(rehearsed) = &step.rehearsed else { return Ok(Default::default()) };
        let subject = source.subject(step, rehearsed, &Observed::default(), console)?;
        let parts = composed::parts(&subject, Timestamp::now());
        let parts = parts.map_err(|rejected| prepare::rejected(rejected, console))?;
        let created = parts.into_iter().map(|(slot, _)| slot).collect();
        return Ok((Resources { created, ..Resources::default() }, Vec::new()));
    };
    let mut resources = Resources::default();
    for (slot, resource) in &after {
        match before.get(slot) {
            None => resources.created.push(slot.clone()),
            Some(old) if old != resource => resources.changed.push(slot.clone()),
            Some(_) => {}
        }
    }
    let live = step.live.as_ref().map(Environment::from_object);
    let known: Vec<Deleted> =
        live.and_then(|live| live.on_deletion).map(|plan| plan.deletes).unwrap_or_default();
    let mut deletions = Vec::new();
    for (slot, resource) in before.iter().filter(|(slot, _)| !after.contains_key(*slot)) {
        resources.deleted.push(slot.clone());
        let kind = resource["kind"].as_str().unwrap_or_default().to_owned();
        let of_slot = known.iter().find(|one| one.slot == *slot).cloned();
        deletions.push(of_slot.unwrap_or_else(|| Deleted {
            slot: slot.clone(),
            kind,
            name: None,
            has_data: false,
        }));
    }
    Ok((resources, deletions))
}

/// Prints the price and the restarts of each change, before anything is applied. With a restart or
/// with `--diff`, asks on a terminal.
pub(super) fn announce(
    steps: &[Step],
    args: &Apply,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut is_interrupted = false;
    let changed: Vec<&Step> = steps.iter().filter(|step| change(step) != Change::None).collect();
    for step in &changed {
        let Some(rehearsed) = &step.rehearsed else { continue };
        let all = interruptions(step);
        is_interrupted |= !all.is_empty();
        let before = price(step).filter(|_| step.price.is_some());
        let item = Item::new(&step.kind, rehearsed, change(step))
            .with_prices(before.as_ref(), step.price.as_ref())
            .with_restarts(&all);
        let effects = item.effects();
        if !effects.is_empty() {
            writeln!(console.out, "{BOLD}{}{BOLD:#}", step.title())?;
        }
        for line in effects {
            writeln!(console.out, "  {line}")?;
        }
    }
    console.out.flush()?;
    let asks = (args.diff || is_interrupted) && !changed.is_empty() && !args.yes;
    if asks && console.answer.is_some() {
        let unanswered = "no answer, so nothing was applied. Use --yes to apply without a question";
        if !agrees("Apply?", unanswered, console)? {
            return Err(Failure::Usage("cancelled. Nothing was applied".to_owned()));
        }
    }
    Ok(())
}
