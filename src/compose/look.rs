//! The annotation that makes a provider observe a resource at once.

use crate::models::helm::Release;
use crate::observe::{Resource, State, status_of};

/// The annotation on a resource for its provider. A provider observes a changed resource at once,
/// and an unchanged resource only at its next poll, after ten minutes by default.
pub(crate) const LOOK: &str = "paved-road.fn.crossplane.io/look";

/// The value of [`LOOK`] on a Release: the revision that provider-helm upgraded and has not
/// observed since. An upgrade leaves `Ready=False`. Since version 1.3, provider-helm ignores
/// changes of a Release's status, so only its next poll would find the upgraded chart ready. An
/// earlier value stays, because its removal would be a change too.
///
/// Source: provider-helm 1.3.0, `pkg/controller/namespaced/release/release.go`:
/// `DesiredStateChanged`, and the conditions that `Observe` sets before an upgrade.
pub(super) fn at_release(observed: &Resource) -> Option<String> {
    let release = status_of::<Release>(&observed.object).unwrap_or_default();
    let is_upgraded = release.state.as_deref() == Some("deployed")
        && release.revision.is_some_and(|revision| revision > 1)
        && observed.health().state == State::Creating;
    match release.revision.filter(|_| is_upgraded) {
        Some(revision) => Some(revision.to_string()),
        None => observed.annotation(LOOK).map(str::to_owned),
    }
}
