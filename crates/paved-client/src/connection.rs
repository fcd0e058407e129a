//! The Secret with an environment's connection details.

use function_paved_road::apis::APIS;
use kube::core::DynamicObject;

/// The Secret with an environment's connection details. The environment's spec names it. A
/// namespaced composite without this field has a Secret named after the composite and its API.
pub fn secret_of(object: &DynamicObject, kind: &str, name: &str) -> Option<String> {
    let spec = object.data.get("spec")?;
    if let Some(name) = spec["writeConnectionSecretToRef"]["name"].as_str() {
        return Some(name.to_owned());
    }
    spec.get("crossplane")?;
    let infos = APIS.iter().map(|api| api.info());
    let mut own = infos.filter(|info| !info.connection_keys.is_empty());
    Some(format!("{name}-{}", own.find(|info| info.namespaced.kind == kind)?.name))
}
