//! The provider configs that resources name. Without its provider config, a provider cannot reach
//! its cloud.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use crossplane::api_version::group_of;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use simulator::provider::model::{Model, missing_config, untracked_usage};
use xtask::guide::{self, OPERATIONS};

use super::Trouble;
use super::resource::text;

/// The provider configs that exist.
pub struct Configs {
    client: Client,
    /// Known provider configs. They remain while they are in use, because of a provider's webhook
    /// or finalizer.
    found: Mutex<BTreeSet<Named>>,
}

/// A provider config as a resource names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    group: String,
    kind: String,
    /// Empty if it is cluster-scoped.
    namespace: String,
    name: String,
}

impl Configs {
    /// The provider configs of a cluster.
    pub fn new(client: Client) -> Self {
        Self { client, found: Mutex::default() }
    }

    /// Fails if a resource names a missing provider config. The providers of clouds are then
    /// silent, and other providers report it.
    ///
    /// Also fails if the usage of the provider config cannot be recorded: the deletion of a
    /// namespace first deletes the usages in the namespace, and forbids to create them again. Then
    /// the provider of a resource that is being deleted there never connects.
    pub async fn check(&self, object: &Value) -> Result<(), Trouble> {
        let namespace = text(object, "/metadata/namespace");
        if !namespace.is_empty() && object["metadata"]["deletionTimestamp"].is_string() {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let found = namespaces.get_metadata_opt(namespace).await?;
            if found.is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
                return Err(Trouble::Refused(untracked_usage(object)));
            }
        }
        let Some(named) = Named::by(object) else { return Ok(()) };
        if self.found.lock().unwrap_or_else(PoisonError::into_inner).contains(&named) {
            return Ok(());
        }
        match named.api(&self.client).get_metadata(&named.name).await {
            Ok(_) => {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(named);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let Named { group, kind, name, .. } = named;
                if Model::for_object(object).is_silent_without_config() {
                    return Err(Trouble::Silent);
                }
                Err(Trouble::Refused(missing_config(&format!("{kind}.{group}"), &name)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Named {
    /// The provider config that a resource names, or `default`. Azure's provider configs are
    /// unknown, because their schemas are missing here.
    fn by(object: &Value) -> Option<Self> {
        let group = group_of(object);
        let group = match group.strip_suffix(".upbound.io") {
            Some(_) => group.split_once('.')?.1,
            None => group,
        };
        let is_namespaced = group.split('.').any(|label| label == "m");
        let or =
            |found: &str, default: &str| if found.is_empty() { default } else { found }.to_owned();
        let kind = or(
            text(object, "/spec/providerConfigRef/kind"),
            if is_namespaced { "ClusterProviderConfig" } else { "ProviderConfig" },
        );
        let lives_in_namespace = is_namespaced && kind == "ProviderConfig";
        let namespace = text(object, "/metadata/namespace");
        let named = Self {
            group: group.to_owned(),
            kind,
            namespace: if lives_in_namespace { namespace.to_owned() } else { String::new() },
            name: or(text(object, "/spec/providerConfigRef/name"), "default"),
        };
        (!group.starts_with("azure.")).then_some(named)
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let version = if self.group.ends_with("upbound.io") { "v1beta1" } else { "v1alpha1" };
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk(&self.group, version, &self.kind));
        if self.namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), &self.namespace, &resource)
        }
    }
}

/// The provider configs of the clouds and of PostgreSQL that the operator's guide has a platform
/// team apply, for claims and for namespaced composites.
pub fn from_guide() -> anyhow::Result<Vec<Value>> {
    let text = guide::text(OPERATIONS)?;
    let blocks = text.split("```yaml\n").filter_map(|block| Some(block.split_once("\n```")?.0));
    let blocks: Vec<_> =
        blocks.filter(|block| block.contains("kind: ClusterProviderConfig")).collect();
    let namespaced = blocks.join("\n---\n");
    let claims = namespaced.replace(".m.", ".").replace("kind: Cluster", "kind: ");
    let both = format!("{namespaced}\n---\n{claims}");
    let mut configs: Vec<Value> =
        serde_saphyr::from_multiple(&both).context("the operator's guide")?;
    // These providers run here as real programs, with provider configs for this cluster.
    let is_played = |config: &Value| {
        !["kubernetes.", "helm."]
            .iter()
            .any(|family| self::text(config, "/apiVersion").starts_with(family))
    };
    configs.retain(is_played);
    Ok(configs)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use serde_json::json;

    use super::*;

    #[test]
    fn resource_refers_to_a_config_of_its_family() {
        let named = |api_version: &str, reference: Value| {
            let object = json!({"apiVersion": api_version, "metadata": {"namespace": "team"}, "spec": {"providerConfigRef": reference}});
            Named::by(&object)
                .map(|named| [named.group, named.kind, named.namespace, named.name].join(" "))
        };
        let of = |text: &str| Some(text.to_owned());
        let own = json!({"kind": "ProviderConfig", "name": "own"});
        for (api_version, reference, expected) in [
            (
                "ec2.aws.upbound.io/v1beta1",
                json!({"name": "a"}),
                of("aws.upbound.io ProviderConfig  a"),
            ),
            (
                "ec2.aws.m.upbound.io/v1beta1",
                json!(null),
                of("aws.m.upbound.io ClusterProviderConfig  default"),
            ),
            ("sql.gcp.m.upbound.io/v1beta1", own, of("gcp.m.upbound.io ProviderConfig team own")),
            (
                "postgresql.sql.crossplane.io/v1alpha1",
                json!(null),
                of("postgresql.sql.crossplane.io ProviderConfig  default"),
            ),
            ("containerservice.azure.upbound.io/v1beta2", json!({"name": "a"}), None),
        ] {
            assert_eq!(named(api_version, reference), expected);
        }
    }

    #[test]
    fn guide_has_a_config_for_each_simulated_provider() {
        let configs = from_guide().unwrap();
        let groups: Vec<_> = configs.iter().map(|config| text(config, "/apiVersion")).collect();
        assert_eq!(
            groups,
            [
                "aws.m.upbound.io/v1beta1",
                "gcp.m.upbound.io/v1beta1",
                "postgresql.sql.m.crossplane.io/v1alpha1",
                "aws.upbound.io/v1beta1",
                "gcp.upbound.io/v1beta1",
                "postgresql.sql.crossplane.io/v1alpha1",
            ]
        );
    }
}
