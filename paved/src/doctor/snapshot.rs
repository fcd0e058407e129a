//! Reads the objects for `paved doctor`, as far as the caller may read them.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::Flavour;
use function_paved_road::manifests::namespaces::NAME;
use function_paved_road::models::aws::eks::Cluster as Eks;
use function_paved_road::models::azure::KubernetesCluster as Aks;
use function_paved_road::models::helm::Release;
use function_paved_road::models::sql;
use function_paved_road::models::{self, Managed as _, Scope};
use function_paved_road::observe;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams};
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};
use kube::core::{ApiResource, PartialObjectMeta};
use paved_client::cluster::{Api, Cluster, Kind, Kinds, group_name, is_denied};
use serde_json::Value;

use super::check::Check;
use super::family::family;

/// The objects of a kind, or the reason why they could not be read.
pub(super) enum ListResult {
    All(Vec<DynamicObject>),
    /// The caller may not list the kind.
    Hidden,
    /// The read failed for this reason.
    Failed(String),
    /// The cluster does not have the kind.
    NoSuchKind,
}

impl ListResult {
    /// The check for objects that were not read. Missing rights do not mean that the cluster is
    /// broken, but an error does.
    pub(super) fn unread(&self, what: impl Into<String>) -> Check {
        match self {
            Self::Failed(why) => Check::bad(
                what,
                format!("could not be read: {why}"),
                "check the state of the cluster, and run paved doctor again",
            ),
            Self::NoSuchKind => Check::open(what, "this cluster does not have this kind"),
            Self::Hidden | Self::All(_) => Check::open(what, "you may not read them"),
        }
    }
}

/// A kind of provider config and its objects.
pub(super) struct ProviderConfigs {
    pub(super) resource: ApiResource,
    pub(super) objects: ListResult,
}

/// The clusters of a kind.
pub(super) struct Clusters {
    pub(super) resource: ApiResource,
    pub(super) field: &'static str,
    pub(super) objects: ListResult,
}

/// The objects on shared PostgreSQL servers of a kind.
pub(super) struct Databases {
    pub(super) resource: ApiResource,
    pub(super) objects: ListResult,
}

/// The metadata of the claims of a kind, or of the composites of a kind.
pub(super) struct Environments {
    pub(super) resource: ApiResource,
    pub(super) are_claims: bool,
    pub(super) objects: ListResult,
}

/// All objects that were read from a cluster.
pub(super) struct ClusterSnapshot {
    pub(super) kinds: Vec<Kind>,
    /// Deployments with the label `app=crossplane`.
    pub(super) crossplane: ListResult,
    /// Group, version and kind of all served kinds. `None` if the discovery failed.
    pub(super) served: Option<BTreeSet<Served>>,
    pub(super) definitions: ListResult,
    pub(super) compositions: ListResult,
    pub(super) configs: ListResult,
    pub(super) functions: ListResult,
    pub(super) providers: ListResult,
    /// The ValidatingAdmissionPolicies, and below their bindings.
    pub(super) policies: ListResult,
    pub(super) bindings: ListResult,
    /// The ConfigMaps with the namespaces that must not be deleted yet, by namespace. `None` if the
    /// ConfigMap does not exist.
    pub(super) protected: BTreeMap<String, Option<ListResult>>,
    /// The ClusterRoles that are aggregated to Crossplane's role.
    pub(super) roles: ListResult,
    pub(super) provider_configs: Vec<ProviderConfigs>,
    /// Our managed clusters, by kind.
    pub(super) clusters: Vec<Clusters>,
    pub(super) environments: Vec<Environments>,
    /// The metadata of our Releases of provider-helm, cluster-scoped and namespaced.
    pub(super) releases: Vec<ListResult>,
    /// Our objects on shared PostgreSQL servers, by kind.
    pub(super) databases: Vec<Databases>,
}

/// The label of ClusterRoles that are aggregated to Crossplane's role.
const AGGREGATED: &str = "rbac.crossplane.io/aggregate-to-crossplane=true";

/// The kinds of managed clusters that their cloud upgrades, and the version's field in
/// `spec.forProvider`.
pub(super) const CLUSTERS: [(models::Kind, &str); 2] =
    [(Eks::KIND, "version"), (Aks::KIND, "kubernetesVersion")];

/// Group, version and kind.
pub(super) type Served = (String, String, String);

