//! Any object of a cluster, read by the administrator without a Rust type.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use crossplane::api_version;
use crossplane::names::IN_USE;
use futures::{Stream, StreamExt, TryStreamExt};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams,
};
use kube::core::{GroupVersionKind, ObjectMeta, TypeMeta};
use kube::discovery::{
    ApiCapabilities, ApiGroup, ApiResource, Discovery, Scope, pinned_kind, verbs,
};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// Known kinds, by API version and name.
type Kinds = BTreeMap<(String, String), (ApiResource, ApiCapabilities)>;

/// The objects of a cluster, and a cache of its kinds.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    kinds: Arc<Mutex<Kinds>>,
}

/// The deletion of an object, as revisions of the cluster's store, which counts all its writes.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The write since which it was no longer marked as in use, up to the request for its deletion.
    pub let_go: Option<u64>,
    /// The write that requested its deletion.
    pub asked: u64,
    /// The write that removed it. Without finalizers, the same write as the request.
    pub gone: u64,
}

impl Objects {
    /// The objects behind a client.
    pub fn new(client: Client) -> Self {
        Self { client, kinds: Arc::default() }
    }

    /// An object, or none if it does not exist. `namespace` is ignored for kinds without
    /// namespaces.
    pub async fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let api = self.api(api_version, kind, namespace).await?;
        let found = api.get_opt(name).await.with_context(|| format!("reading {kind} {name}"))?;
        found
            .map(|object| serde_json::to_value(object).context("encoding an object as JSON"))
            .transpose()
    }

    /// The object that a reference names.
    pub async fn referred(&self, reference: &Value, namespace: &str) -> Result<Option<Value>> {
        let text = |key: &str| reference[key].as_str().unwrap_or_default();
        self.get(text("apiVersion"), text("kind"), namespace, text("name")).await
    }

    /// Every object of a kind, in all namespaces or in one.
    pub async fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        let api = self.api(api_version, kind, namespace).await?;
        let list =
            api.list(&ListParams::default()).await.with_context(|| format!("listing {kind}"))?;
        // Entries of a list lack their version and kind.
        let types = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
        let values = list.items.into_iter().map(|mut object| {
            object.types.get_or_insert_with(|| types.clone());
            serde_json::to_value(object).context("encoding an object as JSON")
        });
        values.collect()
    }

    /// Watches every object of a kind in a namespace: each as it is now, and after each change.
    /// An interrupted watch continues.
    pub async fn watch(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<impl Stream<Item = Value> + Send + use<>> {
        let api = self.api(api_version, kind, namespace).await?;
        let events = watcher(api, watcher::Config::default()).default_backoff();
        Ok(events
            .applied_objects()
            .filter_map(async |object| serde_json::to_value(object.ok()?).ok()))
    }

    /// Whether the API server serves a kind.
    pub async fn knows(&self, api_version: &str, kind: &str) -> Result<bool> {
        match self.kind(api_version, kind).await {
            Ok(_) => Ok(true),
            Err(error) => match error.downcast_ref() {
                // A group that is gone answers in plain text, without a reason.
                Some(kube::Error::Api(answer)) if answer.code == 404 => Ok(false),
                Some(kube::Error::Discovery(_)) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Applies an object.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        let (api, name) = self.api_and_name(object).await?;
        let applied =
            api.patch(&name, &PatchParams::apply("e2e").force(), &Patch::Apply(object)).await;
        applied.map(drop).with_context(|| format!("applying {} {name}", object["kind"]))
    }

    /// Merges a patch into an object's status.
    pub async fn patch_status(&self, object: &Value, patch: &Value) -> Result<()> {
        let (api, name) = self.api_and_name(object).await?;
        let patched = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched
            .map(drop)
            .with_context(|| format!("patching the status of {} {name}", object["kind"]))
    }

    /// Deletes an object after its dependents. A missing object is not an error.
    pub async fn delete(&self, object: &Value) -> Result<()> {
        let (api, name) = self.api_and_name(object).await?;
        match api.delete(&name, &DeleteParams::foreground()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.is_not_found() => Ok(()),
            Err(error) => Err(error).with_context(|| format!("deleting {} {name}", object["kind"])),
        }
    }

    /// The version of the list of an object's kind. The object's own version may be too old for a
    /// watch of the API server.
    pub async fn version(&self, object: &Value) -> Result<String> {
        let (api, name) = self.api_and_name(object).await?;
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let list = api.list_metadata(&params).await.with_context(|| format!("listing {name}"))?;
        list.metadata.resource_version.context("a list without a version")
    }

    /// Watches an object until it is gone, from a version of its kind on.
    pub async fn end(&self, object: &Value, mut version: String) -> Result<End> {
        let (api, name) = self.api_and_name(object).await?;
        let fields = format!("metadata.name={name}");
        let (mut let_go, mut asked) = (None, None);
        // The API server ends a watch every few minutes.
        loop {
            let params = WatchParams::default().fields(&fields);
            let mut events = pin!(api.watch(&params, &version).await?);
            while let Some(event) =
                events.try_next().await.with_context(|| format!("watching {name}"))?
            {
                match event {
                    WatchEvent::Added(_) => bail!("{name} was created again during its deletion"),
                    WatchEvent::Modified(object) => {
                        version = object.metadata.resource_version.clone().unwrap_or_default();
                        let written = version.parse()?;
                        if asked.is_none() {
                            let is_in_use = object.labels().contains_key(IN_USE);
                            let_go = if is_in_use { None } else { let_go.or(Some(written)) };
                            asked = object.metadata.deletion_timestamp.is_some().then_some(written);
                        }
                    }
                    WatchEvent::Deleted(object) => {
                        let gone = object.metadata.resource_version.unwrap_or_default().parse()?;
                        return Ok(End { let_go, asked: asked.unwrap_or(gone), gone });
                    }
                    WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                    WatchEvent::Error(status) => bail!("watching {name}: {status:?}"),
                }
            }
        }
    }

    /// Every object of the cluster, as `kind.group namespace/name`, to compare before and after.
    /// Includes kinds that exist only in an older version of their group. Events and leases change
    /// at any time and are left out.
    pub async fn everything(&self) -> Result<BTreeSet<String>> {
        self.everything_that(|_| true).await
    }

    /// Every object of the cluster with metadata that meet a condition.
    pub async fn everything_that(
        &self,
        is: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<BTreeSet<String>> {
        let discovery =
            Discovery::new(self.client.clone()).run().await.context("discovering the kinds")?;
        let mut names = BTreeSet::new();
        for (resource, capabilities) in
            discovery.groups().flat_map(ApiGroup::resources_by_stability)
        {
            if !capabilities.supports_operation(verbs::LIST)
                || ["Event", "Lease"].contains(&resource.kind.as_str())
            {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let list = match api.list_metadata(&ListParams::default()).await {
                // A kind may disappear during the loop.
                Err(kube::Error::Api(answer)) if answer.is_not_found() => continue,
                answer => answer.with_context(|| format!("listing {}", resource.kind))?,
            };
            let name = |meta: &ObjectMeta| {
                let namespace = meta.namespace.as_deref().unwrap_or_default();
                let name = meta.name.as_deref().unwrap_or_default();
                format!("{}.{} {namespace}/{name}", resource.kind, resource.group)
            };
            let those = list.items.iter().filter(|object| is(&object.metadata));
            names.extend(those.map(|object| name(&object.metadata)));
        }
        Ok(names)
    }

    /// The API of an object's kind, and the object's name.
    async fn api_and_name(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let api = self.api(&version, &kind, &text(&metadata["namespace"])).await?;
        Ok((api, text(&metadata["name"])))
    }

    async fn api(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Api<DynamicObject>> {
        let (resource, capabilities) = self.kind(api_version, kind).await?;
        let client = self.client.clone();
        Ok(if capabilities.scope == Scope::Namespaced && !namespace.is_empty() {
            Api::namespaced_with(client, namespace, &resource)
        } else {
            Api::all_with(client, &resource)
        })
    }

    async fn kind(&self, api_version: &str, kind: &str) -> Result<(ApiResource, ApiCapabilities)> {
        let key = (api_version.to_owned(), kind.to_owned());
        let mut kinds = self.kinds.lock().await;
        if let Some(known) = kinds.get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = api_version::split(api_version);
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let found = pinned_kind(&self.client, &wanted)
            .await
            .with_context(|| format!("no kind {kind} in {api_version}"))?;
        kinds.insert(key, found.clone());
        Ok(found)
    }
}

/// An object's kind and name, as a reference.
pub fn reference(object: &Value) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]})
}

/// `Kind.version.group`, or the kind alone in the core group.
pub fn resource(reference: &Value) -> String {
    let kind = reference["kind"].as_str().unwrap_or_default();
    match api_version::split(reference["apiVersion"].as_str().unwrap_or_default()) {
        ("", _) => kind.to_owned(),
        (group, version) => format!("{kind}.{version}.{group}"),
    }
}
