//! Roles for users: viewer, user and operator.

use anyhow::Result;
use crossplane::api_version;
use function_paved_road::apis::{APIS, Flavour};
use serde_json::Value;

use super::rule::{Plurals, READ, Rights, WRITE, is_native};
use crate::composed::Composed;

/// Verbs for existing objects.
const TEND: [&str; 6] = ["get", "list", "watch", "update", "patch", "delete"];

/// Verbs for Kubernetes' own objects in environments. Only Crossplane changes them. Operators
/// delete them by hand if Kubernetes leaves them behind.
const TIDY: [&str; 4] = ["get", "list", "watch", "delete"];

/// The objects of Crossplane, rights and policies that an operator reads to find out why an
/// environment is stuck.
const CROSSPLANE: [(&str, &[&str]); 4] = [
    (
        "admissionregistration.k8s.io",
        &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
    ),
    (
        "apiextensions.crossplane.io",
        &["compositeresourcedefinitions", "compositions", "compositionrevisions"],
    ),
    (
        "pkg.crossplane.io",
        &[
            "configurations",
            "configurationrevisions",
            "functions",
            "functionrevisions",
            "providers",
            "providerrevisions",
        ],
    ),
    ("rbac.authorization.k8s.io", &["clusterroles"]),
];

/// The shipped roles, for APIs in their default groups.
pub fn roles(composed: &[Composed], plurals: &Plurals) -> Result<Vec<Value>> {
    let groups = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
    let mut catalogue = Rights::default();
    catalogue.allow("apiextensions.crossplane.io", "compositions", &READ);
    catalogue.allow("apiextensions.crossplane.io", "environmentconfigs", &["get"]);
    let catalogue = catalogue.role(
        "paved-road-catalogue",
        "Reads Compositions, and Settings by name. For a ClusterRoleBinding to all users who \
         create environments.",
    );
    Ok([vec![catalogue], by_groups(&groups, "", composed, plurals)?].concat())
}

/// The roles for APIs in a company's own group. Their names contain the group, so they can be
/// installed beside the roles of other groups.
pub fn roles_of(
    flavour: Flavour,
    group: &str,
    composed: &[Composed],
    plurals: &Plurals,
) -> Result<Vec<Value>> {
    by_groups(&[(flavour, group)], &format!("-{group}"), composed, plurals)
}

fn by_groups(
    groups: &[(Flavour, &str)],
    suffix: &str,
    composed: &[Composed],
    plurals: &Plurals,
) -> Result<Vec<Value>> {
    let viewer = environments(groups, &READ);
    let mut user = environments(groups, &WRITE);
    user.allow("", "secrets", &["get"]);
    // Each action of `paved` writes an Event.
    user.allow("", "events", &["create"]);
    let operator = environments(groups, &WRITE)
        .and(beneath(groups))
        .and(parts(composed, plurals)?)
        .and(crossplane());
    Ok(vec![
        viewer.role(
            &format!("paved-road-viewer{suffix}"),
            "Reads environments and the state of their resources. For a RoleBinding or a \
             ClusterRoleBinding.",
        ),
        user.role(
            &format!("paved-road-user{suffix}"),
            "Creates, changes and deletes environments, and reads Secrets by name. For a \
             RoleBinding in the team's namespace.",
        ),
        operator.role(
            &format!("paved-road-operator{suffix}"),
            "Manages the environments of all teams, their resources, Usages and Settings. For a \
             ClusterRoleBinding of the platform team.",
        ),
    ])
}

/// Objects that users create: claims and namespaced composites.
fn environments(groups: &[(Flavour, &str)], verbs: &[&str]) -> Rights {
    let mut rights = Rights::default();
    for (flavour, group) in groups {
        for api in APIS {
            let names = match flavour {
                Flavour::Claims => &api.info().claim,
                Flavour::Namespaced => &api.info().namespaced,
            };
            rights.allow(group, names.plural, verbs);
        }
    }
    rights
}

/// The composites of claims.
fn beneath(groups: &[(Flavour, &str)]) -> Rights {
    let mut rights = Rights::default();
    for (_, group) in groups.iter().filter(|(flavour, _)| *flavour == Flavour::Claims) {
        for api in APIS {
            rights.allow(group, api.info().composite.plural, &TEND);
        }
    }
    rights
}

/// The composed resources of environments. Secrets are excluded, because only their owner may read
/// them.
fn parts(composed: &[Composed], plurals: &Plurals) -> Result<Rights> {
    let mut rights = Rights::default();
    for object in
        composed.iter().flat_map(Composed::objects).filter(|object| object["kind"] != "Secret")
    {
        let verbs: &[&str] = if is_native(object) { &TIDY } else { &TEND };
        rights.allow(api_version::group_of(object), &plurals.for_object(object)?, verbs);
    }
    Ok(rights)
}

fn crossplane() -> Rights {
    let mut rights = Rights::default();
    for (group, resources) in CROSSPLANE {
        for resource in resources {
            rights.allow(group, resource, &READ);
        }
    }
    rights.allow("apiextensions.crossplane.io", "environmentconfigs", &WRITE);
    rights.allow("", "events", &READ);
    rights.allow("", "events", &["create"]);
    rights
}
