//! An operator upgrades a running resource, as docs/how-to/change-settings.md says. The operator
//! patches the managed resource, and the function keeps the value.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::settled;
use crate::environment::Environment;
use crate::eventually::eventually;
use crate::examples;
use crate::fixture::Fixture;
use crate::objects::resource;
use crate::scenarios::in_each_flavour;

/// A slot, a patch of its resource's parameters, and the expected value at a JSON pointer.
type Patch = (&'static str, Value, &'static str, Value);

/// The patches for an environment of an API.
fn patches(api: &str) -> Vec<Patch> {
    match api {
        "application-environment" => vec![
            (
                "cloudsql-instance",
                json!({"databaseVersion": "POSTGRES_18"}),
                "/databaseVersion",
                json!("POSTGRES_18"),
            ),
            (
                "node-pool",
                json!({"nodeConfig": {"diskSizeGb": 60}}),
                "/nodeConfig/diskSizeGb",
                json!(60),
            ),
        ],
        _ => vec![(
            "deployment",
            json!({"strategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}),
            "/strategy/rollingUpdate/maxUnavailable",
            json!("50%"),
        )],
    }
}

pub(in crate::scenarios) async fn resource_upgraded_by_hand_stays_upgraded(
    fixture: Fixture,
) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let upgraded = ["application-environment", "stock-pool"].into_iter().map(async |api| {
            let environment = fixture.ready(api, flavour, examples::beside(api, flavour)).await?;
            let before = environment.uids().await?;
            for patch in patches(api) {
                stays(&fixture, &environment, flavour, &patch).await?;
            }
            settled(std::slice::from_ref(&environment)).await?;
            let after = environment.uids().await?;
            ensure!(before == after, "resources were created again: {before:?}, {after:?}");
            Ok(())
        });
        try_join_all(upgraded).await.map(drop)
    })
    .await
}

/// Patches a resource until the value remains after a call of the function. A composition that
/// began before the patch may have restored the old value.
async fn stays(
    fixture: &Fixture,
    environment: &Environment,
    flavour: Flavour,
    (slot, patch, pointer, wanted): &Patch,
) -> Result<()> {
    eventually(&format!("{slot} of {} keeps {wanted}", environment.resource()), async || {
        let object = environment.slot(slot).await?;
        if parameters(&object).pointer(pointer) != Some(wanted) {
            let patch = whole(&object, patch, flavour).to_string();
            let (kind, text) =
                (resource(&object), |value: &Value| value.as_str().unwrap_or_default().to_owned());
            let (name, namespace) =
                (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
            let mut args = vec!["patch", &kind, &name, "--type=merge", "--patch", &patch];
            if !namespace.is_empty() {
                args.extend(["-n", &namespace]);
            }
            // Operators may not patch Deployments, so the cluster's administrator patches native
            // ones.
            let who = if object["kind"] == "Deployment" {
                fixture.admin.clone()
            } else {
                fixture.operator()
            };
            who.run(&args).await.with_context(|| format!("patching {slot}"))?;
        }
        environment.poke().await?;
        let object = environment.slot(slot).await?;
        Ok((parameters(&object).pointer(pointer) == Some(wanted)).then_some(()))
    })
    .await
}

/// The parameters of a composed resource. A native object has them in its spec, and a wrapped
/// object in the spec of the inner object.
fn parameters(object: &Value) -> &Value {
    let wrapped = object.pointer("/spec/forProvider/manifest/spec");
    let managed = object.pointer("/spec/forProvider");
    wrapped.or(managed).unwrap_or(&object["spec"])
}

/// A patch of a composed resource from a patch of its parameters.
fn whole(object: &Value, parameters: &Value, flavour: Flavour) -> Value {
    match (object["kind"].as_str(), flavour) {
        (Some("Object"), _) => json!({"spec": {"forProvider": {"manifest": {"spec": parameters}}}}),
        (Some("Deployment"), Flavour::Namespaced) => json!({"spec": parameters}),
        _ => json!({"spec": {"forProvider": parameters}}),
    }
}
