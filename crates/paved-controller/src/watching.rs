//! The watches: one for each kind that the cluster serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{DynamicObject, TypeMeta};
use kube::runtime::watcher::Event;
use paved_client::cluster::{Cluster, Kind, Kinds, cause, is_denied, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::Limits;
use crate::metrics::Metrics;
use crate::store::Store;

/// Watches all kinds until the task ends. A kind that is installed later is watched within some minutes.
pub(crate) async fn follow(
    cluster: Cluster,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    limits: Limits,
) {
    let mut watches = JoinSet::new();
    // By the kind's name, with the version that is watched.
    let mut running: BTreeMap<String, (String, AbortHandle)> = BTreeMap::new();
    loop {
        let pause = match Kinds::ask(&cluster).await {
            Ok(kinds) => {
                let kinds: Vec<Kind> =
                    kinds.all().iter().filter(|kind| kind.paved_api().is_some()).cloned().collect();
                store.keep_kinds(&kinds);
                running.retain(|name, (version, watch)| {
                    let stays = kinds
                        .iter()
                        .any(|kind| kind.full_name() == *name && kind.resource.version == *version);
                    if !stays {
                        watch.abort();
                    }
                    stays
                });
                for kind in kinds {
                    running.entry(kind.full_name()).or_insert_with(|| {
                        let version = kind.resource.version.clone();
                        let metrics = Arc::clone(&metrics);
                        let watch = one(cluster.clone(), kind, Arc::clone(&store), metrics);
                        (version, watches.spawn(watch))
                    });
                }
                if running.is_empty() { limits.unknown_kinds } else { limits.kinds }
            }
            Err(failure) => {
                tracing::warn!(%failure, "the cluster does not list its kinds");
                metrics.failed();
                limits.unknown_kinds
            }
        };
        sleep(pause).await;
    }
}

/// Watches a kind. After a break, all its objects are listed again.
async fn one(cluster: Cluster, kind: Kind, store: Arc<Store>, metrics: Arc<Metrics>) {
    let types =
        TypeMeta { api_version: kind.resource.api_version.clone(), kind: kind.name().to_owned() };
    let complete = |object: DynamicObject| DynamicObject { types: Some(types.clone()), ..object };
    let mut listed = BTreeSet::new();
    let mut events = std::pin::pin!(watch(&cluster, &kind, None, None));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => listed.extend(store.put(&kind, &complete(object))),
            Ok(Event::InitDone) => store.listed(&kind, &std::mem::take(&mut listed)),
            Ok(Event::Apply(object)) => drop(store.put(&kind, &complete(object))),
            Ok(Event::Delete(object)) => store.remove(&kind, &object),
            Err(error) => {
                let error = cause(error);
                store.interrupted(&kind, is_denied(&error));
                metrics.failed();
                let failure = cluster.explain(&error, &format!("watch {}", kind.name()));
                tracing::warn!(kind = kind.full_name(), %failure, "a watch is interrupted");
            }
        }
    }
}
