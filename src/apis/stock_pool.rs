//! GPU stock pool: one Deployment with pods that keep GPU capacity in stock.

mod deployment;

use std::ops::RangeInclusive;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Api, Info, Names};
use crate::check::{self, Fields, kubernetes};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::Scope;
use crate::observe::State;
use crate::status::Addition;
use deployment::SLOT;

/// GPUs of a pod.
const GPUS: RangeInclusive<i64> = 0..=16;
/// Pods of a pool, as many as a Deployment can have.
const REPLICAS: RangeInclusive<i64> = 0..=i32::MAX as i64;

/// A pool of identical pods, each with its own memory and GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StockPool {
    /// Name of the specification that the pool stocks, for example g1.1.
    #[schemars(length(min = 1, max = 63), regex(pattern = kubernetes::LABEL_VALUE))]
    pub spec_name: String,
    /// Container image of the pods. Default: an image that only waits.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1, max = kubernetes::LONGEST_IMAGE), regex(pattern = kubernetes::IMAGE))]
    pub image: String,
    /// Memory request and limit of each pod, for example 16Gi. The value is a Kubernetes quantity
    /// of at least 4Mi. Default: the namespace's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = kubernetes::LONGEST_QUANTITY), regex(pattern = kubernetes::QUANTITY))]
    pub memory: Option<String>,
    /// Number of GPUs of each pod.
    #[serde(default)]
    #[schemars(range(min = *GPUS.start(), max = *GPUS.end()))]
    pub gpu: i64,
    /// Number of pods to keep in stock.
    #[schemars(range(min = *REPLICAS.start(), max = *REPLICAS.end()))]
    pub replicas: i64,
}

/// Settings of stock pools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StockPoolSettings {
    /// RuntimeClass of pods with GPUs, if the cluster's nodes need one. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = kubernetes::LABEL))]
    pub runtime_class_name: Option<String>,
}

/// Status of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StockPoolStatus {
    /// Phase of the pool: ScaledToZero, Progressing, Ready, Failed, Stopping, Stopped, Starting or
    /// Expired.
    pub phase: PoolPhase,
    /// Number of available pods.
    pub available: Option<i64>,
    /// Number of pods that are not available yet: replicas minus available.
    pub allocated: Option<i64>,
    /// Last generation of the composite that the pods followed, or that the cluster gave up on.
    /// Only the namespaced API writes this field. In the claims API the field is deprecated,
    /// because a claim has its own generation.
    pub observed_generation: Option<i64>,
    /// Time of the last change to any other status field (RFC 3339).
    pub last_sync_time: Option<String>,
}

/// Phase of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum PoolPhase {
    /// Zero pods are requested, and no pods are left.
    ScaledToZero,
    /// Pods are starting, or the newest change has not been observed yet.
    #[default]
    Progressing,
    /// All pods are available.
    Ready,
    /// The cluster gave up on the pods or rejected them.
    Failed,
    /// The pods are being deleted, because the pool is to be stopped.
    Stopping,
    /// The pool is stopped, as its user wants.
    Stopped,
    /// The pods are starting after a stop.
    Starting,
    /// The pool has expired and still exists.
    Expired,
}

impl Api for StockPool {
    const INFO: Info = Info {
        name: "stock-pool",
        title: "GPU stock pool",
        summary: "Pods that keep GPU capacity in stock.",
        provider: "kubernetes",
        settings: "stockPool",
        composite: Names {
            kind: "XStockPool",
            plural: "xstockpools",
            singular: "xstockpool",
            short: &[],
        },
        claim: Names {
            kind: "StockPool",
            plural: "stockpools",
            singular: "stockpool",
            short: &["pool"],
        },
        namespaced: Names {
            kind: "StockPool",
            plural: "stockpools",
            singular: "stockpool",
            short: &["pool"],
        },
        suffix: "pool",
        endpoints: &[],
        connection_keys: &[],
        connection_targets: &[],
        columns: &[
            ("Spec", ".spec.specName", "string"),
            ("Desired", ".spec.replicas", "integer"),
            ("Available", ".status.available", "integer"),
        ],
        first_slots: &["deployment"],
        stoppable: &["deployment"],
        when_stopped: "The pool keeps its specification and has no pods.",
        since_revision: &[
            Addition::value("phase", "Stopping", 3, Some("Progressing")),
            Addition::value("phase", "Stopped", 3, Some("ScaledToZero")),
            Addition::value("phase", "Starting", 3, Some("Progressing")),
            Addition::value("phase", "Expired", 3, Some("Ready")),
        ],
    };
    type Settings = StockPoolSettings;
    type Status = StockPoolStatus;

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error> {
        self.check()?;
        settings.check()?;
        self.deployment(settings, cx)?;
        cx.dates("lastSyncTime");
        Ok(self.status(cx))
    }

    fn check_settings(settings: &Self::Settings) -> Result<(), Error> {
        settings.check()
    }
}

impl StockPool {
    /// Checks every field: the checks of the schema, and further checks.
    fn check(&self) -> Result<(), Error> {
        let mut fields = Fields::default();
        fields.check("spec.specName", kubernetes::label_value(&self.spec_name));
        fields.check("spec.image", kubernetes::image(&self.image));
        if let Some(memory) = &self.memory {
            fields.check("spec.memory", kubernetes::memory(memory));
        }
        fields.check("spec.gpu", check::range(self.gpu, GPUS, "GPUs"));
        fields.check("spec.replicas", check::range(self.replicas, REPLICAS, "pods"));
        fields.verdict(Error::InvalidSpec)
    }

    /// The pool's status. It is never better than the Deployment's observation of its newest
    /// generation.
    fn status(&self, cx: &Composer<'_>) -> StockPoolStatus {
        let health = cx.health(SLOT);
        let ready = health.is_some_and(|health| health.ready);
        let seen = cx.seen(SLOT).and_then(|deployment| deployment.get("status"));
        let available = seen.map(|status| status["availableReplicas"].as_i64().unwrap_or(0));
        StockPoolStatus {
            phase: match health.map(|health| health.state) {
                Some(State::Failed) => PoolPhase::Failed,
                _ if ready && self.replicas == 0 => PoolPhase::ScaledToZero,
                _ if ready => PoolPhase::Ready,
                _ => PoolPhase::Progressing,
            },
            available,
            allocated: available.map(|available| (self.replicas - available).max(0)),
            observed_generation: match cx.xr.scope {
                // A claim shares its composite's status. kstatus would compare the composite's
                // generation with the claim's.
                Scope::LegacyCluster => None,
                Scope::Namespaced
                    if ready || health.is_some_and(|health| health.state == State::Failed) =>
                {
                    cx.xr.generation
                }
                Scope::Namespaced => cx.xr.status.get("observedGeneration").and_then(Value::as_i64),
            },
            last_sync_time: None,
        }
    }
}

impl StockPoolSettings {
    /// Repeats the checks of the schema: Crossplane does not validate Settings.
    fn check(&self) -> Result<(), Error> {
        match &self.runtime_class_name {
            Some(name) => kubernetes::label(name)
                .map(|_| ())
                .map_err(|error| Error::settings("stockPool.runtimeClassName", error)),
            None => Ok(()),
        }
    }
}

fn default_image() -> String {
    "registry.k8s.io/pause:3.10".to_owned()
}
