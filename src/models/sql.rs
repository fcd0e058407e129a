//! provider-sql: objects on a PostgreSQL server. Their names are external names.
//!
//! Fields and types are those of provider-sql 0.16.

use super::{Kind, Managed, Selector, Unread};

impl Managed for Database {
    const KIND: Kind = Kind::sql("Database");
    type Status = Unread;
}

impl Managed for Role {
    const KIND: Kind = Kind::sql("Role");
    type Status = Unread;
}

impl Managed for Grant {
    const KIND: Kind = Kind::sql("Grant");
    type Status = Unread;
}

model! {
    /// A database. It has no secret, because only roles have credentials.
    pub struct Database {
        /// Character set, for example `UTF8`. Absent: the one of the server's template.
        pub encoding: Option<String>,
    }

    /// A role. Its secret has `username`, `password`, `endpoint` and `port`. The provider generates
    /// a missing password.
    pub struct Role {
        /// Its rights on the server.
        pub privileges: Option<RolePrivileges>,
        /// Maximum number of its connections.
        pub connection_limit: Option<i64>,
    }

    /// The rights of a role on a server.
    pub struct RolePrivileges {
        /// Log in.
        pub login: Option<bool>,
    }

    /// Grants privileges to a role, on a database or on a schema in it.
    pub struct Grant {
        /// The role that gets the privileges.
        pub role_selector: Option<Selector>,
        /// The database.
        pub database_selector: Option<Selector>,
        /// The schema of the privileges, for example `public`. Absent: they are privileges on the
        /// database.
        pub schema: Option<String>,
        /// Revokes the default rights of all other roles on a new database: to connect, and to
        /// create temporary tables.
        pub revoke_public_on_db: Option<bool>,
        /// The privileges, in capitals: `CONNECT` on a database, `USAGE` on a schema, `CREATE` on
        /// both.
        pub privileges: Vec<String>,
    }
}
