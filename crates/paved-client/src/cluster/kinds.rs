//! The kinds of environment that a cluster serves, found through API discovery.
//!
//! No kind is compiled in: a company chooses its own API group, and installs the claims API, the
//! namespaced API or both. The category `paved` marks a kind that users apply. Each of our XRDs
//! gives it to its claim, or to its composite if it has no claim.

use std::collections::BTreeSet;
use std::time::Duration;

use crossplane::suggest;
use function_paved_road::apis::{AnyApi, ConnectionTarget, Flavour};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};
use kube::{Client, api::DynamicObject};
use tokio::time::timeout;

use super::{Api, Cluster};
use crate::Failure;

/// The category of the kinds that users apply.
pub const CATEGORY: &str = "paved";

/// The category that Crossplane gives to every claim.
const CLAIM: &str = "claim";

/// The timeout of the first response.
const ANSWER: Duration = Duration::from_secs(30);

/// A kind of environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    singular: String,
    short: Vec<String>,
    is_claim: bool,
}

impl Kind {
    fn from_discovery(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<Self> {
        let kind = resource.response_kind.as_ref()?.kind.as_deref()?;
        Some(Self {
            resource: api_resource(group, version, kind, resource.resource.as_deref()?),
            singular: resource.singular_resource.clone().unwrap_or_default(),
            short: resource.short_names.clone(),
            is_claim: resource.categories.iter().any(|one| one == CLAIM),
        })
    }

    /// The API of its objects, in one namespace or in all.
    pub fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        Api::for_resource(client, namespace, &self.resource)
    }

    /// `Kind`.
    pub fn name(&self) -> &str {
        &self.resource.kind
    }

    /// The API of this kind in the cluster: claims or namespaced.
    pub fn flavour(&self) -> Flavour {
        if self.is_claim { Flavour::Claims } else { Flavour::Namespaced }
    }

    /// The kind's API in this product, for any group.
    pub fn paved_api(&self) -> Option<&'static dyn AnyApi> {
        function_paved_road::apis::for_environment_kind(self.name())
    }

    /// `Kind.group`. This is never ambiguous.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.resource.kind, self.resource.group)
    }

    /// Whether `text` is one of its names: kind, plural, singular or short name, alone or with
    /// `.group` or `.version.group`.
    fn is_called(&self, text: &str) -> bool {
        let (name, rest) = text.split_once('.').unwrap_or((text, ""));
        let ApiResource { group, version, kind, plural, .. } = &self.resource;
        let names = [kind, plural, &self.singular].into_iter().chain(&self.short);
        let in_group = rest.is_empty() || rest == group || rest == format!("{version}.{group}");
        !name.is_empty() && in_group && names.into_iter().any(|one| one.eq_ignore_ascii_case(name))
    }
}

/// The name of an API group in a discovery response. The core group has an empty name.
pub fn group_name(group: &APIGroupDiscovery) -> &str {
    group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}

/// All kinds of environment that a cluster serves, sorted by name and group.
#[derive(Clone, Debug, PartialEq)]
pub struct Kinds(Vec<Kind>);

impl Kinds {
    /// Discovers the kinds. Fails with an explanation if there are none.
    pub async fn discover(cluster: &Cluster) -> Result<Self, Failure> {
        let kinds = Self::ask(cluster).await?;
        if kinds.0.is_empty() {
            return Err(Failure::Usage(format!(
                "{} has no environments: no kind has the category {CATEGORY}. Run `paved doctor` \
                 to find the missing component",
                cluster.server
            )));
        }
        Ok(kinds)
    }

    /// Discovers the kinds. The result may be empty.
    pub async fn ask(cluster: &Cluster) -> Result<Self, Failure> {
        let explain = |error: &kube::Error| cluster.explain(error, "list the kinds");
        let asked = timeout(ANSWER, cluster.client.list_api_groups_aggregated()).await;
        let Ok(answered) = asked else {
            return Err(Failure::NoAccess {
                message: format!(
                    "{} did not respond within {} s",
                    cluster.server,
                    ANSWER.as_secs()
                ),
                check: "--context, your network and VPN, and the state of the cluster".to_owned(),
            });
        };
        match answered {
            Ok(groups) if !groups.items.is_empty() => Ok(Self::from_discovery(&groups)),
            // An API server before 1.27 returns another type of response.
            Ok(_) | Err(kube::Error::SerdeError(_)) => {
                one_by_one(&cluster.client).await.map_err(|error| explain(&error))
            }
            Err(error) => Err(explain(&error)),
        }
    }

