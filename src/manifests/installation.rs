//! The names of the objects that an installation has besides the APIs, the packages and the
//! Settings. `paved platform uninstall` finds these objects by their names, because an installation
//! by kubectl has no labels of ours.

use crate::apis::{APIS, Flavour};

use super::FUNCTION;
use super::policy::{Guarded, RESTORE_ROLE};

/// The runtime configs of providers. A provider needs its runtime config as long as it refers to
/// it.
pub const PROVIDER_CONFIGS: [&str; 2] = ["provider-kubernetes", "provider-helm"];

/// The runtime config of the function.
pub const FUNCTION_CONFIG: &str = FUNCTION;

/// The ClusterRoles of all groups. Some have a ClusterRoleBinding of the same name.
pub const ROLES: [&str; 9] = [
    "paved-road-catalogue",
    "paved-road-viewer",
    "paved-road-user",
    "paved-road-operator",
    RESTORE_ROLE,
    "paved-road:aggregate-to-crossplane",
    "paved-road-provider-kubernetes-claims",
    "paved-road-provider-kubernetes-namespaced",
    "paved-road-provider-helm",
];

/// The ClusterRoles for users of a company's own group.
pub fn roles(group: &str) -> Vec<String> {
    ["viewer", "user", "operator"].map(|role| format!("paved-road-{role}-{group}")).to_vec()
}

/// The admission policies of a group, and their bindings.
pub fn policies(group: &str) -> Vec<String> {
    let guarded = Flavour::ALL.into_iter().flat_map(Guarded::for_flavour);
    guarded.map(|guarded| guarded.policy(group)).collect()
}

/// The ManagedResourceActivationPolicies of a group. They have the names of its XRDs.
pub fn activation(group: &str) -> Vec<String> {
    let plurals = APIS
        .iter()
        .flat_map(|api| Flavour::ALL.map(|flavour| super::names(api.info(), flavour).plural));
    plurals.map(|plural| format!("{plural}.{group}")).collect()
}

/// The group in the name of one of our policies.
pub fn group_of_policy(name: &str) -> Option<&str> {
    let (policy, group) = name.split_once('.')?;
    let is_ours = |guarded: &Guarded| guarded.policy("") == format!("{policy}.");
    Flavour::ALL.into_iter().flat_map(Guarded::for_flavour).any(is_ours).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_of_a_policy_is_found_in_its_name() {
        for name in policies("platform.example.org") {
            assert_eq!(group_of_policy(&name), Some("platform.example.org"), "{name}");
        }
        for other in ["paved-road-namespaces", "paved-road-of-others.example.org", "x"] {
            assert_eq!(group_of_policy(other), None, "{other}");
        }
    }
}
