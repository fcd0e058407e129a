//! The command line on a real cluster: its output for people, and its exit codes for pipelines.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use crossplane::names;
use function_paved_road::apis::Flavour;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use xtask::guide::{self, PIPELINES};

use super::in_each_flavour;
use crate::environment::Environment;
use crate::eventually::eventually;
use crate::fake_cdn::FakeCdn;
use crate::fake_providers::faults::Rule;
use crate::fixture::Fixture;
use crate::paved::{Paved, address};

const API: &str = "gpu-workspace";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const REFUSAL: &str = "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";

/// A workspace with its own name, as a claim or as a namespaced composite.
fn workspace(
    fixture: &Fixture,
    flavour: Flavour,
    name: &str,
    mut change: Value,
) -> Result<Environment> {
    change["metadata"]["name"] = json!(format!("{name}-{flavour:?}").to_lowercase());
    if flavour == Flavour::Claims {
        change["spec"]["writeConnectionSecretToRef"] = json!({"name": format!("{name}-conn")});
    }
    fixture.example(API, flavour, change)
}

/// A rule for the machines of this fixture's namespace, for claims and namespaced composites.
async fn rule(fixture: &Fixture, rule: Rule) -> Result<()> {
    let machines = Rule { kind: Some("Instance".to_owned()), ..rule };
    let mut claims = machines.clone();
    claims.labels.insert(names::CLAIM_NAMESPACE.to_owned(), fixture.namespace.clone());
    fixture.rule("claims", &claims).await?;
    fixture.rule("direct", &Rule { namespace: Some(fixture.namespace.clone()), ..machines }).await
}

async fn no_rule(fixture: &Fixture) -> Result<()> {
    fixture.no_rule("claims").await?;
    fixture.no_rule("direct").await
}

pub(super) async fn the_documented_pipeline_ends_with_a_site(fixture: Fixture) -> Result<()> {
    let documented = guide::text(PIPELINES)?;
    let script = documented.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next());
    let script = format!("set -x\n{}", script.context("the guide to pipelines has no script")?);
    in_each_flavour(&fixture, async |flavour| {
        let cdn = FakeCdn::start().await?;
        let name = format!("shop-{flavour:?}").to_lowercase();
        let shop =
            fixture.example("unified-environment", flavour, json!({"metadata": {"name": name}}))?;
        let folder = tempfile::tempdir()?;
        for (path, text) in [
            ("environment/claim.yaml", shop.manifest.to_string().as_str()),
            ("dist/index.html", "<p>the shop</p>"),
            ("dist/assets/app-0123abcd.js", "export default 1;"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().context("a folder")?)?;
            std::fs::write(path, text)?;
        }
        let paved = Paved::from_fixture(&fixture)?;
        let whose = [("NAME", name), ("NAMESPACE", fixture.namespace.clone())];
        let variables: Vec<_> = cdn.variables().into_iter().chain(whose).collect();
        let run = async || paved.script(&script, folder.path(), &variables).await;
        run().await?.is(0, &["is ready after", "2 uploaded", "+ curl"])?;
        // A second run has no work left.
        run().await?.is(0, &["unchanged", "2 unchanged"])?;
        // Any failure ends the script.
        std::fs::remove_dir_all(folder.path().join("dist"))?;
        let ran = run().await?;
        ensure!(
            ran.code == 1 && !ran.told.contains("+ curl"),
            "it continued without a site: {}",
            ran.told
        );
        Ok(())
    })
    .await
}