    pub(super) fn from_discovery(groups: &APIGroupDiscoveryList) -> Self {
        let mut kinds = Vec::new();
        for group in &groups.items {
            let name = group_name(group);
            // The preferred version comes first. Several served versions of a kind count as one
            // kind.
            let mut known = BTreeSet::new();
            for version in &group.versions {
                let marked = version
                    .resources
                    .iter()
                    .filter(|one| one.categories.iter().any(|one| one == CATEGORY));
                let served = marked
                    .filter_map(|one| Kind::from_discovery(name, version.version.as_deref()?, one));
                kinds.extend(served.filter(|kind| known.insert(kind.resource.kind.clone())));
            }
        }
        Self::sorted(kinds)
    }

    fn sorted(mut kinds: Vec<Kind>) -> Self {
        kinds.sort_by(|a, b| {
            (&a.resource.kind, &a.resource.group).cmp(&(&b.resource.kind, &b.resource.group))
        });
        Self(kinds)
    }

    /// All kinds.
    pub fn all(&self) -> &[Kind] {
        &self.0
    }

    /// The kinds with which users connect in this way first. There may be none.
    #[must_use]
    pub fn with_target(mut self, target: ConnectionTarget) -> Self {
        let first = |kind: &Kind| kind.paved_api()?.info().connection_targets.first().copied();
        self.0.retain(|kind| first(kind) == Some(target));
        self
    }

    /// The kinds named by `text`, for example `gpuws` or `environment.platform.acme.io`. An error
    /// lists the available kinds.
    pub fn called(&self, text: &str) -> Result<Vec<Kind>, Failure> {
        let kinds: Vec<Kind> = self.0.iter().filter(|kind| kind.is_called(text)).cloned().collect();
        if !kinds.is_empty() {
            return Ok(kinds);
        }
        // The kind may be ours, with only the group wrong.
        let bare = text.split_once('.').map_or(text, |(bare, _)| bare);
        let elsewhere: Vec<String> =
            self.0.iter().filter(|kind| kind.is_called(bare)).map(Kind::full_name).collect();
        let known = if elsewhere.is_empty() {
            suggest::names("kind", text, &self.names())
        } else {
            format!("this cluster has no kind {text:?}. Available: {}", elsewhere.join(" and "))
        };
        Err(Failure::Usage(known))
    }

