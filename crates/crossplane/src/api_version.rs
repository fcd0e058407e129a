//! `apiVersion` of an object: `group/version`, or `version` alone for the core group.

use serde_json::Value;

/// The group and the version. The group of the core API is empty.
pub fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The group. It is empty for the core API.
pub fn group(api_version: &str) -> &str {
    split(api_version).0
}

/// The group of an object or a reference. It is empty for the core API and without an apiVersion.
pub fn group_of(object: &Value) -> &str {
    group(object["apiVersion"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_version_has_no_group() {
        assert_eq!(split("ec2.aws.upbound.io/v1beta2"), ("ec2.aws.upbound.io", "v1beta2"));
        assert_eq!(split("v1"), ("", "v1"));
        assert_eq!(group("v1"), "");
    }
}
