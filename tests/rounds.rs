//! The number of function calls until all resources of an environment are desired, if every
//! provider responds immediately. No call drops or rewrites a resource of an earlier call.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::Flavour;
use serde_json::{Map, Value};
use simulator::provider::{Pace, Provider};
use support::simulated::{self, Case};
use support::world;

/// The function calls of each API and each variant of its example, in the claims API and in the
/// namespaced API. No smaller number is possible with this data flow.
const ROUNDS: &[(&str, Option<&str>, usize, usize)] = &[
    ("gpu-workspace", None, 1, 1),
    // The database user waits for the published password.
    ("application-environment", None, 2, 2),
    ("stock-pool", None, 1, 1),
    // The database waits for the namespace of its Secret. The backend waits for that Secret.
    ("unified-environment", None, 3, 2),
    ("unified-environment", Some("rds"), 3, 2),
    // Resources inside the cluster wait for the kubeconfig. Custom resources wait for their chart.
    ("virtual-environment", None, 3, 3),
    ("virtual-environment", Some("exposed"), 3, 3),
    ("virtual-environment", Some("gke"), 3, 3),
    ("virtual-environment", Some("eks"), 3, 3),
    ("virtual-environment", Some("aks"), 3, 3),
];

/// More calls than any environment needs.
const LIMIT: usize = 12;

#[test]
fn environment_is_composed_in_the_expected_number_of_calls() {
    let cases = simulated::all();
    let calls: Vec<_> =
        cases.iter().map(|case| (case, expected(case), calls(case).len())).collect();
    let wrong: Vec<String> = calls
        .iter()
        .filter(|(_, expected, calls)| expected != calls)
        .map(|(case, expected, calls)| {
            format!("{}: {calls} calls, the table says {expected}", case.name())
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn calls_never_drop_or_rewrite_earlier_resources() {
    for case in simulated::all() {
        let name = case.name();
        let rounds = rounds(&case);
        for (number, pair) in rounds.windows(2).enumerate() {
            let (before, now) = (&pair[0].desired, &pair[1].desired);
            for (slot, object) in before {
                let now = now
                    .get(slot)
                    .unwrap_or_else(|| panic!("{name}: call {} drops {slot}", number + 2));
                let mut rewritten = support::rewritten(&object.clone().into(), &now.clone().into());
                rewritten.retain(|change| {
                    !support::is_now_deleted(slot, change) && !is_named(slot, change)
                });
                assert!(
                    rewritten.is_empty(),
                    "{name}: call {} rewrites {slot}: {}",
                    number + 2,
                    rewritten.join("; ")
                );
            }
        }
    }
}

/// Whether a change is the name that AWS assigns to a database server. The observed name becomes
/// the desired one.
fn is_named(slot: &str, change: &str) -> bool {
    slot == "postgres-instance"
        && change.starts_with(".metadata.annotations.crossplane.io/external-name: ")
        && change.contains(" became \"db-")
}

#[test]
fn each_environment_becomes_ready() {
    for case in simulated::all() {
        let last = rounds(&case).pop().unwrap();
        assert!(last.waiting.is_empty(), "{} still waits with {:?}", case.name(), last.waiting);
        assert_eq!(last.phase, "Ready", "{}: {:#}", case.name(), last.unready);
    }
}

/// The call after the last resource observes all resources as ready. There are two exceptions, each
/// with one call more. A site's function is associated with the distribution once its ARN is known.
/// A resource inside a managed cluster is deletable once its Usages are in force.
#[test]
fn each_environment_is_ready_soon_after_its_last_resource() {
    for case in simulated::all() {
        let first = rounds(&case).iter().position(|round| round.phase == "Ready").unwrap();
        let variant = case.variant();
        let more = match (case.api().info().name, variant.as_deref()) {
            ("unified-environment", _) | ("virtual-environment", Some("gke" | "eks" | "aks")) => 2,
            _ => 1,
        };
        assert_eq!(first + 1 - calls(&case).len(), more, "{}", case.name());
    }
}

/// The result of one function call.
struct Round {
    desired: BTreeMap<String, Map<String, Value>>,
    /// The slots in the status without a desired resource.
    waiting: BTreeSet<String>,
    phase: String,
    unready: Value,
}

/// The calls up to the last one that added a resource.
fn calls(case: &Case) -> Vec<Round> {
    let mut rounds = rounds(case);
    let grown =
        (1..rounds.len()).rev().find(|at| rounds[*at].desired.len() > rounds[at - 1].desired.len());
    rounds.truncate(grown.unwrap_or(0) + 1);
    rounds
}

/// All calls until the state does not change any more.
fn rounds(case: &Case) -> Vec<Round> {
    let mut world = case.world();
    let mut provider = Provider::new(Pace::Instant);
    let mut rounds: Vec<Round> = Vec::new();
    for _ in 0..LIMIT {
        let response = case.call(&world);
        let (desired, status) = (world::desired(&response), world::status(&response));
        let lines = status["resources"].as_array().cloned().unwrap_or_default();
        let slots = lines.iter().map(|line| line["slot"].as_str().unwrap().to_owned());
        let waiting = slots.filter(|slot| !desired.contains_key(slot)).collect();
        let unready = lines.into_iter().filter(|line| line["ready"] != true).collect();
        let phase = status["phase"].as_str().unwrap_or_default().to_owned();
        rounds.push(Round { desired, waiting, phase, unready });
        let applied =
            world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        assert_eq!(applied.fatal, None, "{}", case.name());
        let before = simulated::timeless(&world);
        provider.answer(&mut world);
        let quiet = applied.created.is_empty() && applied.changed.is_empty();
        if quiet && before == simulated::timeless(&world) {
            return rounds;
        }
    }
    panic!("{}: still changing after {LIMIT} calls", case.name());
}

/// The expected number of calls. Without a row in the table, one call.
fn expected(case: &Case) -> usize {
    let (api, variant) = (case.api().info().name, case.variant());
    let row = ROUNDS.iter().find(|(name, of, ..)| *name == api && *of == variant.as_deref());
    let Some((.., claims, namespaced)) = row else { return 1 };
    match case.flavour() {
        Flavour::Claims => *claims,
        Flavour::Namespaced => *namespaced,
    }
}
