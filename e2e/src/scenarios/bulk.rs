//! A hundred environments at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crossplane::json::merge_patch;
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::deletion;
use crate::controller::Controller;
use crate::environment::{Environment, is_ready};
use crate::eventually::eventually;
use crate::fixture::Fixture;

/// The number of environments.
const HUNDRED: usize = 100;

/// The longest that all environments together may take to become ready and to be deleted, on a busy
/// machine. An idle machine takes a minute and a half, and two minutes.
const TIMEOUT: Duration = Duration::from_mins(11);

pub(super) async fn a_hundred_environments_come_and_go(fixture: Fixture) -> Result<()> {
    // Create the shared environments before the comparison, because other scenarios use them.
    fixture.shared_environments().await?;
    let before = fixture.objects.everything().await?;
    let databases = databases(&fixture).await?;
    let kinds: Vec<_> = fixture.apis().collect();
    let environments: Vec<Environment> = (0..HUNDRED)
        .map(|number| {
            let (api, flavour) = kinds[number % kinds.len()];
            let name =
                format!("{}-{number}", if flavour == Flavour::Claims { "claim" } else { "direct" });
            let mut own = deletion::named(api, flavour);
            if flavour == Flavour::Claims && !api.info().connection_keys.is_empty() {
                let secret = json!({"name": format!("{name}-conn")});
                merge_patch(&mut own, json!({"spec": {"writeConnectionSecretToRef": secret}}));
            }
            merge_patch(&mut own, json!({"metadata": {"name": name}}));
            fixture.example(api.info().name, flavour, own)
        })
        .collect::<Result<_>>()?;
    let user = fixture.user_objects().await?;
    // It makes deletions faster.
    let controller = Controller::install(&fixture).await?;
    let replica = controller.start("bulk").await?;
    let (begin, time) = (Instant::now(), processor_time(&fixture));
    try_join_all(environments.iter().map(|environment| user.apply(&environment.manifest))).await?;
    let applied = begin.elapsed();
    within(&fixture, "a hundred environments are ready", |found| {
        found.len() == HUNDRED && found.iter().all(is_ready)
    })
    .await?;
    let ready = begin.elapsed();
    try_join_all(environments.iter().map(|environment| user.delete(&environment.manifest))).await?;
    within(&fixture, "a hundred environments are gone", <[Value]>::is_empty).await?;
    replica.stop().await;
    let (applied, ready, gone) =
        (applied.as_secs_f64(), ready.as_secs_f64(), begin.elapsed().as_secs_f64());
    let time = processor_time(&fixture).saturating_sub(time);
    let memory =
        fixture.plane.function.replicas.iter().filter_map(|replica| replica.peak_memory()).max();
    println!(
        "    the function: {:.1} s of a processor, {:.0} ms for each environment, {} MiB at most",
        time.as_secs_f64(),
        (time / 100).as_secs_f64() * 1000.0,
        memory.unwrap_or_default() / 1024
    );
    println!(
        "    {HUNDRED} environments: applied after {applied:.1} s, ready after {ready:.1} s, gone after {gone:.1} s"
    );
    no_object_is_left(&fixture, &before).await?;
    let left: Vec<_> = self::databases(&fixture).await?.difference(&databases).cloned().collect();
    ensure!(left.is_empty(), "PostgreSQL still has {left:?}");
    Ok(())
}

/// The databases and roles of the PostgreSQL server that environments share.
async fn databases(fixture: &Fixture) -> Result<BTreeSet<String>> {
    match &fixture.plane.postgres {
        Some(postgres) => postgres.names().await,
        None => Ok(BTreeSet::new()),
    }
}

/// The processor time of all replicas of the function.
fn processor_time(fixture: &Fixture) -> Duration {
    fixture.plane.function.replicas.iter().filter_map(|replica| replica.cpu_time()).sum()
}

/// Waits until every object that was not there `before` is gone.
pub(super) async fn no_object_is_left(fixture: &Fixture, before: &BTreeSet<String>) -> Result<()> {
    let mut left = Vec::new();
    let gone = eventually("no new object is left", async || {
        let now = fixture.objects.everything().await?;
        left = now.difference(before).take(20).cloned().collect();
        Ok(left.is_empty().then_some(()))
    });
    gone.await.with_context(|| format!("still there: {left:?}"))
}

/// Waits until the environments meet a condition. It reads ten lists at a time instead of a hundred
/// objects.
async fn within(fixture: &Fixture, what: &str, is: impl Fn(&[Value]) -> bool) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    loop {
        let mut found = Vec::new();
        for (api, flavour) in fixture.apis() {
            let example = fixture.manifest(api.info().name, flavour)?;
            let text = |key: &str| example[key].as_str().unwrap_or_default();
            found.extend(
                fixture.objects.list(text("apiVersion"), text("kind"), &fixture.namespace).await?,
            );
        }
        if is(&found) {
            return Ok(());
        }
        let ready = found.iter().filter(|object| is_ready(object)).count();
        ensure!(
            Instant::now() < end,
            "not within {} s: {what}; {} exist, {ready} are ready",
            TIMEOUT.as_secs(),
            found.len()
        );
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
