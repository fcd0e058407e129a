//! A deletion removes all resources in the order of their Usages, and leaves no traces.

mod leftovers;
mod order;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use crossplane::json::merge_patch;
use crossplane::names;
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};

pub(super) use self::leftovers::Leftovers;
pub(super) use self::order::usages;
use self::order::{Order, is_usage};
use super::claims::{self, DbClient};
use super::in_each_flavour;
use crate::environment::{Environment, slot};
use crate::eventually::eventually;
use crate::examples;
use crate::fake_providers::faults::Rule;
use crate::fixture::Fixture;
use crate::kubectl::Refusal;
use crate::objects::{reference, resource};

/// The shared environments have existed during all other scenarios.
/// [`composite_deleted_first_leaves_no_resource`] deletes a cluster with an app.
pub(super) async fn ready_environment_is_deleted_whole(fixture: Fixture) -> Result<()> {
    fixture.shared_environments().await?;
    let (examples, clusters) =
        try_join(fixture.shared_examples(), fixture.shared_clusters()).await?;
    let examples = examples.iter().map(async |(api, flavour, environment)| {
        let traces = Leftovers::from_environment(environment).await?;
        let usages = usages(api.info().name);
        let goes = goes_by_its_usages(&fixture, environment, &usages);
        if api.info().name == "unified-environment" {
            files_go_with_their_site(environment).await?;
            try_join(goes, late_guest_blocks_the_database(&fixture, *api, *flavour, environment))
                .await?;
        } else {
            goes.await?;
        }
        anyhow::Ok(traces)
    });
    let clusters = clusters.iter().map(async |(cluster, _, environment)| {
        let traces = Leftovers::from_environment(environment).await?;
        goes_by_its_usages(&fixture, environment, &usages(cluster)).await?;
        anyhow::Ok(traces)
    });
    let (mut traces, others) = try_join(try_join_all(examples), try_join_all(clusters)).await?;
    traces.extend(others);
    Leftovers::are_gone(&traces, &fixture.objects).await
}

async fn files_go_with_their_site(environment: &Environment) -> Result<()> {
    environment.edit(&json!({"spec": {"frontend": {"retainFiles": false}}})).await?;
    eventually("files go with their site", async || {
        let bucket = environment.slot("frontend-bucket").await?;
        Ok((bucket["spec"]["forProvider"]["forceDestroy"] == true).then_some(()))
    })
    .await
}

/// A client uses the database with its connection details. It disconnects only after the server has
/// refused to drop the database.
async fn late_guest_blocks_the_database(
    fixture: &Fixture,
    api: &dyn AnyApi,
    flavour: Flavour,
    environment: &Environment,
) -> Result<()> {
    let secret = claims::connection_secret(fixture, api.info().name, flavour, environment).await?;
    let (Some(_), Some(secret)) = (&fixture.plane.postgres, secret) else { return Ok(()) };
    let database = environment.slot("postgres-db").await?;
    let guest = DbClient::with(&secret).await?;
    eventually("the server refuses to drop a database in use", async || {
        let namespace = database["metadata"]["namespace"].as_str().unwrap_or_default();
        let found = fixture.objects.referred(&reference(&database), namespace).await?;
        let found = found.context("the database is gone in spite of an open session")?;
        let refused = conditions::get(&found, "Synced")["message"].to_string();
        Ok(refused.contains("is being accessed by other users").then_some(()))
    })
    .await?;
    drop(guest);
    Ok(())
}

/// Checks for these Usages, deletes the environment, and checks the order of all its Usages.
pub(super) async fn goes_by_its_usages(
    fixture: &Fixture,
    environment: &Environment,
    usages: &[&str],
) -> Result<()> {
    let held = held(fixture, environment).await?;
    for slot in usages {
        let slot = format!("usage-{slot}");
        ensure!(held.contains(&slot), "{} has no {slot}: {held:?}", environment.resource());
    }
    goes_in_order(fixture, environment).await
}

/// Deletes it, and checks that the deletion of each protected resource is requested last.
async fn goes_in_order(fixture: &Fixture, environment: &Environment) -> Result<()> {
    let order = Order::new(&fixture.objects, environment).await?;
    goes(fixture, environment).await?;
    order.was_kept().await.with_context(|| environment.resource())
}

