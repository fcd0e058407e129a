//! The provider configs of environments: the configs that Settings name, or else `default`.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::Flavour;
use function_paved_road::models::Provider;
use function_paved_road::settings::ProviderConfigs;
use kube::api::DynamicObject;
use paved_render::providers;
use serde_json::Value;

use super::check::Check;
use super::compositions;
use super::family::{self, Family, key};
use super::objects::name;
use super::snapshot::{self, ClusterSnapshot, ListResult};
use crate::style::harmless;

/// The provider configs that environments need from a family.
#[derive(Default)]
struct Wanted {
    /// The configs, as resources refer to them.
    references: BTreeSet<Reference>,
    /// The APIs that always need a config.
    always: BTreeSet<&'static str>,
    /// The APIs that need a config for some options.
    sometimes: BTreeSet<&'static str>,
    /// Whether invisible Settings may name other configs.
    unseen: bool,
}

/// A provider config.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    /// The namespace of the environments with this config. `None` for all other namespaces.
    of: Option<String>,
    kind: String,
    name: String,
}

/// A line for each provider config of environments.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let wanted = wanted(snapshot);
    let lines = |(family, wanted): (&Family, &Wanted)| -> Vec<Check> {
        wanted.references.iter().filter_map(|one| wanted.check(one, *family, snapshot)).collect()
    };
    wanted.iter().flat_map(lines).collect()
}

fn wanted(snapshot: &ClusterSnapshot) -> BTreeMap<Family, Wanted> {
    let mut all: BTreeMap<Family, Wanted> = BTreeMap::new();
    for used in compositions::all(snapshot) {
        let settings = used.settings(&snapshot.configs);
        let configs = settings.as_ref().map(|settings| settings["providerConfigs"].clone());
        for (kind, needed) in providers::composed(used.api, used.flavour) {
            let wanted =
                all.entry((kind.provider, used.flavour == Flavour::Namespaced)).or_default();
            let of = if needed { &mut wanted.always } else { &mut wanted.sometimes };
            of.insert(used.api.info().title);
            wanted.unseen |= configs.is_none();
            let configs = configs.as_ref().unwrap_or(&Value::Null);
            wanted.references.extend(references(configs, kind.provider, used.flavour));
        }
    }
    all
}

/// The configs of a family in Settings: the common config, and those of single namespaces.
fn references(configs: &Value, provider: Provider, flavour: Flavour) -> Vec<Reference> {
    // Another check reports invalid Settings.
    let known: ProviderConfigs = serde_json::from_value(configs.clone()).unwrap_or_default();
    let own = configs[key(provider)]["byNamespace"].as_object().into_iter().flatten();
    let namespaces = std::iter::once(None).chain(own.map(|(namespace, _)| Some(namespace.clone())));
    let one = |of: Option<String>| {
        let reference = known.reference(provider, providers::scope(flavour), of.as_deref());
        let text = |field: &str| reference.get(field).and_then(Value::as_str).map(str::to_owned);
        let kind = text("kind").unwrap_or_else(|| "ProviderConfig".to_owned());
        Reference { of, kind, name: text("name").unwrap_or_default() }
    };
    namespaces.map(one).collect()
}

impl Wanted {
    /// `None` if the cluster does not serve the config's kind. The provider is then missing, and
    /// its own check reports that.
    fn check(
        &self,
        reference: &Reference,
        family: Family,
        snapshot: &ClusterSnapshot,
    ) -> Option<Check> {
        let configs = served(snapshot, family, &reference.kind)?;
        let what = format!("{}.{}", reference.kind, configs.resource.group);
        let ListResult::All(objects) = &configs.objects else {
            return Some(configs.objects.unread(what));
        };
        let mut there = objects.iter().filter(|one| reference.is(one));
        if there.next().is_some() {
            return Some(Check::good(what, reference.told()));
        }
        let missing = format!("{} does not exist", reference.told());
        let whose =
            reference.of.as_ref().map(|namespace| format!(" of namespace {}", harmless(namespace)));
        let whose = whose.unwrap_or_default();
        let titles =
            |titles: &BTreeSet<&str>| titles.iter().copied().collect::<Vec<_>>().join(", ");
        Some(if self.unseen {
            Check::open(
                what,
                format!(
                    "{missing}, and you may not read Settings, which may use \
                     another name"
                ),
            )
        } else if self.always.is_empty() {
            let waits = format!(
                "resources for some options of {}{whose} will wait",
                titles(&self.sometimes)
            );
            Check::open(what, format!("{missing}: {waits}"))
        } else if reference.of.is_none() && self.has_own(family, snapshot) {
            Check::open(
                what,
                format!(
                    "{missing}: environments in namespaces without another name in Settings \
                         will wait"
                ),
            )
        } else {
            let found = format!("{missing}: every {}{whose} will wait", titles(&self.always));
            Check::bad(what, found, "create it, or set another name in Settings")
        })
    }

    /// Whether a namespace has its own config.
    fn has_own(&self, family: Family, snapshot: &ClusterSnapshot) -> bool {
        let own = self.references.iter().filter(|reference| reference.of.is_some());
        own.into_iter().any(|reference| {
            match served(snapshot, family, &reference.kind).map(|one| &one.objects) {
                Some(ListResult::All(objects)) => objects.iter().any(|one| reference.is(one)),
                _ => false,
            }
        })
    }
}

