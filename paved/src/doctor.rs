//! `paved doctor`: whether a cluster can serve environments, and the caller may ask for them. A line each; red ones say what to do.

mod checks;
mod rights;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};

use crate::Console;
use crate::cli;
use crate::cluster::{Cluster, Kinds};
use crate::failure::Failure;
use crate::paint::{self, Leaf, Mark};
use checks::{Check, ProviderConfigs, Seen, World};

/// Looks at everything that an environment needs.
pub(crate) async fn run(args: &cli::Doctor, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = Kinds::ask(&cluster).await?;
    let version = cluster.client.apiserver_version().await;
    let version = version.map_err(|error| cluster.explain(&error, "ask for the version"))?;
    let mut all = vec![Check::good("Kubernetes", format!("{} at {}", version.git_version, cluster.server))];
    all.extend(checks::all(&look(&cluster, &kinds).await));
    let broken = count(&all);
    let (rights, denied) = rights::check(&cluster, &kinds).await?;
    all.extend(rights);
    let leaves: Vec<Leaf> = all.iter().map(Check::leaf).collect();
    paint::tree(&leaves, console.out)?;
    console.out.flush()?;
    if broken > 0 {
        return Err(Failure::Provisioning {
            what: cluster.server,
            message: format!("cannot serve every environment: {broken} of {} checks failed", all.len()),
        });
    }
    if denied {
        return Err(Failure::NoAccess {
            message: format!("you may not ask for environments in namespace {}", cluster.namespace),
            check: "-n and --context, or ask for the role paved-road-user".to_owned(),
        });
    }
    Ok(())
}

fn count(checks: &[Check]) -> usize {
    checks.iter().filter(|check| check.mark == Mark::Bad).count()
}

/// Reads what the checks are about, as far as the caller may.
async fn look(cluster: &Cluster, kinds: &Kinds) -> World {
    let crossplane = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let apis = "apiextensions.crossplane.io";
    let packages = "pkg.crossplane.io";
    let [definitions, compositions, configs, functions, providers] = [
        crossplane(apis, "v1", "CompositeResourceDefinition", "compositeresourcedefinitions"),
        crossplane(apis, "v1", "Composition", "compositions"),
        crossplane(apis, "v1beta1", "EnvironmentConfig", "environmentconfigs"),
        crossplane(packages, "v1", "Function", "functions"),
        crossplane(packages, "v1", "Provider", "providers"),
    ];
    let groups = cluster.client.list_api_groups_aggregated().await.unwrap_or_default();
    let (definitions, compositions, configs, functions, providers, crossplane) = futures::join!(
        all(cluster, &definitions),
        all(cluster, &compositions),
        all(cluster, &configs),
        all(cluster, &functions),
        all(cluster, &providers),
        installed(cluster),
    );
    let mut provider_configs = Vec::new();
    for resource in provider_config_kinds(&groups) {
        let objects = all(cluster, &resource).await;
        provider_configs.push(ProviderConfigs { resource, objects });
    }
    World {
        kinds: kinds.all().to_vec(),
        crossplane,
        definitions,
        compositions,
        configs,
        functions,
        providers,
        provider_configs,
    }
}

/// Every object of a kind, whatever its namespace.
async fn all(cluster: &Cluster, resource: &ApiResource) -> Seen {
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Seen::All(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Seen::NoSuchKind,
        Err(_) => Seen::Hidden,
    }
}

/// Crossplane's version, where its Deployment may be seen and says so.
async fn installed(cluster: &Cluster) -> Option<String> {
    let api: Api<Deployment> = Api::all(cluster.client.clone());
    let list = api.list(&ListParams::default().labels("app=crossplane")).await.ok()?;
    let labels = list.items.into_iter().filter_map(|deployment| deployment.metadata.labels);
    labels.into_iter().find_map(|labels| labels.get("app.kubernetes.io/version").cloned())
}

/// The kinds of provider config by which environments reach clouds: the cluster-wide ones, which are the default.
fn provider_config_kinds(groups: &APIGroupDiscoveryList) -> Vec<ApiResource> {
    let mut kinds = Vec::new();
    for group in &groups.items {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
        if checks::cloud(name).is_none() {
            continue;
        }
        let wanted = if name.contains(".m.") { "ClusterProviderConfig" } else { "ProviderConfig" };
        // It may have another version than the group's newest kinds.
        let found = group.versions.iter().find_map(|version| {
            let is_wanted = |resource: &&APIResourceDiscovery| {
                resource.response_kind.as_ref().is_some_and(|kind| kind.kind.as_deref() == Some(wanted))
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
    kinds
}
