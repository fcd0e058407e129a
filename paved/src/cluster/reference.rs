//! References to objects of any kind, as composites keep them of what they compose.

use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

/// A reference to an object.
pub(crate) struct Reference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Reference {
    /// What a value refers to, if it refers to anything.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self { api_version: text("apiVersion")?, kind: text("kind")?, name: text("name")? })
    }

    /// The references of a composite, of either flavour.
    pub(crate) fn all_of(data: &Value) -> Vec<Self> {
        let lists = [&data["spec"]["crossplane"]["resourceRefs"], &data["spec"]["resourceRefs"]];
        lists.into_iter().filter_map(Value::as_array).flatten().filter_map(Self::of).collect()
    }

    /// Where its kind is served; in `namespace`, if the kind lives in one.
    pub(crate) async fn api(
        &self,
        client: &Client,
        namespace: Option<&str>,
    ) -> kube::Result<Api<DynamicObject>> {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        let wanted = GroupVersionKind::gvk(group, version, &self.kind);
        let (resource, capabilities): (ApiResource, _) = pinned_kind(client, &wanted).await?;
        Ok(match namespace.filter(|_| capabilities.scope == Scope::Namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        })
    }

    /// The object, if there is one.
    pub(crate) async fn read(
        &self,
        client: &Client,
        namespace: Option<&str>,
    ) -> kube::Result<Option<DynamicObject>> {
        self.api(client, namespace).await?.get_opt(&self.name).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_of_both_flavours_are_found_and_strange_ones_left_out() {
        let one = json!({"apiVersion": "v1", "kind": "Secret", "name": "a"});
        let count = |data: &Value| Reference::all_of(data).len();
        assert_eq!(count(&json!({"spec": {"resourceRefs": [one, 3, {"kind": "X"}]}})), 1);
        assert_eq!(count(&json!({"spec": {"crossplane": {"resourceRefs": [one]}}})), 1);
        assert_eq!(count(&json!({"spec": "text"})), 0);
    }
}
