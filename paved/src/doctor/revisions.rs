//! Compositions of an older schema revision than this release's.

use function_paved_road::lifecycle::SINCE;
use function_paved_road::manifests::SCHEMA_REVISION;
use serde_json::{Map, Value};

use super::check::Check;
use super::compositions::{self, UsedComposition};
use super::snapshot::{ClusterSnapshot, ListResult};
use crate::style::harmless;

/// A line for each Composition in use below the newest schema revision.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let used = compositions::all(snapshot);
    let old = used.iter().filter(|used| used.revision() < u64::from(SCHEMA_REVISION));
    old.map(|used| line(used, &snapshot.configs)).collect()
}

fn line(used: &UsedComposition<'_>, configs: &ListResult) -> Check {
    let (name, revision) = (harmless(used.composition), used.revision());
    let what = format!("Schema revision of Composition {name}");
    let helps = format!(
        "install the XRDs of this release, then set spec.pipeline[].input.schemaRevision to \
         {SCHEMA_REVISION} in Composition {name}"
    );
    let settings = used.settings(configs).unwrap_or_default();
    let limits = limits(used, revision, &settings);
    if !limits.is_empty() {
        let found = format!(
            "found {revision}, which new environments may not use, because Settings have {}",
            limits.join(", ")
        );
        return Check::bad(what, found, &helps);
    }
    let effect = if revision < u64::from(SINCE) {
        "spec.lifecycle of claims has no effect, and environments have no end and no price"
    } else {
        "later status fields are omitted"
    };
    Check::open(what, format!("found {revision}; newest: {SCHEMA_REVISION}. {effect}; {helps}"))
}

/// The limits in Settings that a revision cannot carry or does not reach, by their paths.
fn limits(used: &UsedComposition<'_>, revision: u64, settings: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if settings["minimumSchemaRevision"].as_u64().is_some_and(|least| least > revision) {
        found.push(format!("minimumSchemaRevision: {}", settings["minimumSchemaRevision"]));
    }
    if revision < u64::from(SINCE) {
        let key = used.api.info().settings;
        let lifecycle = settings[key]["lifecycle"].as_object();
        let fields = lifecycle.into_iter().flat_map(Map::keys);
        found.extend(fields.map(|field| harmless(&format!("{key}.lifecycle.{field}"))));
        let has_budget = settings["budget"].as_object().is_some_and(|budget| !budget.is_empty());
        found.extend(has_budget.then(|| "budget".to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::style::Mark;

    fn checks_of(input: &Value, data: &Value) -> Vec<Check> {
        let mut snapshot = snapshot();
        let ListResult::All(compositions) = &mut snapshot.compositions else { panic!() };
        let step = &mut compositions[0].data["spec"]["pipeline"][0]["input"];
        step["schemaRevision"] = input.clone();
        snapshot.configs = objects(&[json!({"metadata": {"name": "paved-road"}, "data": data})]);
        check(&snapshot)
    }

    #[test]
    fn older_composition_is_reported_with_the_line_to_change() {
        for revision in [json!(null), json!(1), json!(2)] {
            let checks = checks_of(&revision, &json!({}));
            assert_eq!((checks.len(), checks[0].mark), (1, Mark::Busy), "{revision}");
            let found = &checks[0].found;
            assert!(found.contains("spec.lifecycle of claims has no effect"), "{found}");
            assert!(found.contains("schemaRevision to 3 in Composition workspaces"), "{found}");
        }
        assert_eq!(checks_of(&json!(SCHEMA_REVISION), &json!({})), []);
    }

    #[test]
    fn limit_that_the_composition_cannot_carry_is_red() {
        for (data, words) in [
            (
                json!({"gpuWorkspace": {"lifecycle": {"maximum": "8h"}}}),
                "gpuWorkspace.lifecycle.maximum",
            ),
            (json!({"budget": {"defaultHourlyUSD": "1"}}), "budget"),
            (json!({"minimumSchemaRevision": 3}), "minimumSchemaRevision: 3"),
        ] {
            let checks = checks_of(&json!(2), &data);
            assert_eq!((checks.len(), checks[0].mark), (1, Mark::Bad), "{data}");
            assert!(checks[0].found.contains(words), "{}", checks[0].found);
        }
    }
}
