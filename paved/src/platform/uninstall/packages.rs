//! The packages of an installation: Configurations and the Function.

use std::collections::BTreeSet;

use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::{manifests, settings};
use kube::api::DynamicObject;
use paved_client::cluster::Cluster;
use serde_json::Value;

use super::kinds::{CONFIGURATION_REVISIONS, CONFIGURATIONS, FUNCTIONS, Object, PACKAGE_LABEL};
use crate::failure::Failure;

/// The revision of a Configuration that owns an object.
pub(super) fn owner(object: &DynamicObject) -> Option<&str> {
    let owners = object.metadata.owner_references.iter().flatten();
    let mut revisions = owners.filter(|owner| owner.kind == "ConfigurationRevision");
    revisions.next().map(|owner| owner.name.as_str())
}

/// The Function that a Composition calls with our Settings.
pub(super) fn function(composition: &DynamicObject) -> Option<&str> {
    let steps = composition.data["spec"]["pipeline"].as_array()?;
    let is_ours = |step: &&Value| step["input"]["apiVersion"] == settings::API_VERSION;
    steps.iter().find(is_ours)?["functionRef"]["name"].as_str()
}

/// Our Configurations: those that own our XRDs, and those with our packages.
pub(super) async fn configurations(
    cluster: &Cluster,
    definitions: &[DynamicObject],
) -> Result<Vec<Object>, Failure> {
    let owners: BTreeSet<&str> = definitions.iter().filter_map(owner).collect();
    let revisions = CONFIGURATION_REVISIONS.list(cluster).await?;
    let package = |revision: &DynamicObject| {
        let is_owner = owners.contains(revision.metadata.name.as_deref()?);
        let labels = revision.metadata.labels.as_ref()?;
        labels.get(PACKAGE_LABEL).filter(|_| is_owner).cloned()
    };
    let owning: BTreeSet<String> = revisions.iter().filter_map(package).collect();
    let packages = names();
    let all = CONFIGURATIONS.list(cluster).await?.into_iter();
    let ours = all.filter(|one| {
        one.metadata.name.as_ref().is_some_and(|name| owning.contains(name))
            || repository(one).is_some_and(|name| packages.contains(name))
    });
    Ok(ours.map(|one| CONFIGURATIONS.object(&one)).collect())
}

/// The names of our Configurations' packages.
pub(super) fn names() -> BTreeSet<String> {
    let names =
        |api: &&dyn AnyApi| Flavour::ALL.map(|flavour| manifests::configuration(*api, flavour));
    APIS.iter().flat_map(names).collect()
}

/// The last part of a package's repository: `provider-helm`.
pub(super) fn repository(package: &DynamicObject) -> Option<&str> {
    let reference = package.data["spec"]["package"].as_str()?;
    let last = reference.rsplit('/').next()?;
    last.split(['@', ':']).next()
}

/// The functions of our Compositions, and those with our package.
pub(super) async fn functions(
    cluster: &Cluster,
    compositions: &[DynamicObject],
) -> Result<Vec<Object>, Failure> {
    let called: BTreeSet<&str> = compositions.iter().filter_map(function).collect();
    let all = FUNCTIONS.list(cluster).await?.into_iter();
    let ours = all.filter(|one| {
        one.metadata.name.as_deref().is_some_and(|name| called.contains(name))
            || repository(one) == Some(manifests::FUNCTION)
    });
    Ok(ours.map(|one| FUNCTIONS.object(&one)).collect())
}
