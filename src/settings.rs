//! Settings: the configuration of the platform team. They come as the step's input. The
//! EnvironmentConfig that `settingsFrom` names is merged over the input. Each API declares the type
//! of its own section.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::catalog::prices::Usd;
use crate::catalog::tags;
use crate::check::{self, Fields, Refused};
use crate::error::{Error, FieldError};
use crate::lifecycle::LifecycleSettings;
use crate::models::{Provider, Scope};
use crate::pricing::Pricing;
use crate::value::Object;

/// `apiVersion` of the step's input.
pub const API_VERSION: &str = "paved-road.fn.crossplane.io/v1beta1";
/// `kind` of the step's input.
pub const KIND: &str = "Settings";

/// Revision of the status schemas that the Compositions of this release come with.
pub const SCHEMA_REVISION: u32 = 3;

/// The settings that all APIs share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Common {
    /// Schema revision that the Composition was released with. Status fields, kinds and slots of
    /// later revisions are omitted.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_revision: Option<u32>,
    /// Lowest schema revision of a Composition that new environments may use. Users can choose older
    /// revisions of a Composition. Set this value in the EnvironmentConfig, which all revisions
    /// share. Existing environments continue, with a warning. Default: no minimum.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_schema_revision: Option<u32>,
    /// EnvironmentConfig to merge over this input. Maps in its `data` merge deeply, and lists
    /// replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings_from: Option<SettingsFrom>,
    /// Tags or labels to add to every cloud resource that supports them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Tags or labels with the values of an environment's own labels: the label by the key of the
    /// tag, for example `cost-center: acme.io/cost-center`. Users set these labels on their
    /// environments. An environment without the label has the tag of `tags` with that key, or none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags_from_labels: BTreeMap<String, String>,
    /// Provider configs of the resources, by provider family.
    pub provider_configs: ProviderConfigs,
    /// Prices that differ from the list prices, for the estimated price of an environment.
    #[serde(skip_serializing_if = "Pricing::is_empty")]
    pub pricing: Pricing,
    /// Limits of `paved controller`. The function ignores them.
    #[serde(skip_serializing_if = "Controller::is_empty")]
    pub controller: Controller,
    /// Budgets of namespaces, for checks of `paved`. The function ignores them.
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Whether the EnvironmentConfig that `settingsFrom` names could not be found.
    #[serde(skip)]
    pub config_not_found: bool,
}

impl Common {
    /// The tags of cloud resources.
    pub fn chosen_tags(&self) -> tags::Chosen<'_> {
        tags::Chosen { fixed: &self.tags, from_labels: &self.tags_from_labels }
    }

    /// The schema revision that the Composition was released with. Default: the first.
    pub fn revision(&self) -> u32 {
        self.schema_revision.unwrap_or(1)
    }

    /// Checks the minimum of the schema revision. The function rejects only new environments for it.
    ///
    /// # Errors
    /// This release has no such revision.
    pub fn check_minimum(&self) -> Result<(), Error> {
        is_known("minimumSchemaRevision", self.minimum_schema_revision)
    }

    /// Checks the schema revision. The function takes a later one for its own newest, so that a
    /// rolled back function goes on.
    ///
    /// # Errors
    /// This release has no such revision.
    pub fn check_revision(&self) -> Result<(), Error> {
        is_known("schemaRevision", self.schema_revision)
    }

    /// Repeats the checks of the schema: Crossplane does not validate Settings.
    fn check(&self) -> Result<(), Error> {
        let wrong = |path: String, error: Refused| Error::settings(check::shown(&path), error);
        if self.schema_revision == Some(0) {
            return Err(wrong("schemaRevision".to_owned(), Refused::new("0", "1 or more")));
        }
        let names = self.provider_configs.names();
        let from = self
            .settings_from
            .iter()
            .map(|from| ("settingsFrom.name".to_owned(), from.name.as_str()));
        for (path, name) in names.into_iter().chain(from) {
            check::shape(name, 253, is_object_name, "the name of a Kubernetes object")
                .map_err(|error| wrong(path, error))?;
        }
        let tag_key = |field: &str, key: &str| {
            let allowed = "1 to 128 visible characters, not starting with aws:";
            let checked = check::shape(key, 128, is_tag_key, allowed);
            checked.map(|_| ()).map_err(|error| wrong(format!("{field}.{key}"), error))
        };
        for (key, value) in &self.tags {
            tag_key("tags", key)?;
            check::shape(value, 256, is_visible, "at most 256 visible characters")
                .map_err(|error| wrong(format!("tags.{key}"), error))?;
        }
        for (key, label) in &self.tags_from_labels {
            tag_key("tagsFromLabels", key)?;
            let path = format!("tagsFromLabels.{key}");
            check::kubernetes::label_key(label).map_err(|error| wrong(path, error))?;
        }
        let mut fields = Fields::default();
        self.pricing.check("settings.pricing", &mut fields);
        let deletions = i64::from(self.controller.deletions_per_hour());
        let checked = check::range(deletions, 0..=10_000, "deletions");
        fields.check("settings.controller.deletionsPerHour", checked);
        fields.verdict(Error::InvalidSettings)
    }
}

