//! The ManagedResourceActivationPolicy of an API: the kinds of managed resources that it composes,
//! also in environments of earlier schema revisions.
//!
//! Crossplane 2 activates all kinds of a provider, unless an operator turns this off in its chart
//! (`provider.defaultActivations`). Then the policies activate the kinds that environments need.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use crossplane::api_version;
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests::rights::PARTS;
use function_paved_road::models::{Kind, Scope};
use serde_json::{Value, json};

use super::rbac;
use crate::composed;
use crate::workspace;
use paved_render::packages::Package;

/// The path of the policies of the claims APIs. Crossplane 1.20 rejects a Configuration with a
/// policy, so operators apply them.
pub const CLAIMS: &str = "package/activation/claims.yaml";

/// The policies of all claims APIs.
pub fn claims() -> Result<Vec<Value>> {
    let group = Flavour::Claims.default_group();
    APIS.iter().map(|api| policy(workspace::root(), *api, Flavour::Claims, group)).collect()
}

/// The policy of an API, for the kinds that the examples below a root and their variants compose.
/// It has the name of the XRD.
pub fn policy(root: &Path, api: &dyn AnyApi, flavour: Flavour, group: &str) -> Result<Value> {
    let plurals = rbac::plurals(root)?;
    let mut names = BTreeSet::new();
    for object in composed::among(composed::for_root(root)?, api, flavour)?.objects() {
        let group = api_version::group_of(object);
        let is_config =
            object["kind"].as_str().is_some_and(|kind| kind.ends_with("ProviderConfig"));
        if Package::serving(group).is_some() && !is_config {
            names.insert(format!("{}.{group}", plurals.for_object(object)?));
        }
    }
    for kind in kinds_of_earlier_revisions(api, flavour) {
        let group = api_version::group_of(&kind);
        names.insert(format!("{}.{group}", plurals.for_object(&kind)?));
    }
    let info = api.info();
    let composite = match flavour {
        Flavour::Claims => &info.composite,
        Flavour::Namespaced => &info.namespaced,
    };
    Ok(json!({
        "apiVersion": "apiextensions.crossplane.io/v1alpha1",
        "kind": "ManagedResourceActivationPolicy",
        "metadata": {"name": format!("{}.{group}", composite.plural)},
        "spec": {"activate": names},
    }))
}

/// The kinds in clouds that an API composes in any schema revision, as objects without content.
/// Running environments of earlier revisions keep kinds that no example composes.
fn kinds_of_earlier_revisions(api: &dyn AnyApi, flavour: Flavour) -> Vec<Value> {
    let scope = match flavour {
        Flavour::Claims => Scope::LegacyCluster,
        Flavour::Namespaced => Scope::Namespaced,
    };
    let parts = PARTS.iter().filter(|part| part.api == api.info().name);
    let object = |kind: &Kind| {
        let api_version = format!("{}/{}", kind.group(scope), kind.version(scope));
        json!({"apiVersion": api_version, "kind": kind.kind})
    };
    parts.flat_map(|part| part.kinds).map(object).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn policy_has_the_kinds_of_the_example_and_its_variants() {
        let api = APIS.iter().find(|api| api.info().name == "virtual-environment").unwrap();
        let policy = policy(workspace::root(), *api, Flavour::Namespaced, "example.org").unwrap();
        let names = policy["spec"]["activate"].as_array().unwrap();
        for name in ["releases.helm.m.crossplane.io", "clusters.eks.aws.m.upbound.io"] {
            assert!(names.contains(&name.into()), "{name} is missing: {names:?}");
        }
        assert!(!policy.to_string().contains("providerconfig"), "{policy}");
        assert_eq!(policy["metadata"]["name"], "environments.example.org");
    }

    #[test]
    fn policy_has_the_kinds_of_earlier_schema_revisions() {
        let api = APIS.iter().find(|api| api.info().name == "gpu-workspace").unwrap();
        for (flavour, kind) in [
            (Flavour::Claims, "rolepolicyattachments.iam.aws.upbound.io"),
            (Flavour::Namespaced, "rolepolicyattachments.iam.aws.m.upbound.io"),
        ] {
            let policy = policy(workspace::root(), *api, flavour, "example.org").unwrap();
            let names = policy["spec"]["activate"].as_array().unwrap();
            assert!(names.contains(&kind.into()), "{kind} is missing: {names:?}");
        }
    }
}
