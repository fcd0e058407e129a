//! Apps and add-ons of a virtual cluster are really installed inside it.

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};
use xtask::guide::{self, OPERATIONS};
use xtask::workspace;

use crate::environment::Environment;
use crate::eventually::eventually;
use crate::fixture::{AddOns, Fixture};
use crate::objects::{reference, resource};

use super::{deletion, guides, in_each_flavour};

const API: &str = "virtual-environment";

pub(super) async fn the_app_lands_inside(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let add_ons = fixture.add_ons().await?;
        let environment = fixture.ready(API, flavour, add_ons.app()).await?;
        fixture.app_arrives(&environment).await?;
        for release in environment.composed().await?.iter().filter(|one| one["kind"] == "Release") {
            let chart = &release["spec"]["forProvider"]["chart"];
            ensure!(chart["name"] != "podinfo", "{flavour:?}: provider-helm installs the app");
        }
        environment.delete().await?;
        environment.gone().await
    })
    .await
}

pub(super) async fn an_app_taken_out_of_a_claim_is_uninstalled(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let add_ons = fixture.add_ons().await?;
        let environment = fixture.ready(API, flavour, add_ons.app()).await?;
        fixture.app_arrives(&environment).await?;
        environment.edit(&json!({"spec": {"parameters": {"app": null}}})).await?;
        eventually("the app is uninstalled inside the virtual cluster", async || {
            Ok(fixture.app_inside(&environment).await?.is_empty().then_some(()))
        })
        .await?;
        environment.ready().await.map(drop)
    })
    .await
}

/// provider-helm keeps charts by name and version only, so another team's chart could be installed.
pub(super) async fn charts_of_one_name_and_version_are_not_mixed(fixture: Fixture) -> Result<()> {
    let add_ons = fixture.add_ons().await?;
    for flavour in fixture.flavours() {
        for (repository, owner) in [("podinfo", "stefanprodan"), ("others", "others")] {
            let mut change = add_ons.app();
            change["metadata"]["name"] = repository.into();
            let app = &mut change["spec"]["parameters"]["app"];
            app["chart"] = json!({
                "repository": format!("https://stefanprodan.github.io/{repository}"),
                "name": "podinfo",
                "version": "6.9.2",
            });
            let environment = fixture.ready(API, flavour, change).await?;
            let deployments = fixture.app_arrives(&environment).await?;
            let images: Vec<_> = deployments
                .iter()
                .map(|one| &one["spec"]["template"]["spec"]["containers"][0]["image"])
                .collect();
            let expected = format!("ghcr.io/{owner}/podinfo:6.9.2");
            ensure!(
                images == [&json!(expected)],
                "{flavour:?}: the chart of {repository} has {images:?}, not {expected}"
            );
            environment.delete().await?;
            environment.gone().await?;
        }
    }
    Ok(())
}

pub(super) async fn a_virtual_cluster_that_stopped_answering_can_go(
    fixture: Fixture,
) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        // The claim has all possible contents.
        let add_ons =
            if flavour == Flavour::Claims { Some(fixture.add_ons().await?) } else { None };
        let change = add_ons.as_ref().map_or_else(|| json!({}), AddOns::change);
        let environment = fixture.ready(API, flavour, change).await?;
        let release = environment.slot("vcluster").await?;
        let namespace =
            release["spec"]["forProvider"]["namespace"].as_str().context("a namespace")?;
        fixture.plane.proxy.cut(namespace);
        deletion::goes(&fixture, &environment).await?;
        let host = fixture.objects.get("v1", "Namespace", "", namespace).await?;
        ensure!(
            host.is_none(),
            "{flavour:?}: the cluster is gone, but its namespace {namespace} is left"
        );
        Ok(())
    })
    .await
}

