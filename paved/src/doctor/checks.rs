//! The checks of a cluster, from the objects that were read.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use paved_render::providers;
use serde_json::Value;

use super::check::Check;
use super::objects::{composes, holds, is_ours, message, name};
use super::packages::{self, Needed};
use super::snapshot::{ClusterSnapshot, ListResult};
use super::{
    apps, clusters, compositions, crossplane, databases, namespaces, paused, provider_configs,
    references, required_kinds, revisions, settings, tracked,
};

/// All checks of a cluster, in the order of the installation.
pub(super) fn all(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let mut all = vec![crossplane::check(snapshot)];
    if matches!(snapshot.definitions, ListResult::NoSuchKind) {
        return all;
    }
    all.extend(crossplane::problems(snapshot));
    all.extend(packages::check(
        "Function",
        &snapshot.functions,
        &Needed::Named(needed_functions(snapshot)),
    ));
    all.extend(packages::check(
        "Provider",
        &snapshot.providers,
        &Needed::From(needed_providers(snapshot)),
    ));
    all.extend(required_kinds::check(snapshot));
    all.extend(provider_configs::check(snapshot));
    all.extend(definitions(snapshot));
    all.extend(references::check(snapshot));
    all.extend(namespaces::check(snapshot));
    all.extend(settings::check(snapshot));
    all.extend(revisions::check(snapshot));
    all.extend(clusters::check(snapshot));
    all.extend(apps::check(snapshot));
    all.extend(databases::check(snapshot));
    all.extend(paused::check(snapshot));
    all.extend(tracked::check(snapshot));
    all
}

/// Checks each of our XRDs: established, offered, and with a Composition.
fn definitions(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let ListResult::All(definitions) = &snapshot.definitions else {
        return vec![match snapshot.kinds.len() {
            _ if matches!(snapshot.definitions, ListResult::Failed(_)) => {
                snapshot.definitions.unread("XRDs")
            }
            0 => Check::bad(
                "Environments",
                "no kind has the category paved",
                "install a Configuration",
            ),
            count => Check::good(
                "Environments",
                format!(
                    "{count} kinds; you may not read their \
                     XRDs"
                ),
            ),
        }];
    };
    let ours: Vec<&DynamicObject> = definitions.iter().filter(|one| is_ours(one)).collect();
    if ours.is_empty() {
        return vec![Check::bad(
            "Environments",
            "no XRD has the category paved",
            "install a Configuration",
        )];
    }
    ours.iter().map(|definition| definition_check(definition, snapshot)).collect()
}

fn definition_check(definition: &DynamicObject, snapshot: &ClusterSnapshot) -> Check {
    let what = format!("XRD {}", name(definition));
    let claims = definition.data["spec"]["claimNames"].is_object();
    let wanted = if claims { &["Established", "Offered"][..] } else { &["Established"] };
    if let Some(condition) = wanted.iter().find(|condition| !holds(definition, condition)) {
        let found = format!("is not {condition}{}", message(definition, condition));
        return Check::bad(
            what,
            found,
            "run `kubectl describe xrd NAME`; another kind may use the same names",
        );
    }
    let ListResult::All(compositions) = &snapshot.compositions else {
        return match &snapshot.compositions {
            ListResult::Hidden => Check::good(what, "you may not read its Compositions"),
            failed => failed.unread(format!("{what}: Compositions")),
        };
    };
    let choices: Vec<&str> =
        compositions.iter().filter(|one| composes(one, definition)).map(name).collect();
    if choices.is_empty() {
        return Check::bad(
            what,
            "has no Composition",
            "install its Configuration, or apply your own Composition",
        );
    }
    let noun = if choices.len() == 1 { "Composition" } else { "Compositions" };
    Check::good(what, format!("{noun} {}", choices.join(", ")))
}

/// The pipeline steps of the Compositions of our XRDs.
fn steps(snapshot: &ClusterSnapshot) -> Vec<&Value> {
    let (ListResult::All(definitions), ListResult::All(compositions)) =
        (&snapshot.definitions, &snapshot.compositions)
    else {
        return Vec::new();
    };
    let ours: Vec<&DynamicObject> = definitions.iter().filter(|one| is_ours(one)).collect();
    let used =
        compositions.iter().filter(|one| ours.iter().any(|definition| composes(one, definition)));
    used.filter_map(|one| one.data["spec"]["pipeline"].as_array()).flatten().collect()
}

fn needed_functions(snapshot: &ClusterSnapshot) -> BTreeSet<String> {
    let names = steps(snapshot).into_iter().filter_map(|step| step["functionRef"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The provider packages that environments always need, and the packages that these packages share.
fn needed_providers(snapshot: &ClusterSnapshot) -> BTreeSet<String> {
    let used = compositions::all(snapshot);
    let kinds = used.iter().flat_map(|used| providers::composed(used.api, used.flavour));
    kinds.filter(|(_, needed)| *needed).flat_map(|(kind, _)| providers::packages(kind)).collect()
}

#[cfg(test)]
pub(super) mod tests;