/// A plain `kubectl delete` removes a namespaced composite at once. Its resources are deleted
/// afterwards, in their order.
pub(super) async fn composite_deleted_first_leaves_no_resource(fixture: Fixture) -> Result<()> {
    let flavour = Flavour::Namespaced;
    let examples =
        APIS.iter().map(|api| fixture.example(api.info().name, flavour, named(*api, flavour)));
    let (examples, cluster) =
        (examples.collect::<Result<Vec<_>>>()?, fixture.cluster("eks", flavour)?);
    let add_ons = fixture.add_ons().await?;
    let mut cluster = cluster;
    merge_patch(&mut cluster.manifest, add_ons.app());
    let all: Vec<&Environment> = examples.iter().chain([&cluster]).collect();
    let going = all.iter().map(async |environment| {
        environment.apply().await?;
        environment.ready().await?;
        let held = held(&fixture, environment).await?;
        if environment.name() == cluster.name() {
            fixture.app_arrives(&cluster).await?;
        }
        let traces = Leftovers::from_environment(environment).await?;
        let order = Order::new(&fixture.objects, environment).await?;
        let (composite, parts) =
            begins_to_go(environment, environment.delete_in_background()).await?;
        environment.gone().await?;
        if !held.is_empty() {
            ensure!(
                !still_there(&fixture, &parts).await?.is_empty(),
                "{} was deleted last",
                environment.resource()
            );
        }
        anyhow::Ok((traces, (order, composite, parts)))
    });
    let (traces, gone): (Vec<_>, Vec<_>) = try_join_all(going).await?.into_iter().unzip();
    Leftovers::are_gone(&traces, &fixture.objects).await?;
    for (environment, (order, composite, parts)) in all.iter().zip(gone) {
        no_trace_is_left(&fixture, &composite, &parts).await?;
        order.was_kept().await.with_context(|| environment.resource())?;
    }
    let left = fixture.app_inside(&cluster).await?;
    ensure!(left.is_empty(), "the cluster was deleted before its contents: {left:?}");
    Ok(())
}

pub(super) async fn half_made_environment_is_deleted_whole(fixture: Fixture) -> Result<()> {
    let all = every(&fixture)?;
    let gone = all.iter().map(|(_, environment)| half_made_goes(&fixture, environment));
    Leftovers::are_gone(&try_join_all(gone).await?, &fixture.objects).await
}

/// Creates an environment, and deletes it as soon as a resource is composed. Returns its traces.
async fn half_made_goes(fixture: &Fixture, environment: &Environment) -> Result<Leftovers> {
    environment.apply().await?;
    eventually("something is composed", async || {
        let object = environment.object().await?;
        Ok(object["status"]["resources"].as_array().filter(|lines| !lines.is_empty()).map(drop))
    })
    .await?;
    goes_as_it_is(fixture, environment).await
}

/// Deletes an unfinished environment. Returns its traces.
pub(super) async fn goes_as_it_is(
    fixture: &Fixture,
    environment: &Environment,
) -> Result<Leftovers> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let traces = Leftovers::from_environment(environment).await?;
    let order = Order::from_unfinished(&fixture.objects, environment).await?;
    let freed = leaves_nothing(
        fixture,
        environment,
        environment.delete(),
        fixture.gone_or_freed(environment),
    )
    .await?;
    order.but_for(&freed).was_kept().await.with_context(|| environment.resource())?;
    Ok(traces)
}

/// Every example and every managed cluster for each kind of API, not applied yet. Each has its
/// API's name or its cluster's type.
pub(super) fn every(fixture: &Fixture) -> Result<Vec<(&'static str, Environment)>> {
    let examples = fixture.apis().map(|(api, flavour)| {
        let name = api.info().name;
        Ok((name, fixture.example(name, flavour, named(api, flavour))?))
    });
    let clusters = fixture
        .clusters()
        .map(|(cluster, flavour)| Ok((cluster, fixture.cluster(cluster, flavour)?)));
    examples.chain(clusters).collect()
}

