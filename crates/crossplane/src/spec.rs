//! Crossplane's own fields of `spec`. Source: `pkg/xcrd` of crossplane-runtime v2.3.3. The fields
//! `environmentConfigRefs` and `publishConnectionDetailsTo` are from Crossplane v1.

/// All fields that Crossplane adds to a claim or a composite, sorted. Composites of XRDs v2 have
/// these fields below `crossplane`.
pub const FIELDS: [&str; 13] = [
    "claimRef",
    "compositeDeletePolicy",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "crossplane",
    "environmentConfigRefs",
    "publishConnectionDetailsTo",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];

/// The fields of claims, sorted.
pub const OF_CLAIMS: [&str; 8] = [
    "compositeDeletePolicy",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "resourceRef",
    "writeConnectionSecretToRef",
];

/// The fields of claims that Crossplane does not copy to the composite: the fields of
/// `CompositeResourceClaimSpecProps` without the propagated ones.
pub const KEPT_BY_CLAIMS: [&str; 4] = [
    "compositeDeletePolicy",
    "compositionRevisionRef",
    "resourceRef",
    "writeConnectionSecretToRef",
];

/// The fields that Crossplane itself writes: the references between claims, composites and
/// resources, and the selected Composition.
pub const WRITTEN: [&str; 6] = [
    "claimRef",
    "compositionRef",
    "compositionRevisionRef",
    "compositionUpdatePolicy",
    "resourceRef",
    "resourceRefs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parts_of_all_fields() {
        assert!(FIELDS.is_sorted() && OF_CLAIMS.is_sorted());
        assert!(OF_CLAIMS.iter().chain(&WRITTEN).all(|field| FIELDS.contains(field)));
        assert!(KEPT_BY_CLAIMS.iter().all(|field| OF_CLAIMS.contains(field)));
    }
}
