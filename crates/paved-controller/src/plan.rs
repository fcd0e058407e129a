//! `--dry-run`: the next actions of a controller.

use std::sync::Arc;

use function_paved_road::lifecycle::SKEW;
use futures::StreamExt;
use kube::api::{DynamicObject, TypeMeta};
use kube::runtime::watcher::Event;
use paved_client::cluster::{Cluster, Kind, Kinds, Served, cause, watch};
use paved_client::environment::spell;

use crate::budget;
use crate::clock::Clock;
use crate::expiry::Expiry;
use crate::lease::Election;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::read::Unread;
use crate::settings::Source;
use crate::store::Store;
use crate::verdict::Verdict;
use crate::{Failure, Options};

/// One line for each next action of a controller, and for each environment that stays after its
/// end. The deletions that the Lease counts are subtracted from the limit. The function writes to
/// no object.
///
/// # Errors
/// The cluster does not answer, or denies a right. The Settings cannot be read.
pub async fn plan(cluster: Cluster, options: &Options) -> Result<Vec<String>, Failure> {
    let clock = options.clock.clone();
    let store = Arc::new(Store::new(clock.clone()));
    let kinds = Kinds::discover(&cluster).await?;
    let kinds: Vec<Kind> =
        kinds.all().iter().filter(|kind| kind.paved_api().is_some()).cloned().collect();
    store.keep_kinds(&kinds);
    for kind in &kinds {
        list(&cluster, kind, &store).await?;
    }
    let mut source = Source::new(&cluster, &options.settings, options.settings_from);
    source.refresh(clock.steady()).await;
    let settings = source.get().map_err(|_| no_settings(&source))?;
    let expiry = expiry(cluster.clone(), options, Arc::clone(&store));
    let election = Arc::clone(&expiry.election);
    election.look().await.map_err(|error| cluster.explain(&error, "read the Lease"))?;
    expiry.resume().await;
    let mut lines = Vec::new();
    let most = settings.common.controller.deletions_per_hour();
    let mut deletions = expiry.spent.lock().await.count(clock.steady());
    let ahead = election.ahead().await;
    if let Some(ahead) = ahead.filter(|ahead| ahead.abs() > SKEW) {
        let (far, word) =
            (spell(ahead.unsigned_abs()), if ahead.is_negative() { "behind" } else { "ahead of" });
        lines.push(format!(
            "nothing would be deleted: this machine's clock is {far} {word} the API server's"
        ));
        return Ok(lines);
    }
    for key in store.due(clock.now()) {
        let told = match expiry.evaluate(&key, settings).await {
            Ok(None) | Err(Unread::Gone) => continue,
            Ok(Some(judged)) => match judged.verdict {
                Verdict::Delete if deletions < most => {
                    deletions += 1;
                    "would be deleted".to_owned()
                }
                Verdict::Delete => "would be deleted later: deletionsPerHour is reached".to_owned(),
                Verdict::Stop => "would be stopped".to_owned(),
                Verdict::Wait => continue,
                Verdict::Hold(why) => format!("stays: {why}"),
            },
            Err(Unread::Hold(why)) => format!("stays: {why}"),
            Err(Unread::Error(error)) => {
                return Err(cluster.explain(&error, "read environments").into());
            }
        };
        lines.push(format!("{key} {told}"));
    }
    for (namespace, cost) in store.costs() {
        let over = budget::over(&cost, settings.common.budget.of(&namespace));
        lines.extend(over.map(|over| {
            let (hourly, budget) = (over.hourly, over.budget);
            format!(
                "namespace {namespace} is over its budget: {hourly} USD per hour of {budget} USD"
            )
        }));
    }
    Ok(lines)
}

/// Why the Settings are not there.
fn no_settings(source: &Source) -> Failure {
    let name = source.name();
    Failure::Usage(if source.is_missing() {
        format!(
            "EnvironmentConfig {name}: it was not found, or has no data, so the controller deletes \
             nothing. Create it with `data`, or use --settings-from none if the platform has no \
             Settings"
        )
    } else {
        format!(
            "the Settings in EnvironmentConfig {name} are invalid. Run `paved doctor` to find the \
             error"
        )
    })
}

/// The parts of a controller that decide. They write to no object.
fn expiry(cluster: Cluster, options: &Options, store: Arc<Store>) -> Expiry {
    let (clock, limits) = (options.clock.clone(), Limits::default());
    let identity = options.identity.clone();
    let election = Election::new(&cluster, &options.namespace, identity, clock.clone(), limits);
    Expiry {
        cluster,
        served: Served::default(),
        store,
        election: Arc::new(election),
        metrics: Arc::new(Metrics::new()),
        clock: Clock::clone(&clock),
        limits,
        spent: tokio::sync::Mutex::default(),
    }
}

/// Fills the store with the environments of a kind.
async fn list(cluster: &Cluster, kind: &Kind, store: &Store) -> Result<(), Failure> {
    let types =
        TypeMeta { api_version: kind.resource.api_version.clone(), kind: kind.name().to_owned() };
    let mut events = std::pin::pin!(watch(cluster, kind, None, None));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(object)) => {
                let object = DynamicObject { types: Some(types.clone()), ..object };
                store.put(kind, &object);
            }
            Ok(Event::InitDone) => break,
            Ok(_) => {}
            Err(error) => {
                let act = format!("list {}", kind.name());
                return Err(cluster.explain(&cause(error), &act).into());
            }
        }
    }
    Ok(())
}
