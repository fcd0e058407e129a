//! Namespaces are deleted with all their environments. No deletion hangs, and no resource remains in
//! the clouds.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use crossplane::conditions;
use crossplane::json::merge_patch;
use function_paved_road::apis::Flavour;
use function_paved_road::manifests::namespaces::REFUSAL;
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::controller::Controller;
use crate::eventually::eventually;
use crate::fake_providers;
use crate::fake_providers::state::External;
use crate::fixture::Fixture;
use crate::paved::{Paved, Ran};

/// How often [`killed_deletions_leave_no_resource`] deletes a namespace.
const ROUNDS: usize = 20;

/// How many of these namespaces exist at once.
const SIDE_BY_SIDE: usize = 5;

/// The longest pause before `paved delete --namespace` is killed.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How long a deletion must hang to count as one that never ends.
const HANGS: Duration = Duration::from_secs(45);

/// In the claims API, managed resources have no namespace, so no policy is necessary.
pub(super) async fn claims_namespace_is_deleted_by_kubectl(fixture: Fixture) -> Result<()> {
    let team = team(&fixture, "claims").await?;
    let composites = fill(&team, Flavour::Claims).await?;
    team.admin.run(&["delete", "namespace", &team.namespace, "--wait=false"]).await?;
    is_gone(&team).await?;
    for composite in &composites {
        let left = fixture.in_the_clouds(composite).await?;
        ensure!(left.is_empty(), "the namespace is gone, but the clouds still have {left:?}");
    }
    Ok(())
}

/// With the policy, Kubernetes refuses to delete the namespace. `paved delete --namespace` deletes
/// it, also after it was killed.
pub(super) async fn protected_namespace_is_deleted_by_paved(fixture: Fixture) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    controller.protect().await?;
    let replica = controller.start("guard").await?;
    let team = team(&fixture, "team").await?;
    fill(&team, Flavour::Namespaced).await?;
    team.admin.apply(&by_hand(&team)).await?;
    let refusal = eventually("the policy protects the namespace", async || {
        let args = ["delete", "namespace", &team.namespace, "--dry-run=server"];
        let deleted = team.admin.run(&args).await;
        Ok(deleted.err().map(|refusal| format!("{refusal:#}")))
    })
    .await?;
    let command = format!("Run: paved delete --namespace {}", team.namespace);
    for words in [REFUSAL, "StockPool/pool", "GpuDevWorkspace/gpu", &command] {
        ensure!(refusal.contains(words), "the refusal lacks {words:?}: {refusal}");
    }
    let absent = delete(&team, "team-nowhere").await?.ends().await?;
    absent.is(1, &["namespace team-nowhere does not exist"])?;
    delete_killed(&team, 1).await?;
    replica.stop().await;
    controller.unprotect().await
}

/// The same 20 times, with random pauses and kills.
pub(super) async fn killed_deletions_leave_no_resource(fixture: Fixture) -> Result<()> {
    let controller = Controller::install(&fixture).await?;
    controller.protect().await?;
    let replica = controller.start("guard").await?;
    let rounds = stream::iter(0..ROUNDS).map(async |round| {
        let team = team(&fixture, &round.to_string()).await?;
        fill(&team, Flavour::Namespaced).await?;
        team.admin.apply(&by_hand(&team)).await?;
        let kills = 1 + usize::try_from(random(3))?;
        delete_killed(&team, kills).await.with_context(|| format!("round {round}, {kills} kills"))
    });
    rounds.buffer_unordered(SIDE_BY_SIDE).try_collect::<Vec<()>>().await?;
    replica.stop().await;
    controller.unprotect().await
}

/// Without the policy, the deletion of a namespace with managed resources never ends: with the real
/// provider-kubernetes, and with the fake providers alike. If this fails because the real provider
/// deletes its Object, upstream has solved <https://github.com/crossplane/crossplane-runtime/issues/1150>.
pub(super) async fn unprotected_namespace_is_never_deleted(fixture: Fixture) -> Result<()> {
    let team = team(&fixture, "unprotected").await?;
    let object = json!({
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": "note", "namespace": team.namespace},
        "spec": {
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
            "forProvider": {"manifest": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "note", "namespace": fixture.namespace},
            }},
        },
    });
    let rule = by_hand(&team);
    for one in [&object, &rule] {
        team.admin.apply(one).await?;
        ready(&fixture, one).await?;
    }
    // The deletion in Kubernetes takes a moment, as in a cloud.
    let wrapped = ["configmap", "note", "-n", &fixture.namespace];
    let patch = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}}).to_string();
    let held = patch(json!(["e2e.example.org/held"]));
    let args = [&["patch"], &wrapped[..], &["--type=merge", "-p", &held]].concat();
    fixture.admin.run(&args).await?;
    team.admin.run(&["delete", "namespace", &team.namespace, "--wait=false"]).await?;
    for one in [&object, &rule] {
        eventually("the provider cannot connect", async || {
            let found = found(&fixture, one).await?.context(
                "the provider has deleted its resource: the namespace no longer hangs, so the \
                 policy, `paved delete --namespace` and their documents can go",
            )?;
            let told = conditions::get(&found, "Synced")["message"].to_string();
            Ok(told.contains("because it is being terminated").then_some(()))
        })
        .await?;
    }
    let released = patch(Value::Null);
    let args = [&["patch"], &wrapped[..], &["--type=merge", "-p", &released]].concat();
    fixture.admin.run(&args).await?;
    sleep(HANGS).await;
    for one in [&object, &rule] {
        let found = found(&fixture, one).await?;
        ensure!(found.is_some(), "the provider has deleted {} at last", one["kind"]);
    }
    // The repair of docs/how-to/offboard-a-team.md.
    for one in [&object, &rule] {
        let kind = crate::objects::resource(one);
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        let args = ["patch", &kind, name, "-n", &team.namespace, "--type=merge", "-p", &released];
        team.admin.run(&args).await?;
    }
    is_gone(&team).await?;
    for external in externals(&team).await? {
        fixture.objects.delete(&external).await?;
    }
    let _ = fixture.admin.run(&[&["delete"], &wrapped[..]].concat()).await;
    Ok(())
}

