//! The upjet providers with the fake clouds. They work in the background, and never replace a
//! resource.

use std::sync::Arc;
use std::time::Duration;

use crossplane::api_version::group_of;
use crossplane::names;
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::provider::model::{Existing, differs, parameters, terminated};

use super::reconcile::{Observation, Outside};
use super::resource::{Resource, seconds, until};
use super::state::{Cloud, External, Owner, key};
use super::{Rule, Trouble};

/// The clouds as a provider sees them.
pub struct Upjet {
    /// The external resources.
    pub cloud: Arc<Cloud>,
    /// Duration of a round of a kind's model.
    pub round: Duration,
}

impl Outside for Upjet {
    async fn observe(&self, resource: &mut Resource) -> Result<Observation, Trouble> {
        let Some(mut external) = self.find(resource) else { return Ok(Observation::Missing) };
        if let Some(gone_at) = external.gone_at {
            if let Some(left) = until(gone_at) {
                return Ok(Observation::Going(left));
            }
            self.cloud.remove(&external).await?;
            return Ok(Observation::Missing);
        }
        // A name that the cloud assigns is known only after the creation, like all other values.
        if let Some(left) = until(external.ready_at) {
            if !resource.model.assigns_names() {
                resource.model.name(&mut resource.object);
            }
            return Ok(Observation::Making(left));
        }
        resource.name_externally(&external.name);
        if let Some(left) = external.changed_at.and_then(until) {
            return Ok(Observation::Changing(left));
        }
        if resource.is_deleted() {
            return Ok(Observation::Made { outdated: false });
        }
        let switched = resource.model.switched(&resource.object).map(|(id, _)| self.machine(id));
        if let Some(machine) = &switched {
            let Some(machine) = machine.as_ref().and_then(External::settled) else {
                self.cloud.remove(&external).await?;
                return Ok(Observation::Missing);
            };
            external.parameters["state"] = json!(machine.power);
        }
        as_identified(&external.identity, resource, show);
        let outdated = differs(&external.parameters, &parameters(&resource.object));
        let seen = &mut resource.object["status"]["atProvider"];
        if switched.is_some() {
            seen["state"] = external.parameters["state"].clone();
        }
        if let Some(machine) = external.settled() {
            machine.show(seen);
        }
        Ok(Observation::Made { outdated })
    }

    async fn create(&self, resource: &mut Resource, rule: &Rule) -> Result<(), Trouble> {
        let wanted = parameters(&resource.object);
        let former = resource.external_name().to_owned();
        let mut identity = resource.uid().to_owned();
        if resource.model.assigns_names() && !former.is_empty() {
            identity = format!("{identity} after {former}");
            resource.forget();
        }
        let (name, parameters) = as_identified(&identity, resource, |resource| {
            let mut made = resource.object.clone();
            resource.model.identify(&mut made);
            let name =
                made["metadata"]["annotations"][names::EXTERNAL_NAME].as_str().unwrap_or_default();
            (name.to_owned(), resource.model.completed(&made, &resource.world))
        });
        let refusal = resource.model.forbids_creation(&wanted).or_else(|| self.is_alone(resource));
        if let Some(why) = refusal {
            return Err(Trouble::Refused(why));
        }
        let mut external = self.made(resource, name, identity, parameters, rule);
        if let Some(turned_at) = self.switch(resource, rule).await? {
            external.ready_at = external.ready_at.max(turned_at);
        }
        self.cloud.put(&external).await
    }

    async fn update(&self, resource: &mut Resource, rule: &Rule) -> Result<(), Trouble> {
        let Some(mut external) = self.find(resource) else { return Ok(()) };
        let wanted = parameters(&resource.object);
        if let Some(why) = resource.model.forbids_change(&external.parameters, &wanted) {
            return Err(Trouble::Refused(why));
        }
        external.changed_at = self.switch(resource, rule).await?;
        let before = external.settled();
        let mut machine = before.clone();
        let with_id = machine.as_mut().map(|machine| (machine, external.name.as_str()));
        let no_capacity = rule.start.as_deref();
        let changed =
            resource.model.change(&mut external.parameters, with_id, &wanted, no_capacity);
        if machine != before {
            external.turned_at = Some(later(self.round));
            external.changed_at = external.turned_at.filter(|_| changed.is_ok());
        }
        external.machine = machine;
        resource.name().clone_into(&mut external.owner.name);
        self.cloud.put(&external).await?;
        changed.map_err(Trouble::Refused)
    }

    async fn delete(&self, resource: &mut Resource, rule: &Rule) -> Result<(), Trouble> {
        let Some(mut external) = self.find(resource) else { return Ok(()) };
        if external.changed_at.and_then(until).is_some() {
            return Err(Trouble::Busy("update operation is still running".to_owned()));
        }
        if resource.model.is_asynchronous() && self.is_making(&external, resource, rule) {
            let since = resource.create_began();
            return Err(Trouble::Busy(format!(
                "create operation that started at {since} is still running"
            )));
        }
        let refusal = self.cloud.look(|all| {
            let all = all.iter().map(|one| existing(one));
            resource.model.forbids_deletion(existing(&external), all)
        });
        if let Some(why) = refusal {
            return Err(Trouble::Refused(why));
        }
        if self.round.is_zero() {
            return self.cloud.remove(&external).await;
        }
        external.gone_at = Some(later(self.round));
        self.cloud.put(&external).await
    }
}

