//! A hundred environments at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};

use crate::environment::{Environment, is_ready};
use crate::examples;
use crate::stage::{Stage, eventually};

/// How many.
const HUNDRED: usize = 100;

/// The longest that all of them together may take to come, and to go.
const HURRY: Duration = Duration::from_mins(7);

pub(super) async fn a_hundred_environments_come_and_go(stage: Stage) -> Result<()> {
    let before = stage.objects.everything().await?;
    let kinds: Vec<_> = examples::all().collect();
    let environments: Vec<Environment> = (0..HUNDRED)
        .map(|number| {
            let (api, flavour) = kinds[number % kinds.len()];
            let name = format!("{}-{number}", if flavour == Flavour::Claims { "claim" } else { "direct" });
            let own = match (api.info().name, flavour) {
                ("stock-pool", _) | (_, Flavour::Namespaced) => json!({"metadata": {"name": name}}),
                _ => json!({"metadata": {"name": name}, "spec": {"writeConnectionSecretToRef": {"name": format!("{name}-conn")}}}),
            };
            stage.example(api.info().name, flavour, own)
        })
        .collect::<Result<_>>()?;
    let all = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": environments.iter().map(|environment| &environment.manifest).collect::<Vec<_>>(),
    });
    let begin = Instant::now();
    stage.user.apply(&all).await?;
    let applied = begin.elapsed();
    within(&stage, "a hundred environments are ready", |found| {
        found.len() == HUNDRED && found.iter().all(is_ready)
    })
    .await?;
    let ready = begin.elapsed();
    let delete = ["delete", "-f", "-", "--wait=false", "--cascade=foreground"];
    stage.user.with(&delete, &all.to_string()).await?;
    within(&stage, "a hundred environments are gone", <[Value]>::is_empty).await?;
    let (applied, ready, gone) = (applied.as_secs_f64(), ready.as_secs_f64(), begin.elapsed().as_secs_f64());
    for replica in &stage.plane.function.replicas {
        let (time, memory) =
            (replica.cpu_time().unwrap_or_default(), replica.peak_memory().unwrap_or_default());
        println!(
            "    {}: {:.1} s of a processor so far, {} MiB at most",
            replica.name(),
            time.as_secs_f64(),
            memory / 1024
        );
    }
    println!(
        "    {HUNDRED} environments: applied after {applied:.1} s, ready after {ready:.1} s, gone after {gone:.1} s"
    );
    nothing_is_left(&stage, &before).await
}

/// Waits until there is no object that was not there `before`.
pub(super) async fn nothing_is_left(stage: &Stage, before: &BTreeSet<String>) -> Result<()> {
    eventually("every kind holds what it held before", async || {
        let now = stage.objects.everything().await?;
        let left: Vec<_> = now.difference(before).take(20).collect();
        if !left.is_empty() {
            println!("    still there: {left:?}");
        }
        Ok(left.is_empty().then_some(()))
    })
    .await
}

/// Waits until what there is of environments is as it should be: ten lists at a time, not a hundred requests.
async fn within(stage: &Stage, what: &str, is: impl Fn(&[Value]) -> bool) -> Result<()> {
    let end = Instant::now() + HURRY;
    loop {
        let mut found = Vec::new();
        for (api, flavour) in examples::all() {
            let example = examples::example(api.info().name, flavour, &stage.namespace)?;
            let text = |key: &str| example[key].as_str().unwrap_or_default();
            found.extend(stage.objects.list(text("apiVersion"), text("kind"), &stage.namespace).await?);
        }
        if is(&found) {
            return Ok(());
        }
        let ready = found.iter().filter(|object| is_ready(object)).count();
        ensure!(
            Instant::now() < end,
            "not within {} s: {what}; {} are there, {ready} ready",
            HURRY.as_secs(),
            found.len()
        );
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