pub(super) async fn a_pipeline_applies_waits_and_gets_its_outputs(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    in_each_flavour(&fixture, async |flavour| {
        let ada = workspace(&fixture, flavour, "ada", json!({}))?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("outputs.env");
        let file = file.to_str().context("a folder with a name that is not text")?;
        let ran = paved.apply(&ada, &["--wait", "--timeout", "8m", "--output-file", file]).await?;
        ran.is(0, &["created", "instance (Instance", "is ready after", "connection: ssh"])?;
        let outputs = std::fs::read_to_string(file)?;
        ensure!(outputs.contains("PAVED_PUBLIC_IP="), "no address among the outputs: {outputs}");
        paved.apply(&ada, &["--wait"]).await?.is(0, &["unchanged"])?;
        let address = address(&ada);
        paved.run(&["status", &address]).await?.is(0, &["Ready ", "✓ instance", "i-"])?;
        paved.run(&["list"]).await?.is(0, &[ada.name(), "Ready", "ssh developer@"])?;
        let json = paved.run(&["status", &address, "-o", "json"]).await?;
        let object: Value = serde_json::from_str(&json.told)?;
        ensure!(object["status"]["phase"] == "Ready", "{object}");
        paved
            .run(&["delete", &address, "--yes", "--wait", "--timeout", "8m"])
            .await?
            .is(0, &["deleted after"])?;
        ensure!(ada.found().await?.is_none(), "it is reported as deleted, but exists");
        paved.run(&["wait", &address, "--for=deleted"]).await?.is(0, &[])?;
        let again = ["delete", &address, "--yes", "--ignore-not-found"];
        paved.run(&again).await?.is(0, &["no environment "])?;
        paved.run(&["status", &address]).await?.is(1, &["no environment "])
    })
    .await
}

pub(super) async fn slow_resource_has_not_failed(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { seconds: Some(15.0), ..Rule::default() }).await?;
    in_each_flavour(&fixture, async |flavour| {
        let slow = workspace(&fixture, flavour, "slow", json!({}))?;
        let flags = ["--wait", "--patience", "2s", "--timeout", "8m"];
        paved
            .apply(&slow, &flags)
            .await?
            .is(0, &["instance (Instance", "Creating", "is ready after"])
    })
    .await
}

pub(super) async fn a_refused_part_ends_the_wait_and_is_named(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { create: Some(REFUSAL.to_owned()), ..Rule::default() }).await?;
    in_each_flavour(&fixture, async |flavour| {
        let poor = workspace(&fixture, flavour, "poor", json!({}))?;
        let flags = ["--wait", "--patience", "5s", "--timeout", "8m"];
        let words = ["has failed: instance (Instance", "VcpuLimitExceeded", "quota"];
        paved.apply(&poor, &flags).await?.is(4, &words)
    })
    .await
}

pub(super) async fn a_refused_change_ends_the_wait_and_is_named(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    in_each_flavour(&fixture, async |flavour| {
        let small = workspace(&fixture, flavour, "grown", json!({}))?;
        paved.apply(&small, &["--wait", "--timeout", "8m"]).await?.is(0, &["is ready after"])
    })
    .await?;
    rule(&fixture, Rule { update: Some(REFUSAL.to_owned()), ..Rule::default() }).await?;
    in_each_flavour(&fixture, async |flavour| {
        let change = json!({"spec": {"parameters": {"instanceType": "g4dn.2xlarge"}}});
        let large = workspace(&fixture, flavour, "grown", change)?;
        let flags = ["--wait", "--patience", "5s", "--timeout", "8m"];
        let words = ["has failed: instance (Instance", "VcpuLimitExceeded", "quota"];
        paved.apply(&large, &flags).await?.is(4, &words)
    })
    .await
}

pub(super) async fn recovered_resource_ends_the_wait_ready(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { create: Some(REFUSAL.to_owned()), ..Rule::default() }).await?;
    let flavours = fixture.flavours().into_iter();
    let environments = flavours.map(|flavour| workspace(&fixture, flavour, "poor", json!({})));
    let environments = environments.collect::<Result<Vec<_>>>()?;
    let waits = environments
        .iter()
        .map(async |poor| paved.apply(poor, &["--wait", "--timeout", "8m"]).await);
    let raised = async {
        for poor in &environments {
            while poor.found().await?.is_none() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            poor.provisioned("Failed").await?;
        }
        no_rule(&fixture).await
    };
    let (ran, raised) = futures::future::join(join_all(waits), raised).await;
    raised?;
    ran.into_iter()
        .try_for_each(|ran| ran?.is(0, &["Failed: ", "VcpuLimitExceeded", "is ready after"]))
}

