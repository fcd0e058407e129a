//! The managed resources in a namespace, of any composite or of none. Their providers need the
//! namespace: once its deletion has begun, they cannot connect to their clouds any more.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{Api, Cluster, Kinds, Reference, Served, group_name, is_denied};

/// The category of the kinds of managed resources.
const CATEGORY: &str = "managed";

/// The maximum number of kinds listed at once.
const CONCURRENCY: usize = 16;

/// The longest chain of owners above a managed resource.
const MAX_OWNERS: usize = 8;

/// The kinds of managed resources that live in namespaces.
pub struct ManagedKinds(Vec<ApiResource>);

/// The managed resources in a namespace.
#[derive(Default)]
pub struct ManagedObjects {
    /// All that were found.
    pub all: Vec<ManagedObject>,
    /// The kinds that the caller may not list.
    pub hidden: BTreeSet<String>,
}

/// A managed resource, or the composite above it.
#[derive(Clone)]
pub struct ManagedObject {
    resource: ApiResource,
    object: DynamicObject,
}

impl ManagedKinds {
    /// Discovers the kinds.
    pub async fn discover(cluster: &Cluster) -> Result<Self, Failure> {
        let groups = cluster.client.list_api_groups_aggregated().await;
        let groups = groups.map_err(|error| cluster.explain(&error, "list the kinds"))?;
        let mut kinds = Vec::new();
        for group in &groups.items {
            let name = group_name(group);
            // The preferred version comes first.
            let mut known = BTreeSet::new();
            for version in &group.versions {
                let Some(of_version) = version.version.as_deref() else { continue };
                for one in &version.resources {
                    let is_managed = one.categories.iter().any(|category| category == CATEGORY);
                    if !is_managed || one.scope.as_deref() != Some("Namespaced") {
                        continue;
                    }
                    let kind = one.response_kind.as_ref().and_then(|kind| kind.kind.clone());
                    let Some((kind, plural)) = kind.zip(one.resource.clone()) else { continue };
                    if known.insert(kind.clone()) {
                        kinds.push(ApiResource {
                            group: name.to_owned(),
                            version: of_version.to_owned(),
                            api_version: format!("{name}/{of_version}"),
                            kind,
                            plural,
                        });
                    }
                }
            }
        }
        Ok(Self(kinds))
    }

    /// The kinds of these objects.
    pub fn of(objects: &ManagedObjects) -> Self {
        let mut kinds: Vec<ApiResource> = Vec::new();
        for one in &objects.all {
            if !kinds.contains(&one.resource) {
                kinds.push(one.resource.clone());
            }
        }
        Self(kinds)
    }

    /// The managed resources of these kinds in the cluster's namespace.
    pub async fn list(&self, cluster: &Cluster) -> Result<ManagedObjects, Failure> {
        let lists = stream::iter(&self.0).map(async |resource| {
            let api = Api::<DynamicObject>::for_resource(
                &cluster.client,
                Some(&cluster.namespace),
                resource,
            );
            (resource, api.list_metadata(&ListParams::default()).await)
        });
        let mut lists = std::pin::pin!(lists.buffered(CONCURRENCY));
        let mut found = ManagedObjects::default();
        while let Some((resource, list)) = lists.next().await {
            match list {
                Ok(list) => found.all.extend(list.items.into_iter().map(|one| ManagedObject {
                    resource: resource.clone(),
                    object: DynamicObject {
                        types: None,
                        metadata: one.metadata,
                        data: Value::Null,
                    },
                })),
                // Its CRD was removed meanwhile.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) if is_denied(&error) => {
                    found.hidden.insert(format!("{}.{}", resource.plural, resource.group));
                }
                Err(error) => {
                    return Err(cluster.explain(&error, &format!("list {}", resource.plural)));
                }
            }
        }
        Ok(found)
    }
}

impl ManagedObject {
    /// `Kind name`.
    pub fn title(&self) -> String {
        format!("{} {}", self.resource.kind, self.name())
    }

    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The time of its deletion.
    pub fn deleted(&self) -> Option<Timestamp> {
        self.object.metadata.deletion_timestamp.as_ref().map(|time| time.0)
    }

    /// Whether it is an environment.
    pub fn is_environment(&self, kinds: &Kinds) -> bool {
        is_one_of(kinds, &self.resource.group, &self.resource.kind)
    }

    /// Whether an environment composed it.
    pub fn is_of_environment(&self, kinds: &Kinds) -> bool {
        self.controller().is_some_and(|owner| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            is_one_of(kinds, group, &owner.kind)
        })
    }

    fn controller(&self) -> Option<&OwnerReference> {
        let mut owners = self.object.metadata.owner_references.iter().flatten();
        owners.find(|owner| owner.controller == Some(true))
    }

    /// The object to delete: the composite at the top of its owners, because a composite creates
    /// its resources again. Without a composite, the resource itself.
    pub async fn root(&self, cluster: &Cluster, served: &Served) -> Result<Self, Failure> {
        let explain = |error: &kube::Error| cluster.explain(error, "read the owner of a resource");
        let mut top = self.clone();
        for _ in 0..MAX_OWNERS {
            let Some(owner) = top.controller() else { break };
            let reference = json!({
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
            });
            let Some(reference) = Reference::from_value(&reference) else { break };
            let looked_up = served.look_up(&cluster.client, &reference).await;
            let Some((resource, is_namespaced)) = looked_up.map_err(|error| explain(&error))?
            else {
                break;
            };
            let namespace = is_namespaced.then_some(cluster.namespace.as_str());
            let api = Api::<DynamicObject>::for_resource(&cluster.client, namespace, &resource);
            let found = api.get_opt(&owner.name).await.map_err(|error| explain(&error))?;
            let found = found.filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid));
            let Some(object) = found else { break };
            top = Self { resource, object };
        }
        Ok(top)
    }

    /// Deletes it after its dependents.
    pub async fn delete(&self, cluster: &Cluster) -> Result<(), Failure> {
        let metadata = &self.object.metadata;
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions {
                uid: metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = Api::<DynamicObject>::for_resource(
            &cluster.client,
            metadata.namespace.as_deref(),
            &self.resource,
        );
        match api.delete(self.name(), &params).await {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(cluster.explain(&error, &format!("delete {}", self.title()))),
        }
    }
}

fn is_one_of(kinds: &Kinds, group: &str, kind: &str) -> bool {
    kinds.all().iter().any(|one| one.resource.kind == kind && one.resource.group == group)
}
