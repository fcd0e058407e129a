//! The platform team's Settings on this control plane, as the examples need them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use function_paved_road::manifests;
use serde_json::{Map, Value, json};
use xtask::yaml;

/// The EnvironmentConfig that our Compositions name, with the settings of all examples in
/// `sources`.
pub fn environment_config(sources: &Path) -> Result<Value> {
    let mut data = Map::new();
    for example in examples(sources)? {
        for composition in yaml::read(&example.join("composition.yaml"))? {
            let input = composition["spec"]["pipeline"][0]["input"].as_object().cloned();
            let sections =
                input.unwrap_or_default().into_iter().filter(|(_, value)| value.is_object());
            data.extend(sections);
        }
    }
    data.remove("settingsFrom");
    Ok(json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": manifests::ENVIRONMENT_CONFIG},
        "data": data,
    }))
}

/// The namespaces of the examples' claims.
pub fn namespaces(sources: &Path) -> Result<Vec<Value>> {
    let mut names = BTreeSet::new();
    for example in examples(sources)? {
        for claim in yaml::read(&example.join("claim.yaml"))? {
            names.extend(claim["metadata"]["namespace"].as_str().map(str::to_owned));
        }
    }
    let namespace =
        |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    Ok(names.into_iter().map(namespace).collect())
}

fn examples(sources: &Path) -> Result<Vec<PathBuf>> {
    let folder = sources.join("examples");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut examples = Vec::new();
    for entry in entries {
        examples.push(entry?.path());
    }
    examples.sort();
    Ok(examples)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use xtask::workspace;

    use super::*;

    #[test]
    fn settings_have_a_section_for_every_example() {
        let config = environment_config(workspace::root()).unwrap();
        let sections: Vec<_> = config["data"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            sections,
            [
                "applicationEnvironment",
                "environment",
                "gpuWorkspace",
                "stockPool",
                "unifiedEnvironment"
            ]
        );
    }
}
