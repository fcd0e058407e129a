//! What nobody can provide is refused, in words that name the field, and what was there stays.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::Flavour;
use serde_json::json;

use super::in_both_flavours;
use crate::stage::Stage;

pub(super) async fn the_api_server_refuses_what_the_schema_forbids(stage: Stage) -> Result<()> {
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
        for flavour in Flavour::ALL {
            let refusal = stage.example(api, flavour, change.clone())?.apply().await.err();
            let refusal = refusal.with_context(|| format!("{api} with {change} was taken"))?.to_string();
            ensure!(refusal.contains(field), "{api}: the refusal does not name {field}: {refusal}");
        }
    }
    Ok(())
}

pub(super) async fn what_cannot_change_is_refused(stage: Stage) -> Result<()> {
    let fixed = [
        ("gpu-workspace", json!({"spec": {"parameters": {"region": "eu-west-1"}}}), "region"),
        ("gpu-workspace", json!({"spec": {"parameters": {"diskGB": 80}}}), "diskGB"),
        ("gpu-workspace", json!({"spec": {"parameters": {"opencvVersion": "4.9.0"}}}), "opencvVersion"),
        (
            "gpu-workspace",
            json!({"spec": {"parameters": {"sshPublicKeys": ["ssh-ed25519 AAAA eve"]}}}),
            "sshPublicKeys",
        ),
        ("application-environment", json!({"spec": {"parameters": {"storageGB": 10}}}), "storageGB"),
        (
            "virtual-environment",
            json!({"spec": {"parameters": {"app": {"namespace": "other"}}}}),
            "namespace",
        ),
        ("unified-environment", json!({"spec": {"frontend": {"appName": "other"}}}), "appName"),
        ("application-environment", json!({"spec": {"parameters": {"region": "us-east1"}}}), "region"),
        ("virtual-environment", json!({"spec": {"parameters": {"type": "gke"}}}), "type"),
    ];
    in_both_flavours(async |flavour| {
        for (api, change, field) in &fixed {
            let environment = stage.example(api, flavour, json!({}))?;
            environment.apply().await?;
            let refusal = environment.refused(change).await?;
            ensure!(refusal.contains(field), "{api}: the refusal does not name {field}: {refusal}");
        }
        Ok(())
    })
    .await
}

/// What only the function knows: here, which machine types there are.
pub(super) async fn an_edit_that_the_function_refuses_loses_nothing(stage: Stage) -> Result<()> {
    in_both_flavours(async |flavour| {
        let environment = stage.ready("gpu-workspace", flavour, json!({})).await?;
        let before = environment.uids().await?;
        let bad = json!({"spec": {"parameters": {"instanceType": "p9.enormous"}}});
        environment.edit(&bad).await?;
        let message = environment.provisioned("InvalidSpec").await?;
        ensure!(
            message.contains("spec.parameters.instanceType"),
            "the condition does not name the field: {message}"
        );
        ensure!(environment.uids().await? == before, "something was lost or made anew");
        environment.edit(&json!({"spec": {"parameters": {"instanceType": "g4dn.xlarge"}}})).await?;
        environment.provisioned("Available").await?;
        ensure!(environment.uids().await? == before, "something was lost or made anew");
        Ok(())
    })
    .await
}
