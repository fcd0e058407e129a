//! A control plane is lost. The clouds keep their resources, and a backup has the objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use crossplane::names::EXTERNAL_NAME;
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::portrayed;
use crate::control_plane::ControlPlane;
use crate::environment::{Environment, slot};
use crate::fake_providers;
use crate::fake_providers::state::External;
use crate::fixture::Fixture;
use crate::objects::resource;

/// APIs with all their resources in clouds.
const APIS: [&str; 2] = ["gpu-workspace", "application-environment"];

/// An environment of the lost control plane.
struct Lost {
    manifest: Value,
    composite: Value,
    /// Connection Secrets, managed resources, the composite and the claim, in the order of the
    /// restore.
    backup: Vec<Value>,
    /// Names in the clouds, by slot.
    external_names: BTreeMap<String, String>,
    /// Kinds and names of all its resources in the clouds.
    in_the_clouds: Vec<String>,
}

pub(super) async fn restored_environments_find_their_resources(fixture: Fixture) -> Result<()> {
    let examples = APIS.iter().flat_map(|api| Flavour::ALL.map(|flavour| (*api, flavour)));
    let ready = examples.map(async |(api, flavour)| {
        let whole = fixture.ready(api, flavour, json!({})).await?;
        Lost::new(&fixture, &whole).await
    });
    let lost = try_join_all(ready).await?;
    // The same workspaces under another name. Only their manifests are in Git.
    let manifests = Flavour::ALL.map(async |flavour| {
        let only_in_git = fixture.ready("gpu-workspace", flavour, renamed(flavour)).await?;
        Lost::new(&fixture, &only_in_git).await
    });
    let manifests = try_join_all(manifests).await?;

    let plane =
        ControlPlane::start(&fixture.plane.beside()).await.context("a new control plane")?;
    let name = fixture.namespace.strip_prefix("e2e-").unwrap_or(&fixture.namespace);
    let new = Fixture::set(Arc::new(plane), name).await?;
    let all: Vec<&Lost> = lost.iter().chain(&manifests).collect();
    copy_clouds(&fixture, &new, &all).await?;
    let new = new.with_rights().await?;
    portrayed(restore(&new, &lost, &manifests).await, &new, "restore").await
}

async fn restore(new: &Fixture, lost: &[Lost], manifests: &[Lost]) -> Result<()> {
    let restored = lost.iter().map(async |one| {
        for object in &one.backup {
            new.objects.apply(object).await?;
        }
        let environment = new.environment(one.manifest.clone());
        environment.ready().await?;
        let names = external_names(&environment.composed().await?);
        ensure!(names == one.external_names, "{names:?} instead of {:?}", one.external_names);
        let found = in_the_clouds(new, &one.composite).await?;
        ensure!(found == one.in_the_clouds, "{found:?} instead of {:?}", one.in_the_clouds);
        anyhow::Ok(())
    });
    try_join_all(restored).await?;
    let made_anew = manifests.iter().map(async |one| {
        let environment = new.environment(one.manifest.clone());
        environment.apply().await?;
        environment.ready().await?;
        let names = external_names(&environment.composed().await?);
        let instance = names.get("instance").context("no instance")?;
        ensure!(one.external_names.get("instance") != Some(instance), "{instance} is the lost one");
        anyhow::Ok(())
    });
    try_join_all(made_anew).await?;
    new.clear().await?;
    for one in lost {
        let left = in_the_clouds(new, &one.composite).await?;
        ensure!(left.is_empty(), "the deletion leaves {left:?}");
    }
    Ok(())
}

impl Lost {
    async fn new(fixture: &Fixture, environment: &Environment) -> Result<Self> {
        let (object, composite) = (environment.object().await?, environment.composite().await?);
        let mut composed = environment.composed().await?;
        // Crossplane composes them again, for the new objects.
        composed
            .retain(|object| !["Usage", "ClusterUsage"].iter().any(|kind| object["kind"] == *kind));
        let external_names = external_names(&composed);
        let mut objects = composed;
        objects.push(composite.clone());
        if resource(&object) != resource(&composite) {
            objects.push(object);
        }
        let mut backup = secrets(fixture, &objects).await?;
        let own = &composite["spec"]["writeConnectionSecretToRef"];
        let is_own = |secret: &&mut Value| {
            ["name", "namespace"].iter().all(|part| secret["metadata"][part] == own[part])
        };
        backup.iter_mut().filter(is_own).for_each(without_a_key);
        backup.extend(objects);
        Ok(Self {
            manifest: environment.manifest.clone(),
            in_the_clouds: in_the_clouds(fixture, &composite).await?,
            composite,
            backup: backup.into_iter().map(portable).collect(),
            external_names,
        })
    }
}

/// The same example under another name.
fn renamed(flavour: Flavour) -> Value {
    let mut change = json!({"metadata": {"name": "only-in-git"}});
    if flavour == Flavour::Claims {
        change["spec"] = json!({"writeConnectionSecretToRef": {"name": "only-in-git"}});
    }
    change
}

/// The connection Secrets of objects.
async fn secrets(fixture: &Fixture, objects: &[Value]) -> Result<Vec<Value>> {
    let mut secrets = Vec::new();
    for object in objects {
        let reference = &object["spec"]["writeConnectionSecretToRef"];
        let Some(name) = reference["name"].as_str() else { continue };
        let namespace = reference["namespace"].as_str();
        let namespace = namespace.or_else(|| object["metadata"]["namespace"].as_str());
        secrets.extend(
            fixture.objects.get("v1", "Secret", namespace.unwrap_or_default(), name).await?,
        );
    }
    Ok(secrets)
}

/// The connection Secret of a composite without a key that Crossplane publishes again. Crossplane
/// takes over a Secret only when it changes its data.
fn without_a_key(secret: &mut Value) {
    let Some(data) = secret["data"].as_object_mut() else { return };
    if let Some(key) = data.keys().find(|key| *key != "password").cloned() {
        data.remove(&key);
    }
}

/// An object for another cluster: without a status, and without references to owners that the
/// cluster does not have.
fn portable(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let kept = ["name", "namespace", "labels", "annotations"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| kept.contains(&key.as_str()));
    }
    object
}

fn external_names(composed: &[Value]) -> BTreeMap<String, String> {
    let named = composed.iter().filter_map(|object| {
        let name = object["metadata"]["annotations"][EXTERNAL_NAME].as_str()?;
        Some((slot(object).to_owned(), name.to_owned()))
    });
    named.collect()
}

async fn in_the_clouds(fixture: &Fixture, composite: &Value) -> Result<Vec<String>> {
    let mut found = fixture.in_the_clouds(composite).await?;
    found.sort_unstable();
    Ok(found)
}

/// The clouds outlive the control plane. The new one finds the resources of the lost one.
async fn copy_clouds(from: &Fixture, to: &Fixture, lost: &[&Lost]) -> Result<()> {
    for map in from.objects.list("v1", "ConfigMap", fake_providers::NAMESPACE).await? {
        let Some(external) = External::from_config_map(&map) else { continue };
        let is_of = |one: &&Lost| one.composite["metadata"]["name"] == external.owner.composite;
        if lost.iter().any(is_of) {
            to.objects.apply(&portable(map)).await?;
        }
    }
    Ok(())
}