/// Reads the objects for all checks, as far as the caller may read them.
pub(super) async fn take(cluster: &Cluster, kinds: &Kinds) -> ClusterSnapshot {
    let crossplane = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let apis = "apiextensions.crossplane.io";
    let packages = "pkg.crossplane.io";
    let admission = "admissionregistration.k8s.io";
    let [definitions, compositions, configs, functions, providers, policies, bindings, roles] = [
        crossplane(apis, "v1", "CompositeResourceDefinition", "compositeresourcedefinitions"),
        crossplane(apis, "v1", "Composition", "compositions"),
        crossplane(apis, "v1beta1", "EnvironmentConfig", "environmentconfigs"),
        crossplane(packages, "v1", "Function", "functions"),
        crossplane(packages, "v1", "Provider", "providers"),
        crossplane(admission, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        crossplane(
            admission,
            "v1",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        ),
        crossplane("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    ];
    let deployments = ApiResource::erase::<Deployment>(&());
    // An API server before 1.27 returns another document.
    let groups = cluster.client.list_api_groups_aggregated().await.ok();
    let groups = groups.filter(|groups| !groups.items.is_empty());
    let (policies, bindings, roles) = futures::join!(
        all(cluster, &policies, ""),
        all(cluster, &bindings, ""),
        all(cluster, &roles, AGGREGATED),
    );
    let mut protected = BTreeMap::new();
    for namespace in parameters(&bindings) {
        let found = protected_namespaces(cluster, &namespace).await;
        protected.insert(namespace, found);
    }
    let (definitions, compositions, configs, functions, providers, crossplane) = futures::join!(
        all(cluster, &definitions, ""),
        all(cluster, &compositions, ""),
        all(cluster, &configs, ""),
        all(cluster, &functions, ""),
        all(cluster, &providers, ""),
        all(cluster, &deployments, "app=crossplane"),
    );
    let mut provider_configs = Vec::new();
    for resource in groups.iter().flat_map(provider_config_kinds) {
        let objects = all(cluster, &resource, "").await;
        provider_configs.push(ProviderConfigs { resource, objects });
    }
    let mut all_clusters = Vec::new();
    for (resource, field) in cluster_kinds() {
        let objects = all(cluster, &resource, &ours()).await;
        all_clusters.push(Clusters { resource, field, objects });
    }
    let mut releases = Vec::new();
    for scope in [Scope::LegacyCluster, Scope::Namespaced] {
        let resource = resource_of(&Release::KIND, scope);
        releases.push(all_metadata(cluster, &resource, &ours()).await);
    }
    let databases = join_all(database_kinds().map(async |resource| {
        let objects = all(cluster, &resource, &ours()).await;
        Databases { resource, objects }
    }));
    let environments = environment_kinds(kinds).map(async |(resource, are_claims)| {
        let objects = all_metadata(cluster, &resource, "").await;
        Environments { resource, are_claims, objects }
    });
    ClusterSnapshot {
        kinds: kinds.all().to_vec(),
        crossplane,
        served: groups.as_ref().map(served),
        definitions,
        compositions,
        configs,
        functions,
        providers,
        policies,
        bindings,
        protected,
        roles,
        provider_configs,
        clusters: all_clusters,
        environments: join_all(environments).await,
        releases,
        databases: databases.await,
    }
}

/// All objects of a kind with these labels, in all namespaces.
async fn all(cluster: &Cluster, resource: &ApiResource, labels: &str) -> ListResult {
    let api = Api::for_resource(&cluster.client, None, resource);
    let list = api.list(&ListParams::default().labels(labels)).await;
    listed(cluster, resource, list.map(|list| list.items))
}

/// All objects of a kind with these labels in all namespaces, only with their metadata.
async fn all_metadata(cluster: &Cluster, resource: &ApiResource, labels: &str) -> ListResult {
    let api = Api::for_resource(&cluster.client, None, resource);
    let list = api.list_metadata(&ListParams::default().labels(labels)).await;
    let object = |one: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: None,
        metadata: one.metadata,
        data: Value::Null,
    };
    listed(cluster, resource, list.map(|list| list.items.into_iter().map(object).collect()))
}

/// The namespaces of the ConfigMaps that policies on namespaces refer to.
fn parameters(bindings: &ListResult) -> BTreeSet<String> {
    let ListResult::All(bindings) = bindings else { return BTreeSet::new() };
    let references = bindings.iter().map(|binding| &binding.data["spec"]["paramRef"]);
    let ours = references.filter(|reference| reference["name"] == NAME);
    ours.filter_map(|reference| reference["namespace"].as_str().map(str::to_owned)).collect()
}

/// The controller's ConfigMap in a namespace. `None` if the ConfigMap does not exist.
async fn protected_namespaces(cluster: &Cluster, namespace: &str) -> Option<ListResult> {
    let resource = ApiResource::erase::<ConfigMap>(&());
    let api = Api::for_resource(&cluster.client, Some(namespace), &resource);
    let found = api.get_opt(NAME).await.transpose()?;
    Some(listed(cluster, &resource, found.map(|config_map| vec![config_map])))
}

fn listed(
    cluster: &Cluster,
    resource: &ApiResource,
    result: kube::Result<Vec<DynamicObject>>,
) -> ListResult {
    match result {
        Ok(objects) => ListResult::All(objects),
        Err(kube::Error::Api(status)) if status.code == 404 => ListResult::NoSuchKind,
        Err(error) if is_denied(&error) => ListResult::Hidden,
        Err(error) => ListResult::Failed(
            cluster.explain(&error, &format!("list {}", resource.plural)).to_string(),
        ),
    }
}

fn served(groups: &APIGroupDiscoveryList) -> BTreeSet<Served> {
    let mut all = BTreeSet::new();
    for group in &groups.items {
        let name = group_name(group);
        for version in &group.versions {
            let of_version = version.version.clone().unwrap_or_default();
            let kinds =
                version.resources.iter().filter_map(|one| one.response_kind.as_ref()?.kind.clone());
            all.extend(kinds.map(|kind| (name.to_owned(), of_version.clone(), kind)));
        }
    }
    all
}

/// The served kinds of provider configs, cluster-wide and namespaced.
fn provider_config_kinds(groups: &APIGroupDiscoveryList) -> Vec<ApiResource> {
    let mut kinds = Vec::new();
    for group in &groups.items {
        let name = group_name(group);
        if family(name).is_none() {
            continue;
        }
        for wanted in ["ClusterProviderConfig", "ProviderConfig"] {
            // The version may differ from the version of the group's newest kinds.
            let found = group.versions.iter().find_map(|version| {
                let is_wanted = |resource: &&APIResourceDiscovery| {
                    resource
                        .response_kind
                        .as_ref()
                        .is_some_and(|kind| kind.kind.as_deref() == Some(wanted))
                };
                let plural = version.resources.iter().find(is_wanted)?.resource.clone()?;
                Some((version.version.clone()?, plural))
            });
            let Some((version, plural)) = found else { continue };
            kinds.push(ApiResource {
                group: name.to_owned(),
                api_version: format!("{name}/{version}"),
                version,
                kind: wanted.to_owned(),
                plural,
            });
        }
    }
    kinds
}

/// The label of our composed resources, as a selector.
fn ours() -> String {
    format!("{}=true", observe::OWNED_LABEL)
}

/// The kinds of managed clusters, as cluster-scoped and as namespaced kinds.
pub(super) fn cluster_kinds() -> impl Iterator<Item = (ApiResource, &'static str)> {
    CLUSTERS.into_iter().flat_map(|(kind, field)| {
        [Scope::LegacyCluster, Scope::Namespaced].map(|scope| (resource_of(&kind, scope), field))
    })
}

/// The kinds of objects on shared PostgreSQL servers, as cluster-scoped and as namespaced kinds.
pub(super) fn database_kinds() -> impl Iterator<Item = ApiResource> {
    [sql::Role::KIND, sql::Database::KIND, sql::Grant::KIND].into_iter().flat_map(|kind| {
        [Scope::LegacyCluster, Scope::Namespaced].map(|scope| resource_of(&kind, scope))
    })
}

/// A kind of a provider, as cluster-scoped or as namespaced kind.
fn resource_of(kind: &models::Kind, scope: Scope) -> ApiResource {
    ApiResource {
        group: kind.group(scope),
        version: kind.version(scope).to_owned(),
        api_version: kind.api_version(scope),
        kind: kind.kind.to_owned(),
        plural: format!("{}s", kind.kind.to_lowercase()),
    }
}

/// The kinds of environments, and the kinds of the composites behind claims. The flag is whether
/// the kind is a claim's.
pub(super) fn environment_kinds(kinds: &Kinds) -> impl Iterator<Item = (ApiResource, bool)> {
    kinds.all().iter().flat_map(|kind| {
        let are_claims = kind.flavour() == Flavour::Claims;
        let composites = kind.paved_api().filter(|_| are_claims).map(|api| {
            let names = &api.info().composite;
            let resource = ApiResource {
                kind: names.kind.to_owned(),
                plural: names.plural.to_owned(),
                ..kind.resource.clone()
            };
            (resource, false)
        });
        [(kind.resource.clone(), are_claims)].into_iter().chain(composites)
    })
}
