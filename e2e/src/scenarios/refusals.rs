//! Invalid specs are rejected with a message that names the field, and existing resources stay.

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use futures::future::try_join_all;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::in_each_flavour;
use crate::environment::{Desired, Environment};
use crate::eventually::eventually;
use crate::examples;
use crate::fixture::{AddOns, Fixture};

pub(super) async fn api_server_rejects_invalid_specs(fixture: Fixture) -> Result<()> {
    let refused = [
        ("gpu-workspace", json!({"spec": {"parameters": {"diskGB": 1}}}), "spec.parameters.diskGB"),
        (
            "gpu-workspace",
            json!({"spec": {"parameters": {"opencvVersion": "latest"}}}),
            "spec.parameters.opencvVersion",
        ),
        ("stock-pool", json!({"spec": {"replicas": -1}}), "spec.replicas"),
        (
            "unified-environment",
            json!({"spec": {"frontend": {"appName": "My_App"}}}),
            "spec.frontend.appName",
        ),
        (
            "application-environment",
            json!({"spec": {"parameters": {"nodeSize": "huge"}}}),
            "spec.parameters.nodeSize",
        ),
        (
            "virtual-environment",
            json!({"spec": {"parameters": {"type": "minikube"}}}),
            "spec.parameters.type",
        ),
        (
            "virtual-environment",
            json!({"spec": {"parameters": {"type": "gke", "expose": "loadBalancer"}}}),
            "spec.parameters",
        ),
    ];
    for (api, change, field) in refused {
        for flavour in fixture.flavours() {
            let refusal = fixture.example(api, flavour, change.clone())?.is_refused().await?;
            ensure!(refusal.contains(field), "{api}: the refusal does not name {field}: {refusal}");
        }
    }
    Ok(())
}

/// Crossplane would apply the backend's Service over a Service of its name, and delete it with the
/// environment.
pub(super) async fn object_of_another_owner_stays_as_it_is(fixture: Fixture) -> Result<()> {
    let api = "unified-environment";
    let change = examples::beside(api, Flavour::Namespaced);
    let environment = fixture.example(api, Flavour::Namespaced, change)?;
    let name = environment.name();
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": fixture.namespace},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    });
    fixture.objects.apply(&foreign).await?;
    let stored = || fixture.objects.get("v1", "Service", &fixture.namespace, name);
    let before = stored().await?;
    environment.apply().await?;
    let message = environment.provisioned("ObjectExists").await?;
    let expected = format!("Service {name} exists in namespace {}", fixture.namespace);
    ensure!(message.contains(&expected), "the condition does not name the Service: {message}");
    ensure!(stored().await? == before, "the Service was changed");
    let composed = environment.composed().await?;
    ensure!(composed.is_empty(), "resources are composed: {composed:?}");
    fixture.objects.delete(&foreign).await?;
    environment.touch().await?;
    eventually("the Service is composed", async || {
        Ok(environment.slot("backend-service").await.ok())
    })
    .await
    .map(drop)
}

/// Changes that are not allowed, with the API server's messages.
fn fixed() -> [(&'static str, Value, &'static str); 10] {
    let parameters = |change: Value| json!({"spec": {"parameters": change}});
    let keys = ["ssh-ed25519 AAAA eve"];
    [
        ("gpu-workspace", parameters(json!({"region": "eu-west-1"})), "region cannot be changed"),
        ("gpu-workspace", parameters(json!({"diskGB": 80})), "diskGB can only grow"),
        (
            "gpu-workspace",
            parameters(json!({"opencvVersion": "4.9.0"})),
            "opencvVersion cannot be changed",
        ),
        (
            "gpu-workspace",
            parameters(json!({"sshPublicKeys": keys})),
            "sshPublicKeys cannot be changed",
        ),
        (
            "application-environment",
            parameters(json!({"storageGB": 10})),
            "storageGB can only grow",
        ),
        (
            "application-environment",
            parameters(json!({"region": "us-east1"})),
            "region cannot be changed",
        ),
        (
            "unified-environment",
            json!({"spec": {"frontend": {"appName": "other"}}}),
            "appName cannot be changed",
        ),
        ("virtual-environment", parameters(json!({"type": "gke"})), "type cannot be changed"),
        (
            "virtual-environment",
            parameters(json!({"app": {"namespace": "other"}})),
            "namespace cannot be changed",
        ),
        (
            "virtual-environment",
            parameters(json!({"app": {"namespace": null}})),
            "namespace cannot be changed",
        ),
    ]
}

