//! Google Cloud's names of regions, zones and machine types.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::check::{self, Refused};

/// A region: `us-central1`.
pub const REGION: &str = "^[a-z]+-[a-z]+[0-9]+$";

/// A region or a zone: `us-central1`, `us-central1-a`.
pub const PLACE: &str = "^[a-z]+-[a-z]+[0-9]+(-[a-z0-9]+)?$";

/// A machine type of Compute Engine: `e2-medium`, `n2-custom-4-8192-ext`.
pub const MACHINE: &str = "^[a-z][a-z0-9]*(-[a-z0-9]+)+$";

/// A region.
pub fn region(name: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REGION).ok());
    check::matching(name, 32, &PATTERN, "a Google Cloud region, for example us-central1")
}

/// A zone of a region.
pub fn zone<'z>(name: &'z str, region: &str) -> Result<&'z str, Refused> {
    let is_zone =
        |letter: &str| !letter.is_empty() && letter.chars().all(|c| c.is_ascii_alphanumeric());
    let fits = |name: &str| {
        name.strip_prefix(region).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_zone)
    };
    check::shape(name, 63, fits, &format!("a zone of {region}, for example {region}-a"))
}

/// A machine type.
pub fn machine(name: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(MACHINE).ok());
    check::matching(name, 63, &PATTERN, "a machine type of Google Cloud, for example e2-standard-4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_belongs_to_its_region() {
        assert_eq!(zone("us-central1-a", "us-central1"), Ok("us-central1-a"));
        assert_eq!(zone("us-south1-ai1b", "us-south1"), Ok("us-south1-ai1b"));
        for wrong in
            ["us-east1-b", "us-central1", "us-central1-", "us-central12-a", "us-central1-a-b"]
        {
            assert!(zone(wrong, "us-central1").is_err(), "{wrong}");
        }
    }

    #[test]
    fn machine_type_of_another_cloud_is_refused() {
        for name in ["e2-medium", "n2-standard-8", "custom-2-4096", "c3-standard-8-lssd"] {
            assert_eq!(machine(name), Ok(name));
        }
        for wrong in ["m6i.large", "Standard_D2s_v5", "e2", "e2-", ""] {
            assert!(machine(wrong).is_err(), "{wrong}");
        }
    }
}
