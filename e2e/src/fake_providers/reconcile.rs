//! The reconciliation of one managed resource, in the same order as in Crossplane's runtime for
//! providers.

use std::future::Future;
use std::time::Duration;

use crossplane::conditions;
use simulator::provider::State;
use simulator::provider::model::Operation;

use super::configs::Configs;
use super::policy::Policies;
use super::resource::Resource;
use super::secrets::Secrets;
use super::{Rule, Trouble};

/// External resources, through a provider's client.
pub trait Outside: Send + Sync + 'static {
    /// Checks whether the external resource exists. If so, writes a provider's values into the
    /// object and its world.
    fn observe(
        &self,
        resource: &mut Resource,
    ) -> impl Future<Output = Result<Observation, Trouble>> + Send;
    /// Creates the external resource.
    fn create(
        &self,
        resource: &mut Resource,
        rule: &Rule,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Changes the external resource as the object says.
    fn update(
        &self,
        resource: &mut Resource,
        rule: &Rule,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Deletes the external resource, or begins to.
    fn delete(
        &self,
        resource: &mut Resource,
        rule: &Rule,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;
}

/// A provider's view of an external resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It does not exist.
    Missing,
    /// It is being created, for this remaining time.
    Making(Duration),
    /// It is being deleted, for this remaining time.
    Going(Duration),
    /// It is being changed, for this remaining time. Its provider shows the state before.
    Changing(Duration),
    /// It exists.
    Made {
        /// Whether it differs from the object.
        outdated: bool,
    },
}

/// When to reconcile again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// After a change, or at the next poll.
    Poll,
    /// Soon, after a failure or during a wait.
    Retry,
    /// After this time.
    After(Duration),
    /// Never, because it is gone.
    Never,
}

/// Reconciles one resource as far as possible, and writes the progress to its status.
pub async fn reconcile(
    resource: &mut Resource,
    outside: &impl Outside,
    configs: &Configs,
    secrets: &mut Secrets<'_>,
    rule: &Rule,
) -> Result<Next, Trouble> {
    let next = match step(resource, outside, configs, secrets, rule).await {
        Err(Trouble::Refused(why)) => {
            resource.condition("Synced", "False", "ReconcileError", &why);
            Next::Retry
        }
        Err(Trouble::Silent) => return Ok(Next::Retry),
        other => other?,
    };
    if next != Next::Never {
        resource.save_status().await?;
    }
    Ok(next)
}

async fn step(
    resource: &mut Resource,
    outside: &impl Outside,
    configs: &Configs,
    secrets: &mut Secrets<'_>,
    rule: &Rule,
) -> Result<Next, Trouble> {
    if resource.is_paused() {
        let why = "Reconciliation is paused via the pause annotation";
        resource.condition("Synced", "False", "ReconcilePaused", why);
        return Ok(Next::Poll);
    }
    configs.check(&resource.object).await?;
    let policies = Policies::from_object(&resource.object);
    if resource.is_deleted() {
        return delete(resource, outside, policies, rule).await;
    }
    if let Err(why) = resource.model.prepare(&mut resource.object, &resource.world) {
        resource.tell(&State::Waiting(why));
        return Ok(Next::Retry);
    }
    if resource.external_name().is_empty() && !resource.model.assigns_names() {
        let name = resource.name().to_owned();
        resource.name_externally(&name);
    }
    resource.add_finalizer();
    let mut seen = outside.observe(resource).await.map_err(told("observe failed"))?;
    if seen == Observation::Missing {
        if !policies.create {
            return Err(Trouble::Refused(
                "observe failed: external resource does not exist".to_owned(),
            ));
        }
        if let Err(refused) = create(resource, outside, rule).await {
            let Trouble::Refused(why) = refused else { return Err(refused) };
            resource.tell(&State::Failed(why));
            return Ok(Next::Retry);
        }
        // Some credentials are known only during the creation. Write them before any other step can
        // fail.
        secrets.publish(resource).await?;
        seen = outside.observe(resource).await.map_err(told("observe failed"))?;
    }
    resource.save().await?;
    settle(resource, outside, secrets, policies, rule, seen).await
}

