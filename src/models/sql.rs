//! provider-sql: what is on a PostgreSQL server. Names are external names.
//!
//! Fields and their types are those of provider-sql 0.16.

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
    /// A database. It has no secret: credentials are a role's.
    pub struct Database {
        /// Character set, such as `UTF8`; none: that of the server's template.
        pub encoding: Option<String>,
    }

    /// A role. Its secret has `username`, `password`, `endpoint` and `port`; a password that is not
    /// given is made up.
    pub struct Role {
        /// What it may do on the server.
        pub privileges: Option<RolePrivileges>,
        /// How many connections it may have at once.
        pub connection_limit: Option<i64>,
    }

    /// What a role may do on a server.
    pub struct RolePrivileges {
        /// Log in.
        pub login: Option<bool>,
    }

    /// Gives a role privileges: on a database, or on a schema in it.
    pub struct Grant {
        /// Who gets them.
        pub role_selector: Option<Selector>,
        /// The database.
        pub database_selector: Option<Selector>,
        /// The schema that they are about, such as `public`; none: they are about the database.
        pub schema: Option<String>,
        /// Takes from everybody else what PostgreSQL lets them do with a new database: connect, and
        /// make temporary tables.
        pub revoke_public_on_db: Option<bool>,
        /// What they are, in capitals: `CONNECT` of a database, `USAGE` of a schema, `CREATE` of
        /// both.
        pub privileges: Vec<String>,
    }
}
