//! Custom roles for `gcloud iam roles create ROLE --file FILE`, and the conditions of bindings for
//! `gcloud projects add-iam-policy-binding PROJECT --condition-from-file FILE`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Part, parts};
use crate::catalog::rights::gcp::{RIGHTS, Scope};
use crate::models::Provider;

pub(super) fn documents() -> Vec<(String, Value)> {
    parts(Provider::Gcp).flat_map(part_documents).collect()
}

fn part_documents(part: &Part) -> Vec<(String, Value)> {
    let mut scopes: BTreeMap<Scope, BTreeSet<&str>> = BTreeMap::new();
    let of_part = RIGHTS.iter().filter(|rights| part.kinds.contains(&rights.kind));
    for grant in of_part.flat_map(|rights| rights.grants) {
        scopes.entry(grant.scope).or_default().extend(grant.actions);
    }
    let file = part.file();
    let mut all = Vec::new();
    for (scope, permissions) in scopes {
        let (name, grant) = match scope {
            Scope::Project => (file.clone(), "Grant in the project."),
            Scope::NodeAccount => {
                (format!("{file}-nodes"), "Grant on the service account of the nodes.")
            }
            Scope::ProjectPolicy(roles) => {
                let name = format!("{file}-project-policy");
                all.push((format!("{name}-condition"), condition(roles)));
                (name, "Grant in the project, with the condition.")
            }
        };
        let title = format!("Paved Road {}", name.replace('-', " "));
        let role = json!({
            "title": title,
            "description": format!("{grant} Written by `paved platform --cloud-rights`."),
            "stage": "GA",
            "includedPermissions": permissions,
        });
        all.push((name, role));
    }
    all
}

/// Source: Google Cloud, "Set limits on granting roles".
fn condition(roles: &[&str]) -> Value {
    let listed: Vec<String> = roles.iter().map(|role| format!("'{role}'")).collect();
    let roles = listed.join(", ");
    json!({
        "title": "Only the roles of environments",
        "expression": format!(
            "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{roles}])"
        ),
    })
}
