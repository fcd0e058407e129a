//! The parts of an environment that goes: which are left, and what holds them. They are read
//! themselves, where the caller may.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crossplane::api_version;
use function_paved_road::compose::ResourceStatus;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::api::{DynamicObject, ObjectMeta};

use crate::Failure;
use crate::cluster::{Api, Cluster, Found, Reference, Served, is_denied};
use crate::environment::{Mark, with_causes};
use state::{Hold, State};

/// How many parts are read at once.
const AT_ONCE: usize = 8;

/// How many parts are looked at, more than any environment has: users can write references, too.
const MOST: usize = 200;

/// The parts of one environment.
#[derive(Clone)]
pub struct Parts {
    /// UIDs of the composite and of the parts that were seen: whatever one of these owns is a part.
    /// A Usage belongs to what uses, too, and to that alone once the composite waits for its parts.
    owners: BTreeSet<String>,
    all: Vec<Part>,
    /// The composite, until it is known when it was deleted.
    composite: Option<(Api<DynamicObject>, String)>,
    /// When the composite was deleted.
    deleted: Option<Timestamp>,
    /// Since when they are looked at.
    since: Instant,
    /// Kinds that the caller may not read.
    hidden: BTreeSet<String>,
}

/// A resource that is left of a deleted environment.
pub struct Left<'a> {
    /// Its slot; `composite` for the composite.
    pub slot: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// When it was deleted.
    pub deleted: Option<Timestamp>,
    /// Whether its deletion failed.
    pub mark: Mark,
    /// What holds it; empty if its deletion is in progress.
    pub told: String,
}

#[derive(Clone)]
struct Part {
    kind: String,
    name: String,
    api: Option<Api<DynamicObject>>,
    state: State,
}

impl Parts {
    /// Finds the resources of an environment: its references, or those of its composite if the
    /// caller may read the composite. Users can add references of their own. The objects that
    /// these name are not parts, and nothing is shown of them.
    pub async fn find(cluster: &Cluster, served: &Served, found: &Found) -> Result<Self, Failure> {
        let mut hidden = BTreeSet::new();
        let composite;
        let bound = Reference::from_value(&found.object.data["spec"]["resourceRef"]);
        let composite_name = bound.as_ref().map(|bound| bound.name.to_string());
        let (owner, itself) = match bound {
            None => (Some(&found.object), None),
            Some(bound) => match read(cluster, served, &bound).await {
                Ok(Some(read)) if is_composite_of(&read, found) => {
                    composite = read;
                    (Some(&composite), Some(bound))
                }
                Ok(_) => (None, None),
                Err(error) if is_denied(&error) => {
                    hidden.insert(bound.kind);
                    (None, None)
                }
                Err(error) => return Err(cluster.explain(&error, "read the composite")),
            },
        };
        let mut references = owner.map(|owner| Reference::all_of(&owner.data)).unwrap_or_default();
        references.truncate(MOST);
        references.extend(itself);
        let namespace = found.object.metadata.namespace.as_deref();
        let kinds: BTreeMap<_, _> =
            references.iter().map(|one| ((&one.api_version, &one.kind), one)).collect();
        let apis = kinds.into_iter().map(|(kind, one)| async move {
            (kind, served.find(&cluster.client, one, namespace).await)
        });
        let apis: Vec<_> = apis.collect();
        let apis: Vec<_> = stream::iter(apis).buffer_unordered(AT_ONCE).collect().await;
        let apis: BTreeMap<_, _> =
            apis.into_iter().map(|(kind, api)| (kind, api.ok().flatten())).collect();
        let parts = references.iter().map(|reference| Part {
            kind: reference.kind.clone(),
            name: reference.name.to_string(),
            api: apis[&(&reference.api_version, &reference.kind)].clone(),
            state: State::Unknown,
        });
        let parts: Vec<Part> = parts.collect();
        let owners = owner.and_then(|owner| owner.metadata.uid.clone()).into_iter().collect();
        let composite = match composite_name {
            Some(name) => parts.last().and_then(|part| Some((part.api.clone()?, name))),
            None => found
                .object
                .metadata
                .name
                .clone()
                .map(|name| (found.kind.api(&cluster.client, namespace), name)),
        };
        Ok(Self { owners, all: parts, composite, deleted: None, since: Instant::now(), hidden })
    }

