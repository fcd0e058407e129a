//! provider-sql.

use super::manner::{MANAGED, Manner, details, one};

pub(super) fn manner(kind: &str) -> Manner {
    match kind {
        "Role" | "User" => Manner {
            connection: |f| {
                let password = f.password();
                let entries = [("username", f.external()), ("password", &password)];
                let server = [("endpoint", "postgres.shared.svc"), ("port", "5432")];
                details(entries).into_iter().chain(details(server)).collect()
            },
            ..MANAGED
        },
        "Database" => Manner { references: const { &[one("owner", "Role")] }, ..MANAGED },
        "Grant" => Manner {
            references: const { &[one("role", "Role"), one("database", "Database"), one("memberOf", "Role")] },
            ..MANAGED
        },
        _ => MANAGED,
    }
}
