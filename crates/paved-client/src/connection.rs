//! The Secret with an environment's connection details.

use kube::api::DynamicObject;

/// The Secret of an environment's connection details: the one that it names; a composite in a
/// namespace has one that is called after it and its API.
pub fn secret_of(object: &DynamicObject, kind: &str, name: &str) -> Option<String> {
    let spec = object.data.get("spec")?;
    match spec["writeConnectionSecretToRef"]["name"].as_str() {
        Some(name) => Some(name.to_owned()),
        None => spec.get("crossplane").and_then(|_| Some(format!("{name}-{}", api(kind)?))),
    }
}

/// What the API of a kind is called, where it has connection details of its own.
fn api(kind: &str) -> Option<&'static str> {
    match kind {
        "ApplicationEnvironment" => Some("application-environment"),
        "GpuDevWorkspace" => Some("gpu-workspace"),
        "UnifiedEnvironment" => Some("unified-environment"),
        "Environment" => Some("virtual-environment"),
        _ => None,
    }
}
