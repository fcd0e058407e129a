//! Combinations of APIs, groups and options. Each gives the platform of the other sources.

use std::fs;

use anyhow::{Context, Result, ensure};
use crossplane::json::overlay;
use serde_json::json;

use super::helm::{Helm, Objects};
use super::platform::is_expected;
use crate::yaml;

/// Renders combinations of APIs, groups and options, and returns their number.
pub fn check(helm: &Helm) -> Result<usize> {
    let own = json!({"group": "platform.example.org"});
    let defaults = json!({"group": "platform.m.acme.io", "apis": "both",
        "claimsGroup": "platform.acme.io"});
    // A group that YAML would read as a number.
    let numeric = json!({"group": "1.2", "apis": "claims", "kinds": ["stock-pool"]});
    let mixed = json!({"group": "platform.m.acme.io", "apis": "both",
        "claimsGroup": "claims.example.org", "settings": {"tags": {"team": "a"}}});
    let old = json!({"group": "platform.acme.io", "apis": "claims",
        "crossplane": {"activation": false}, "configurations": {"enabled": true,
        "names": {"configuration-gpu-workspace-claims": "gpu-workspace"}}});
    let both_packages = json!({"configurations": {"enabled": true}, "settings": null});
    let mirror = json!({"registry": "127.0.0.1:5000/a_b/c.d", "release": "v1.2.3-rc.1",
        "crossplane": {"user": "system:serviceaccount:other:crossplane"}});
    let chosen = json!({"kinds": ["virtual-environment"], "rbac": {"create": false},
        "providers": {"except": ["provider-helm"], "optional": ["provider-aws-eks"],
            "versions": {"provider-kubernetes": "v1.9.0"}}});
    let sets = [
        vec![own.clone()],
        vec![own.clone(), json!({"apis": "claims"})],
        vec![defaults.clone()],
        vec![defaults, both_packages],
        vec![numeric],
        vec![mixed],
        vec![old],
        vec![own.clone(), mirror],
        vec![own, chosen],
    ];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("values.yaml");
    for set in &sets {
        let mut values = json!({});
        for one in set {
            overlay(&mut values, one);
        }
        fs::write(&file, values.to_string())?;
        let text = helm.template(&file, &[])?;
        ensure!(text == helm.template(&file, &[])?, "two renders of {values} differ");
        let kept = Objects(yaml::documents(&text)?).kept();
        let all = super::over_defaults(&values)?;
        is_expected(&kept, &all).with_context(|| values.to_string())?;
    }
    Ok(sets.len())
}