impl Reference {
    /// Whether the object is this config. A namespaced kind has one object in each namespace.
    fn is(&self, object: &DynamicObject) -> bool {
        let namespace = object.metadata.namespace.as_ref();
        let fits = namespace.is_none() || self.of.is_none() || namespace == self.of.as_ref();
        name(object) == self.name && fits
    }

    fn told(&self) -> String {
        let of =
            self.of.as_ref().map(|namespace| format!(" for namespace {}", harmless(namespace)));
        harmless(&self.name) + &of.unwrap_or_default()
    }
}

fn served<'w>(
    snapshot: &'w ClusterSnapshot,
    family: Family,
    kind: &str,
) -> Option<&'w snapshot::ProviderConfigs> {
    let fits = |one: &&snapshot::ProviderConfigs| {
        one.resource.kind == kind && family::family(&one.resource.group) == Some(family)
    };
    snapshot.provider_configs.iter().find(fits)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};

    /// The result for these Settings in a step's input and in its EnvironmentConfig, for the
    /// namespaced API on AWS.
    fn told(input: &Value, config: &Value, there: &[(&str, Option<&str>, &str)]) -> Vec<String> {
        let mut snapshot = snapshot();
        let ListResult::All(compositions) = &mut snapshot.compositions else { panic!() };
        compositions[0].data["spec"]["pipeline"][0]["input"]["providerConfigs"] =
            json!({"aws": input});
        snapshot.configs = objects(&[
            json!({"metadata": {"name": "another"}, "data": {"providerConfigs": {"aws": {"name": "of-another"}}}}),
            json!({"metadata": {"name": "paved-road"}, "data": {"providerConfigs": {"aws": config}}}),
        ]);
        for configs in &mut snapshot.provider_configs {
            let here = there.iter().filter(|(kind, ..)| *kind == configs.resource.kind);
            let object = |(_, namespace, name): &(&str, Option<&str>, &str)| json!({"metadata": {"name": name, "namespace": namespace}});
            configs.objects = objects(&here.map(object).collect::<Vec<_>>());
        }
        check(&snapshot)
            .iter()
            .map(|check| {
                format!("{} {}  {}", crate::style::sign_of(check.mark), check.what, check.found)
            })
            .collect()
    }

    const CLUSTER: &str = "ClusterProviderConfig";
    const OWN: &str = "ProviderConfig";

    #[test]
    fn provider_config_named_in_settings_must_exist() {
        let (of_step, of_config) = (json!({"name": "step"}), json!({"name": "team"}));
        let there = [(CLUSTER, None, "team"), (CLUSTER, None, "default")];
        assert_eq!(
            told(&of_step, &of_config, &there),
            ["✓ ClusterProviderConfig.aws.m.upbound.io  team"]
        );
        assert_eq!(
            told(&of_step, &json!({}), &there),
            ["✗ ClusterProviderConfig.aws.m.upbound.io  step does not exist: every GPU workspace \
                 will wait; create it, or set another name in Settings"]
        );
    }

    #[test]
    fn namespaced_kind_is_listed_in_its_namespaces() {
        let config = json!({"name": "team", "kind": OWN});
        let there = told(&json!({}), &config, &[(OWN, Some("vision"), "team")]);
        assert_eq!(there, ["✓ ProviderConfig.aws.m.upbound.io  team"]);
        let elsewhere = told(&json!({}), &config, &[(CLUSTER, None, "team")]);
        assert!(
            elsewhere[0].starts_with("✗ ProviderConfig.aws.m.upbound.io  team does not exist"),
            "{elsewhere:?}"
        );
    }

    #[test]
    fn namespaces_have_separate_provider_configs() {
        let config = json!({"name": "company", "byNamespace": {
            "vision": {"name": "mine", "kind": OWN}, "speech": {"name": "of-speech"}}});
        let told = told(
            &json!({}),
            &config,
            &[(OWN, Some("vision"), "mine"), (OWN, Some("speech"), "of-speech")],
        );
        assert_eq!(
            told,
            [
                "… ClusterProviderConfig.aws.m.upbound.io  company does not exist: environments in \
                 namespaces without another name in Settings will wait",
                "✗ ClusterProviderConfig.aws.m.upbound.io  of-speech for namespace speech does \
                 not exist: every GPU workspace \
                 of namespace speech will wait; create it, or set another name in Settings",
                "✓ ProviderConfig.aws.m.upbound.io  mine for namespace vision",
            ]
        );
    }

    #[test]
    fn config_that_hidden_settings_may_name_is_not_red() {
        let mut snapshot = snapshot();
        snapshot.configs = ListResult::Hidden;
        for configs in &mut snapshot.provider_configs {
            configs.objects = objects(&[]);
        }
        let found: Vec<String> = check(&snapshot).into_iter().map(|check| check.found).collect();
        assert_eq!(
            found,
            ["default does not exist, and you may not read Settings, which may use \
                            another name"]
        );
    }
}
