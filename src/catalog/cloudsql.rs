//! Machine types of Cloud SQL for PostgreSQL, called tiers by Google, and the properties that
//! depend on them.
//!
//! Source: Google's page on machine series
//! (<https://docs.cloud.google.com/sql/docs/postgres/machine-series-overview>). PostgreSQL does not
//! accept `db-n1-*`, which are for MySQL.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::check::{self, Refused};

/// The tiers. Shared and custom machines belong to the edition Enterprise, predefined machines to
/// Enterprise Plus.
pub const TIER: &str = "^db-(f1-micro|g1-small|custom-(N4-)?[1-9][0-9]{0,2}-[1-9][0-9]{2,6}\
                        |(perf|memory)-optimized-N-[1-9][0-9]{0,2}|c4a-highmem-[1-9][0-9]{0,2})$";

/// The longest name of a tier, in characters.
pub const LONGEST_TIER: usize = 63;

/// The first version of PostgreSQL that Enterprise Plus serves.
const FIRST_OF_PLUS: u32 = 12;

/// The first version of PostgreSQL with Enterprise Plus as its default edition.
const PLUS_BY_DEFAULT: u32 = 16;

/// Properties of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its edition: `ENTERPRISE` or `ENTERPRISE_PLUS`. `None` for Google's default.
    pub edition: Option<&'static str>,
    /// The type of its disk, which depends on its machine series.
    pub disk_type: &'static str,
}

/// A tier of PostgreSQL.
pub fn tier(name: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TIER).ok());
    let allowed = "a Cloud SQL machine type for PostgreSQL: db-f1-micro, db-g1-small, \
                   db-custom-CPUS-MEMORY (in MiB), for example db-custom-2-7680, \
                   or db-perf-optimized-N-2 for Enterprise Plus";
    check::matching(name, LONGEST_TIER, &PATTERN, allowed)
}

/// The properties of a server with a tier and a version of PostgreSQL.
pub fn server(tier: &str, version: u32) -> Result<Server, Refused> {
    self::tier(tier)?;
    let is_plus =
        ["db-perf-", "db-memory-", "db-c4a-"].iter().any(|series| tier.starts_with(series));
    if is_plus && version < FIRST_OF_PLUS {
        let allowed = format!(
            "a tier of Enterprise for PostgreSQL {version}, because Enterprise Plus needs \
             {FIRST_OF_PLUS} or later"
        );
        return Err(Refused::new(tier, allowed));
    }
    let edition = match (is_plus, version >= PLUS_BY_DEFAULT) {
        (true, _) => Some("ENTERPRISE_PLUS"),
        (false, true) => Some("ENTERPRISE"),
        (false, false) => None,
    };
    // Machines of the series N4 and C4A have no persistent disks.
    let hyperdisk = tier.starts_with("db-custom-N4-") || tier.starts_with("db-c4a-");
    let disk_type = if hyperdisk { "HYPERDISK_BALANCED" } else { "PD_SSD" };
    Ok(Server { edition, disk_type })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tier_of_postgresql_is_accepted_and_others_are_refused() {
        for name in [
            "db-f1-micro",
            "db-g1-small",
            "db-custom-2-7680",
            "db-custom-N4-2-8192",
            "db-perf-optimized-N-2",
            "db-perf-optimized-N-128",
            "db-memory-optimized-N-16",
            "db-c4a-highmem-4",
        ] {
            assert_eq!(tier(name), Ok(name));
        }
        for name in [
            "",
            "db-n1-standard-1",
            "db-n1-highmem-2",
            "db-standard-2",
            "db-perf-optimized-n-2",
            "db-custom-2",
            "e2-medium",
            "db.t4g.micro",
        ] {
            assert!(tier(name).unwrap_err().allowed.contains("db-perf-optimized-N-2"), "{name}");
        }
    }

    #[test]
    fn edition_and_disk_follow_from_tier_and_version() {
        let made =
            |tier: &str, version| server(tier, version).map(|made| (made.edition, made.disk_type));
        assert_eq!(made("db-g1-small", 14), Ok((None, "PD_SSD")));
        assert_eq!(made("db-g1-small", 16), Ok((Some("ENTERPRISE"), "PD_SSD")));
        assert_eq!(made("db-custom-2-7680", 17), Ok((Some("ENTERPRISE"), "PD_SSD")));
        assert_eq!(made("db-custom-N4-2-8192", 14), Ok((None, "HYPERDISK_BALANCED")));
        assert_eq!(made("db-perf-optimized-N-2", 14), Ok((Some("ENTERPRISE_PLUS"), "PD_SSD")));
        assert_eq!(
            made("db-c4a-highmem-2", 16),
            Ok((Some("ENTERPRISE_PLUS"), "HYPERDISK_BALANCED"))
        );
        let refused = made("db-perf-optimized-N-2", 11).unwrap_err();
        assert!(refused.allowed.contains("Enterprise Plus needs 12 or later"), "{refused}");
    }
}
