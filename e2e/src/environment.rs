//! An environment as its owner sees it: a claim, or a composite in a namespace.

mod deletion;
mod parts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crossplane::conditions;
use crossplane::names::SLOT;
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};

use self::parts::{is_in_sync, written};
use crate::eventually::{TIMEOUT, eventually};
use crate::kubectl::Kubectl;
use crate::objects::{Objects, reference, resource};

/// The interval between two reads.
const EVERY: Duration = Duration::from_secs(1);

/// How long all resources must stay unchanged.
const RESTING: Duration = Duration::from_secs(10);

/// The uid and a summary of the contents of every composed resource, by slot, kind and name.
pub type Desired = BTreeMap<String, (String, String)>;

/// An environment of a scenario.
#[derive(Clone)]
pub struct Environment {
    /// Its owner's kubectl.
    owner: Kubectl,
    /// The objects of the cluster, to read composed resources.
    objects: Objects,
    /// The manifest that was applied last.
    pub manifest: Value,
}

impl Environment {
    /// An environment that is not applied yet.
    pub fn new(owner: Kubectl, objects: Objects, manifest: Value) -> Self {
        Self { owner, objects, manifest }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.manifest["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// `kind.version.group`, as kubectl takes it.
    pub fn resource(&self) -> String {
        resource(&self.manifest)
    }

    /// `kubectl apply`.
    pub async fn apply(&self) -> Result<()> {
        self.owner.apply(&self.manifest).await.map(drop)
    }

    /// `kubectl patch`, as the owner.
    pub async fn edit(&self, patch: &Value) -> Result<()> {
        let (resource, patch) = (self.resource(), patch.to_string());
        let args =
            ["patch", &resource, self.name(), "-n", self.namespace(), "--type=merge", "-p", &patch];
        self.owner.run(&args).await.map(drop)
    }

    /// Makes an edit that the API server must reject. Returns the error message without the edit.
    pub async fn refuses(&self, patch: &Value) -> Result<String> {
        let (resource, patch) = (self.resource(), patch.to_string());
        let args =
            ["patch", &resource, self.name(), "-n", self.namespace(), "--type=merge", "-p", &patch];
        self.owner.refused(&args, "").await
    }

    /// `kubectl apply` that the API server must reject. Returns the error message without the
    /// manifest.
    pub async fn is_refused(&self) -> Result<String> {
        self.owner.refused(&["apply", "-f", "-"], &self.manifest.to_string()).await
    }

    /// The current object.
    pub async fn object(&self) -> Result<Value> {
        self.found().await?.with_context(|| format!("{} is gone", self.name()))
    }

    /// Waits until the object meets a condition, and returns it.
    pub async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + TIMEOUT;
        loop {
            let object = self.object().await?;
            if is(&object) {
                return Ok(object);
            }
            if Instant::now() > end {
                let status = serde_json::to_string_pretty(&object["status"])?;
                bail!("{} was not {what} within {} s: {status}", self.name(), TIMEOUT.as_secs());
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Waits until Crossplane and the function report Ready.
    pub async fn ready(&self) -> Result<Value> {
        self.until("Ready", is_ready).await
    }

    /// Makes Crossplane reconcile the composite, as an operator may.
    pub async fn touch(&self) -> Result<()> {
        let composite = self.composite().await?;
        let (kind, name) =
            (resource(&composite), composite["metadata"]["name"].as_str().unwrap_or_default());
        let touched = format!("e2e.paved-road/touched={}", jiff::Timestamp::now());
        let operator = self.owner.for_person(&format!("operator@{}", self.namespace()));
        let args = ["annotate", &kind, name, "-n", self.namespace(), "--overwrite", &touched];
        operator.run(&args).await.map(drop)
    }

    /// Makes Crossplane reconcile the composite, and waits until the function's answer is applied.
    /// The removed phase returns to the status only with that answer.
    pub async fn poke(&self) -> Result<()> {
        self.touch().await?;
        let composite = self.composite().await?;
        let (kind, name) =
            (resource(&composite), composite["metadata"]["name"].as_str().unwrap_or_default());
        // The first write may be the answer to an earlier call.
        for _ in 0..2 {
            self.objects.patch_status(&composite, &json!({"status": {"phase": null}})).await?;
            eventually(&format!("the function has answered for {kind} {name}"), async || {
                Ok(self.composite().await?["status"]["phase"].is_string().then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until Crossplane receives events of the composite, some time after an outage of the
    /// API server. Crossplane reports a pause and its end only if it has read both. A call of the
    /// function proves less, because composed resources also cause calls.
    pub async fn heard(&self, who: &Kubectl) -> Result<()> {
        let steps = [
            ("crossplane.io/paused=true", "ReconcilePaused"),
            ("crossplane.io/paused-", "ReconcileSuccess"),
        ];
        for (step, reason) in steps {
            let composite = self.composite().await?;
            let (kind, name) =
                (resource(&composite), composite["metadata"]["name"].as_str().unwrap_or_default());
            who.run(&["annotate", &kind, name, "-n", self.namespace(), step]).await?;
            eventually(&format!("Crossplane reports {reason} for {kind} {name}"), async || {
                Ok((conditions::get(&self.composite().await?, "Synced")["reason"] == reason)
                    .then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until `Provisioned` has this reason, and returns its message.
    pub async fn provisioned(&self, reason: &str) -> Result<String> {
        let object = self
            .until(&format!("{reason} by its condition Provisioned"), |object| {
                conditions::get(object, "Provisioned")["reason"] == reason
            })
            .await?;
        Ok(conditions::get(&object, "Provisioned")["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    /// The composite: the object itself, or the one that the claim is bound to.
    pub async fn composite(&self) -> Result<Value> {
        let object = self.object().await?;
        let bound = &object["spec"]["resourceRef"];
        if bound.is_null() {
            ensure!(!self.is_claim(), "{} is not bound to a composite yet", self.name());
            return Ok(object);
        }
        self.objects
            .referred(bound, "")
            .await?
            .with_context(|| format!("the composite of {} is gone", self.name()))
    }

    /// All composed resources.
    pub async fn composed(&self) -> Result<Vec<Value>> {
        let composite = self.composite().await?;
        let references =
            [&composite["spec"]["crossplane"]["resourceRefs"], &composite["spec"]["resourceRefs"]];
        let namespace = composite["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut composed = Vec::new();
        for reference in references.into_iter().filter_map(Value::as_array).flatten() {
            composed.extend(self.objects.referred(reference, namespace).await?);
        }
        Ok(composed)
    }

    /// The output of `kubectl get`.
    pub async fn table(&self) -> Result<String> {
        self.owner.run(&["get", &self.resource(), self.name(), "-n", self.namespace()]).await
    }

    /// The uid of every composed resource, by kind and name. The uids change only if resources are
    /// created again.
    pub async fn uids(&self) -> Result<BTreeMap<String, String>> {
        let uid = |object: Value| {
            let metadata = &object["metadata"];
            (format!("{} {}", resource(&object), metadata["name"]), metadata["uid"].to_string())
        };
        Ok(self.composed().await?.into_iter().map(uid).collect())
    }

    /// The uid and a summary of the contents of every composed resource. The summary changes only
    /// with a spec, a Secret's data, labels or annotations.
    pub async fn desired(&self) -> Result<Desired> {
        let of = |object: Value| {
            let metadata = &object["metadata"];
            let name = format!("{} {} {}", slot(&object), resource(&object), metadata["name"]);
            (name, (metadata["uid"].to_string(), written(&object)))
        };
        Ok(self.composed().await?.into_iter().map(of).collect())
    }

    /// Whether the environment is ready, every resource is in sync, and the function reports
    /// Available.
    pub async fn is_settled(&self) -> Result<bool> {
        let object = self.object().await?;
        let available = conditions::get(&object, "Provisioned")["reason"] == "Available";
        Ok(is_ready(&object) && available && self.composed().await?.iter().all(is_in_sync))
    }

    /// Waits until all resources stay unchanged, and returns their state.
    pub async fn rests(&self) -> Result<Desired> {
        eventually("no resource is created or changed", async || {
            let before = self.desired().await?;
            tokio::time::sleep(RESTING).await;
            Ok((self.desired().await? == before).then_some(before))
        })
        .await
    }

    /// The composed resource in a slot.
    pub async fn slot(&self, name: &str) -> Result<Value> {
        let composed = self.composed().await?;
        let fills = |object: &Value| slot(object) == name;
        composed
            .into_iter()
            .find(fills)
            .with_context(|| format!("{} has no slot {name}", self.name()))
    }

    /// The object, if it exists.
    pub async fn found(&self) -> Result<Option<Value>> {
        self.objects.referred(&reference(&self.manifest), self.namespace()).await
    }

    /// The environment's objects with conditions and events, to diagnose a failure.
    pub async fn tree(&self) -> String {
        let mut objects: Vec<_> = self.object().await.into_iter().collect();
        objects.extend(self.composite().await);
        objects.extend(self.composed().await.unwrap_or_default());
        let mut text: String = objects.iter().map(line).collect();
        let of_these = |event: &Value| {
            objects.iter().any(|object| object["metadata"]["uid"] == event["involvedObject"]["uid"])
        };
        let mut events = self.objects.list("v1", "Event", "").await.unwrap_or_default();
        events.retain(of_these);
        events.sort_by(|one, other| when(one).cmp(when(other)));
        for event in &events {
            _ = writeln!(
                text,
                "{} {} {}: {}",
                when(event),
                event["involvedObject"]["kind"],
                event["reason"],
                event["message"]
            );
        }
        text
    }

    fn is_claim(&self) -> bool {
        let group = Flavour::Claims.default_group();
        self.manifest["apiVersion"].as_str().is_some_and(|version| version.starts_with(group))
    }
}

/// Whether Crossplane and the function report Ready.
pub fn is_ready(object: &Value) -> bool {
    conditions::is_true(object, "Ready")
        && conditions::is_true(object, "Synced")
        && object["status"]["phase"] == "Ready"
}

/// The slot that a composed resource fills.
pub fn slot(object: &Value) -> &str {
    let annotations = &object["metadata"]["annotations"];
    annotations[SLOT].as_str().unwrap_or_default()
}

/// When an event was last seen.
fn when(event: &Value) -> &str {
    event["lastTimestamp"].as_str().unwrap_or_default()
}

/// A line for an object, and a line for each condition that is not True.
fn line(object: &Value) -> String {
    let mut text =
        format!("{} {} {}\n", resource(object), object["metadata"]["name"], slot(object));
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        if condition["status"] != "True" {
            let (kind, status) = (&condition["type"], &condition["status"]);
            _ = writeln!(
                text,
                "    {kind} {status} {}: {}",
                condition["reason"], condition["message"]
            );
        }
    }
    if let Some(since) = object["metadata"]["deletionTimestamp"].as_str() {
        _ = writeln!(
            text,
            "    being deleted since {since}; finalizers {}",
            object["metadata"]["finalizers"]
        );
    }
    text
}
