//! The objects of an installation, found by their content and their names. An installation by
//! kubectl, by the chart or by Git has the same objects.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::{Flavour, find};
use function_paved_road::manifests::{ENVIRONMENT_CONFIG, installation as names};
use kube::api::DynamicObject;
use paved_client::cluster::{CATEGORY, Cluster, Selector, is_denied};
use paved_client::git;

use super::few;
use super::kinds::{
    ACTIVATION, COMPOSITIONS, CONFIGURATION_REVISIONS, DEFINITIONS, DEPLOYMENTS, Object, POLICIES,
    POLICY_BINDINGS, PROVIDER_REVISIONS, PROVIDERS, ROLE_BINDINGS, ROLES, RUNTIME_CONFIGS,
    SETTINGS, api,
};
use super::packages::{self, function, owner};
use super::providers::{self, Unused};
use crate::failure::Failure;

/// Objects that are removed together.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) objects: Vec<Object>,
    /// Objects that Kubernetes deletes with these objects.
    pub(super) dependents: Vec<Object>,
    /// Whether kinds of environments end with these objects.
    pub(super) ends_kinds: bool,
}

/// An installation.
pub(super) struct Installed {
    /// The XRDs, for the check that no environment exists.
    pub(super) definitions: Vec<DynamicObject>,
    steps: [Step; 6],
    /// Compositions of others that use our function.
    users: Vec<String>,
    /// Runtime configs that a Provider still needs.
    needed_configs: Vec<String>,
    /// Providers that stay, each with the kind of an existing object.
    used_providers: BTreeMap<String, String>,
    /// A tool that applies the objects from Git.
    applier: Option<String>,
}

impl Installed {
    /// Finds the objects, on request with unused providers.
    pub(super) async fn find(cluster: &Cluster, with_providers: bool) -> Result<Self, Failure> {
        let mut definitions = DEFINITIONS.list(cluster).await?;
        definitions.retain(is_ours);
        let (ours, others): (Vec<_>, Vec<_>) = COMPOSITIONS
            .list(cluster)
            .await?
            .into_iter()
            .filter(|composition| function(composition).is_some())
            .partition(composes_our_kind);
        let configurations = packages::configurations(cluster, &definitions).await?;
        let owned = |object: &&DynamicObject| owner(object).is_some();
        let (packed, own): (Vec<_>, Vec<_>) = definitions.iter().partition(owned);
        let (packed_too, own_too): (Vec<_>, Vec<_>) = ours.iter().partition(owned);
        let objects = |definitions: &[&DynamicObject], compositions: &[&DynamicObject]| {
            let compositions = compositions.iter().map(|one| COMPOSITIONS.object(one));
            let definitions = definitions.iter().map(|one| DEFINITIONS.object(one));
            compositions.chain(definitions).collect::<Vec<_>>()
        };
        let revisions = CONFIGURATION_REVISIONS.of_packages(cluster, &configurations).await?;
        let apis = Step {
            title: "APIs",
            objects: [configurations, objects(&own, &own_too)].concat(),
            dependents: [revisions, objects(&packed, &packed_too)].concat(),
            ends_kinds: true,
        };
        let users: Vec<String> = others.iter().map(|one| COMPOSITIONS.object(one).name).collect();
        let is_shared = !users.is_empty();
        let groups = groups(cluster, &definitions).await?;
        let providers = if with_providers && !is_shared {
            providers::unused(cluster, &packages::names()).await?
        } else {
            Unused::default()
        };
        let removed = [providers.objects.clone(), providers.families.clone()].concat();
        let staying = staying_configs(cluster, &removed).await?;
        let revisions = PROVIDER_REVISIONS.of_packages(cluster, &providers.objects).await?;
        let (rights, needed_configs) = rights(cluster, &groups, &staying, is_shared).await?;
        let applier = definitions.iter().find_map(|one| git::applier(&one.metadata));
        let (mut functions, mut settings) = (Vec::new(), Vec::new());
        if !is_shared {
            functions = packages::functions(cluster, &ours).await?;
            settings = SETTINGS.named(cluster, |name| name == ENVIRONMENT_CONFIG).await?;
        }
        let step = |title, objects| Step { title, objects, dependents: vec![], ends_kinds: false };
        Ok(Self {
            definitions,
            steps: [
                apis,
                step("Function", functions),
                Step { dependents: revisions, ..step("Providers", providers.objects) },
                step("Families of providers", providers.families),
                step("Runtime configs, roles and policies", rights),
                step("Settings", settings),
            ],
            users,
            needed_configs,
            used_providers: providers.used,
            applier: applier.map(|applier| applier.to_string()),
        })
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| step.objects.is_empty() && step.dependents.is_empty())
    }

    /// Notes for the question.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(applier) = &self.applier {
            notes.push(format!(
                "{applier} these objects, and may create them again. Remove them there first"
            ));
        }
        if !self.users.is_empty() {
            notes.push(format!(
                "the function, its roles and the Settings stay, because other Compositions use \
                 them: {}",
                few(&self.users)
            ));
        }
        if !self.used_providers.is_empty() {
            let used: Vec<String> =
                self.used_providers.iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
            notes.push(format!(
                "these providers stay, because objects of their kinds exist: {}",
                few(&used)
            ));
        }
        notes
    }

    /// Lines about the objects that stay.
    pub(super) async fn left(&self, cluster: &Cluster) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        let providers = PROVIDERS.named(cluster, |_| true).await?;
        let names: Vec<String> = providers.into_iter().map(|one| one.name).collect();
        if !names.is_empty() {
            lines.push(format!("Crossplane and the providers {}", few(&names)));
        }
        if !self.needed_configs.is_empty() {
            lines.push(format!(
                "the runtime configs of providers that still use them: {}",
                few(&self.needed_configs)
            ));
        }
        if !self.users.is_empty() {
            lines.push(format!("the function, for the Compositions {}", few(&self.users)));
        }
        let programs = programs(cluster).await?;
        if !programs.is_empty() {
            lines.push(format!("the portal and the controller: {}", few(&programs)));
        }
        Ok(lines)
    }
}

