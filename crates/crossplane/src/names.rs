//! Labels and annotations that Crossplane sets or reads. Source: `apis/common` and `pkg/meta` of
//! crossplane-runtime v2.3.3, and `internal/xcrd` of Crossplane v2.3.4.

/// Annotation: the name of the external resource, for example its ID in the cloud.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// Annotation: the slot that a composed resource fills in its composite.
pub const SLOT: &str = "crossplane.io/composition-resource-name";

/// Annotation: `true` pauses reconciliation.
pub const PAUSED: &str = "crossplane.io/paused";

/// Annotation: the time when the provider began to create the external resource.
pub const CREATE_PENDING: &str = "crossplane.io/external-create-pending";

/// Annotation: the time when the provider had created the external resource.
pub const CREATE_SUCCEEDED: &str = "crossplane.io/external-create-succeeded";

/// Annotation: the time when a creation of the external resource failed.
pub const CREATE_FAILED: &str = "crossplane.io/external-create-failed";

/// Label of composites and composed resources: the name of the composite.
pub const COMPOSITE: &str = "crossplane.io/composite";

/// Label of composites and composed resources: the name of the claim.
pub const CLAIM_NAME: &str = "crossplane.io/claim-name";

/// Label of composites and composed resources: the namespace of the claim.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

/// Label of resources that a Usage protects from deletion.
pub const IN_USE: &str = "crossplane.io/in-use";

/// Crossplane's name for a package that it installs as a dependency, derived from the repository's
/// path. It is the same as `xpkg.ToDNSLabel` in Crossplane 2.3. 1.20 does this too.
pub fn dns_label(repository: &str) -> String {
    const MOST: usize = 63;
    let last = repository.len().saturating_sub(1);
    let kept = repository.bytes().take(MOST).enumerate().filter_map(|(index, byte)| match byte {
        b'a'..=b'z' | b'0'..=b'9' => Some(char::from(byte)),
        b'.' | b'/' | b':' | b'-' if ![0, MOST - 1, last].contains(&index) => Some('-'),
        _ => None,
    });
    kept.collect::<String>().trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_as_crossplane_cuts_them() {
        assert_eq!(dns_label("a_b/c"), "ab-c");
        assert_eq!(dns_label("-a/"), "a");
        assert_eq!(dns_label(&"x".repeat(80)), "x".repeat(63));
        assert_eq!(dns_label(&format!("{}/y", "x".repeat(62))), "x".repeat(62));
    }
}
