//! The prices of the documents, and the budgets of their namespaces.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_schema::Violation;
use kube::api::DynamicObject;
use paved_client::budget::{Ledger, Planned};
use paved_client::cluster::{Cluster, Kinds};
use paved_client::environment::Price;
use paved_render::composed;
use paved_render::subject::observed::Observed;
use paved_render::subject::pipeline_step as pipeline;
use serde_json::Value;

use super::composition::{Source, document};
use super::plan::Step;
use crate::Console;
use crate::failure::Failure;

/// Estimates the price of each document, and rejects documents that exceed the budget of their
/// namespace. All documents of a namespace count together. All rejections are reported at once.
pub(super) async fn check(
    steps: &mut [Step],
    sources: &[Source],
    kinds: &Kinds,
    cluster: &Cluster,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut ledgers: BTreeMap<String, Ledger> = BTreeMap::new();
    let mut failures = Vec::new();
    for (step, source) in steps.iter_mut().zip(sources) {
        let Some(after) = step.rehearsed.as_ref().map(document) else { continue };
        let Some(pipeline) = pipeline(step, source, console) else { continue };
        step.price = price(step, &after, &pipeline, console);
        let settings = pipeline.settings();
        let budget = settings.and_then(|settings| settings.common.budget.of(&step.namespace));
        let Some(budget) = budget else { continue };
        if step.price.is_none() {
            let title = step.title();
            writeln!(
                console.err,
                "note: {title} has no estimated price, so it does not count in the budget"
            )?;
            continue;
        }
        if !ledgers.contains_key(&step.namespace) {
            let ledger = Ledger::read(cluster, kinds.all(), &step.namespace).await?;
            ledgers.insert(step.namespace.clone(), ledger);
        }
        let Some(ledger) = ledgers.get_mut(&step.namespace) else { continue };
        let before = step.live.as_ref().map(document);
        let planned = Planned { after: &after, before: before.as_ref() };
        let checked = ledger
            .check(budget, planned, &mut |document| price(step, document, &pipeline, console));
        failures.extend(checked.err().map(|error| Failure::Refused {
            what: step.what(),
            violations: vec![Violation { path: error.path, message: error.message }],
        }));
    }
    Failure::combine(failures)
}

/// The step of the Composition with its Settings. `None` if the Settings are not known.
pub(super) fn pipeline(
    step: &Step,
    source: &Source,
    console: &mut Console<'_>,
) -> Option<pipeline::Step> {
    if matches!(source, Source::Unknown(_)) {
        return None;
    }
    let rehearsed = step.rehearsed.as_ref()?;
    let subject = source.subject(step, rehearsed, &Observed::default(), console).ok()?;
    Some(subject.step)
}

/// The estimated price of a document. `None` if a part has no price, or if the composition rejects
/// the document.
fn price(
    step: &Step,
    document: &Value,
    pipeline: &pipeline::Step,
    console: &mut Console<'_>,
) -> Option<Price> {
    let object: DynamicObject = serde_json::from_value(document.clone()).ok()?;
    let source = Source::Cluster(Box::new(pipeline.clone()));
    let subject = source.subject(step, &object, &Observed::default(), console).ok()?;
    Price::from_status(&composed::status(&subject, Timestamp::now()).ok()?)
}