/// Checks that this release has a schema revision.
fn is_known(field: &str, revision: Option<u32>) -> Result<(), Error> {
    let Some(unknown) = revision.filter(|one| !(1..=SCHEMA_REVISION).contains(one)) else {
        return Ok(());
    };
    let allowed = format!(
        "1 to {SCHEMA_REVISION}, the newest schema revision of this release. Correct it, or install \
         a later release"
    );
    Err(Error::settings(field, Refused { found: unknown.to_string(), allowed }))
}

impl Common {
    /// Checks the names of namespaces. An invalid name would never match.
    pub(crate) fn check_names(&self) -> Vec<FieldError> {
        let mut fields = Fields::default();
        for (family, config) in self.provider_configs.families() {
            for namespace in config.by_namespace.keys() {
                let path = check::shown(&format!(
                    "settings.providerConfigs.{family}.byNamespace.{namespace}"
                ));
                fields.check(path, check::kubernetes::label(namespace));
            }
        }
        for namespace in self.budget.by_namespace.keys() {
            let path = check::shown(&format!("settings.budget.byNamespace.{namespace}"));
            fields.check(path, check::kubernetes::label(namespace));
        }
        fields.refused()
    }
}

/// RFC 1123: lower-case letters, digits, hyphens and dots.
fn is_object_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge)
        && name.ends_with(edge)
        && name.chars().all(|c| edge(c) || c == '-' || c == '.')
}

fn is_tag_key(key: &str) -> bool {
    !key.is_empty() && !key.to_ascii_lowercase().starts_with("aws:") && is_visible(key)
}

fn is_visible(text: &str) -> bool {
    !text.chars().any(check::is_invisible)
}

/// Limits of `paved controller`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Controller {
    /// Largest number of environments that the controller deletes in one hour. Default: 20. With 0,
    /// the controller deletes no environment.
    #[schemars(range(min = 0, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions_per_hour: Option<u32>,
}

impl Controller {
    /// The limit without Settings.
    const DELETIONS_PER_HOUR: u32 = 20;

    /// Whether Settings have no limits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Largest number of environments that the controller deletes in one hour.
    pub fn deletions_per_hour(&self) -> u32 {
        self.deletions_per_hour.unwrap_or(Self::DELETIONS_PER_HOUR)
    }
}

/// Budgets of namespaces: the largest sum of the estimated prices of their environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Budget {
    /// Budget of each namespace without its own, in US dollars for one hour, as a decimal number in
    /// quotes. Default: no budget.
    #[serde(rename = "defaultHourlyUSD", skip_serializing_if = "Option::is_none")]
    pub default_hourly_usd: Option<Usd>,
    /// Budgets by namespace, in US dollars for one hour, as decimal numbers in quotes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_namespace: BTreeMap<String, Usd>,
}

