//! Prices are added up by namespace and compared with budgets.

use crate::world::{Environment, World, head, until};
use function_paved_road::status::BUDGET;
use serde_json::json;

fn priced(namespace: &str, name: &str, hourly: Option<&'static str>) -> Environment {
    let namespace = namespace.to_owned();
    Environment { namespace, hourly, ..Environment::new(name, json!({})) }
}

#[tokio::test]
async fn environments_of_a_namespace_over_its_budget_are_marked() {
    let world = World::new().await;
    world.configure(&json!({"budget": {"defaultHourlyUSD": "5", "byNamespace": {"rich": "100"}}}));
    let mut all = [
        priced("team", "ada", Some("3.500")),
        priced("team", "bob", Some("1.600")),
        priced("team", "free", None),
        priced("rich", "eve", Some("99")),
        priced("poor", "joe", Some("5.000")),
    ];
    for environment in &mut all {
        world.compose(environment);
    }
    let _controller = world.start("a");
    let marked = |index: usize| world.annotation(&all[index], BUDGET);
    let over = Some("5.100/5.000".to_owned());
    until("a mark", || (0..3).all(|index| marked(index) == over)).await;
    world.settle().await;
    assert_eq!([marked(3), marked(4)], [None, None]);
    assert_eq!(world.writes().len(), 3);
    // One is deleted: the rest is within the budget.
    world.remove(&head(&all[1]));
    let within = Some("3.500/5.000".to_owned());
    until("within", || marked(0) == within && marked(2) == within).await;
    world.settle().await;
    assert_eq!(world.writes().len(), 2);
    // A budget that is taken away marks no environment.
    world.configure(&json!({}));
    world.clocks.pass("1m");
    until("no budget", || marked(0).as_deref() == Some("")).await;
}

#[tokio::test]
async fn failed_write_is_tried_again() {
    let world = World::new().await;
    world.configure(&json!({"budget": {"defaultHourlyUSD": "5"}}));
    let mut ada = priced("team", "ada", Some("9"));
    world.compose(&mut ada);
    world.fail("patch", "/ada", (500, "the write fails"));
    let _controller = world.start("a");
    until("an attempt", || !world.writes().is_empty()).await;
    world.cluster.faults.mend();
    until("a mark", || world.annotation(&ada, BUDGET).is_some()).await;
    world.writes();
    world.settle().await;
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn stopped_environment_counts_with_its_price_while_stopped() {
    let world = World::new().await;
    world.configure(&json!({"budget": {"defaultHourlyUSD": "5"}}));
    let mut ada = priced("team", "ada", Some("9"));
    world.compose(&mut ada);
    world.edit(&ada, |claim| {
        claim["status"]["power"] = json!("Stopped");
        claim["status"]["estimatedStoppedHourlyUSD"] = json!("0.1");
    });
    let _controller = world.start("a");
    world.led().await;
    assert_eq!(world.annotation(&ada, BUDGET), None);
    world.edit(&ada, |claim| claim["status"]["power"] = json!("Running"));
    until("a mark", || world.annotation(&ada, BUDGET).is_some()).await;
}