impl Upjet {
    /// The external resource of a managed resource, either created for it or already under its
    /// name.
    fn find(&self, resource: &Resource) -> Option<External> {
        self.cloud.held_by(resource.uid()).or_else(|| {
            let name = Some(resource.external_name()).filter(|name| !name.is_empty())?;
            self.cloud.get(&key(&group(resource), resource.text("/kind"), parent(resource), name))
        })
    }

    /// The cloud's error if the resource that this one belongs to has to exist first.
    fn is_alone(&self, resource: &Resource) -> Option<String> {
        let (whole, group) = (parent(resource)?, group(resource));
        let kind = resource.text("/kind");
        let is_whole = |one: &External| one.name == whole && one.group == group && one.kind != kind;
        let exists = self.cloud.look(|all| all.iter().copied().any(is_whole));
        (!exists).then(|| resource.model.refused_without(whole)).flatten()
    }

    /// The machine with an id.
    fn machine(&self, id: &str) -> Option<External> {
        self.cloud.get(&key("ec2.aws.upbound.io", "Instance", None, id))
    }

    /// Starts or stops the machine that a resource names, if the resource does that. Says when the
    /// machine has the wanted power.
    async fn switch(&self, resource: &Resource, rule: &Rule) -> Result<Option<Timestamp>, Trouble> {
        let Some((id, wanted)) = resource.model.switched(&resource.object) else { return Ok(None) };
        let gone = || Trouble::Refused(terminated(id));
        let mut external = self.machine(id).filter(|one| one.gone_at.is_none()).ok_or_else(gone)?;
        let mut machine = external.machine.clone().ok_or_else(gone)?;
        let Some(wanted) = wanted.filter(|wanted| *wanted != machine.power) else {
            return Ok(external.turned_at);
        };
        // A machine that is being started or stopped is waited for.
        let passed = external.turned_at.and_then(until).unwrap_or_default();
        machine.settle();
        machine
            .turn(wanted, id, &external.parameters, rule.start.as_deref())
            .map_err(Trouble::Refused)?;
        external.machine = Some(machine);
        external.turned_at = Some(later(passed + self.round));
        self.cloud.put(&external).await?;
        Ok(external.turned_at)
    }

    /// Whether a provider is still creating a resource, and cannot do other work on it. If only a
    /// removed rule delayed the creation, the resource counts as created.
    fn is_making(&self, external: &External, resource: &Resource, rule: &Rule) -> bool {
        let left = until(external.ready_at);
        left.is_some_and(|left| rule.seconds.is_some() || left <= self.usual_time(resource))
    }

    fn usual_time(&self, resource: &Resource) -> Duration {
        self.round * resource.model.rounds()
    }

    fn made(
        &self,
        resource: &Resource,
        name: String,
        identity: String,
        parameters: Value,
        rule: &Rule,
    ) -> External {
        let takes = rule.seconds.map_or(self.usual_time(resource), |seconds| {
            Duration::try_from_secs_f64(seconds).unwrap_or_default()
        });
        External {
            group: group(resource),
            kind: resource.text("/kind").to_owned(),
            name,
            parent: parent(resource).map(str::to_owned),
            identity,
            ready_at: later(takes),
            gone_at: None,
            parameters,
            machine: resource.model.machine(),
            turned_at: None,
            changed_at: None,
            owner: Owner {
                api_version: resource.text("/apiVersion").to_owned(),
                namespace: resource.text("/metadata/namespace").to_owned(),
                name: resource.name().to_owned(),
                uid: resource.uid().to_owned(),
                composite: resource.object["metadata"]["labels"][names::COMPOSITE]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            },
        }
    }
}

/// Writes the cloud's values into the object.
fn show(resource: &mut Resource) {
    resource.object["status"]["atProvider"] = json!({});
    resource.model.identify(&mut resource.object);
    resource.model.finish(&mut resource.object, &mut resource.world);
}

/// Works on a resource with the identity of its external resource, the source of ids and addresses.
fn as_identified<T>(
    identity: &str,
    resource: &mut Resource,
    work: impl FnOnce(&mut Resource) -> T,
) -> T {
    let uid = std::mem::replace(&mut resource.object["metadata"]["uid"], json!(identity));
    let worked = work(resource);
    resource.object["metadata"]["uid"] = uid;
    worked
}

/// A resource of the cloud, as the model expects it.
fn existing(external: &External) -> Existing<'_> {
    Existing {
        group: &external.group,
        kind: &external.kind,
        name: &external.name,
        parameters: &external.parameters,
        is_busy: external.is_busy(),
    }
}

/// The name of the resource that contains this resource.
fn parent(resource: &Resource) -> Option<&str> {
    resource.model.whole(&resource.object)
}

/// The API group of its kind, without the `m` of namespaced kinds.
fn group(resource: &Resource) -> String {
    group_of(&resource.object)
        .split('.')
        .filter(|label| *label != "m")
        .collect::<Vec<_>>()
        .join(".")
}

fn later(duration: Duration) -> Timestamp {
    let now = Timestamp::now();
    if duration.is_zero() {
        return seconds(now);
    }
    now.checked_add(duration).unwrap_or(now)
}
