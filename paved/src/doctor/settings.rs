//! Checks the Settings that Compositions pass to the function.

use std::collections::BTreeSet;

use k8s_schema::Violation;
use paved_render::subject::placeholder;

use super::check::Check;
use super::compositions::{self, UsedComposition};
use super::objects::name;
use super::snapshot::{ClusterSnapshot, ListResult};
use crate::style::harmless;
use crate::validate::violations;

/// A line for each EnvironmentConfig with Settings, and for each Composition with invalid Settings
/// in its input.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let used = compositions::all(snapshot);
    let own = used.iter().filter_map(|used: &UsedComposition<'_>| {
        let what = format!("Settings of Composition {}", used.composition);
        match wrong(&violations(used.input)) {
            Some(found) => Some(Check::bad(what, found, HELPS)),
            None => placeholder::find_in_settings(used.input)
                .first()
                .map(|advice| Check::open(what, harmless(advice))),
        }
    });
    let required = |used: &&UsedComposition<'_>| used.input["settingsFrom"]["optional"] != true;
    let required: BTreeSet<&str> =
        used.iter().filter(required).filter_map(UsedComposition::named).collect();
    let named: BTreeSet<&str> = used.iter().filter_map(UsedComposition::named).collect();
    let config = |name| config(name, &snapshot.configs, required.contains(name));
    own.chain(named.into_iter().map(config)).collect()
}

/// The remediation for invalid Settings.
const HELPS: &str = "every environment is rejected until Settings are corrected. Run `paved \
                     validate FILE` to \
     find the line";

fn config(named: &str, configs: &ListResult, is_required: bool) -> Check {
    let what = format!("Settings {named}");
    let ListResult::All(configs) = configs else { return configs.unread(what) };
    let config = configs.iter().find(|one| name(one) == named);
    match config.map(|config| &config.data["data"]).filter(|data| data.is_object()) {
        Some(data) => match wrong(&violations(data)) {
            Some(found) => Check::bad(what, found, HELPS),
            None => match placeholder::find_in_settings(data).first() {
                Some(advice) => Check::open(what, harmless(advice)),
                None => Check::good(what, "EnvironmentConfig"),
            },
        },
        None if is_required => Check::bad(
            what,
            "the EnvironmentConfig does not exist or has no data, so new environments are rejected",
            "create it, or set settingsFrom.optional to true in the Compositions if the platform \
             has no limits",
        ),
        None => Check::open(
            what,
            "the EnvironmentConfig does not exist, so only the input of the Composition applies",
        ),
    }
}

/// The first error, and the number of further errors.
fn wrong(violations: &[Violation]) -> Option<String> {
    let (first, others) = violations.split_first()?;
    let others =
        if others.is_empty() { String::new() } else { format!(" ({} more)", others.len()) };
    Some(harmless(&first.to_string()) + &others)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::style::Mark;

    #[test]
    fn placeholder_of_a_machine_image_is_reported_as_a_note() {
        let mut snapshot = snapshot();
        snapshot.configs = objects(&[json!({"metadata": {"name": "paved-road"},
            "data": {"gpuWorkspace": {"amis": {"us-east-1": {"default": "ami-0123456789abcdef0"}}}}})]);
        let checks = check(&snapshot);
        assert_eq!((checks.len(), checks[0].mark), (1, Mark::Busy));
        assert!(
            checks[0].found.contains("aws ssm get-parameter --region us-east-1"),
            "{}",
            checks[0].found
        );
    }

    #[test]
    fn missing_environment_config_is_red_unless_it_is_optional() {
        for configs in [json!([]), json!([{"metadata": {"name": "paved-road"}}])] {
            let mut snapshot = snapshot();
            snapshot.configs = objects(configs.as_array().unwrap());
            let checks = check(&snapshot);
            assert_eq!((checks.len(), checks[0].mark), (1, Mark::Bad), "{configs}");
            assert!(checks[0].found.contains("new environments are rejected"), "{configs}");
            let ListResult::All(compositions) = &mut snapshot.compositions else { panic!() };
            let input = &mut compositions[0].data["spec"]["pipeline"][0]["input"];
            input["settingsFrom"]["optional"] = json!(true);
            assert_eq!(check(&snapshot)[0].mark, Mark::Busy, "{configs}");
        }
    }

    #[test]
    fn invalid_setting_is_red_in_each_place() {
        let mut snapshot = snapshot();
        snapshot.configs = objects(&[json!({"metadata": {"name": "paved-road"},
            "data": {"tagz": {}, "providerConfigs": {"aws": {}}}})]);
        let checks = check(&snapshot);
        assert_eq!((checks.len(), checks[0].mark), (1, Mark::Bad));
        assert!(
            checks[0].found.contains("tagz") || checks[0].found.contains("providerConfigs.aws"),
            "{}",
            checks[0].found
        );
        assert!(checks[0].found.contains("(1 more)"), "{}", checks[0].found);
        let ListResult::All(compositions) = &mut snapshot.compositions else { panic!() };
        compositions[0].data["spec"]["pipeline"][0]["input"]["schemaRevision"] = json!(0);
        let checks = check(&snapshot);
        assert_eq!(checks[0].what, "Settings of Composition workspaces");
        assert!(checks[0].found.contains("schemaRevision"), "{}", checks[0].found);
    }
}
