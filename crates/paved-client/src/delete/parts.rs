//! The resources of an environment that is being deleted: the remaining ones, and the reasons why
//! they remain. They are read directly, as far as the caller may read them.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crossplane::api_version;
use function_paved_road::status::ResourceStatus;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::api::{DynamicObject, ObjectMeta};

use crate::Failure;
use crate::cluster::{Api, Cluster, Found, Reference, Served, is_denied};
use crate::environment::{Mark, with_causes};
use state::{Hold, State};

/// The maximum number of resources read at once.
const CONCURRENCY: usize = 8;

/// The maximum number of resources that are read. Environments have fewer, but users can write
/// references too.
const MAX_RESOURCES: usize = 200;

/// The resources of one environment.
#[derive(Clone)]
pub struct Parts {
    /// UIDs of the composite and of the seen resources. An object with one of these as owner is
    /// also a resource of the environment. The using resource also owns its Usage. It is the only
    /// owner once the composite waits for its resources.
    owners: BTreeSet<String>,
    all: Vec<Part>,
    /// The composite. `None` once its deletion time is known.
    composite: Option<(Api<DynamicObject>, String)>,
    /// The deletion time of the composite.
    deleted: Option<Timestamp>,
    /// The time of the first observation.
    since: Instant,
    /// The kinds that the caller may not read.
    hidden: BTreeSet<String>,
}

/// A remaining resource of a deleted environment.
pub struct Remaining<'a> {
    /// The slot of the resource, or `composite` for the composite.
    pub slot: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// The deletion time.
    pub deleted: Option<Timestamp>,
    /// Whether its deletion failed.
    pub mark: Mark,
    /// The reason why the resource remains. It is empty if its deletion is in progress.
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
    /// caller may read the composite. Users can add references of their own. The referenced objects
    /// do not belong to the environment, and are not shown.
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
        references.truncate(MAX_RESOURCES);
        references.extend(itself);
        let namespace = found.object.metadata.namespace.as_deref();
        let kinds: BTreeMap<_, _> =
            references.iter().map(|one| ((&one.api_version, &one.kind), one)).collect();
        let apis = kinds.into_iter().map(|(kind, one)| async move {
            (kind, served.find(&cluster.client, one, namespace).await)
        });
        let apis: Vec<_> = apis.collect();
        let apis: Vec<_> = stream::iter(apis).buffer_unordered(CONCURRENCY).collect().await;
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

    /// Reads all resources that are not known to be deleted. An unreadable resource keeps its
    /// state, and is read again later. If the caller stops waiting, the results read so far remain.
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
        let mut answers = stream::iter(asked).buffer_unordered(CONCURRENCY);
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
        // Owners are among these objects too, in any order.
        while let Some(next) =
            others.iter().position(|(_, one)| is_owned(&one.metadata, &self.owners))
        {
            let (index, object) = others.swap_remove(next);
            let part = &mut self.all[index];
            self.owners.extend(object.metadata.uid.clone());
            part.state =
                State::from_object(&object).after(waited, &part.kind, &object, composite_deleted);
        }
        // An object counts as foreign only after all possible owners were read.
        let is_other = |index| others.iter().any(|(other, _)| *other == index);
        let unread =
            |(index, part): (usize, &Part)| part.state == State::Unknown && !is_other(index);
        if !self.all.iter().enumerate().any(unread) {
            for (index, _) in others {
                self.all[index].state = State::Gone;
            }
        }
    }

    /// The total number of resources.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The number of resources that are not known to be deleted, whether seen or not.
    pub fn left_count(&self) -> usize {
        self.left().count()
    }

    /// Whether any resource could be read.
    pub fn is_seen(&self) -> bool {
        self.all.iter().any(|part| part.state != State::Unknown)
    }

    /// The status of each remaining and seen resource, in the format of an environment's status.
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

    /// The number of remaining resources, and the kinds that the caller may not read.
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

    /// The resources that remain and were seen.
    pub fn seen(&self) -> impl Iterator<Item = Remaining<'_>> {
        self.left().filter_map(|part| {
            let State::There { slot, deleted, holds } = &part.state else { return None };
            let (mark, told) = (holds.mark(), holds.told());
            Some(Remaining { slot, kind: &part.kind, deleted: *deleted, mark, told })
        })
    }

    /// A line for each resource that is blocked.
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

    /// The remaining resources and the reasons, in one line.
    pub fn told(&self) -> String {
        let mut told = vec![self.head()];
        told.extend(self.lines());
        told.join(", ")
    }
}

/// The composite that a claim refers to. `None` if it does not exist.
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

/// Whether Crossplane created a composite for this claim. Users cannot create composites.
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

/// Whether an object is one of the owners, or belongs to one.
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
    fn reason_that_delays_a_deletion_is_reported() {
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
