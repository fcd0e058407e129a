//! The roles that we ship give the necessary rights, and no others.

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::objects::resource;

pub(super) async fn role_gives_exactly_its_rights(fixture: Fixture) -> Result<()> {
    for api in APIS {
        for (flavour, names) in
            [(Flavour::Claims, &api.info().claim), (Flavour::Namespaced, &api.info().namespaced)]
        {
            let kind = format!("{}.{}", names.plural, flavour.default_group());
            for (who, kubectl, verbs, allowed) in [
                ("a user", &fixture.user, ["get", "create", "patch", "delete"], [true; 4]),
                (
                    "a viewer",
                    &fixture.viewer(),
                    ["get", "create", "patch", "delete"],
                    [true, false, false, false],
                ),
                (
                    "a stranger",
                    &fixture.stranger(),
                    ["get", "create", "patch", "delete"],
                    [false; 4],
                ),
            ] {
                for (verb, allowed) in verbs.into_iter().zip(allowed) {
                    let can = fixture.can(kubectl, verb, &kind).await?;
                    ensure!(can == allowed, "{who} can {verb} {kind}: {can}, expected: {allowed}");
                }
            }
        }
    }
    Ok(())
}

pub(super) async fn operator_manages_all_objects_except_secrets(fixture: Fixture) -> Result<()> {
    let operator = fixture.operator();
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
        let can = fixture.can(&operator, verb, kind).await?;
        ensure!(can == allowed, "an operator can {verb} {kind}: {can}, expected: {allowed}");
    }
    let (get, list) = (
        fixture.can(&fixture.user, "get", "secrets"),
        fixture.can(&fixture.user, "list", "secrets"),
    );
    ensure!(
        get.await? && !list.await?,
        "a user may get a Secret by name, and may not list Secrets"
    );
    Ok(())
}

pub(super) async fn a_user_reaches_no_other_namespace_and_no_part(fixture: Fixture) -> Result<()> {
    let elsewhere = fixture.example(
        "stock-pool",
        Flavour::Claims,
        json!({"metadata": {"namespace": "default"}}),
    )?;
    let refusal = elsewhere.is_refused().await?;
    ensure!(
        refusal.contains("forbidden"),
        "refused for another reason than its namespace: {refusal}"
    );
    for kind in ["instances.ec2.aws.m.upbound.io", "objects.kubernetes.m.crossplane.io", "secrets"]
    {
        ensure!(!fixture.can(&fixture.user, "delete", kind).await?, "a user can delete {kind}");
    }
    Ok(())
}

/// With these fields, a user could bind a claim to a composite with a chosen name or take over a
/// foreign composite. A user could even make Crossplane delete foreign resources. Only Crossplane
/// writes these fields, and tools that restore backups.
pub(super) async fn only_crossplane_writes_its_references(fixture: Fixture) -> Result<()> {
    let reference = |name: &str| {
        let group = Flavour::Claims.default_group();
        json!({"apiVersion": function_paved_road::manifests::api_version(group), "kind": "XStockPool", "name": name})
    };
    let attack = json!({"metadata": {"name": "innocent"}, "spec": {"resourceRef": reference("team-payments")}});
    let innocent = fixture.example("stock-pool", Flavour::Claims, attack)?;
    is_crossplanes(&innocent.is_refused().await?, "spec.resourceRef")?;

    let claim = fixture.ready("stock-pool", Flavour::Claims, json!({})).await?;
    for binding in [reference("team-payments"), Value::Null] {
        let refusal = claim.refuses(&json!({"spec": {"resourceRef": binding}})).await?;
        is_crossplanes(&refusal, "spec.resourceRef")?;
    }
    // An unchanged field is accepted, because clients write back objects that they read.
    let bound = claim.object().await?["spec"]["resourceRef"].clone();
    claim.edit(&json!({"spec": {"resourceRef": bound, "replicas": 0}})).await?;

    let composite = claim.composite().await?;
    let operator = fixture.operator();
    let foreign = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "payments", "namespace": "default"}]);
    for (field, value) in
        [("claimRef", json!({"name": "innocent"})), ("resourceRefs", foreign.clone())]
    {
        let refusal =
            patch_is_refused(&operator, &composite, &json!({"spec": {field: value}})).await?;
        is_crossplanes(&refusal, &format!("spec.{field}"))?;
    }
    let pool = fixture.ready("stock-pool", Flavour::Namespaced, json!({})).await?;
    let refusal = pool.refuses(&json!({"spec": {"crossplane": {"resourceRefs": foreign}}})).await?;
    is_crossplanes(&refusal, "spec.crossplane.resourceRefs")?;

    let restored = restored(&fixture, &innocent).await?;
    ensure!(
        restored["metadata"]["name"] == "team-payments",
        "the claim is bound to {}",
        restored["metadata"]["name"]
    );
    Ok(())
}

/// Applies a claim that names its composite, as a user with the right to restore backups. Returns
/// its composite.
async fn restored(fixture: &Fixture, claim: &Environment) -> Result<Value> {
    let user = fixture.user.person.as_deref().context("the user has no name")?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{}-restores", fixture.namespace)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "paved-road-restore"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    fixture.objects.apply(&binding).await?;
    eventually("the right to restore is in force", async || Ok(claim.apply().await.ok())).await?;
    claim.ready().await?;
    let composite = claim.composite().await?;
    fixture.objects.delete(&binding).await?;
    Ok(composite)
}

/// A patch that the API server must reject. Returns the error message.
async fn patch_is_refused(who: &Kubectl, object: &Value, patch: &Value) -> Result<String> {
    let name = object["metadata"]["name"].as_str().context("a name")?;
    let patch = patch.to_string();
    who.refused(&["patch", &resource(object), name, "--type=merge", "-p", &patch], "").await
}

fn is_crossplanes(refusal: &str, field: &str) -> Result<()> {
    ensure!(
        refusal.contains(&format!("{field} is Crossplane's own")),
        "refused for another reason: {refusal}"
    );
    Ok(())
}
