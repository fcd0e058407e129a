//! An environment on its way out.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{EVERY, Environment, resource};
use crate::kubectl::Kubectl;
use crate::stage::PATIENCE;

/// How long until a part of what is deleted has been told so, unless nobody ever does.
const OVERLOOKED: Duration = Duration::from_mins(1);

impl Environment {
    /// `kubectl delete`, without waiting: as the owner, and what it owns first.
    pub async fn delete(&self) -> Result<()> {
        let (resource, name, namespace) = (self.resource(), self.name(), self.namespace());
        let args = ["delete", &resource, name, "-n", namespace, "--wait=false", "--cascade=foreground"];
        self.owner.run(&args).await.map(drop)
    }

    /// Waits until it is gone, and all that it composed with it.
    pub async fn gone(&self) -> Result<()> {
        self.gone_within(PATIENCE).await
    }

    /// The same for one that was deleted while Crossplane was still making it, where docs/operations.md says that parts may be
    /// overlooked: every minute the operator deletes these by hand, as it advises. How many there were.
    pub async fn gone_or_freed(&self, operator: &Kubectl) -> Result<usize> {
        let (begin, mut freed) = (Instant::now(), 0);
        while begin.elapsed() < PATIENCE && !self.is_gone_within(OVERLOOKED).await? {
            let overlooked = self.overlooked().await;
            freed += overlooked.len();
            for part in &overlooked {
                println!(
                    "    overlooked, and deleted by hand: {} {}",
                    resource(part),
                    part["metadata"]["name"]
                );
                self.delete_part(operator, part).await?;
            }
        }
        self.gone_within(OVERLOOKED).await?;
        Ok(freed)
    }

    async fn gone_within(&self, time: Duration) -> Result<()> {
        if !self.is_gone_within(time).await? {
            bail!("{} was not gone within {} s:\n{}", self.name(), time.as_secs(), self.tree().await);
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

    /// Parts that Kubernetes does not delete, as Crossplane made them when it had begun to.
    async fn overlooked(&self) -> Vec<Value> {
        let is_deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        // A Usage goes with what uses.
        let has_to_wait = |object: &Value| {
            object["kind"] == "Usage" || !object["metadata"]["labels"]["crossplane.io/in-use"].is_null()
        };
        // It may go while it is looked at.
        let (Ok(composite), Ok(mut overlooked)) = (self.composite().await, self.composed().await) else {
            return Vec::new();
        };
        overlooked.retain(|part| is_deleted(&composite) && !is_deleted(part) && !has_to_wait(part));
        overlooked
    }

    /// Deletes a part, as the operator: a Secret, which is not the operator's, as the administrator.
    async fn delete_part(&self, operator: &Kubectl, part: &Value) -> Result<()> {
        if part["kind"] == "Secret" {
            return self.objects.delete(part).await;
        }
        operator.delete(part).await
    }
}
