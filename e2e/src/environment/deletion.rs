//! The deletion of an environment.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use crossplane::names::IN_USE;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{EVERY, Environment};
use crate::eventually::TIMEOUT;
use crate::kubectl::Kubectl;
use crate::objects::resource;

/// How long Kubernetes may take to delete a resource before the resource counts as overlooked.
const OVERLOOKED: Duration = Duration::from_mins(1);

/// How long Kubernetes may not know about a new resource.
const NEW: SignedDuration = SignedDuration::from_secs(30);

impl Environment {
    /// `kubectl delete` as the owner, without waiting. Dependents are deleted first.
    pub async fn delete(&self) -> Result<()> {
        self.delete_with(&["--cascade=foreground"]).await
    }

    /// The same with kubectl's default, where Kubernetes deletes dependents in the background.
    pub async fn delete_in_background(&self) -> Result<()> {
        self.delete_with(&[]).await
    }

    async fn delete_with(&self, flags: &[&str]) -> Result<()> {
        let (resource, name, namespace) = (self.resource(), self.name(), self.namespace());
        let args = ["delete", &resource, name, "-n", namespace, "--wait=false"];
        self.owner.run(&[&args, flags].concat()).await.map(drop)
    }

    /// Waits until the object is gone. Its resources are deleted before it, unless it was deleted
    /// in the background.
    pub async fn gone(&self) -> Result<()> {
        self.gone_within(TIMEOUT).await
    }

    /// Waits for the end of an environment that was deleted while Crossplane was creating it.
    /// docs/how-to/delete.md says that Kubernetes may then overlook resources. Every minute, the
    /// operator deletes these by hand, as that page advises. Returns the overlooked resources.
    pub async fn gone_or_freed(&self, operator: &Kubectl) -> Result<Vec<Value>> {
        let (begin, mut freed) = (Instant::now(), Vec::new());
        while begin.elapsed() < TIMEOUT && !self.is_gone_within(OVERLOOKED).await? {
            for part in self.overlooked().await {
                println!(
                    "    overlooked by Kubernetes, deleted by hand: {} {}",
                    resource(&part),
                    part["metadata"]["name"]
                );
                self.delete_part(operator, &part).await?;
                freed.push(part);
            }
        }
        self.gone_within(OVERLOOKED).await?;
        Ok(freed)
    }

    async fn gone_within(&self, time: Duration) -> Result<()> {
        if !self.is_gone_within(time).await? {
            bail!(
                "{} still exists after {} s:\n{}",
                self.name(),
                time.as_secs(),
                self.tree().await
            );
        }
        Ok(())
    }

    async fn is_gone_within(&self, time: Duration) -> Result<bool> {
        let end = Instant::now() + time;
        while self.found().await?.is_some() {
            if Instant::now() > end {
                return Ok(false);
            }
            tokio::time::sleep(EVERY).await;
        }
        Ok(true)
    }

    /// Resources that Kubernetes does not delete, because Crossplane created them after the
    /// deletion began.
    async fn overlooked(&self) -> Vec<Value> {
        // The composite may disappear meanwhile.
        let (Ok(composite), Ok(mut overlooked)) = (self.composite().await, self.composed().await)
        else {
            return Vec::new();
        };
        overlooked.retain(|part| is_overlooked(part, &composite));
        overlooked
    }

    /// Deletes a resource as the operator. Operators may not delete Secrets, so the administrator
    /// deletes these.
    async fn delete_part(&self, operator: &Kubectl, part: &Value) -> Result<()> {
        if part["kind"] == "Secret" {
            return self.objects.delete(part).await;
        }
        operator.delete(part).await
    }
}

/// Whether Kubernetes may never delete a resource, because it did not know about the resource when
/// the composite was deleted.
fn is_overlooked(part: &Value, composite: &Value) -> bool {
    let time =
        |object: &Value, of: &str| object["metadata"][of].as_str()?.parse::<Timestamp>().ok();
    let (Some(made), Some(deleted)) =
        (time(part, "creationTimestamp"), time(composite, "deletionTimestamp"))
    else {
        return false;
    };
    // A Usage is deleted together with the using resource.
    let has_to_wait = part["kind"] == "Usage" || !part["metadata"]["labels"][IN_USE].is_null();
    let is_told = !part["metadata"]["deletionTimestamp"].is_null();
    !has_to_wait && !is_told && deleted.duration_since(made) <= NEW
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crossplane::json::merge_patch;

    #[test]
    fn only_new_resources_are_overlooked() {
        let composite = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z"}});
        let is_overlooked = |change: Value| {
            let mut part = json!({"kind": "Bucket", "metadata": {"creationTimestamp": "2026-01-01T00:00:30Z"}});
            merge_patch(&mut part, change);
            is_overlooked(&part, &composite)
        };
        assert!(is_overlooked(json!({})));
        assert!(is_overlooked(json!({"metadata": {"creationTimestamp": "2026-01-01T00:02:00Z"}})));
        assert!(!is_overlooked(json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:29Z"}})));
        assert!(!is_overlooked(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:01:10Z"}})));
        assert!(!is_overlooked(json!({"metadata": {"labels": {IN_USE: "true"}}})));
        assert!(!is_overlooked(json!({"kind": "Usage"})));
    }
}