pub(super) async fn change_of_a_fixed_field_is_rejected(fixture: Fixture) -> Result<()> {
    let larger = json!({"spec": {"parameters": {"size": "large"}}});
    for (cluster, _, environment) in fixture.shared_clusters().await? {
        if cluster != "gke" {
            let refusal = environment.refuses(&larger).await?;
            ensure!(
                refusal.contains("size cannot be changed on eks and aks"),
                "{cluster}: {refusal}"
            );
        }
    }
    in_each_flavour(&fixture, async |flavour| {
        for (api, change, rule) in fixed() {
            let of_app = change["spec"]["parameters"]["app"].is_object();
            let add_ons = if of_app { Some(fixture.add_ons().await?) } else { None };
            let with = add_ons.as_ref().map_or_else(|| json!({}), AddOns::app);
            let environment = fixture.example(api, flavour, with)?;
            environment.apply().await?;
            let refusal = environment.refuses(&change).await?;
            ensure!(refusal.contains(rule), "{api} with {change}: not {rule:?}: {refusal}");
            if of_app {
                // The next holder of the lock has an app of its own.
                let without = json!({"spec": {"parameters": {"app": null}}});
                environment.edit(&without).await?;
            }
        }
        Ok(())
    })
    .await
}

/// Values that only the function can reject, with the field that it names and a correction. For an
/// application environment, the schema rejects all invalid values.
fn refused_by_the_function() -> [(&'static str, Value, &'static str, Value); 4] {
    let parameters = |change: Value| json!({"spec": {"parameters": change}});
    let elsewhere =
        json!({"repoURL": "https://git.example.org/preview.git", "path": "../elsewhere"});
    [
        (
            "gpu-workspace",
            parameters(json!({"instanceType": "p9.enormous"})),
            "spec.parameters.instanceType",
            parameters(json!({"instanceType": "g4dn.xlarge"})),
        ),
        (
            "unified-environment",
            json!({"spec": {"backend": {"env": {"PGHOST": "elsewhere"}}}}),
            "spec.backend.env.PGHOST",
            json!({"spec": {"backend": {"env": {"PGHOST": null}}}}),
        ),
        (
            "stock-pool",
            json!({"spec": {"memory": "0Gi"}}),
            "spec.memory",
            json!({"spec": {"memory": "16Gi"}}),
        ),
        (
            "virtual-environment",
            parameters(json!({"gitops": elsewhere})),
            "spec.parameters.gitops.path",
            parameters(json!({"gitops": null})),
        ),
    ]
}

pub(super) async fn rejected_edit_keeps_all_resources(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let edits = refused_by_the_function().into_iter();
        let edited = edits.map(async |(api, bad, field, good)| {
            let environment = fixture.ready(api, flavour, examples::beside(api, flavour)).await?;
            environment.rests().await?;
            let before = all_of(&fixture, api, &environment).await?;
            environment.edit(&bad).await?;
            let message = environment.provisioned("InvalidSpec").await?;
            ensure!(message.contains(field), "the condition does not name {field}: {message}");
            let meanwhile = all_of(&fixture, api, &environment).await?;
            ensure!(meanwhile == before, "{api}: resources changed: {before:?}, {meanwhile:?}");
            environment.edit(&good).await?;
            environment.provisioned("Available").await?;
            let after = all_of(&fixture, api, &environment).await?;
            ensure!(after == before, "{api}: resources differ: {before:?}, {after:?}");
            anyhow::Ok(())
        });
        try_join_all(edited).await.map(drop)
    })
    .await
}

/// The state of an environment: its desired resources, its composite's status, and a digest of the
/// connection details in its owner's namespace.
type All = (Desired, Value, Option<Vec<u8>>);

async fn all_of(fixture: &Fixture, api: &str, environment: &Environment) -> Result<All> {
    let mut status = environment.composite().await?["status"].clone();
    // Crossplane's own fields, and the fields that change with every edit: its generation and time.
    for other in [
        "conditions",
        "claimConditionTypes",
        "connectionDetails",
        "observedGeneration",
        "lastSyncTime",
    ] {
        status.as_object_mut().map(|status| status.remove(other));
    }
    let name = environment.manifest["spec"]["writeConnectionSecretToRef"]["name"].as_str();
    let name = name.map_or_else(|| format!("{}-{api}", environment.name()), str::to_owned);
    let secret = fixture.objects.get("v1", "Secret", &fixture.namespace, &name).await?;
    let digest = secret.map(|secret| Sha256::digest(secret["data"].to_string()).to_vec());
    Ok((environment.desired().await?, status, digest))
}
