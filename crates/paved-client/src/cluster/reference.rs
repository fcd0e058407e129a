//! References to objects of any kind, for example from a composite to its composed resources.

use kube::Client;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;

use super::{Api, Segment};

/// A reference to an object. Users can write references, so each field is checked to be a valid
/// segment of an API path.
pub struct Reference {
    /// `GROUP/VERSION`, or `VERSION` of the core group.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: Segment,
}

impl Reference {
    /// Reads a reference. Returns `None` if the value is not a valid reference.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text =
            |key: &str| value[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let parts: Vec<&str> = api_version.split('/').chain([kind.as_str()]).collect();
        let is_one = parts.len() <= 3 && parts.into_iter().all(|part| Segment::parse(part).is_ok());
        let name = Segment::parse(&text("name")?).ok()?;
        is_one.then_some(Self { api_version, kind, name })
    }

    /// The references of a composite, in the claims API and in the namespaced API.
    pub fn all_of(data: &Value) -> Vec<Self> {
        let lists = [&data["spec"]["crossplane"]["resourceRefs"], &data["spec"]["resourceRefs"]];
        lists
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Self::from_value)
            .collect()
    }

    /// The group, which is empty for the core group, and the version.
    pub(super) fn group_and_version(&self) -> (&str, &str) {
        crossplane::api_version::split(&self.api_version)
    }

    /// The API of its kind. It is limited to `namespace` if the kind is namespaced.
    async fn api(
        &self,
        client: &Client,
        namespace: Option<&str>,
    ) -> kube::Result<Api<DynamicObject>> {
        let (group, version) = self.group_and_version();
        let wanted = GroupVersionKind::gvk(group, version, &self.kind);
        let (resource, capabilities): (ApiResource, _) = pinned_kind(client, &wanted).await?;
        let namespace = namespace.filter(|_| capabilities.scope == Scope::Namespaced);
        Ok(Api::for_resource(client, namespace, &resource))
    }

    /// Reads the object. Returns `None` if it does not exist.
    pub async fn read(
        &self,
        client: &Client,
        namespace: Option<&str>,
    ) -> kube::Result<Option<DynamicObject>> {
        self.api(client, namespace).await?.get_opt(self.name.as_str()).await
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

    #[test]
    fn reference_to_another_path_is_left_out() {
        let reference = |version: &str, kind: &str, name: &str| {
            Reference::from_value(&json!({"apiVersion": version, "kind": kind, "name": name}))
                .is_some()
        };
        assert!(reference("v1", "Secret", "a") && reference("example.org/v1", "Thing", "a.b"));
        for (version, kind, name) in [
            ("../../api/v1", "Secret", "a"),
            ("a/b/c", "Secret", "a"),
            ("example.org/..", "Secret", "a"),
            ("/v1", "Secret", "a"),
            ("v1?x", "Secret", "a"),
            ("v1", "../Secret", "a"),
            ("v1", "Secret", "../../../v1/secrets?x="),
        ] {
            assert!(!reference(version, kind, name), "{version} {kind} {name}");
        }
    }
}
