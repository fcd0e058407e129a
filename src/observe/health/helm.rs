//! The health of releases of provider-helm.

use serde_json::Value;

use super::super::reported::status_of;
use super::{Health, State, is_stale, managed};
use crate::models::helm;
use crate::reason::Reason;
use crate::value::{Object, at, text};

/// A release of a chart. Two states of provider-helm look like work in progress, but never end.
pub(super) fn release(object: &Object) -> Health {
    let health = managed(object);
    if health.ready || health.state == State::Failed || is_stale(object) {
        return health;
    }
    let number = |path: &[&str]| at(object, path).and_then(Value::as_i64);
    let asked = text(object, &["spec", "forProvider", "chart", "version"]).unwrap_or_default();
    let seen = status_of::<helm::Release>(object).unwrap_or_default();
    let (state, version) = (seen.state.unwrap_or_default(), seen.version.unwrap_or_default());
    if state == "deployed" && !version.is_empty() && version != asked {
        // provider-helm compares the versions as text, and upgrades every time it observes the
        // release.
        let message = format!(
            "the chart calls its version {version}, not {asked}, so provider-helm upgrades the release \
             repeatedly. Write {version} in app.chart.version of the claim, or in \
             spec.forProvider.chart.version of the Release"
        );
        return Health::pending(State::Failed, Reason::Failed, message);
    }
    let limit = number(&["spec", "rollbackLimit"]);
    let failed =
        number(&["status", "failed"]).filter(|failed| limit.is_some_and(|limit| *failed >= limit));
    let is_unfinished = ["failed", "pending-install", "pending-upgrade"].contains(&state.as_str());
    match failed {
        Some(failed) if is_unfinished => {
            let said = seen.release_description.filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            let message = format!(
                "Helm failed {failed} times, and provider-helm no longer retries{said}; \
                 it tries again after a change of chart, version or values"
            );
            Health::pending(State::Failed, Reason::Failed, message)
        }
        _ => health,
    }
}