    /// Finds the kind of a document. The error has the wrong field, `kind` or `apiVersion`, and its
    /// allowed values.
    pub fn for_document(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<&Kind, (&'static str, String)> {
        let (group, version) = crossplane::api_version::split(api_version);
        let same: Vec<&Kind> = self.0.iter().filter(|one| one.name() == kind).collect();
        if same.is_empty() {
            return Err(("kind", suggest::names("kind", kind, &self.names())));
        }
        let fits = |one: &&&Kind| one.resource.group == group && one.resource.version == version;
        same.iter().find(fits).copied().ok_or_else(|| {
            let allowed: Vec<&str> =
                same.iter().map(|one| one.resource.api_version.as_str()).collect();
            let found = if api_version.is_empty() { "none" } else { api_version };
            ("apiVersion", format!("found {found}; allowed: {kind} in {}", allowed.join(" and ")))
        })
    }

    /// Whether a document is probably an environment: its kind is ours or similar to ours, or its
    /// group is ours.
    pub fn may_be_meant(&self, api_version: &str, kind: &str) -> bool {
        let group = crossplane::api_version::group(api_version);
        let is_ours = self.0.iter().any(|one| one.name() == kind || one.resource.group == group);
        is_ours || crossplane::nearest(kind, self.names()).is_some()
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(Kind::name).collect();
        names.dedup();
        names
    }
}

fn api_resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Reads one group at a time, which every API server supports.
async fn one_by_one(client: &Client) -> kube::Result<Kinds> {
    const CONCURRENCY: usize = 8;
    let groups = client.list_api_groups().await?.groups;
    let versions: Vec<String> = groups
        .into_iter()
        .filter_map(|group| group.preferred_version.or_else(|| group.versions.into_iter().next()))
        .map(|version| version.group_version)
        .collect();
    let kinds: Vec<Vec<Kind>> = stream::iter(versions)
        .map(|version| async move {
            let resources = client.list_api_group_resources(&version).await?.resources;
            let marked = |resource: &&APIResource| {
                resource.categories.iter().flatten().any(|one| one == CATEGORY)
                    && !resource.name.contains('/')
            };
            let (group, version) = crossplane::api_version::split(&version);
            let kind = |resource: &APIResource| Kind {
                resource: api_resource(group, version, &resource.kind, &resource.name),
                singular: resource.singular_name.clone(),
                short: resource.short_names.clone().unwrap_or_default(),
                is_claim: resource.categories.iter().flatten().any(|one| one == CLAIM),
            };
            Ok::<_, kube::Error>(resources.iter().filter(marked).map(kind).collect())
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    Ok(Kinds::sorted(kinds.into_iter().flatten().collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cluster::samples::kinds;

    #[test]
    fn labelled_kinds_are_ours_in_any_group() {
        let names: Vec<String> = kinds().all().iter().map(Kind::full_name).collect();
        assert_eq!(
            names,
            [
                "Environment.dev.example.org",
                "Environment.platform.acme.io",
                "GpuDevWorkspaceClaim.platform.acme.io"
            ]
        );
        assert_eq!(kinds().all()[0].resource.api_version, "dev.example.org/v1alpha1");
        assert_eq!(
            [0, 1].map(|index| kinds().all()[index].flavour()),
            [Flavour::Namespaced, Flavour::Claims]
        );
    }

    #[test]
    fn kind_is_found_by_all_its_names() {
        for (text, count) in [
            ("gpuws", 1),
            ("GPUDevWorkspaceClaims", 1),
            ("environment", 2),
            ("environment.dev.example.org", 1),
            ("environments.v1alpha1.dev.example.org", 1),
        ] {
            assert_eq!(kinds().called(text).unwrap().len(), count, "{text}");
        }
        for text in ["", "app", "environment.acme.io", "gpudevworkspace"] {
            assert!(matches!(kinds().called(text), Err(Failure::Usage(_))), "{text}");
        }
        let told = kinds().called("environment.acme.io").unwrap_err().to_string();
        assert!(told.contains("Available: Environment.dev.example.org and Environment."), "{told}");
    }

    #[test]
    fn misspelled_kinds_are_distinguished_from_foreign_ones() {
        for (version, kind, meant) in [
            ("platform.acme.io/v1alpha1", "GpuDevWorkspaceClaim", true),
            ("other.example.org/v1", "Environment", true),
            ("v1", "GpuDevWorkspaceClai", true),
            ("dev.example.org/v1", "Anything", true),
            ("v1", "Secret", false),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization", false),
            ("", "", false),
        ] {
            assert_eq!(kinds().may_be_meant(version, kind), meant, "{version} {kind}");
        }
    }

    #[test]
    fn wrong_group_lists_known_groups_and_unknown_kind_lists_ours() {
        let kinds = kinds();
        assert!(kinds.for_document("dev.example.org/v1alpha1", "Environment").is_ok());
        let wrong = |version: &str, kind: &str| kinds.for_document(version, kind).unwrap_err();
        assert_eq!(
            wrong("platform.m.acme.io/v1alpha1", "Environment"),
            (
                "apiVersion",
                "found platform.m.acme.io/v1alpha1; allowed: Environment in \
                 dev.example.org/v1alpha1 and \
                 platform.acme.io/v1alpha1"
                    .to_owned()
            )
        );
        let (field, message) = wrong("v1", "GpuDevWorkspaceClai");
        assert_eq!(field, "kind");
        assert!(message.contains("allowed: Environment, GpuDevWorkspaceClaim"), "{message}");
        assert!(message.contains("did you mean GpuDevWorkspaceClaim?"), "{message}");
        assert!(wrong("", "").1.starts_with("missing; allowed: Environment, "));
    }
}