pub(super) async fn a_wait_ends_when_its_time_is_over(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { seconds: Some(600.0), ..Rule::default() }).await?;
    in_each_flavour(&fixture, async |flavour| {
        let slow = workspace(&fixture, flavour, "slow", json!({}))?;
        let words = ["timed out", "is not ready after 90s", "instance (Instance"];
        paved.apply(&slow, &["--wait", "--timeout", "90s"]).await?.is(5, &words)
    })
    .await
}

pub(super) async fn an_invalid_spec_ends_the_wait_at_once(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    in_each_flavour(&fixture, async |flavour| {
        let odd = json!({"spec": {"parameters": {"instanceType": "p9.enormous"}}});
        let wrong = workspace(&fixture, flavour, "wrong", odd)?;
        let words = ["InvalidSpec", "spec.parameters.instanceType", "p9.enormous"];
        let flags = ["--no-validate", "--wait", "--timeout", "8m"];
        paved.apply(&wrong, &flags).await?.is(3, &words)?;
        let refused =
            conditions::get(&wrong.object().await?, "Provisioned")["lastTransitionTime"].clone();
        let refused: Timestamp = serde_json::from_value(refused).context("when it was refused")?;
        let waited = Timestamp::now().duration_since(refused);
        ensure!(waited < SignedDuration::from_secs(30), "waited {waited:#} after the rejection");
        kubectl_waits(&fixture, &wrong, "Stalled").await?;
        let right = workspace(&fixture, flavour, "wrong", json!({}))?;
        paved
            .apply(&right, &["--wait", "--timeout", "8m"])
            .await?
            .is(0, &["configured", "is ready after"])?;
        kubectl_waits(&fixture, &right, "Ready").await?;
        // Existing resources stay, but the edit is rejected again.
        paved.apply(&wrong, &flags).await?.is(3, &words)
    })
    .await
}

/// `kubectl wait` for a condition that the environment already has.
async fn kubectl_waits(
    fixture: &Fixture,
    environment: &Environment,
    condition: &str,
) -> Result<()> {
    let condition = format!("--for=condition={condition}");
    let (kind, name) = (environment.resource(), environment.name());
    let place = ["-n", environment.namespace(), "--timeout=1m"];
    fixture.user.run(&[&["wait", &condition, &kind, name][..], &place].concat()).await.map(drop)
}

pub(super) async fn rejected_claim_prevents_the_whole_apply(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let good = workspace(&fixture, Flavour::Claims, "good", json!({}))?;
    let bad = workspace(
        &fixture,
        Flavour::Claims,
        "bad",
        json!({"spec": {"parameters": {"diskGB": 1}}}),
    )?;
    let elsewhere = json!({"apiVersion": "platform.acme.org/v1alpha1"});
    let elsewhere = workspace(&fixture, Flavour::Claims, "elsewhere", elsewhere)?;
    let foreign =
        json!({"apiVersion": "v1", "kind": "GpuWorkspaceClaim", "metadata": {"name": "foreign"}});
    let odd = json!({"spec": {"parameters": {"instanceType": "p9.enormous"}}});
    let odd = workspace(&fixture, Flavour::Claims, "odd", odd)?;
    for (second, code, words) in [
        (&bad.manifest, 2, ["spec.parameters.diskGB", "75"]),
        (&elsewhere.manifest, 2, ["platform.acme.org/v1alpha1", "platform.acme.io/v1alpha1"]),
        (&foreign, 2, ["allowed: ", "did you mean GpuDevWorkspaceClaim?"]),
        // The API server accepts this claim. The composition would reject it.
        (&odd.manifest, 3, ["spec.parameters.instanceType", "p9.enormous"]),
    ] {
        let text = format!("{}\n---\n{second}\n", good.manifest);
        paved.start(&["apply", "-"], &text).await?.ends().await?.is(code, &words)?;
        ensure!(good.found().await?.is_none(), "a document of a refused file was applied");
    }
    paved.apply(&good, &["--dry-run=server", "--diff"]).await?.is(
        0,
        &[
            "created (server dry run)",
            "+ kind:",
            "its resources are not compared: you may not read Compositions",
        ],
    )?;
    fixture.show_catalogue().await?;
    let parts = ["resources\n+ ", "+ instance Instance", "+ egress SecurityGroupEgressRule"];
    paved.apply(&good, &["--dry-run=server", "--diff"]).await?.is(0, &parts)?;
    paved.run(&["kinds"]).await?.is(0, &["GpuDevWorkspaceClaim", "compositionRef: "])?;
    ensure!(good.found().await?.is_none(), "a dry run made something");
    Ok(())
}

