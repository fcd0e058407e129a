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

pub(super) async fn a_user_reaches_no_other_namespace_and_no_part(stage: Stage) -> Result<()> {
    let elsewhere =
        stage.example("stock-pool", Flavour::Claims, json!({"metadata": {"namespace": "default"}}))?;
    ensure!(elsewhere.apply().await.is_err(), "a claim in somebody else's namespace was taken");
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
