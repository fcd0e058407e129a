//! Roles in the cluster with minimal rights: for users, for Crossplane, and for the providers that
//! act in the cluster.
//!
//! The rights are derived from the composed resources, so no kind can be forgotten. This includes
//! the rights of the portal and the controller, which are in the chart.

pub mod controller;
pub mod home;
pub mod people;
pub mod portal;
mod rule;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use crossplane::api_version;
use function_paved_road::apis::{APIS, Flavour};
use serde_json::Value;

use crate::composed::{self, Composed};
use crate::{workspace, yaml};
use rule::{GET, Plurals, Rights};

/// The manifest of a controller without the chart.
const MANIFEST: &str = "package/controller.yaml";

/// The generated files by path from the repository's root: the manifests in `package/rbac/`, and
/// the controller's.
pub fn files() -> Result<BTreeMap<String, Vec<Value>>> {
    let composed = composed::all()?;
    Ok(BTreeMap::from([
        (
            "package/rbac/people.yaml".to_owned(),
            people::roles(composed, &plurals(workspace::root())?)?,
        ),
        ("package/rbac/crossplane.yaml".to_owned(), vec![home::crossplane(composed)?]),
        (provider("claims"), home::provider_kubernetes(composed, Flavour::Claims)?),
        (provider("namespaced"), home::provider_kubernetes(composed, Flavour::Namespaced)?),
        (provider("helm"), home::provider_helm(composed)?),
        (MANIFEST.to_owned(), controller::manifest(composed)?),
    ]))
}

/// The file with a provider's rights. provider-kubernetes has two, by API.
/// provider-helm has a file for virtual environments.
fn provider(name: &str) -> String {
    format!("package/rbac/providers/{name}.yaml")
}

/// The rules of the portal's own role for APIs in these groups.
pub fn portal(groups: &[(Flavour, String)]) -> Result<Vec<Value>> {
    Ok(portal::all(groups, composed::all()?)?.rules())
}

/// The roles for users of a company's own group, by the sources below a root.
pub fn people(root: &Path, flavour: Flavour, group: &str) -> Result<Vec<Value>> {
    people::roles_of(flavour, group, composed::for_root(root)?, &plurals(root)?)
}

/// The plural names of the kinds that we compose. They come from the CRDs, or from the rule for
/// Kubernetes' own kinds.
pub fn plurals(root: &Path) -> Result<Plurals> {
    let mut plurals = Plurals::default();
    let folder = root.join("tests/schemas");
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
    {
        for definition in yaml::read(&entry?.path())? {
            plurals.add(&definition);
        }
    }
    Ok(plurals)
}

/// The rights of the portal or the controller in an API group: these verbs for environments, and
/// get for the composites of claims. During a deletion, a composite lists its remaining resources.
fn own(flavour: Flavour, group: &str, verbs: &[&str]) -> Rights {
    let mut rights = Rights::default();
    for api in APIS {
        match flavour {
            Flavour::Claims => {
                rights.allow(group, api.info().claim.plural, verbs);
                rights.allow(group, api.info().composite.plural, &GET);
            }
            Flavour::Namespaced => rights.allow(group, api.info().namespaced.plural, verbs),
        }
    }
    rights
}

/// The rights to get the selected composed resources of environments.
fn resources(
    flavour: Flavour,
    composed: &[Composed],
    plurals: &Plurals,
    is_selected: fn(&Value) -> bool,
) -> Result<Rights> {
    let mut rights = Rights::default();
    let of_flavour = composed.iter().filter(|api| api.flavour == flavour);
    for object in of_flavour.flat_map(Composed::objects).filter(|object| is_selected(object)) {
        rights.allow(api_version::group_of(object), &plurals.for_object(object)?, &GET);
    }
    Ok(rights)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A company's own API group.
    const OWN: &str = "platform.example.org";

    /// All shipped roles, and roles for another group.
    fn all() -> BTreeMap<String, Vec<Value>> {
        let own = people(workspace::root(), Flavour::Namespaced, OWN).unwrap();
        files().unwrap().into_iter().chain([(OWN.to_owned(), own)]).collect()
    }

    fn rules(files: &BTreeMap<String, Vec<Value>>) -> impl Iterator<Item = (&str, &Value)> {
        files.values().flatten().flat_map(|role| {
            let rules = role["rules"].as_array().into_iter().flatten();
            rules.map(|rule| (role["metadata"]["name"].as_str().unwrap_or_default(), rule))
        })
    }

    fn has(rule: &Value, key: &str, wanted: &str) -> bool {
        rule[key].as_array().is_some_and(|found| found.iter().any(|found| found == wanted))
    }

    #[test]
    fn no_role_has_wildcards_or_escalation() {
        let files = all();
        for (role, rule) in rules(&files) {
            for (key, value) in [
                ("apiGroups", "*"),
                ("resources", "*"),
                ("verbs", "*"),
                ("verbs", "escalate"),
                ("verbs", "bind"),
            ] {
                assert!(!has(rule, key, value), "{role}: {rule}");
            }
        }
    }

    #[test]
    fn users_read_secrets_only_by_name() {
        let files = all();
        for (role, rule) in rules(&files).filter(|(_, rule)| has(rule, "resources", "secrets")) {
            match role {
                "paved-road-user" | "paved-road-user-platform.example.org" => {
                    assert_eq!(rule["verbs"], serde_json::json!(["get"]));
                }
                "paved-road:aggregate-to-crossplane" | "paved-road-provider-helm" => {}
                // Kubernetes cannot limit `create` by name.
                "paved-road-provider-kubernetes-claims" if rule["resourceNames"].is_null() => {
                    assert_eq!(rule["verbs"], serde_json::json!(["create"]));
                }
                "paved-road-provider-kubernetes-claims" => {
                    assert_eq!(rule["resourceNames"], serde_json::json!(["frontend-rewrite"]));
                    let verbs = serde_json::json!(["get", "patch", "delete"]);
                    assert_eq!(rule["verbs"], verbs);
                }
                _ => panic!("{role}: {rule}"),
            }
        }
    }

    #[test]
    fn custom_group_has_separate_roles() {
        let names = |roles: &[Value]| -> Vec<_> {
            roles.iter().map(|role| role["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let own = people(workspace::root(), Flavour::Namespaced, OWN).unwrap();
        for role in &own {
            let rules = role["rules"].as_array().unwrap();
            assert!(rules.iter().any(|rule| has(rule, "apiGroups", OWN)), "{role}");
            for default in Flavour::ALL.map(Flavour::default_group) {
                assert!(!rules.iter().any(|rule| has(rule, "apiGroups", default)), "{role}");
            }
        }
        assert_eq!(
            names(&own),
            ["viewer", "user", "operator"].map(|who| format!("paved-road-{who}-{OWN}"))
        );
    }
}