pub(super) async fn another_managers_fields_are_not_taken_by_accident(
    fixture: Fixture,
) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let ours = workspace(&fixture, Flavour::Claims, "shared", json!({}))?;
    ours.apply().await?;
    let text = json!({"spec": {"parameters": {"allowedCidrs": ["198.51.100.0/24"]}}});
    let theirs = workspace(&fixture, Flavour::Claims, "shared", text)?;
    let words = ["spec.parameters.allowedCidrs: is set by kubectl", "--force-conflicts"];
    paved.apply(&theirs, &[]).await?.is(2, &words)?;
    let changes = ["resources: 1 new, 0 changed, 1 gone", "@@ ssh-198.51.100.0/24 @@"];
    let operator = paved.by(fixture.operator().person.as_deref());
    operator
        .apply(&theirs, &["--force-conflicts", "--dry-run=server", "--diff"])
        .await?
        .is(0, &changes)?;
    paved
        .apply(&theirs, &["--force-conflicts", "--diff"])
        .await?
        .is(0, &["+     - 198.51.100.0/24", "configured"])
}

pub(super) async fn kubectl_fields_follow_paved_apply(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    in_each_flavour(&fixture, async |flavour| {
        let change = json!({"metadata": {"labels": {"team": "vision"}},
            "spec": {"lifecycle": {"ttl": "8h", "onExpiry": "Delete"},
                "parameters": {"allowedCidrs": ["0.0.0.0/0"]}}});
        let with = workspace(&fixture, flavour, "lin", change)?;
        let change = json!({"spec": {"parameters": {"allowedCidrs": null}}});
        let without = workspace(&fixture, flavour, "lin", change)?;
        // `apply` is `kubectl apply`.
        with.apply().await?;
        paved.apply(&with, &[]).await?.is(0, &["unchanged", "takes over the fields"])?;
        let dry_run = ["--dry-run=server"];
        paved.apply(&without, &dry_run).await?.is(0, &["configured (server dry run)"])?;
        paved.apply(&without, &[]).await?.is(0, &["configured"])?;
        paved.apply(&without, &[]).await?.is(0, &["unchanged"])?;
        let found = with.found().await?.context("the workspace is gone")?;
        for field in ["/spec/parameters/allowedCidrs", "/spec/lifecycle", "/metadata/labels/team"] {
            ensure!(found.pointer(field).is_none(), "{field} stays: {found}");
        }
        let last = &found["metadata"]["annotations"][LAST_APPLIED];
        ensure!(last.is_null(), "kubectl's annotation stays: {last}");
        // The same without an apply of the first file.
        with.apply().await?;
        paved.apply(&without, &[]).await?.is(0, &["configured"])?;
        let found = with.found().await?.context("the workspace is gone")?;
        ensure!(found["spec"]["parameters"]["allowedCidrs"].is_null(), "it stays: {found}");
        Ok(())
    })
    .await
}

pub(super) async fn two_pipelines_may_apply_at_once(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    in_each_flavour(&fixture, async |flavour| {
        let twice = workspace(&fixture, flavour, "twice", json!({}))?;
        let both = [(); 2].map(|()| paved.apply(&twice, &["--wait", "--timeout", "8m"]));
        join_all(both).await.into_iter().try_for_each(|ran| ran?.is(0, &["is ready after"]))
    })
    .await
}

