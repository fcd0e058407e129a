//! Scopes of XRDs.

use serde_json::Value;

use crate::json::text;

/// The scope of an XRD. It decides the place of composites, and the fields that Crossplane adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// An XRD of `apiextensions.crossplane.io/v1`: cluster-scoped composites, which may have a
    /// claim and publish connection details.
    LegacyCluster,
    /// Cluster-scoped composites of an XRD v2.
    Cluster,
    /// Composites of an XRD v2 in a namespace, like all their composed resources.
    Namespaced,
}

impl Scope {
    /// The scope of an XRD. Without `spec.scope`, an XRD v1 is LegacyCluster and an XRD v2 is
    /// Namespaced. The API server returns every XRD in both versions, so `spec.scope` takes
    /// precedence.
    pub fn from_xrd(xrd: &Value) -> Self {
        let is_v1 = text(xrd, &["apiVersion"]).is_some_and(|version| version.ends_with("/v1"));
        match text(xrd, &["spec", "scope"]) {
            Some("Namespaced") => Self::Namespaced,
            Some("Cluster") => Self::Cluster,
            Some(_) => Self::LegacyCluster,
            None if is_v1 => Self::LegacyCluster,
            None => Self::Namespaced,
        }
    }

    /// The scope of a composite, derived from its own fields without its XRD.
    pub fn from_composite(composite: &Value) -> Self {
        if text(composite, &["metadata", "namespace"]).is_some() {
            Self::Namespaced
        } else if composite["spec"].get("crossplane").is_some() {
            Self::Cluster
        } else {
            Self::LegacyCluster
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scope_without_a_field_depends_on_the_version() {
        let xrd =
            |version: &str| json!({"apiVersion": format!("apiextensions.crossplane.io/{version}")});
        assert_eq!(Scope::from_xrd(&xrd("v1")), Scope::LegacyCluster);
        assert_eq!(Scope::from_xrd(&xrd("v2")), Scope::Namespaced);
        let mut shown = xrd("v2");
        shown["spec"]["scope"] = json!("LegacyCluster");
        assert_eq!(Scope::from_xrd(&shown), Scope::LegacyCluster);
    }
}
