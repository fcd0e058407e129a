//! Connection Secrets of the applied documents: each has one environment.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::TryStreamExt;
use paved_client::cluster::{Cluster, Kinds, is_denied, pages};

use super::composition::document;
use super::plan::Step;
use crate::connection_secrets::{Identity, Secret, connection_secret, in_use};
use crate::failure::Failure;

/// Rejects a step with the connection Secret of another step, or of another environment in its
/// namespace. An environment that already shares its Secret is not rejected. Kinds that the caller
/// may not list are not compared.
pub(super) async fn check(cluster: &Cluster, kinds: &Kinds, steps: &[Step]) -> Result<(), Failure> {
    let new: Vec<(&Step, Secret, Identity)> = steps.iter().filter_map(new_secret).collect();
    let mut users: BTreeMap<Secret, Identity> = BTreeMap::new();
    let namespaces: BTreeSet<&str> = new.iter().map(|(step, ..)| &*step.namespace).collect();
    for namespace in namespaces {
        for kind in kinds.all() {
            let mut pages = pin!(pages(cluster, kind, Some(namespace), None));
            loop {
                let page = match pages.try_next().await {
                    Ok(Some(page)) => page,
                    Ok(None) => break,
                    Err(error) if is_denied(&error) => break,
                    Err(error) => {
                        let act = format!("list {} in namespace {namespace}", kind.name());
                        return Err(cluster.explain(&error, &act).into());
                    }
                };
                users.extend(page.items.iter().filter_map(|one| connection_secret(&document(one))));
            }
        }
    }
    let mut failures = Vec::new();
    for (step, secret, user) in new {
        let other = users.entry(secret.clone()).or_insert_with(|| user.clone());
        if *other != user {
            let other = format!("{} {}", other.0, other.2);
            let violations = vec![in_use(&secret, &other)];
            failures.push(Failure::Refused { what: step.what(), violations });
        }
    }
    Failure::combine(failures)
}

/// The connection Secret of a step, if the existing environment does not have it.
fn new_secret(step: &Step) -> Option<(&Step, Secret, Identity)> {
    let (secret, user) = connection_secret(&step.object)?;
    let live = step.live.as_ref().and_then(|live| connection_secret(&document(live)));
    live.is_none_or(|(live, _)| live != secret).then_some((step, secret, user))
}