impl Budget {
    /// Whether Settings have no budgets.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The budget of a namespace.
    pub fn of(&self, namespace: &str) -> Option<Usd> {
        self.by_namespace.get(namespace).copied().or(self.default_hourly_usd)
    }
}

/// Reference to additional settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsFrom {
    /// Name of an EnvironmentConfig (apiextensions.crossplane.io/v1beta1).
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Whether new environments are allowed without the EnvironmentConfig. Then none of its limits
    /// applies. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Provider configs by provider family. Default: `default` for each family.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfigs {
    /// For AWS resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<ProviderConfig>,
    /// For Google Cloud resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp: Option<ProviderConfig>,
    /// For Azure resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<ProviderConfig>,
    /// For objects in Crossplane's own cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<ProviderConfig>,
    /// For Helm releases in Crossplane's own cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<ProviderConfig>,
    /// For databases on the shared PostgreSQL server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<ProviderConfig>,
}

/// A provider config, with overrides for namespaces that have their own accounts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// Name of the provider config.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Kind of the provider config, in the namespaced API only. Default: ClusterProviderConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderConfigKind>,
    /// Provider configs by the namespace of the claim or of the namespaced composite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_namespace: BTreeMap<String, NamespaceProviderConfig>,
}

/// A provider config for one namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamespaceProviderConfig {
    /// Name of the provider config.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Kind of the provider config, in the namespaced API only. Default: ClusterProviderConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderConfigKind>,
}

/// Kinds of provider config in the namespaced API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProviderConfigKind {
    /// Provider config for the whole cluster.
    #[default]
    ClusterProviderConfig,
    /// Provider config in the composite's namespace.
    ProviderConfig,
}

impl ProviderConfigs {
    /// `spec.providerConfigRef` for a resource of `provider` in an environment that was requested
    /// in `namespace`.
    pub fn reference(&self, provider: Provider, scope: Scope, namespace: Option<&str>) -> Object {
        let config = self.find(provider);
        let own = config
            .zip(namespace)
            .and_then(|(config, namespace)| config.by_namespace.get(namespace));
        let (name, kind) = match (own, config) {
            (Some(own), _) => (own.name.as_str(), own.kind),
            (None, Some(config)) => (config.name.as_str(), config.kind),
            (None, None) => ("default", None),
        };
        reference(name, kind.unwrap_or_default(), scope)
    }

    /// `spec.providerConfigRef` for a provider config that an environment composes, in its own
    /// namespace.
    pub fn composed(name: &str, scope: Scope) -> Object {
        reference(name, ProviderConfigKind::ProviderConfig, scope)
    }

    /// Every name of a provider config, by its path.
    fn names(&self) -> Vec<(String, &str)> {
        let mut names = Vec::new();
        for (family, config) in self.families() {
            let path = format!("providerConfigs.{family}");
            names.push((format!("{path}.name"), config.name.as_str()));
            let own = config.by_namespace.iter();
            names.extend(own.map(|(ns, config)| {
                (format!("{path}.byNamespace.{ns}.name"), config.name.as_str())
            }));
        }
        names
    }

    /// The families that have a config.
    fn families(&self) -> impl Iterator<Item = (&'static str, &ProviderConfig)> {
        let families = [
            ("aws", &self.aws),
            ("gcp", &self.gcp),
            ("azure", &self.azure),
            ("kubernetes", &self.kubernetes),
            ("helm", &self.helm),
            ("sql", &self.sql),
        ];
        families.into_iter().filter_map(|(family, config)| Some((family, config.as_ref()?)))
    }

    fn find(&self, provider: Provider) -> Option<&ProviderConfig> {
        match provider {
            Provider::Aws => self.aws.as_ref(),
            Provider::Gcp => self.gcp.as_ref(),
            Provider::Azure => self.azure.as_ref(),
            Provider::Kubernetes => self.kubernetes.as_ref(),
            Provider::Helm => self.helm.as_ref(),
            Provider::Sql => self.sql.as_ref(),
        }
    }
}