/// Whether an XRD has the category of our kinds.
fn is_ours(definition: &DynamicObject) -> bool {
    let names = ["claimNames", "names"].map(|names| &definition.data["spec"][names]["categories"]);
    names.iter().filter_map(|categories| categories.as_array()).flatten().any(|one| one == CATEGORY)
}

fn composes_our_kind(composition: &DynamicObject) -> bool {
    let kind = composition.data["spec"]["compositeTypeRef"]["kind"].as_str();
    kind.is_some_and(|kind| find(kind).is_some())
}

/// The API groups of the XRDs, and of policies that an interrupted run has left.
async fn groups(
    cluster: &Cluster,
    definitions: &[DynamicObject],
) -> Result<BTreeSet<String>, Failure> {
    let of =
        |definition: &DynamicObject| definition.data["spec"]["group"].as_str().map(str::to_owned);
    let mut groups: BTreeSet<String> = definitions.iter().filter_map(of).collect();
    let defaults = Flavour::ALL.map(|flavour| flavour.default_group().to_owned());
    groups.extend(defaults);
    for policy in POLICIES.named(cluster, |_| true).await? {
        groups.extend(names::group_of_policy(&policy.name).map(str::to_owned));
    }
    Ok(groups)
}

/// The activation, runtime configs, bindings, roles and policies, in the order of their removal,
/// and the runtime configs that Providers still need. If others use the function, only the objects
/// of our groups. Policies are last, because they tell the groups to a later run.
async fn rights(
    cluster: &Cluster,
    groups: &BTreeSet<String>,
    staying: &BTreeSet<String>,
    is_shared: bool,
) -> Result<(Vec<Object>, Vec<String>), Failure> {
    let of_groups = |names: fn(&str) -> Vec<String>| -> BTreeSet<String> {
        groups.iter().flat_map(|group| names(group)).collect()
    };
    let (activation, policies) = (of_groups(names::activation), of_groups(names::policies));
    let mut roles = of_groups(names::roles);
    let mut configs = BTreeSet::new();
    let mut needed = Vec::new();
    if !is_shared {
        roles.extend(names::ROLES.map(str::to_owned));
        configs.insert(names::FUNCTION_CONFIG.to_owned());
        for config in names::PROVIDER_CONFIGS {
            if staying.contains(config) {
                needed.push(config.to_owned());
            } else {
                configs.insert(config.to_owned());
            }
        }
    }
    let mut all = ACTIVATION.list(cluster).await?;
    all.retain(|one| owner(one).is_none());
    let activation = all.iter().map(|one| ACTIVATION.object(one)).filter(|object| {
        let (_, group) = object.name.split_once('.').unwrap_or_default();
        activation.contains(&object.name) && !group.is_empty()
    });
    let mut found: Vec<Object> = activation.collect();
    found.extend(RUNTIME_CONFIGS.named(cluster, |name| configs.contains(name)).await?);
    found.extend(ROLE_BINDINGS.named(cluster, |name| roles.contains(name)).await?);
    found.extend(ROLES.named(cluster, |name| roles.contains(name)).await?);
    found.extend(POLICY_BINDINGS.named(cluster, |name| policies.contains(name)).await?);
    found.extend(POLICIES.named(cluster, |name| policies.contains(name)).await?);
    Ok((found, needed))
}

/// The runtime configs of the Providers that are not removed.
async fn staying_configs(
    cluster: &Cluster,
    removed: &[Object],
) -> Result<BTreeSet<String>, Failure> {
    let mut all = PROVIDERS.list(cluster).await?;
    let is_removed = |name: &String| removed.iter().any(|object| object.name == *name);
    all.retain(|one| !one.metadata.name.as_ref().is_some_and(is_removed));
    let name = |provider: &DynamicObject| {
        provider.data["spec"]["runtimeConfigRef"]["name"].as_str().map(str::to_owned)
    };
    Ok(all.iter().filter_map(name).collect())
}

/// The Deployments of the portal and the controller, by their label. They are no part of this
/// command.
async fn programs(cluster: &Cluster) -> Result<Vec<String>, Failure> {
    let labelled = Selector::with(&[("app.kubernetes.io/part-of", "paved-road")])
        .map_err(|invalid| Failure::Usage(invalid.to_string()))?
        .list_params();
    let found = api(cluster, &DEPLOYMENTS.resource()).list_metadata(&labelled).await;
    let found = match found {
        Err(error) if is_denied(&error) => return Ok(Vec::new()),
        found => found.map_err(|error| cluster.explain(&error, "list deployments"))?,
    };
    let title = |one: &kube::api::ObjectMeta| {
        let (namespace, name) = (one.namespace.clone(), one.name.clone());
        format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
    };
    Ok(found.items.iter().map(|one| title(&one.metadata)).collect())
}
