//! The ConfigMap with the namespaces that have environments of the namespaced API. It is the
//! parameter of the admission policy that refuses to delete these namespaces: see
//! `function_paved_road::manifests::namespaces`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use function_paved_road::manifests::namespaces::NAME;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use paved_client::cluster::{Api, Cluster};

use crate::Limits;
use crate::clock::Clock;
use crate::lease;
use crate::metrics::Metrics;
use crate::store::Store;

/// How many environments of a namespace have their names in the ConfigMap.
const MAX_NAMES: usize = 5;

/// The size of all texts above which only numbers are written. A ConfigMap has at most 1 MiB.
const MAX_SIZE: usize = 512 * 1024;

/// Keeps the ConfigMap up to date.
pub(crate) struct Guard {
    api: Api<ConfigMap>,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    clock: Clock,
    limits: Limits,
    /// The version of the store at the last look at the ConfigMap. `None` after a failure.
    seen: Option<u64>,
    /// The time of the next look, by the steady clock, even if the store does not change.
    next: Duration,
    /// The last pause after a failure.
    pause: Option<Duration>,
}

impl Guard {
    /// A guard that has not looked at the ConfigMap yet.
    pub fn new(
        cluster: &Cluster,
        namespace: &str,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Clock,
        limits: Limits,
    ) -> Self {
        let api = Api::namespaced(cluster.client.clone(), namespace);
        let next = Duration::ZERO;
        Self { api, store, metrics, clock, limits, seen: None, next, pause: None }
    }

    /// Looks at the ConfigMap again, because another replica may have written it.
    pub fn resume(&mut self) {
        self.seen = None;
        self.next = Duration::ZERO;
        self.pause = None;
    }

    /// Writes the ConfigMap if environments have come or gone, or if another writer changed it.
    pub async fn pass(&mut self) {
        let (version, steady) = (self.store.version(), self.clock.steady());
        let has_changed = self.seen.is_some_and(|seen| seen != version);
        if !has_changed && steady < self.next {
            return;
        }
        match self.write(data(&self.store.by_namespace())).await {
            Ok(()) => {
                self.seen = Some(version);
                self.next = steady + self.limits.namespaces;
                self.pause = None;
            }
            Err(error) => {
                let pause = self.pause.map_or(self.limits.hold, |pause| pause * 2);
                let pause = pause.min(self.limits.longest_hold);
                self.seen = None;
                self.next = steady + pause;
                self.pause = Some(pause);
                // After a conflict, the next look reads the newer ConfigMap.
                if !matches!(&error, kube::Error::Api(status) if status.code == 409) {
                    self.metrics.failed();
                    tracing::warn!(%error, name = NAME, "the ConfigMap cannot be written");
                }
            }
        }
    }

    /// Each write requires the version that was read, so a late write of an earlier leader fails.
    async fn write(&self, data: BTreeMap<String, String>) -> kube::Result<()> {
        match self.api.get_opt(NAME).await? {
            // By server-side apply, because the right to create can then be limited to this name.
            None => {
                let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
                let config = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
                let params = PatchParams::apply(lease::NAME).force();
                self.api.patch(NAME, &params, &Patch::Apply(&config)).await?;
            }
            Some(found) if found.data.clone().unwrap_or_default() == data => {}
            Some(found) => {
                let config = ConfigMap { data: Some(data), ..found };
                let params = PostParams {
                    field_manager: Some(lease::NAME.to_owned()),
                    ..PostParams::default()
                };
                self.api.replace(NAME, &params, &config).await?;
            }
        }
        Ok(())
    }
}

/// The environments of each namespace in words.
fn data(environments: &BTreeMap<Arc<str>, Vec<String>>) -> BTreeMap<String, String> {
    let words = |names: &[String], max_names: usize| {
        let others = names.len().saturating_sub(max_names);
        let listed = names[..names.len() - others].join(", ");
        match (others, listed.is_empty()) {
            (0, _) => listed,
            (1, true) => "1 environment".to_owned(),
            (others, true) => format!("{others} environments"),
            (others, false) => format!("{listed} and {others} more"),
        }
    };
    let all = |max_names| -> BTreeMap<String, String> {
        environments
            .iter()
            .map(|(namespace, names)| (namespace.to_string(), words(names, max_names)))
            .collect()
    };
    let data = all(MAX_NAMES);
    let size: usize = data.iter().map(|(namespace, words)| namespace.len() + words.len()).sum();
    if size > MAX_SIZE { all(0) } else { data }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environments(count: usize, namespaces: usize) -> BTreeMap<Arc<str>, Vec<String>> {
        let names: Vec<String> = (0..count).map(|n| format!("StockPool/pool-{n}")).collect();
        (0..namespaces).map(|n| (Arc::from(format!("team-{n}")), names.clone())).collect()
    }

    #[test]
    fn namespace_names_its_first_environments() {
        for (count, expected) in [
            (1, "StockPool/pool-0"),
            (2, "StockPool/pool-0, StockPool/pool-1"),
            (
                7,
                "StockPool/pool-0, StockPool/pool-1, StockPool/pool-2, StockPool/pool-3, \
                 StockPool/pool-4 and 2 more",
            ),
        ] {
            assert_eq!(data(&environments(count, 1))["team-0"], expected);
        }
    }

    #[test]
    fn many_namespaces_fit_into_a_config_map() {
        let data = data(&environments(7, 10_000));
        let size: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(size < 1 << 20, "{size}");
        assert_eq!(data["team-9999"], "7 environments");
    }
}
