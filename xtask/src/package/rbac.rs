//! Roles in the cluster, least rights each: for people, for Crossplane, and for the providers that act in the cluster.
//!
//! They follow from what is composed, so that a new kind cannot be forgotten.

mod home;
mod people;
mod rule;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use function_paved_road::apis::Flavour;
use serde_json::Value;

use super::composed;
use crate::{workspace, yaml};
use rule::Plurals;

/// The generated manifests in `package/rbac/`, by path from the repository's root.
pub fn files() -> Result<BTreeMap<String, Vec<Value>>> {
    let composed = composed::all()?;
    Ok(BTreeMap::from([
        ("package/rbac/people.yaml".to_owned(), people::roles(&groups(None), &composed)?),
        ("package/rbac/crossplane.yaml".to_owned(), vec![home::crossplane(&composed)?]),
        ("package/rbac/providers.yaml".to_owned(), home::providers(&composed)?),
    ]))
}

/// The roles for people where the APIs of a flavour are also installed in a company's own group.
pub fn people(flavour: Flavour, group: &str) -> Result<Vec<Value>> {
    people::roles(&groups(Some((flavour, group))), &composed::all()?)
}

fn groups(own: Option<(Flavour, &str)>) -> Vec<(Flavour, String)> {
    let default = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
    default.into_iter().chain(own).map(|(flavour, group)| (flavour, group.to_owned())).collect()
}

/// What the kinds that we compose are called in paths: the CRDs say it of theirs, Kubernetes' own follow the rule.
fn plurals() -> Result<Plurals> {
    let mut plurals = Plurals::default();
    let folder = workspace::root().join("tests/schemas");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        for definition in yaml::read(&entry?.path())? {
            plurals.add(&definition);
        }
    }
    Ok(plurals)
}