pub(super) async fn refused_environment_is_deleted_whole(fixture: Fixture) -> Result<()> {
    let refused = [
        ("machine", "Instance"),
        ("cluster", "Cluster"),
        ("aks", "KubernetesCluster"),
        ("site", "Distribution"),
    ];
    for (name, kind) in refused {
        let quota = Rule {
            kind: Some(kind.to_owned()),
            namespace: Some(fixture.namespace.clone()),
            create: Some("QuotaExceeded: the limit is 0".to_owned()),
            ..Rule::default()
        };
        fixture.rule(name, &quota).await?;
        let mut of_claims = Rule { namespace: None, ..quota };
        of_claims.labels.insert(names::CLAIM_NAMESPACE.to_owned(), fixture.namespace.clone());
        fixture.rule(&format!("{name}-of-claims"), &of_claims).await?;
    }
    let add_ons = fixture.add_ons().await?;
    let gone = every(&fixture)?.into_iter().map(|(api, mut environment)| {
        if api == "virtual-environment" {
            merge_patch(&mut environment.manifest, add_ons.app());
        }
        merge_patch(&mut environment.manifest, impossible(api));
        let fixture = &fixture;
        async move {
            environment.apply().await?;
            fails(api, &environment).await?;
            let traces = Leftovers::from_environment(&environment).await?;
            goes_in_order(fixture, &environment).await?;
            anyhow::Ok(traces)
        }
    });
    Leftovers::are_gone(&try_join_all(gone).await?, &fixture.objects).await
}

/// A change that makes an API fail without a refusal by a cloud. The chart lacks this version, or
/// no node has that much memory.
fn impossible(api: &str) -> Value {
    match api {
        "virtual-environment" => {
            json!({"spec": {"parameters": {"app": {"chart": {"version": "0.0.404"}}}}})
        }
        "stock-pool" => json!({"spec": {"memory": "8Ti"}}),
        _ => json!({}),
    }
}

/// Waits until an environment has failed and all other resources exist. Kubernetes reports a failed
/// Deployment only after ten minutes. Until then, a pool without matching nodes is only a pool
/// without pods.
async fn fails(api: &str, environment: &Environment) -> Result<()> {
    if api == "stock-pool" {
        let unscheduled = |object: &Value| {
            object["status"]["phase"] == "Progressing"
                && object["status"]["allocated"] == object["spec"]["replicas"]
        };
        environment.until("a pool without pods", unscheduled).await?;
    } else {
        environment.provisioned("Failed").await?;
    }
    environment.rests().await.map(drop)
}

pub(super) async fn site_with_retained_files_keeps_its_bucket(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let change = json!({"spec": {"frontend": {"retainFiles": true}}});
        let environment = fixture.ready("unified-environment", flavour, change).await?;
        let composite = environment.composite().await?;
        environment.delete().await?;
        environment.gone().await?;
        let left = fixture.in_the_clouds(&composite).await?;
        let mut kinds: Vec<_> = left.iter().filter_map(|one| one.split(' ').next()).collect();
        kinds.sort_unstable();
        // The bucket, and the resources that protect it.
        let protected = [
            "Bucket",
            "BucketOwnershipControls",
            "BucketPublicAccessBlock",
            "BucketServerSideEncryptionConfiguration",
        ];
        ensure!(kinds == protected, "{flavour:?}: left in the clouds: {left:?}");
        Ok(())
    })
    .await
}

pub(super) async fn orphaned_resource_stays_in_the_cloud(fixture: Fixture) -> Result<()> {
    in_each_flavour(&fixture, async |flavour| {
        let environment = fixture.ready("application-environment", flavour, json!({})).await?;
        // Users do this when they decide to keep the resources after all.
        environment.edit(&json!({"spec": {"parameters": {"deletionPolicy": "Orphan"}}})).await?;
        let composite = environment.composite().await?;
        let all = fixture.in_the_clouds(&composite).await?;
        eventually("every resource is orphaned on deletion", async || {
            let composed = environment.composed().await?;
            let mut managed =
                composed.iter().filter(|object| object["spec"]["forProvider"].is_object());
            let stays = |object: &Value| {
                let policies = &object["spec"]["managementPolicies"];
                object["spec"]["deletionPolicy"] == "Orphan"
                    || policies
                        .as_array()
                        .is_some_and(|all| !all.iter().any(|one| one == "*" || one == "Delete"))
            };
            Ok(managed.all(stays).then_some(()))
        })
        .await?;
        environment.delete().await?;
        environment.gone().await?;
        let left = fixture.in_the_clouds(&composite).await?;
        ensure!(
            left == all && !all.is_empty(),
            "{flavour:?}: in the clouds were {all:?}, left are {left:?}"
        );
        Ok(())
    })
    .await
}

/// Deletes it, and checks that no resource is left in the cluster or in the clouds.
pub(super) async fn goes(fixture: &Fixture, environment: &Environment) -> Result<()> {
    leaves_nothing(fixture, environment, environment.delete(), environment.gone()).await
}