async fn create(
    resource: &mut Resource,
    outside: &impl Outside,
    rule: &Rule,
) -> Result<(), Trouble> {
    resource.condition("Ready", "False", "Creating", "");
    resource.note_pending();
    resource.save().await?;
    if let Some(why) = &rule.create {
        return Err(Trouble::Refused(why.clone()));
    }
    outside.create(resource, rule).await?;
    resource.note_succeeded();
    resource.save_annotations().await
}

/// The steps after the creation of the external resource.
async fn settle(
    resource: &mut Resource,
    outside: &impl Outside,
    secrets: &mut Secrets<'_>,
    policies: Policies,
    rule: &Rule,
    seen: Observation,
) -> Result<Next, Trouble> {
    let outdated = match seen {
        Observation::Missing | Observation::Going(_) => {
            resource.tell(&State::Creating);
            return Ok(Next::Retry);
        }
        Observation::Making(left) => {
            resource.tell(&State::Creating);
            secrets.reserve(resource).await?;
            return Ok(Next::After(left));
        }
        Observation::Changing(left) => {
            resource.condition("Synced", "True", "ReconcileSuccess", "");
            return Ok(Next::After(left));
        }
        Observation::Made { outdated } => outdated,
    };
    match &rule.unavailable {
        Some(why) => resource.condition("Ready", "False", "Unavailable", why),
        None => resource.condition("Ready", "True", "Available", ""),
    }
    if outdated && policies.update {
        let updated = match &rule.update {
            Some(why) => Err(Trouble::Refused(why.clone())),
            None => outside.update(resource, rule).await,
        };
        if let Err(refused) = updated {
            secrets.publish(resource).await?;
            return refuse(resource, Operation::Update, refused);
        }
        let seen = outside.observe(resource).await.map_err(told("observe failed"))?;
        resource.save().await?;
        if let Observation::Changing(left) = seen {
            resource.condition("Synced", "True", "ReconcileSuccess", "");
            return Ok(Next::After(left));
        }
    }
    if let Some(state) = &rule.reports {
        resource.report(state);
    }
    secrets.publish(resource).await?;
    resource.condition("Synced", "True", "ReconcileSuccess", "");
    if resource.model.is_asynchronous() {
        resource.condition("LastAsyncOperation", "True", "Success", "");
    }
    Ok(if rule.unavailable.is_some() { Next::Retry } else { Next::Poll })
}

async fn delete(
    resource: &mut Resource,
    outside: &impl Outside,
    policies: Policies,
    rule: &Rule,
) -> Result<Next, Trouble> {
    if !policies.delete {
        resource.release().await?;
        return Ok(Next::Never);
    }
    resource.condition("Ready", "False", "Deleting", "");
    // This resolves references only if a CRD dropped the resolved fields.
    let _ = resource.model.prepare(&mut resource.object, &resource.world);
    let mut seen = outside.observe(resource).await.map_err(told("observe failed"))?;
    if matches!(seen, Observation::Making(_) | Observation::Changing(_) | Observation::Made { .. })
    {
        let deleted = match &rule.delete {
            Some(why) => Err(Trouble::Refused(why.clone())),
            None => outside.delete(resource, rule).await,
        };
        if let Err(refused) = deleted {
            return refuse(resource, Operation::Delete, refused);
        }
        seen = outside.observe(resource).await.map_err(told("observe failed"))?;
    }
    if seen == Observation::Missing {
        resource.release().await?;
        return Ok(Next::Never);
    }
    resource.condition("Synced", "True", "ReconcileSuccess", "");
    if conditions::find(&resource.object, "LastAsyncOperation").is_some() {
        resource.condition("LastAsyncOperation", "True", "Success", "");
    }
    Ok(if let Observation::Going(left) = seen { Next::After(left) } else { Next::Retry })
}

/// Reports a refused operation on an existing resource. If the provider was too busy for it, the
/// operation has not begun.
fn refuse(
    resource: &mut Resource,
    operation: Operation,
    refused: Trouble,
) -> Result<Next, Trouble> {
    match refused {
        Trouble::Refused(why) => resource.refuse(operation, &why, true),
        Trouble::Busy(why) => resource.refuse(operation, &why, false),
        other => return Err(other),
    }
    Ok(Next::Retry)
}

/// Adds the failed action to a refusal.
fn told(doing: &str) -> impl Fn(Trouble) -> Trouble + '_ {
    move |trouble| match trouble {
        Trouble::Refused(why) => Trouble::Refused(format!("{doing}: {why}")),
        other => other,
    }
}
