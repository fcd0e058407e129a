//! The roles that we ship are enough for what they are for, and for nothing else.

use anyhow::{Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
use serde_json::json;

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
                    let can = stage.can(kubectl, verb, &kind).await?;
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
        let can = stage.can(&operator, verb, kind).await?;
        ensure!(can == allowed, "an operator can {verb} {kind}: {can}, and should: {allowed}");
    }
    let (get, list) = (stage.can(&stage.user, "get", "secrets"), stage.can(&stage.user, "list", "secrets"));
    ensure!(get.await? && !list.await?, "a user reads a Secret whose name is known, and no others");
    Ok(())
}

pub(super) async fn a_user_reaches_no_other_namespace_and_no_part(stage: Stage) -> Result<()> {
    let elsewhere =
        stage.example("stock-pool", Flavour::Claims, json!({"metadata": {"namespace": "default"}}))?;
    let refusal = elsewhere.is_refused().await?;
    ensure!(refusal.contains("forbidden"), "refused for another reason than its namespace: {refusal}");
    for kind in ["instances.ec2.aws.m.upbound.io", "objects.kubernetes.m.crossplane.io", "secrets"] {
        ensure!(!stage.can(&stage.user, "delete", kind).await?, "a user can delete {kind}");
    }
    Ok(())
}