/// Deletes it and waits until it is `gone`. Then no resource may be left in the cluster or in the
/// clouds. Returns the result of `gone`.
async fn leaves_nothing<T>(
    fixture: &Fixture,
    environment: &Environment,
    deletes: impl Future<Output = Result<()>>,
    gone: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (composite, composed) = begins_to_go(environment, deletes).await?;
    let told = gone.await?;
    no_trace_is_left(fixture, &composite, &composed).await?;
    Ok(told)
}

/// Deletes it. Returns its composite, and all composed resources.
async fn begins_to_go(
    environment: &Environment,
    deletes: impl Future<Output = Result<()>>,
) -> Result<(Value, Vec<Value>)> {
    let composite = environment.composite().await?;
    let mut composed = environment.composed().await?;
    deletes.await?;
    // Include the resources that Crossplane composed at that moment. The composite may be gone by
    // then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for part in environment.composed().await.unwrap_or_default() {
        if composed.iter().all(|known| known["metadata"]["uid"] != part["metadata"]["uid"]) {
            composed.push(part);
        }
    }
    Ok((composite, composed))
}

/// Checks that no composed resource is left in the cluster or in the clouds.
pub(super) async fn no_trace_is_left(
    fixture: &Fixture,
    composite: &Value,
    composed: &[Value],
) -> Result<()> {
    let name = composite["metadata"]["name"].as_str().unwrap_or_default();
    let left = still_there(fixture, composed).await?;
    ensure!(left.is_empty(), "{name} is gone, but the cluster still has {left:?}");
    if let Some(postgres) = &fixture.plane.postgres {
        let there = postgres.names().await?;
        let external = |object: &Value| {
            let name = object["metadata"]["annotations"][names::EXTERNAL_NAME].as_str();
            let group = object["apiVersion"].as_str().unwrap_or_default();
            name.filter(|name| group.starts_with("postgresql.sql") && there.contains(*name))
                .map(str::to_owned)
        };
        let left: Vec<_> = composed.iter().filter_map(external).collect();
        ensure!(left.is_empty(), "{name} is gone, but PostgreSQL still has {left:?}");
    }
    let left = fixture.in_the_clouds(composite).await?;
    ensure!(left.is_empty(), "{name} is gone, but the clouds still have {left:?}");
    Ok(())
}

/// Kinds and names of the objects that still exist. New objects with the same names do not count.
async fn still_there(fixture: &Fixture, objects: &[Value]) -> Result<Vec<String>> {
    let mut there = Vec::new();
    for object in objects {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let found =
            fixture.objects.referred(&reference(object), namespace).await?.unwrap_or_default();
        if found["metadata"]["uid"] == object["metadata"]["uid"] {
            there.push(format!("{} {}", object["kind"], object["metadata"]["name"]));
        }
    }
    Ok(there)
}

/// Checks that no person can delete a resource that a Usage protects. Returns the slots of the
/// Usages.
pub(super) async fn held(fixture: &Fixture, environment: &Environment) -> Result<Vec<String>> {
    let composed = environment.composed().await?;
    let mut slots = Vec::new();
    for usage in composed.iter().filter(|object| is_usage(object)) {
        let used = &usage["spec"]["of"];
        let (kind, name) =
            (resource(used), used["resourceRef"]["name"].as_str().unwrap_or_default());
        let mut args = vec!["delete", &kind, name, "--dry-run=server"];
        if let Some(namespace) = usage["metadata"]["namespace"].as_str() {
            args.extend(["-n", namespace]);
        }
        eventually(&format!("{kind} {name} is held by its Usage"), async || {
            let deleted = fixture.operator().run(&args).await;
            let words = deleted.err().map(anyhow::Error::downcast::<Refusal>).transpose()?;
            Ok(words.filter(|refusal| refusal.words.contains("in-use")))
        })
        .await?;
        slots.push(slot(usage).to_owned());
    }
    Ok(slots)
}

/// The change that lets examples share a namespace, and keep no files.
pub(super) fn named(api: &dyn AnyApi, flavour: Flavour) -> Value {
    let mut change = examples::beside(api.info().name, flavour);
    if api.info().name == "unified-environment" {
        merge_patch(&mut change, json!({"spec": {"frontend": {"retainFiles": false}}}));
    }
    change
}
