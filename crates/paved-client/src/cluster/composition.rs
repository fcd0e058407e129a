//! The Compositions that environments can select.

use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use serde_json::Value;

use super::{Api, Cluster, Kind, is_denied};
use crate::Failure;

/// A Composition that an environment can select.
pub struct Composition(DynamicObject);

impl Composition {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    /// The whole object.
    pub fn document(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    /// Whether it composes environments of this kind. The kind may be a claim.
    pub fn serves(&self, kind: &Kind) -> bool {
        let text =
            |path: &str| self.0.data.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let group = crossplane::api_version::group(text("/spec/compositeTypeRef/apiVersion"));
        let composite = text("/spec/compositeTypeRef/kind");
        let is_ours = kind.paved_api().is_some_and(|api| {
            let info = api.info();
            composite == kind.name()
                || (info.claim.kind == kind.name() && info.composite.kind == composite)
        });
        group == kind.resource.group && is_ours
    }

    /// The labels for `compositionSelector`, without the labels of a package manager.
    pub fn own_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.0.metadata.labels.iter().flatten();
        labels
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .filter(|(key, _)| !key.contains('/'))
    }

    /// Whether `spec` selects it: by reference, by labels, or by default. `spec` belongs to a claim
    /// or a namespaced composite.
    pub fn suits(&self, spec: &Value) -> bool {
        let spec = if spec["crossplane"].is_object() { &spec["crossplane"] } else { spec };
        if let Some(name) = spec["compositionRef"]["name"].as_str() {
            return name == self.name();
        }
        let wanted = spec["compositionSelector"]["matchLabels"].as_object();
        let labels = self.0.metadata.labels.as_ref();
        wanted.into_iter().flatten().all(|(key, value)| {
            labels.and_then(|labels| labels.get(key)).is_some_and(|label| value == label)
        })
    }
}

/// The cluster's Compositions. `None` if the caller may not list them.
pub async fn compositions(cluster: &Cluster) -> Result<Option<Vec<Composition>>, Failure> {
    let resource = ApiResource {
        group: "apiextensions.crossplane.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.crossplane.io/v1".to_owned(),
        kind: "Composition".to_owned(),
        plural: "compositions".to_owned(),
    };
    let api = Api::for_resource(&cluster.client, None, &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(Some(list.items.into_iter().map(Composition).collect())),
        Err(error) if is_denied(&error) => Ok(None),
        // The cluster has the kinds, but not Crossplane: for example a cluster for tests.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(Vec::new())),
        Err(error) => Err(cluster.explain(&error, "list Compositions")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn composition(name: &str, provider: &str) -> Composition {
        let object = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": name, "labels": {"provider": provider, "pkg.crossplane.io/x": "y"}}});
        Composition(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn environment_selects_a_composition_by_name_by_labels_or_any() {
        let aws = composition("a", "aws");
        for (spec, suits) in [
            (json!({}), true),
            (
                json!({"compositionRef": {"name": "a"}, "compositionSelector": {"matchLabels": {"provider": "gcp"}}}),
                true,
            ),
            (json!({"compositionRef": {"name": "b"}}), false),
            (json!({"compositionSelector": {"matchLabels": {"provider": "aws"}}}), true),
            (
                json!({"crossplane": {"compositionSelector": {"matchLabels": {"provider": "gcp"}}}}),
                false,
            ),
            (json!({"crossplane": {"compositionRef": {"name": "a"}}}), true),
        ] {
            assert_eq!(aws.suits(&spec), suits, "{spec}");
        }
    }

    #[test]
    fn labels_of_a_package_manager_are_left_out() {
        assert_eq!(composition("a", "aws").own_labels().collect::<Vec<_>>(), [("provider", "aws")]);
    }
}
