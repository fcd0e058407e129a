//! The provider config of a managed resource.

use crossplane::api_version;

use super::Composer;
use crate::models::Provider;
use crate::settings::ProviderConfigs;
use crate::value::{Object, at, text};

impl Composer<'_> {
    /// The provider config of a new resource: the requested one, else the one of existing
    /// resources, else the one of Settings.
    pub(super) fn config(&self, provider: Provider, asked: Option<&str>) -> Object {
        let configs = &self.settings.provider_configs;
        match asked {
            Some(name) => ProviderConfigs::composed(name, self.xr.scope),
            None => self.sibling_config(provider).unwrap_or_else(|| {
                configs.reference(provider, self.xr.scope, self.xr.user_namespace())
            }),
        }
    }

    /// The provider config of existing resources in the same cloud or cluster, because an
    /// environment never spans two accounts. Resources that use a provider config of the
    /// environment itself are elsewhere.
    fn sibling_config(&self, provider: Provider) -> Option<Object> {
        let composed = |name: &str| {
            self.observation.resources.values().any(|resource| {
                text(&resource.object, &["kind"]) == Some("ProviderConfig")
                    && resource.name() == Some(name)
            })
        };
        let (family, domain) = provider.group();
        let of_family = |api_version: &str| {
            api_version::group(api_version)
                .strip_suffix(domain)
                .is_some_and(|group| group.split('.').any(|label| label == family))
        };
        self.observation
            .resources
            .values()
            .filter(|resource| {
                resource.is_ours() && text(&resource.object, &["apiVersion"]).is_some_and(of_family)
            })
            .find_map(|resource| {
                let running = at(&resource.object, &["spec", "providerConfigRef"])?.as_object()?;
                text(running, &["name"]).filter(|name| !composed(name))?;
                let ours =
                    running.iter().filter(|(key, _)| ["name", "kind"].contains(&key.as_str()));
                Some(ours.map(|(key, value)| (key.clone(), value.clone())).collect())
            })
    }
}