/// A namespace that an administrator creates and fills.
async fn team(fixture: &Fixture, name: &str) -> Result<Fixture> {
    let namespace = format!("{}-{name}", fixture.namespace);
    let namespace = namespace[namespace.len().saturating_sub(60)..].trim_start_matches('-');
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    fixture.objects.apply(&object).await?;
    let mut team = fixture.in_namespace(namespace);
    team.user = team.admin.clone();
    Ok(team)
}

/// Creates a stock pool and a GPU workspace, and waits until both are ready. Returns their
/// composites.
async fn fill(team: &Fixture, flavour: Flavour) -> Result<Vec<Value>> {
    let environments = [("stock-pool", "pool"), ("gpu-workspace", "gpu")].map(|(api, name)| {
        // Clouds identify resources by their names.
        let name = format!("{name}-{:x}", random(1 << 32));
        let mut change = json!({"metadata": {"name": name}});
        if api == "stock-pool" {
            merge_patch(&mut change, json!({"spec": {"replicas": 1}}));
        }
        team.example(api, flavour, change)
    });
    let composites = environments.into_iter().map(async |environment| {
        let environment = environment?;
        environment.apply().await?;
        environment.ready().await?;
        environment.composite().await
    });
    try_join_all(composites).await
}

/// A managed resource that no environment has.
fn by_hand(team: &Fixture) -> Value {
    json!({
        "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
        "kind": "SecurityGroup",
        "metadata": {"name": format!("by-hand-{}", team.namespace), "namespace": team.namespace},
        "spec": {
            "forProvider": {"region": "us-east-1", "description": "by hand", "vpcId": "vpc-1"},
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
        },
    })
}

async fn found(fixture: &Fixture, object: &Value) -> Result<Option<Value>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (namespace, name) =
        (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    fixture.objects.get(&api_version, &kind, &namespace, &name).await
}

async fn ready(fixture: &Fixture, object: &Value) -> Result<()> {
    eventually(&format!("{} is ready", object["kind"]), async || {
        let found = found(fixture, object).await?.unwrap_or_default();
        Ok(conditions::is_true(&found, "Ready").then_some(()))
    })
    .await
}

/// Starts `paved delete --namespace` for a namespace, as an administrator.
async fn delete(team: &Fixture, namespace: &str) -> Result<crate::paved::Running> {
    let yes = format!("--yes={namespace}");
    Paved::from_fixture(team)?.start(&["delete", "--namespace", namespace, &yes], "").await
}

/// Deletes a namespace. Kills the command so many times, or interrupts it, each after a random
/// pause. Checks that no resource is left.
async fn delete_killed(team: &Fixture, kills: usize) -> Result<()> {
    for _ in 0..kills {
        let command = delete(team, &team.namespace).await?;
        sleep(Duration::from_millis(random(MAX_PAUSE.as_millis().try_into()?))).await;
        if random(2) == 0 {
            command.kill().await?;
        } else if command.interrupt().is_ok() {
            let Ran { code, told } = command.ends().await?;
            ensure!(
                [0, 1, 130].contains(&code),
                "an interrupted deletion ends with {code}: {told}"
            );
        }
    }
    let Ran { code, told } = delete(team, &team.namespace).await?.ends().await?;
    // A killed command may have reached the end.
    if code != 0 && !told.contains("does not exist") {
        bail!("paved delete --namespace ends with {code}: {told}");
    }
    is_gone(team).await?;
    let left = externals(team).await?;
    ensure!(left.is_empty(), "{} is gone, but the clouds still have {left:?}", team.namespace);
    Ok(())
}

/// Waits for the end of a namespace.
async fn is_gone(team: &Fixture) -> Result<()> {
    eventually(&format!("namespace {} is gone", team.namespace), async || {
        let found = team.objects.get("v1", "Namespace", "", &team.namespace).await?;
        Ok(found.is_none().then_some(()))
    })
    .await
}

/// The resources in the clouds of managed resources in a namespace.
async fn externals(team: &Fixture) -> Result<Vec<Value>> {
    let mut all = team.objects.list("v1", "ConfigMap", fake_providers::NAMESPACE).await?;
    all.retain(|object| {
        External::from_config_map(object)
            .is_some_and(|external| external.owner.namespace == team.namespace)
    });
    Ok(all)
}

/// A random number below a limit. Its hasher has random keys.
fn random(limit: u64) -> u64 {
    RandomState::new().build_hasher().finish() % limit
}