/// Runs the commands of the operator's guide for the app's Object, and for a user's Object in the
/// same cluster.
pub(super) async fn stuck_resource_is_left_behind_by_hand(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let add_ons = fixture.add_ons().await?;
        let environment = fixture.ready(API, flavour, add_ons.app()).await?;
        let object = object_inside(&fixture, &environment, flavour).await?;
        let (app, cluster) =
            (environment.slot("app-application").await?, environment.slot("vcluster").await?);
        let namespace =
            cluster["spec"]["forProvider"]["namespace"].as_str().context("a namespace")?;
        fixture.plane.proxy.cut(namespace);
        fixture.objects.delete(&object).await?;
        environment.edit(&json!({"spec": {"parameters": {"app": null}}})).await?;
        eventually("the app is on its way out", async || {
            Ok(stands(&fixture, &app).await?.filter(is_deleted).map(drop))
        })
        .await?;
        environment.delete().await?;
        for left in [&app, &object] {
            let found = stands(&fixture, left).await?;
            ensure!(
                found.as_ref().is_some_and(is_deleted),
                "{} is not being deleted",
                resource(left)
            );
            leave_behind(&fixture, left, flavour).await?;
        }
        environment.gone().await?;
        ensure!(stands(&fixture, &object).await?.is_none(), "the Object is still there");
        Ok(())
    })
    .await
}

/// Creates an Object in the virtual cluster, and waits until it is there.
async fn object_inside(
    fixture: &Fixture,
    environment: &Environment,
    flavour: Flavour,
) -> Result<Value> {
    let config = environment.slot("kubernetes-config").await?;
    let (name, namespace) = (&config["metadata"]["name"], &config["metadata"]["namespace"]);
    let mut reference = json!({"name": name});
    if flavour == Flavour::Namespaced {
        reference["kind"] = "ProviderConfig".into();
    }
    let object = json!({
        "apiVersion": if flavour == Flavour::Claims { "kubernetes.crossplane.io/v1alpha2" } else { "kubernetes.m.crossplane.io/v1alpha1" },
        "kind": "Object",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "forProvider": {"manifest": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"},
            }},
            "providerConfigRef": reference,
        },
    });
    fixture.objects.apply(&object).await?;
    eventually("an Object is in the virtual cluster", async || {
        let found = stands(fixture, &object).await?.unwrap_or_default();
        Ok((conditions::get(&found, "Ready")["status"] == "True").then_some(()))
    })
    .await?;
    Ok(object)
}

/// Runs the commands of the guide, as an operator.
async fn leave_behind(fixture: &Fixture, object: &Value, flavour: Flavour) -> Result<()> {
    let guide = guide::text(OPERATIONS)?;
    let kind = if object["kind"] == "Object" { "objects.kubernetes" } else { "releases.helm" };
    let group = if flavour == Flavour::Claims { "crossplane.io" } else { "m.crossplane.io" };
    let line = |begins: &str| {
        let line = guide.lines().find(|line| line.starts_with(begins));
        line.with_context(|| format!("the operator's guide has no line {begins}…"))
    };
    let list = line(&format!("kubectl get releases.helm.{group},"))?;
    let patch = line(&format!("kubectl patch {kind}.{group} "))?;
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let operator = fixture.operator().person.context("the operator has no name")?;
    let patch = patch.replace("NAMESPACE", text("namespace")).replace("NAME", text("name"));
    let lines = [list, &patch]
        .map(|line| line.replacen("kubectl ", &format!("kubectl --as={operator} "), 1));
    let programs = fixture.plane.kubectl_path().with_file_name("");
    let script = format!(
        "kubectl() {{ {} \"$@\"; }}\n{}",
        fixture.plane.kubectl_path().display(),
        lines.join("\n")
    );
    let environment = [("KUBECONFIG", fixture.plane.kubeconfig())];
    let printed = guides::run(&script, workspace::root(), &programs, &environment).await?;
    ensure!(printed.contains(text("name")), "{list} does not show it:\n{printed}");
    Ok(())
}

/// The current state of a known object.
async fn stands(fixture: &Fixture, object: &Value) -> Result<Option<Value>> {
    fixture
        .objects
        .referred(&reference(object), object["metadata"]["namespace"].as_str().unwrap_or_default())
        .await
}

fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
