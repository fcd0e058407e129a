//! Roles in the cluster, least rights each: for people, for Crossplane, and for the providers that
//! act in the cluster.
//!
//! They follow from what is composed, so that a new kind cannot be forgotten. So do the portal's
//! rights, which its chart gives it.

mod controller;
mod home;
mod people;
mod portal;
mod rule;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use function_paved_road::apis::Flavour;
use serde_json::Value;

use crate::{composed, workspace, yaml};
use rule::Plurals;

/// What the templates of the portal's chart make its role of.
const PORTAL: &str = "deploy/chart/files/rights.yaml";

/// The same for the controller.
const CONTROLLER: &str = "deploy/chart/files/controller-rights.yaml";

/// The manifest of a controller without the chart.
const MANIFEST: &str = "package/controller.yaml";

/// What is generated, by path from the repository's root: the manifests in `package/rbac/`, and the
/// rights that the portal's chart takes in.
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
        (PORTAL.to_owned(), vec![portal::rights(composed)?]),
        (CONTROLLER.to_owned(), vec![controller::rights(composed)?]),
        (MANIFEST.to_owned(), controller::manifest(composed)?),
    ]))
}

/// Where a provider's rights are: of provider-kubernetes by flavour, and of provider-helm for
/// virtual environments.
fn provider(name: &str) -> String {
    format!("package/rbac/providers/{name}.yaml")
}

/// The rules of the portal's own role where the APIs have these groups.
pub fn portal(groups: &[(Flavour, String)]) -> Result<Vec<Value>> {
    Ok(portal::all(groups, composed::all()?)?.rules())
}

/// The roles for people where a flavour's APIs are installed in a company's own group, for what the
/// sources below a root compose.
pub fn people(root: &Path, flavour: Flavour, group: &str) -> Result<Vec<Value>> {
    people::roles_of(flavour, group, composed::for_root(root)?, &plurals(root)?)
}

/// What the kinds that we compose are called in paths: the CRDs say it of theirs, Kubernetes' own
/// follow the rule.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A group of a company's own.
    const OWN: &str = "platform.example.org";

    /// Everything that is shipped, and roles for a group of one's own.
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
    fn people_do_not_read_secrets_but_by_name() {
        let files = all();
        for (role, rule) in rules(&files).filter(|(_, rule)| has(rule, "resources", "secrets")) {
            match role {
                "paved-road-user" | "paved-road-user-platform.example.org" => {
                    assert_eq!(rule["verbs"], serde_json::json!(["get"]));
                }
                "paved-road:aggregate-to-crossplane" | "paved-road-provider-helm" => {}
                _ => panic!("{role}: {rule}"),
            }
        }
    }

    #[test]
    fn a_group_of_ones_own_has_roles_of_its_own() {
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
