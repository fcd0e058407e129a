//! The tags of cloud resources: those of Settings, and who an environment belongs to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::composite::Composite;
use super::{OWNER, OWNER_LABEL, Observation};
use crate::catalog::tags;
use crate::models::Kind;

impl Observation<'_> {
    /// The tags of a resource of `kind`, in the form that its cloud accepts: the tags of Settings,
    /// and for environments that schema revision 3 created, the tags of [`tags::attribution`].
    pub fn tags(&self, kind: &Kind) -> BTreeMap<String, String> {
        let settings = self.settings;
        let fixed = settings.tags.iter().map(|(key, value)| (key.clone(), value.clone()));
        let labels = &self.xr.labels;
        let from_labels = settings
            .tags_from_labels
            .iter()
            .filter_map(|(key, label)| Some((key.as_str(), labels.get(label)?.as_str())));
        let attribution = tags::attribution(settings.chosen_tags())
            .filter(|_| self.is_attributed())
            .filter_map(|key| Some((key, self.xr.attribute(key)?)));
        let of_users = from_labels
            .chain(attribution)
            .map(|(key, value)| (key.to_owned(), tags::valid(kind, value)))
            .filter(|(_, value)| !value.is_empty());
        fixed.chain(of_users).map(|(key, value)| kind.provider.tag(&key, &value)).collect()
    }

    /// Whether the cloud resources have the tags of [`tags::attribution`]. An upgrade does not add
    /// tags to existing environments.
    pub(crate) fn is_attributed(&self) -> bool {
        self.is_since(3)
    }
}

impl Composite {
    /// The owner's login: the portal's annotation, else the owner in the spec, else the label.
    pub fn owner(&self) -> Option<&str> {
        let in_spec = || {
            ["/parameters/owner", "/owner"]
                .into_iter()
                .find_map(|path| self.spec.pointer(path).and_then(Value::as_str))
        };
        let annotation = self.annotations.get(OWNER).map(String::as_str);
        annotation.or_else(in_spec).or_else(|| self.labels.get(OWNER_LABEL).map(String::as_str))
    }

    /// The value of a tag of [`tags::attribution`].
    fn attribute(&self, key: &str) -> Option<&str> {
        let claim = self.claim.as_ref().map(|(name, _)| name.as_str());
        match key {
            "environment" => claim.or(Some(&self.name)),
            "namespace" => self.user_namespace(),
            _ => self.owner(),
        }
    }
}
