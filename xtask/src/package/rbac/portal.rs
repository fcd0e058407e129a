//! The rights of the portal's own account, for the chart. For all other requests,
//! the portal acts as the signed-in user. With its own account, it reads no Secret.

use anyhow::Result;
use function_paved_road::apis::Flavour;

use super::rule::{Plurals, READ, Rights};
use crate::composed::Composed;
use crate::workspace;

/// To list objects.
const LIST: [&str; 2] = ["get", "list"];

/// The objects with the schemas of kinds, and those that a preview needs.
const CROSSPLANE: [&str; 3] =
    ["compositeresourcedefinitions", "compositions", "environmentconfigs"];

/// The rights for APIs in a group: to environments, and to their composed resources.
pub fn for_group(flavour: Flavour, group: &str, composed: &[Composed]) -> Result<Rights> {
    let plurals = super::plurals(workspace::root())?;
    Ok(super::own(flavour, group, &READ).and(parts(flavour, composed, &plurals)?))
}

/// All rights for APIs in these groups. Without a group, an API is not installed.
pub fn all(groups: &[(Flavour, String)], composed: &[Composed]) -> Result<Rights> {
    let mut rights = crossplane();
    for (flavour, group) in groups {
        rights = rights.and(for_group(*flavour, group, composed)?);
    }
    Ok(rights)
}

/// The rights to composed resources of environments, except Secrets.
fn parts(flavour: Flavour, composed: &[Composed], plurals: &Plurals) -> Result<Rights> {
    super::resources(flavour, composed, plurals, |object| object["kind"] != "Secret")
}

/// The rights to Crossplane's objects and to Events.
pub fn crossplane() -> Rights {
    let mut rights = Rights::default();
    for resource in CROSSPLANE {
        rights.allow("apiextensions.crossplane.io", resource, &LIST);
    }
    // An Event about each action of a user.
    rights.allow("", "events", &["create"]);
    rights
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use function_paved_road::apis::APIS;
    use serde_json::{Value, json};

    use super::super::rule::GET;
    use super::*;
    use crate::composed;

    fn both() -> Vec<(Flavour, String)> {
        Flavour::ALL.map(|flavour| (flavour, format!("{flavour}.example.org"))).to_vec()
    }

    fn for_group(group: &str, rules: &[Value]) -> Vec<Value> {
        rules.iter().filter(|rule| rule["apiGroups"] == json!([group])).cloned().collect()
    }

    #[test]
    fn portal_only_reads_and_creates_events() {
        let mut rules = all(&both(), composed::all().unwrap()).unwrap().rules();
        let is_events = |rule: &Value| rule["resources"] == json!(["events"]);
        let events: Vec<Value> = rules.iter().filter(|rule| is_events(rule)).cloned().collect();
        let expected = json!([{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]);
        assert_eq!(json!(events), expected);
        rules.retain(|rule| !is_events(rule));
        let verbs = rules.iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
        assert!(
            verbs.clone().count() > 0
                && verbs.clone().all(|verb| READ.iter().any(|read| verb == read))
        );
        for rule in &rules {
            let named = |key: &str| rule[key].as_array().unwrap().clone();
            assert!(!named("resources").iter().any(|one| one == "*" || one == "secrets"), "{rule}");
            assert!(!named("apiGroups").iter().any(|one| one == "*"), "{rule}");
        }
    }

    #[test]
    fn portal_watches_environments_and_gets_their_resources() {
        let rules = all(&both(), composed::all().unwrap()).unwrap().rules();
        let claims = for_group("claims.example.org", &rules);
        let [claims, composites] = claims.as_slice() else { panic!("{claims:?}") };
        assert_eq!(claims["verbs"], json!(READ));
        assert_eq!(composites["verbs"], json!(GET));
        assert_eq!(claims["resources"].as_array().unwrap().len(), APIS.len());
        assert_eq!(composites["resources"].as_array().unwrap().len(), APIS.len());
        let namespaced = for_group("namespaced.example.org", &rules);
        assert_eq!(
            namespaced.iter().map(|rule| &rule["verbs"]).collect::<Vec<_>>(),
            [&json!(READ)]
        );
    }

    #[test]
    fn a_flavour_that_is_not_installed_gives_no_rights() {
        let one = [(Flavour::Namespaced, "platform.example.org".to_owned())];
        let text = json!(all(&one, composed::all().unwrap()).unwrap().rules()).to_string();
        assert!(
            text.contains("ec2.aws.m.upbound.io") && !text.contains("\"ec2.aws.upbound.io\""),
            "{text}"
        );
    }
}
