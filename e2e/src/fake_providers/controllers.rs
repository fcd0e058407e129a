//! A controller for each kind, cluster-scoped and namespaced.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use crossplane::api_version::group_of;
use function_paved_road::models::{KINDS, Kind, Provider, Scope};
use futures::future::try_join_all;
use futures::{StreamExt, future};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use kube::{Api, Client, discovery};
use serde_json::{Value, json};
use simulator::core::World;
use tokio::sync::watch;

use super::configs::Configs;
use super::faults::{Faults, changes};
use super::postgres::Postgres;
use super::reconcile::{Next, Outside, reconcile};
use super::resource::{Resource, text};
use super::secrets::Secrets;
use super::state::Cloud;
use super::upjet::Upjet;
use super::{Options, Trouble};

/// Runs the controllers of all kinds with fake providers.
pub async fn run(
    client: Client,
    options: Options,
    cloud: Arc<Cloud>,
    faults: watch::Receiver<Faults>,
) -> anyhow::Result<()> {
    let postgres = options.postgres.as_deref().map(Postgres::new).transpose()?.map(Arc::new);
    let upjet = Arc::new(Upjet { cloud, round: options.round });
    let configs = Arc::new(Configs::new(client.clone()));
    let shared = Shared { client, options, faults, configs, stores: Arc::default() };
    let played = KINDS
        .iter()
        .map(|info| info.kind)
        .flat_map(|kind| [Scope::LegacyCluster, Scope::Namespaced].map(|scope| (kind, scope)));
    let controllers = played.filter_map(|(kind, scope)| match kind.provider {
        Provider::Aws | Provider::Gcp | Provider::Azure => {
            let upjet = upjet.clone();
            Some(tokio::spawn(control(kind, scope, shared.clone(), upjet)))
        }
        Provider::Sql => postgres
            .clone()
            .map(|postgres| tokio::spawn(control(kind, scope, shared.clone(), postgres))),
        // The real programs of these providers run.
        Provider::Kubernetes | Provider::Helm => None,
    });
    // The tasks end when this set is dropped, and so with the caller.
    let mut tasks = Tasks(controllers.collect());
    try_join_all(&mut tasks.0).await.context("a controller failed")?;
    Ok(())
}