pub(super) async fn denied_user_gets_the_reason(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let ada = workspace(&fixture, Flavour::Claims, "ada", json!({}))?;
    let stranger = paved.by(Some("stranger"));
    stranger.apply(&ada, &[]).await?.is(6, &["you may not", "paved-road-user"])?;
    stranger.run(&["list"]).await?.is(6, &["you may not list"])?;
    stranger.run(&["wait", "ada"]).await?.is(6, &["you may not"])?;
    let viewer = paved.by(Some(&format!("viewer@{}", fixture.namespace)));
    viewer.apply(&ada, &[]).await?.is(6, &["you may not apply"])?;
    paved.apply(&ada, &["--wait", "--timeout", "8m"]).await?.is(0, &[])?;
    viewer.run(&["wait", ada.name()]).await?.is(0, &["is ready"])?;
    viewer.run(&["delete", ada.name(), "--yes"]).await?.is(6, &["you may not delete"])?;
    paved
        .run(&["delete", ada.name(), "--yes", "--wait"])
        .await?
        .is(0, &["you may not read its resources", "deleted after"])
}

pub(super) async fn deleted_environment_fails_the_wait(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { seconds: Some(600.0), ..Rule::default() }).await?;
    in_each_flavour(&fixture, async |flavour| {
        let doomed = workspace(&fixture, flavour, "doomed", json!({}))?;
        paved.apply(&doomed, &[]).await?.is(0, &["created"])?;
        let waits = paved.start(&["wait", &address(&doomed), "--timeout", "8m"], "").await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        doomed.delete().await?;
        waits.ends().await?.is(4, &["deleted"])
    })
    .await
}

pub(super) async fn interrupted_wait_keeps_applied_claims(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { seconds: Some(600.0), ..Rule::default() }).await?;
    let kept = workspace(&fixture, Flavour::Claims, "kept", json!({}))?;
    let waits = paved.start(&["apply", "-", "--wait"], &kept.manifest.to_string()).await?;
    eventually("it is applied, and composed", async || {
        let composed = kept.found().await?.filter(|object| object["status"]["phase"].is_string());
        Ok(composed.map(drop))
    })
    .await?;
    waits.interrupt()?;
    waits.ends().await?.is(130, &["created", "interrupted: everything was applied"])?;
    ensure!(kept.found().await?.is_some(), "the applied claim is gone");
    Ok(())
}

pub(super) async fn blocked_deletion_names_the_blocker(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    let operator = paved.by(fixture.operator().person.as_deref());
    for flavour in fixture.flavours() {
        let held = workspace(&fixture, flavour, "held", json!({}))?;
        paved.apply(&held, &["--wait", "--timeout", "8m"]).await?.is(0, &[])?;
        rule(
            &fixture,
            Rule {
                delete: Some("OperationNotPermitted: termination protection".to_owned()),
                ..Rule::default()
            },
        )
        .await?;
        let address = address(&held);
        let words = ["timed out", "instance (Instance", "termination protection"];
        let deletes = ["delete", &address, "--yes", "--wait", "--timeout", "20s"];
        operator.run(&deletes).await?.is(5, &words)?;
        no_rule(&fixture).await?;
        paved
            .run(&["wait", &address, "--for=deleted", "--timeout", "8m"])
            .await?
            .is(0, &["is gone"])?;
    }
    Ok(())
}

pub(super) async fn a_wait_outlives_the_api_server(fixture: Fixture) -> Result<()> {
    let paved = Paved::from_fixture(&fixture)?;
    rule(&fixture, Rule { seconds: Some(40.0), ..Rule::default() }).await?;
    let server = fixture.plane.process("kube-apiserver")?;
    let flavours = fixture.flavours().into_iter();
    let slow = flavours.map(|flavour| workspace(&fixture, flavour, "slow", json!({})));
    let slow = slow.collect::<Result<Vec<_>>>()?;
    let mut waits = Vec::new();
    for slow in &slow {
        paved.apply(slow, &[]).await?.is(0, &["created"])?;
        waits.push(paved.start(&["wait", &address(slow), "--timeout", "6m"], "").await?);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.stop().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.start_again()?;
    for wait in waits {
        wait.ends().await?.is(0, &["does not respond", "responds again", "is ready after"])?;
    }
    Ok(())
}
