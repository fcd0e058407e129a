//! The unused providers of our kinds: no other package depends on them, and no
//! object of their kinds exists. Without its provider, an object with a finalizer could
//! not be deleted any more, for example a provider config.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::models::KINDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster, group_name};
use paved_render::packages::Package;
use serde_json::Value;

use super::kinds::{LOCKS, Object, PROVIDERS, api};
use super::packages::repository;
use crate::failure::Failure;

/// A package in Crossplane's Lock.
struct Locked {
    source: String,
    dependencies: Vec<String>,
}

/// Providers for the removal.
#[derive(Default)]
pub(super) struct Unused {
    /// The unused Providers, except families.
    pub(super) objects: Vec<Object>,
    /// The unused families. Crossplane would install them again for the others.
    pub(super) families: Vec<Object>,
    /// The names of the others, each with the kind of an object.
    pub(super) used: BTreeMap<String, String>,
}

/// The Providers that can be removed with our Configurations. `configurations` has the names of
/// their packages.
pub(super) async fn unused(
    cluster: &Cluster,
    configurations: &BTreeSet<String>,
) -> Result<Unused, Failure> {
    let names = names();
    let mut candidates = PROVIDERS.list(cluster).await?;
    candidates.retain(|one| repository(one).is_some_and(|name| names.contains(name)));
    let mut used = used(cluster).await?;
    let name = |one: &DynamicObject| one.metadata.name.clone().unwrap_or_default();
    used.retain(|provider, _| candidates.iter().any(|one| name(one) == *provider));
    candidates.retain(|one| !used.contains_key(&name(one)));
    let mut locked = locked(cluster).await?;
    let is_configuration = |source: &str| {
        let name = source.rsplit('/').next().unwrap_or_default();
        configurations.contains(name)
    };
    locked.retain(|package| !is_configuration(&package.source));
    // A provider that stays may need another one, for example its family.
    loop {
        let sources: BTreeSet<String> = candidates.iter().filter_map(source).collect();
        let staying = locked.iter().filter(|package| !sources.contains(&package.source));
        let needed: BTreeSet<&String> = staying.flat_map(|package| &package.dependencies).collect();
        let before = candidates.len();
        candidates.retain(|one| source(one).is_none_or(|source| !needed.contains(&source)));
        if candidates.len() == before {
            let is_family = |one: &&DynamicObject| {
                repository(one).is_some_and(|name| name.starts_with("provider-family-"))
            };
            let (families, others): (Vec<_>, Vec<_>) = candidates.iter().partition(is_family);
            let objects = |all: Vec<&DynamicObject>| {
                all.into_iter().map(|one| PROVIDERS.object(one)).collect()
            };
            return Ok(Unused { objects: objects(others), families: objects(families), used });
        }
    }
}

/// The names of the packages that serve the kinds that we compose, and of their families.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for kind in KINDS {
        let group = kind.kind.group(function_paved_road::models::Scope::LegacyCluster);
        let Some(package) = Package::serving(&group) else { continue };
        names.extend(Package::family(package.cloud()).map(|family| family.name));
        names.insert(package.name);
    }
    names
}

/// A package's repository, with its registry.
fn source(package: &DynamicObject) -> Option<String> {
    let reference = package.data["spec"]["package"].as_str()?;
    let (path, name) = reference.rsplit_once('/')?;
    let name = name.split(['@', ':']).next()?;
    Some(format!("{path}/{name}"))
}

/// The packages in Crossplane's Lock.
async fn locked(cluster: &Cluster) -> Result<Vec<Locked>, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |package: &Value| Locked {
        source: text(&package["source"]),
        dependencies: package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|dependency| text(&dependency["package"]))
            .collect(),
    };
    let locks = LOCKS.list(cluster).await?;
    let packages = locks.iter().filter_map(|lock| lock.data["packages"].as_array()).flatten();
    Ok(packages.map(package).collect())
}

/// The Providers with an object of their kinds, by the owners of their CRDs, each with the kind.
async fn used(cluster: &Cluster) -> Result<BTreeMap<String, String>, Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let definitions = definitions.list_metadata(&ListParams::default()).await;
    let definitions = definitions.map_err(|error| cluster.explain(&error, "list CRDs"))?;
    let mut owners = BTreeMap::<String, String>::new();
    for definition in definitions.items {
        let references = definition.metadata.owner_references.into_iter().flatten();
        let provider = references.into_iter().find(|owner| owner.kind == "Provider");
        if let Some((name, provider)) = definition.metadata.name.zip(provider) {
            owners.insert(name, provider.name);
        }
    }
    let groups = cluster.client.list_api_groups_aggregated().await;
    let groups = groups.map_err(|error| cluster.explain(&error, "list the kinds"))?;
    let mut used = BTreeMap::new();
    for group in &groups.items {
        let name = group_name(group);
        for version in &group.versions {
            for one in &version.resources {
                let plural = one.resource.clone().unwrap_or_default();
                let Some(provider) = owners.get(&format!("{plural}.{name}")) else { continue };
                if used.contains_key(provider) {
                    continue;
                }
                let version = version.version.clone().unwrap_or_default();
                let kind = one.response_kind.as_ref().and_then(|kind| kind.kind.clone());
                let kind = kind.unwrap_or_default();
                let resource = ApiResource {
                    group: name.to_owned(),
                    api_version: format!("{name}/{version}"),
                    version,
                    kind: kind.clone(),
                    plural,
                };
                if exists(cluster, &resource).await? {
                    used.insert(provider.clone(), kind);
                }
            }
        }
    }
    Ok(used)
}

/// Whether the kind has an object.
async fn exists(cluster: &Cluster, resource: &ApiResource) -> Result<bool, Failure> {
    match api(cluster, resource).list_metadata(&ListParams::default().limit(1)).await {
        Ok(list) => Ok(!list.items.is_empty()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(cluster.explain(&error, &format!("list {}", resource.plural)).into()),
    }
}
