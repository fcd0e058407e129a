//! Requirements: objects that Crossplane fetches before it calls again.

use std::collections::BTreeMap;

use function_proto::v1::{Capability, ResourceSelector, RunFunctionRequest, resource_selector};

use super::Response;
use crate::compose::Lookup;

/// The name of our requirement for the EnvironmentConfig that `settingsFrom` names.
pub const SETTINGS_REQUIREMENT: &str = "settings";

/// The name of the requirement in our namespaced Compositions for the EnvironmentConfig. Crossplane
/// then sends the EnvironmentConfig with the first request.
pub const SETTINGS_AT_FIRST: &str = "settings-at-first";

impl Response {
    /// Asks Crossplane for the objects of lookups.
    pub fn ask(&mut self, lookups: &BTreeMap<String, Lookup>) {
        for (requirement, lookup) in lookups {
            self.require(requirement, lookup);
        }
    }

    /// Asks Crossplane for an object. A Crossplane that sends no capabilities may be 1.20, which
    /// knows only the older field.
    pub(super) fn require(&mut self, requirement: &str, lookup: &Lookup) {
        let requirements = self.message.requirements.get_or_insert_default();
        if !self.knows_required_resources {
            requirements.extra_resources.insert(requirement.to_owned(), selector(lookup));
        }
        requirements.resources.insert(requirement.to_owned(), selector(lookup));
    }
}

/// Whether Crossplane sends the objects of the field `resources`.
pub(super) fn knows_required_resources(request: &RunFunctionRequest) -> bool {
    let meta = request.meta.as_ref();
    meta.is_some_and(|meta| meta.capabilities().any(|c| c == Capability::RequiredResources))
}

fn selector(lookup: &Lookup) -> ResourceSelector {
    ResourceSelector {
        api_version: lookup.api_version.clone(),
        kind: lookup.kind.clone(),
        namespace: lookup.namespace.clone(),
        r#match: Some(resource_selector::Match::MatchName(lookup.name.clone())),
    }
}
