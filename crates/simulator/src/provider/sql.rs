//! provider-sql.

use super::is_ready;
use super::kind_behaviour::{DEFAULT, KindBehaviour, details, one};
use super::rules::Rules;
use crate::core::ConnectionDetails;

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Role" | "User" => KindBehaviour {
            // The provider knows a password only when it creates the role. A lost Secret is not
            // restored.
            connection: |f| {
                if is_ready(f.object) {
                    return ConnectionDetails::new();
                }
                let password = f.password();
                let entries = [("username", f.external()), ("password", &password)];
                let server = [("endpoint", "postgres.shared.svc"), ("port", "5432")];
                details(entries).into_iter().chain(details(server)).collect()
            },
            rules: Rules { restless: true, ..Rules::NONE },
            ..DEFAULT
        },
        "Database" => KindBehaviour { references: const { &[one("owner", "Role")] }, ..DEFAULT },
        "Grant" => KindBehaviour {
            references: const {
                &[one("role", "Role"), one("database", "Database"), one("memberOf", "Role")]
            },
            // The provider connects to the database of the grant.
            rules: Rules {
                part_of: Some("database"),
                unreadable: Some("database gone"),
                ..Rules::NONE
            },
            ..DEFAULT
        },
        _ => DEFAULT,
    }
}