/// Tasks that end when they are dropped.
struct Tasks(Vec<tokio::task::JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// The data that all controllers share.
#[derive(Clone)]
struct Shared {
    client: Client,
    options: Options,
    faults: watch::Receiver<Faults>,
    configs: Arc<Configs>,
    stores: Arc<RwLock<Stores>>,
}

/// Every kind's resources, by group and kind.
type Stores = BTreeMap<(String, String), Store<DynamicObject>>;

/// The data of a controller.
struct Context<O> {
    shared: Shared,
    outside: Arc<O>,
    resource: ApiResource,
    is_namespaced: bool,
    schema: Value,
    /// The version of the last write of each resource, by uid.
    written: Mutex<BTreeMap<String, u64>>,
}

/// Runs the provider of one kind in one scope, as soon as its CRD exists.
async fn control<O: Outside>(kind: Kind, scope: Scope, shared: Shared, outside: Arc<O>) {
    let gvk = GroupVersionKind::gvk(&kind.group(scope), kind.version(scope), kind.kind);
    let (resource, schema) = served(&shared.client, &gvk).await;
    let api: Api<DynamicObject> = Api::all_with(shared.client.clone(), &resource);
    let controller = Controller::new_with(api, watcher::Config::default(), resource.clone());
    let key = (gvk.group, gvk.kind);
    shared.stores.write().unwrap_or_else(PoisonError::into_inner).insert(key, controller.store());
    let rules = changes(shared.faults.clone());
    let is_namespaced = scope == Scope::Namespaced;
    let context = Arc::new(Context {
        shared,
        outside,
        resource,
        is_namespaced,
        schema,
        written: Mutex::default(),
    });
    let run = controller
        .with_config(Config::default().concurrency(16))
        .reconcile_all_on(rules)
        .run(look, |_, trouble, context| after_trouble(trouble, &context), context);
    run.for_each(|_| future::ready(())).await;
}

/// A kind as the API server serves it, with its schema, once its CRD exists.
async fn served(client: &Client, gvk: &GroupVersionKind) -> (ApiResource, Value) {
    loop {
        if let Ok((resource, _)) = discovery::pinned_kind(client, gvk).await {
            match schema(client, &resource).await {
                Ok(schema) => return (resource, schema),
                Err(error) => eprintln!("fake-providers: {error:#}"),
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn schema(client: &Client, resource: &ApiResource) -> anyhow::Result<Value> {
    let name = format!("{}.{}", resource.plural, resource.group);
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = api.get(&name).await.with_context(|| format!("cannot read the CRD {name}"))?;
    let version = crd.spec.versions.into_iter().find(|version| version.name == resource.version);
    let version = version.with_context(|| format!("{name} has no version {}", resource.version))?;
    Ok(serde_json::to_value(version.schema.and_then(|schema| schema.open_api_v3_schema))?)
}

/// Reconciles one resource.
async fn look<O: Outside>(
    found: Arc<DynamicObject>,
    context: Arc<Context<O>>,
) -> Result<Action, Trouble> {
    let Shared { client, options, faults, configs, stores } = &context.shared;
    if context.is_outdated(&found) {
        return Ok(Action::await_change());
    }
    let mut object = serde_json::to_value(&*found).context("encoding an object as JSON")?;
    object["apiVersion"] = json!(context.resource.api_version);
    object["kind"] = json!(context.resource.kind);
    let mut secrets = Secrets::read(client.clone(), &object, options.clusters.as_ref()).await?;
    let mut world = World::new(json!({"metadata": {"name": text(&object, "/metadata/name")}}));
    world.set_now(super::resource::seconds(jiff::Timestamp::now()));
    secrets.documents().for_each(|secret| world.put_secret(secret));
    for (key, sibling) in siblings(&object, &stores.read().unwrap_or_else(PoisonError::into_inner))
    {
        world.resources_mut().insert(key, sibling);
    }
    let api = match text(&object, "/metadata/namespace") {
        namespace if context.is_namespaced => {
            Api::namespaced_with(client.clone(), namespace, &context.resource)
        }
        _ => Api::all_with(client.clone(), &context.resource),
    };
    let rule = faults.borrow().for_object(&object);
    let mut resource = Resource::new(object, world, context.schema.clone(), api);
    let next = reconcile(&mut resource, &*context.outside, configs, &mut secrets, &rule).await;
    context.note(&resource, matches!(next, Ok(Next::Never)));
    Ok(match next? {
        Next::Poll => Action::requeue(options.poll),
        Next::Retry => Action::requeue(options.retry),
        Next::After(time) => Action::requeue(time),
        Next::Never => Action::await_change(),
    })
}

impl<O> Context<O> {
    /// Whether the watch has not yet received this controller's last write. Work on the older state
    /// would only cause a conflict.
    fn is_outdated(&self, found: &DynamicObject) -> bool {
        let uid = found.metadata.uid.as_deref().unwrap_or_default();
        let version = found.metadata.resource_version.as_deref().unwrap_or_default();
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written
            .get(uid)
            .is_some_and(|written| version.parse::<u64>().is_ok_and(|found| found < *written))
    }

    fn note(&self, resource: &Resource, is_gone: bool) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if is_gone {
            written.remove(resource.uid());
        } else if let Ok(version) = resource.text("/metadata/resourceVersion").parse() {
            written.insert(resource.uid().to_owned(), version);
        }
    }
}

/// The resources that a resource may refer to, with the same provider, scope and composite.
fn siblings(object: &Value, stores: &Stores) -> Vec<(String, Value)> {
    let Some(composite) = controller(object) else { return Vec::new() };
    let family = |group: &str| group.split_once('.').map(|(_, family)| family.to_owned());
    let own = family(group_of(object));
    let related = stores.iter().filter(|((group, _), _)| family(group) == own);
    let all = related
        .flat_map(|((_, kind), store)| store.state().into_iter().map(move |one| (kind, one)));
    all.filter(|(_, one)| {
        let owners = one.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == composite)
    })
    .filter_map(|(kind, one)| {
        let mut sibling = serde_json::to_value(&*one).ok()?;
        if sibling["apiVersion"].is_null() {
            return None;
        }
        sibling["kind"] = json!(kind);
        Some((format!("{kind}/{}", text(&sibling, "/metadata/name")), sibling))
    })
    .collect()
}

/// The uid of the object's controller.
fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// The time of the next attempt. A conflict or a deleted object is not an error, so the retry is
/// immediate.
fn after_trouble<O>(trouble: &Trouble, context: &Context<O>) -> Action {
    match trouble {
        Trouble::Api(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
            Action::requeue(Duration::from_millis(200))
        }
        other => {
            eprintln!("fake-providers: {}: {other}", context.resource.kind);
            Action::requeue(context.shared.options.retry)
        }
    }
}
