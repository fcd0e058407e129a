//! The roles that we ship are enough for what they are for, and for nothing else.

use anyhow::{Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::kubectl::Kubectl;
use crate::stage::Stage;

pub(super) async fn people_may_do_what_their_role_says(stage: Stage) -> Result<()> {
    for api in APIS {
        for (flavour, names) in
            [(Flavour::Claims, &api.info().claim), (Flavour::Namespaced, &api.info().namespaced)]
        {
            let kind = format!("{}.{}", names.plural, flavour.default_group());
            for (who, kubectl, verbs, allowed) in [
                ("a user", &stage.user, ["get", "create", "patch", "delete"], [true; 4]),
                (
                    "a viewer",
                    &stage.viewer(),
                    ["get", "create", "patch", "delete"],
                    [true, false, false, false],
                ),
                ("a stranger", &stage.stranger(), ["get", "create", "patch", "delete"], [false; 4]),
            ] {
                for (verb, allowed) in verbs.into_iter().zip(allowed) {
                    let can = can(&stage, kubectl, verb, &kind).await?;
                    ensure!(can == allowed, "{who} can {verb} {kind}: {can}, and should: {allowed}");
                }
            }
        }
    }
    Ok(())
}

pub(super) async fn an_operator_looks_after_everything_but_secrets(stage: Stage) -> Result<()> {
    let operator = stage.operator();
    for (verb, kind, allowed) in [
        ("patch", "environmentconfigs.apiextensions.crossplane.io", true),
        ("delete", "usages.protection.crossplane.io", true),
        ("delete", "usages.apiextensions.crossplane.io", true),
        ("patch", "instances.ec2.aws.upbound.io", true),
        ("patch", "objects.kubernetes.m.crossplane.io", true),
        ("delete", "deployments.apps", true),
        ("patch", "deployments.apps", false),
        ("list", "events", true),
        ("patch", "compositions.apiextensions.crossplane.io", false),
        ("create", "configurations.pkg.crossplane.io", false),
        ("get", "secrets", false),
        ("delete", "secrets", false),
    ] {
        let can = can(&stage, &operator, verb, kind).await?;
        ensure!(can == allowed, "an operator can {verb} {kind}: {can}, and should: {allowed}");
    }
    let (get, list) =
        (can(&stage, &stage.user, "get", "secrets"), can(&stage, &stage.user, "list", "secrets"));
    ensure!(get.await? && !list.await?, "a user reads a Secret whose name is known, and no others");
    Ok(())
}

pub(super) async fn a_user_reaches_no_other_namespace_and_no_part(stage: Stage) -> Result<()> {
    let elsewhere =
        stage.example("stock-pool", Flavour::Claims, json!({"metadata": {"namespace": "default"}}))?;
    let refusal = elsewhere.is_refused().await?;
    ensure!(refusal.contains("forbidden"), "refused for another reason than its namespace: {refusal}");
    for kind in ["instances.ec2.aws.m.upbound.io", "objects.kubernetes.m.crossplane.io", "secrets"] {
        ensure!(!can(&stage, &stage.user, "delete", kind).await?, "a user can delete {kind}");
    }
    Ok(())
}

/// What the API server says of somebody's rights.
async fn can(stage: &Stage, who: &Kubectl, verb: &str, kind: &str) -> Result<bool> {
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: who.person.clone(),
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(stage.namespace.clone()),
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::all(stage.plane.client()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
