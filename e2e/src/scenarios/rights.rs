//! The roles that we ship are enough for what they are for, and for nothing else.

use anyhow::{Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
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
                    let can = can(kubectl, verb, &kind, &stage.namespace).await;
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
        ensure!(!can(&stage.user, "delete", kind, &stage.namespace).await, "a user can delete {kind}");
    }
    Ok(())
}

async fn can(kubectl: &Kubectl, verb: &str, kind: &str, namespace: &str) -> bool {
    // `no` is exit code 1.
    kubectl.run(&["auth", "can-i", verb, kind, "-n", namespace]).await.is_ok()
}
