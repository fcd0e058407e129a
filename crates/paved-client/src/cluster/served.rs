//! The kinds that the cluster serves, cached for a while. References name kinds, and users write
//! references. Without the cache, users would decide the number of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::core::discovery::v2::APIGroupDiscovery;
use tokio::sync::Mutex;

use super::{Api, Reference};

/// The lifetime of a cached response. A new kind is found within this time.
const TTL: Duration = Duration::from_mins(5);

/// The kinds that a cluster serves. Within five minutes, it sends at most one request for each
/// group and version of the cluster, regardless of the number of references.
#[derive(Default)]
pub struct Served(Mutex<Known>);

#[derive(Default)]
struct Known {
    versions: Option<(Instant, BTreeSet<String>)>,
    resources: BTreeMap<String, (Instant, Arc<Vec<APIResource>>)>,
}

impl Served {
    /// The API of a reference's kind. It is limited to `namespace` if the kind is namespaced.
    /// `None` if the cluster does not serve the kind.
    pub async fn find(
        &self,
        client: &Client,
        reference: &Reference,
        namespace: Option<&str>,
    ) -> kube::Result<Option<Api<DynamicObject>>> {
        let Some((resource, is_namespaced)) = self.look_up(client, reference).await? else {
            return Ok(None);
        };
        Ok(Some(Api::for_resource(client, namespace.filter(|_| is_namespaced), &resource)))
    }

    /// The kind of a reference, and whether it is namespaced. `None` if the cluster does not serve
    /// the kind.
    pub async fn look_up(
        &self,
        client: &Client,
        reference: &Reference,
    ) -> kube::Result<Option<(ApiResource, bool)>> {
        let resources = self.0.lock().await.for_version(client, &reference.api_version).await?;
        let is_it = |one: &&APIResource| one.kind == reference.kind && !one.name.contains('/');
        let Some(found) = resources.iter().find(is_it) else { return Ok(None) };
        let (group, version) = reference.group_and_version();
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            plural: found.name.clone(),
        };
        Ok(Some((resource, found.namespaced)))
    }
}

impl Known {
    /// Returns the kinds of a group and version.
    async fn for_version(
        &mut self,
        client: &Client,
        text: &str,
    ) -> kube::Result<Arc<Vec<APIResource>>> {
        if let Some((since, resources)) = self.resources.get(text)
            && since.elapsed() < TTL
        {
            return Ok(Arc::clone(resources));
        }
        let listed = match text.split_once('/') {
            None if text != "v1" => return Ok(Arc::default()),
            None => client.list_core_api_resources(text).await,
            Some(_) if !self.has(client, text).await? => return Ok(Arc::default()),
            Some(_) => client.list_api_group_resources(text).await,
        };
        let resources = match listed {
            Ok(list) => Arc::new(list.resources),
            Err(kube::Error::Api(status)) if status.code == 404 => Arc::default(),
            Err(error) => return Err(error),
        };
        self.resources.insert(text.to_owned(), (Instant::now(), Arc::clone(&resources)));
        Ok(resources)
    }

    /// Whether the cluster has a group with this version.
    async fn has(&mut self, client: &Client, text: &str) -> kube::Result<bool> {
        if self.versions.as_ref().is_none_or(|(since, _)| since.elapsed() >= TTL) {
            self.versions = Some((Instant::now(), versions(client).await?));
        }
        Ok(self.versions.as_ref().is_some_and(|(_, all)| all.contains(text)))
    }
}

/// All groups with their versions.
async fn versions(client: &Client) -> kube::Result<BTreeSet<String>> {
    match client.list_api_groups_aggregated().await {
        Ok(groups) if !groups.items.is_empty() => {
            let of = |group: APIGroupDiscovery| {
                let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
                let versions = group.versions.into_iter().filter_map(|version| version.version);
                versions.map(move |version| format!("{name}/{version}")).collect::<Vec<_>>()
            };
            return Ok(groups.items.into_iter().flat_map(of).collect());
        }
        // An API server before 1.27 returns another type of response.
        Ok(_) | Err(kube::Error::SerdeError(_)) => {}
        Err(error) => return Err(error),
    }
    let groups = client.list_api_groups().await?.groups;
    Ok(groups
        .into_iter()
        .flat_map(|group| group.versions)
        .map(|version| version.group_version)
        .collect())
}
