//! A hundred environments at once.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Result;
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::json;

use crate::environment::Environment;
use crate::examples;
use crate::stage::{Stage, eventually};

/// How many.
const HUNDRED: usize = 100;

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
    let begin = Instant::now();
    try_join_all(environments.iter().map(Environment::apply)).await?;
    let applied = begin.elapsed();
    try_join_all(environments.iter().map(Environment::ready)).await?;
    let ready = begin.elapsed();
    try_join_all(environments.iter().map(Environment::delete)).await?;
    try_join_all(environments.iter().map(Environment::gone)).await?;
    let (applied, ready, gone) = (applied.as_secs_f64(), ready.as_secs_f64(), begin.elapsed().as_secs_f64());
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