    /// Looks at all that were not gone. What cannot be read keeps its state: it is looked at again.
    /// Whoever gives up waiting has what was read until then.
    pub async fn look(&mut self) {
        if let Some((api, name)) = &self.composite
            && let Ok(Some(composite)) = api.get_opt(name).await
            && let Some(deleted) = composite.metadata.deletion_timestamp
        {
            self.deleted = Some(deleted.0);
            self.composite = None;
        }
        let composite_deleted = self.deleted;
        let left = self.all.iter().enumerate().filter(|(_, part)| part.state != State::Gone);
        let asked = left.map(|(index, part)| {
            let (api, name) = (part.api.clone(), part.name.clone());
            async move {
                match api {
                    Some(api) => (index, Some(api.get_opt(&name).await)),
                    None => (index, None),
                }
            }
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = stream::iter(asked).buffer_unordered(AT_ONCE);
        let waited = self.since.elapsed();
        let mut others = Vec::new();
        while let Some((index, answer)) = answers.next().await {
            let part = &mut self.all[index];
            match answer {
                Some(Ok(Some(object))) if is_owned(&object.metadata, &self.owners) => {
                    self.owners.extend(object.metadata.uid.clone());
                    part.state = State::from_object(&object).after(
                        waited,
                        &part.kind,
                        &object,
                        composite_deleted,
                    );
                }
                Some(Ok(Some(object))) => others.push((index, object)),
                Some(Ok(None)) => part.state = State::Gone,
                Some(Err(error)) if is_denied(&error) => {
                    part.api = None;
                    self.hidden.insert(part.kind.clone());
                }
                Some(Err(_)) => {}
                None => drop(self.hidden.insert(part.kind.clone())),
            }
        }
        // Owners are among them, too, in whatever order.
        while let Some(next) =
            others.iter().position(|(_, one)| is_owned(&one.metadata, &self.owners))
        {
            let (index, object) = others.swap_remove(next);
            let part = &mut self.all[index];
            self.owners.extend(object.metadata.uid.clone());
            part.state =
                State::from_object(&object).after(waited, &part.kind, &object, composite_deleted);
        }
        // Nobody's are those only once nobody is left who might own them.
        let is_other = |index| others.iter().any(|(other, _)| *other == index);
        let unread =
            |(index, part): (usize, &Part)| part.state == State::Unknown && !is_other(index);
        if !self.all.iter().enumerate().any(unread) {
            for (index, _) in others {
                self.all[index].state = State::Gone;
            }
        }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// How many are not known to be gone, seen or not.
    pub fn left_count(&self) -> usize {
        self.left().count()
    }

    /// Whether anything of them could be read.
    pub fn is_seen(&self) -> bool {
        self.all.iter().any(|part| part.state != State::Unknown)
    }

    /// A line for each that is left and seen, as an environment's own status has it.
    pub fn statuses(&self) -> Vec<ResourceStatus> {
        let status = |part: &Part| {
            let State::There { slot, deleted, holds } = &part.state else { return None };
            let reason = if holds.mark() == Mark::Bad { "Failed" } else { "Deleting" };
            Some(ResourceStatus {
                slot: slot.clone(),
                kind: part.kind.clone(),
                name: Some(part.name.clone()),
                external_name: None,
                ready: false,
                since: deleted.map(|time| time.to_string()).unwrap_or_default(),
                reason: Some(reason.to_owned()),
                message: Some(holds.told()).filter(|told| !told.is_empty()),
                cause: None,
            })
        };
        with_causes(self.left().filter_map(status).collect(), None)
    }

    fn left(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().filter(|part| part.state != State::Gone)
    }

    /// How many are left, and what cannot be seen.
    pub fn head(&self) -> String {
        if !self.is_seen() {
            let hidden = "; you may not read its resources, so paved does not show the rest";
            return format!("is being deleted{}", if self.hidden.is_empty() { "" } else { hidden });
        }
        let hidden: Vec<&str> = self.hidden.iter().map(String::as_str).collect();
        let hidden = if hidden.is_empty() {
            String::new()
        } else {
            format!("; you may not read {}", hidden.join(", "))
        };
        format!(
            "is being deleted: {} of {} resources are left{hidden}",
            self.left_count(),
            self.all.len()
        )
    }

    /// The resources that are left and seen.
    pub fn seen(&self) -> impl Iterator<Item = Left<'_>> {
        self.left().filter_map(|part| {
            let State::There { slot, deleted, holds } = &part.state else { return None };
            let (mark, told) = (holds.mark(), holds.told());
            Some(Left { slot, kind: &part.kind, deleted: *deleted, mark, told })
        })
    }

    /// A line for each that something holds.
    pub fn lines(&self) -> Vec<String> {
        let line = |part: &Part| match &part.state {
            State::There { slot, holds, .. }
                if !matches!(holds, Hold::Unasked | Hold::Provider) =>
            {
                Some(format!("{slot} ({} {}) {}", part.kind, part.name, holds.told()))
            }
            _ => None,
        };
        self.all.iter().filter_map(line).collect()
    }

    /// What is left and why, in one line.
    pub fn told(&self) -> String {
        let mut told = vec![self.head()];
        told.extend(self.lines());
        told.join(", ")
    }
}

/// The composite that a claim refers to, if there is one.
async fn read(
    cluster: &Cluster,
    served: &Served,
    bound: &Reference,
) -> kube::Result<Option<DynamicObject>> {
    match served.find(&cluster.client, bound, None).await? {
        Some(api) => api.get_opt(bound.name.as_str()).await,
        None => Ok(None),
    }
}

/// The composite of a claim. `None` if the claim has none, or if the object that the claim names is
/// not its composite.
///
/// # Errors
/// The cluster does not answer, or denies the right to read the composite.
pub async fn composite(
    cluster: &Cluster,
    served: &Served,
    claim: &Found,
) -> kube::Result<Option<DynamicObject>> {
    let Some(bound) = Reference::from_value(&claim.object.data["spec"]["resourceRef"]) else {
        return Ok(None);
    };
    let found = read(cluster, served, &bound).await?;
    Ok(found.filter(|found| is_composite_of(found, claim)))
}

/// Whether Crossplane made a composite of this very claim; no user can write one.
fn is_composite_of(composite: &DynamicObject, claim: &Found) -> bool {
    let claimed = &composite.data["spec"]["claimRef"];
    let of = |key: &str| claimed[key].as_str();
    let group = of("apiVersion").map(api_version::group);
    let metadata = &claim.object.metadata;
    group == Some(&claim.kind.resource.group)
        && of("kind") == Some(&claim.kind.resource.kind)
        && of("name") == metadata.name.as_deref()
        && of("namespace") == metadata.namespace.as_deref()
}

/// Whether something is one of the owners, or belongs to one.
fn is_owned(metadata: &ObjectMeta, owners: &BTreeSet<String>) -> bool {
    let by = metadata.owner_references.iter().flatten().map(|owner| &owner.uid);
    metadata.uid.iter().chain(by).any(|uid| owners.contains(uid))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crossplane::names::{IN_USE, SLOT};
    use serde_json::{Value, json};

    use super::*;

    pub(super) fn object(metadata: &Value, conditions: &Value) -> DynamicObject {
        let mut object = json!({"apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Instance",
            "metadata": {"name": "ada-x-1", "annotations": {SLOT: "instance"}}, "status": {"conditions": conditions}});
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn part(metadata: &Value, conditions: &Value) -> Part {
        let object = object(metadata, conditions);
        Part {
            kind: "Instance".into(),
            name: "ada-x-1".into(),
            api: None,
            state: State::from_object(&object),
        }
    }

    fn parts(all: Vec<Part>) -> Parts {
        Parts {
            owners: BTreeSet::new(),
            all,
            composite: None,
            deleted: None,
            since: Instant::now(),
            hidden: BTreeSet::new(),
        }
    }

    #[test]
    fn reason_that_holds_a_resource_is_reported() {
        let going = "2026-01-01T10:00:00Z";
        for (metadata, conditions, told) in [
            (
                json!({"labels": {IN_USE: "true"}}),
                json!([]),
                "waits until the resources that use it are deleted",
            ),
            (
                json!({"deletionTimestamp": going}),
                json!([{"type": "Synced", "status": "False", "message": "DependencyViolation: in use"}]),
                "cannot be deleted: DependencyViolation",
            ),
            (
                json!({"deletionTimestamp": going}),
                json!([{"type": "LastAsyncOperation", "status": "False", "message": "BucketNotEmpty"}]),
                "BucketNotEmpty",
            ),
            (
                json!({"deletionTimestamp": going, "finalizers": ["foregroundDeletion", "acme.io/keep"]}),
                json!([]),
                "is blocked by the finalizers acme.io/keep",
            ),
        ] {
            let parts = parts(vec![part(&metadata, &conditions)]);
            let all = parts.told();
            assert!(all.contains("1 of 1 resources are left") && all.contains(told), "{all}");
        }
    }

    #[test]
    fn normal_deletion_has_no_line() {
        let under_way = part(
            &json!({"deletionTimestamp": "2026-01-01T10:00:00Z", "finalizers": ["finalizer.managedresource.crossplane.io"]}),
            &json!([]),
        );
        let at_work = ["create", "update"].map(|operation| {
            let message = format!(
                "delete failed: {operation} operation that started at 2026-01-01 09:59:00 +0000 UTC is still running"
            );
            part(
                &json!({"deletionTimestamp": "2026-01-01T10:00:00Z"}),
                &json!([{"type": "Synced", "status": "False", "message": message}]),
            )
        });
        let parts = parts([under_way].into_iter().chain(at_work).collect());
        assert_eq!((parts.lines().len(), parts.seen().count()), (0, 3));
    }

    #[test]
    fn unreadable_resources_are_reported() {
        let hidden = BTreeSet::from(["GpuDevWorkspace".to_owned()]);
        let parts = Parts { hidden, ..parts(Vec::new()) };
        assert!(parts.head().contains("you may not read its resources"), "{}", parts.head());
    }
}