/// A reference. Only the namespaced API has kinds of provider configs.
fn reference(name: &str, kind: ProviderConfigKind, scope: Scope) -> Object {
    let mut reference = Object::new();
    reference.insert("name".into(), name.into());
    if scope == Scope::Namespaced {
        let kind = match kind {
            ProviderConfigKind::ClusterProviderConfig => "ClusterProviderConfig",
            ProviderConfigKind::ProviderConfig => "ProviderConfig",
        };
        reference.insert("kind".into(), kind.into());
    }
    reference
}

/// Settings as they were given. The common fields are typed, and each API reads its own section.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The settings that all APIs share.
    pub common: Common,
    sections: Object,
}

impl Settings {
    /// Reads a body of Settings. `sections` are the keys of the APIs' sections.
    pub fn read(mut body: Object, sections: &[&'static str]) -> Result<Self, Error> {
        for (key, ours) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            match body.remove(key) {
                Some(found) if found != ours => {
                    let found = check::quoted(found.as_str().unwrap_or("no text"));
                    return Err(Error::settings(key, format!("found {found}; allowed: {ours}")));
                }
                _ => {}
            }
        }
        body.remove("metadata");
        let own = sections.iter().filter_map(|key| body.remove_entry(*key)).collect();
        if let Some(unknown) = body.keys().find(|key| !COMMON.contains(&key.as_str())) {
            let known: Vec<_> = COMMON.iter().chain(sections).copied().collect();
            let allowed = check::suggestion(unknown, &known);
            let message = format!("unknown field; allowed: {allowed}");
            return Err(Error::settings(check::shown(unknown), message));
        }
        let common: Common = typed(&Value::Object(body), "")?;
        common.check()?;
        Ok(Self { common, sections: own })
    }

    /// Whether a section exists.
    pub fn has(&self, key: &str) -> bool {
        self.sections.contains_key(key)
    }

    /// The section of one API without its lifecycle, or its defaults if the platform team did not set
    /// it.
    pub fn section<S: DeserializeOwned + Default>(&self, key: &str) -> Result<S, Error> {
        match self.sections.get(key) {
            None | Some(Value::Null) => Ok(S::default()),
            Some(Value::Object(fields)) if fields.contains_key(LIFECYCLE) => {
                let mut fields = fields.clone();
                fields.remove(LIFECYCLE);
                typed(&Value::Object(fields), key)
            }
            Some(section) => typed(section, key),
        }
    }

    /// The lifecycle in one API's section.
    pub fn lifecycle(&self, key: &str) -> Result<LifecycleSettings, Error> {
        match self.sections.get(key).and_then(|section| section.get(LIFECYCLE)) {
            None | Some(Value::Null) => Ok(LifecycleSettings::default()),
            Some(lifecycle) => typed(lifecycle, &format!("{key}.{LIFECYCLE}")),
        }
    }
}

/// The key of the lifecycle in the section of each API.
pub const LIFECYCLE: &str = "lifecycle";

/// The keys of [`Common`].
const COMMON: [&str; 9] = [
    "schemaRevision",
    "minimumSchemaRevision",
    "settingsFrom",
    "tags",
    "tagsFromLabels",
    "providerConfigs",
    "pricing",
    "controller",
    "budget",
];

fn typed<T: DeserializeOwned>(source: &Value, prefix: &str) -> Result<T, Error> {
    check::typed(source, prefix).map_err(|error| Error::settings(error.path, error.message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_of_the_common_settings_are_the_fields_of_their_type() {
        let schema = schemars::schema_for!(Common);
        let fields = schema.get("properties").and_then(Value::as_object);
        let fields: BTreeSet<&str> = fields.into_iter().flatten().map(|(key, _)| &**key).collect();
        assert_eq!(fields, COMMON.into_iter().collect());
    }
}
