//! What an environment costs until it is ready, one after the other.

use std::time::Instant;

use anyhow::Result;
use function_paved_road::apis::{AnyApi, Flavour};
use serde_json::json;

use crate::control_plane::ControlPlane;
use crate::examples;
use crate::stage::Stage;

pub(super) async fn each_becomes_ready_by_itself(stage: Stage) -> Result<()> {
    for (api, flavour) in examples::all() {
        let info = api.info();
        let before = Counts::of(&stage.plane, api, flavour).await?;
        let begin = Instant::now();
        let add_ons = stage.add_ons().await?;
        let change = if info.name == "virtual-environment" { add_ons.change() } else { json!({}) };
        let environment = stage.ready(info.name, flavour, change).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let after = Counts::of(&stage.plane, api, flavour).await?;
        let resources = environment.composed().await?.len();
        println!(
            "    {:24} {flavour:?}: {resources} resources, ready after {seconds:.1} s, {} reconciles, {} events",
            info.name,
            after.reconciles - before.reconciles,
            after.events - before.events
        );
        environment.delete().await?;
        environment.gone().await?;
    }
    Ok(())
}

/// What core has done for the composites of a kind.
struct Counts {
    reconciles: f64,
    /// What its circuit breakers count: an update is two.
    events: f64,
}

impl Counts {
    async fn of(plane: &ControlPlane, api: &dyn AnyApi, flavour: Flavour) -> Result<Self> {
        let info = api.info();
        let names = match flavour {
            Flavour::Claims => &info.composite,
            Flavour::Namespaced => &info.namespaced,
        };
        let controller = format!("controller=\"composite/{}.{}\"", names.plural, flavour.default_group());
        Ok(Self {
            reconciles: plane.metrics.sum("controller_runtime_reconcile_total", &controller).await?,
            events: plane.metrics.sum("circuit_breaker_events_total", &controller).await?,
        })
    }
}
