//! The database: on a shared PostgreSQL server, or on an RDS instance of its own. Whichever it is,
//! its provider writes the way into it to one Secret in the environment's namespace.

use super::place::{NAMESPACE_READY, Place};
use super::settings::Mode;
use super::{Database, Size, UnifiedEnvironmentSettings};
use crate::compose::{Composition, NameRule, Observed, SecretName};
use crate::error::Error;
use crate::models::aws::rds;
use crate::models::{SIBLING, SecretKeyRef, sql};

const DATABASE: &str = "postgres-db";
const ROLE: &str = "postgres-role";
const GRANT: &str = "postgres-grant";
const SCHEMA_GRANT: &str = "postgres-schema-grant";
const INSTANCE: &str = "postgres-instance";

/// provider-sql knows a password only when it creates the role.
const LOST_PASSWORD: &str = "its Secret has no password, and provider-sql writes one only once: restore the Secret from a copy";

/// Database and user on a server that nobody else has.
const OWN: &str = "app";

/// What the backend needs to know of its database.
pub(super) struct Connection {
    /// The slot that must outlive whoever is connected.
    pub slot: &'static str,
    /// The database's name.
    pub name: String,
    /// The key of the Secret that holds the host alone.
    pub host_key: &'static str,
    pub host: Option<String>,
    pub port: Option<Vec<u8>>,
    pub username: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
}

impl Connection {
    fn new<S: serde::de::DeserializeOwned>(
        slot: &'static str,
        name: String,
        host_key: &'static str,
        owner: &Observed<S>,
    ) -> Self {
        Self {
            slot,
            name,
            host_key,
            host: owner.connection(host_key).and_then(|host| String::from_utf8(host).ok()),
            port: owner.connection("port"),
            username: owner.connection("username"),
            password: owner.connection("password"),
        }
    }

    /// Everything about the way into the database but the password, for one environment.
    pub fn way(&self, uid: &str) -> String {
        let text = |value: &Option<Vec<u8>>| {
            value.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned()
        };
        let host = self.host.as_deref().unwrap_or_default();
        [uid, host, &text(&self.port), &text(&self.username)].join("\n")
    }

    /// The password, once the whole way into the database was written down.
    pub fn credentials(&self) -> Option<&[u8]> {
        let whole = self.host.is_some() && self.port.is_some() && self.username.is_some();
        self.password.as_deref().filter(|_| whole)
    }
}

impl Database {
    /// In the mode of Settings; a database that exists stays where it is.
    pub(super) fn compose(
        &self,
        place: &Place,
        region: &str,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composition<'_>,
    ) -> Result<Connection, Error> {
        let exists = |slots: &[&str]| slots.iter().any(|slot| cx.exists(slot));
        let mode = if exists(&[INSTANCE]) {
            Mode::Rds
        } else if exists(&[DATABASE, ROLE, GRANT, SCHEMA_GRANT]) {
            Mode::Shared
        } else {
            settings.database.mode
        };
        match mode {
            Mode::Shared => self.shared(place, cx),
            Mode::Rds => self.instance(place, region, settings, cx),
        }
    }

    /// Database and role have one name, unique on the server: it begins with the XR's and ends in a
    /// part of its uid. Its hyphens need quotes in SQL, which the provider puts there, and none in
    /// the URL of a connection.
    fn shared(&self, place: &Place, cx: &mut Composition<'_>) -> Result<Connection, Error> {
        let name = cx.xr.cloud_name(NameRule::dns(63));
        cx.managed(DATABASE, sql::Database::default()).external_name(&name).add()?;
        let role = sql::Role {
            privileges: Some(sql::RolePrivileges { login: Some(true) }),
            connection_limit: Some(self.size.connections()),
        };
        let role = cx
            .managed(ROLE, role)
            .external_name(&name)
            .resolved_from("size", self.size.name(), &["connectionLimit"])
            .publishes_to(place.secret.clone())
            .needs(place.ready, NAMESPACE_READY)
            .add()?;
        if role.connection("password").is_none() && cx.published("password").is_some() {
            cx.mark_unready(ROLE, LOST_PASSWORD);
        }
        grants(cx)?;
        // The Secret goes with the role, the role owns what is in the database, and a grant is
        // looked at inside of it.
        place.outlives(ROLE, cx)?;
        cx.usage(ROLE, DATABASE)?;
        cx.usage(DATABASE, GRANT)?;
        cx.usage(DATABASE, SCHEMA_GRANT)?;
        let name = cx.external_name(DATABASE).unwrap_or(name);
        Ok(Connection::new(DATABASE, name, "endpoint", &role))
    }

    /// Private and encrypted; a deletion leaves a last snapshot behind, unless Settings want none.
    /// A change of size restarts the server at once: without that the provider would ask for it
    /// again and again until a maintenance window. The disk is as it was made, or as AWS has grown
    /// it.
    fn instance(
        &self,
        place: &Place,
        region: &str,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composition<'_>,
    ) -> Result<Connection, Error> {
        let name = cx.xr.cloud_name(NameRule::dns(63));
        // Subnets and security groups belong to the beginning: for a server that runs there is
        // nothing to look up.
        let (group, guards) =
            if cx.exists(INSTANCE) { (None, &[][..]) } else { settings.server()? };
        let (class, storage) = self.size.machine();
        let server = rds::Instance {
            region: Some(region.to_owned()),
            identifier: Some(name.clone()),
            engine: Some("postgres".to_owned()),
            engine_version: Some("16".to_owned()),
            instance_class: Some(class.to_owned()),
            allocated_storage: Some(storage),
            max_allocated_storage: settings.rds.max_allocated_storage,
            storage_type: Some("gp3".to_owned()),
            storage_encrypted: Some(true),
            db_name: Some(OWN.to_owned()),
            username: Some(OWN.to_owned()),
            auto_generate_password: Some(true),
            password_secret_ref: Some(password(&place.secret, cx)),
            publicly_accessible: Some(false),
            db_subnet_group_name: group.map(str::to_owned),
            vpc_security_group_ids: guards.to_vec(),
            backup_retention_period: Some(7),
            skip_final_snapshot: Some(!settings.rds.final_snapshot),
            final_snapshot_identifier: settings.rds.final_snapshot.then(|| format!("{name}-final")),
            deletion_protection: Some(false),
            apply_immediately: Some(true),
            auto_minor_version_upgrade: Some(true),
            copy_tags_to_snapshot: Some(true),
            ..rds::Instance::default()
        };
        let server = cx
            .managed(INSTANCE, server)
            .external_name(name)
            .resolved_from("size", self.size.name(), &["instanceClass"])
            .publishes_to(place.secret.clone())
            .needs(place.ready, NAMESPACE_READY)
            .add()?;
        place.outlives(INSTANCE, cx)?;
        Ok(Connection::new(INSTANCE, OWN.to_owned(), "address", &server))
    }
}

/// The role may use its database, which is nobody else's: PostgreSQL would let every role of the
/// server in. In the schema that every database has, it may make tables.
///
/// What was granted goes with the database, so nothing is taken back: provider-sql would do that
/// inside of the database, and a grant whose database went first (deleted half made, before a Usage
/// held it) would wait for it for ever.
fn grants(cx: &mut Composition<'_>) -> Result<(), Error> {
    let may = |privileges: &[&str]| sql::Grant {
        role_selector: Some(SIBLING),
        database_selector: Some(SIBLING),
        privileges: privileges.iter().map(|&privilege| privilege.to_owned()).collect(),
        ..sql::Grant::default()
    };
    let database =
        sql::Grant { revoke_public_on_db: Some(true), ..may(&["CONNECT", "CREATE", "TEMPORARY"]) };
    cx.managed(GRANT, database).orphan(true).add()?;
    let schema = sql::Grant { schema: Some("public".to_owned()), ..may(&["CREATE", "USAGE"]) };
    cx.managed(SCHEMA_GRANT, schema).orphan(true).add().map(|_| ())
}

/// Where the password is made: beside the Secret that the server's whole connection is written to.
fn password(secret: &SecretName, cx: &Composition<'_>) -> SecretKeyRef {
    SecretKeyRef {
        name: format!("{}-password", secret.name),
        namespace: cx.xr.namespace.is_none().then(|| secret.namespace.clone()),
        key: "password".to_owned(),
    }
}

impl Size {
    /// Connections at once, on a shared server.
    fn connections(self) -> i64 {
        match self {
            Self::Small => 20,
            Self::Medium => 50,
            Self::Large => 200,
        }
    }

    /// Machine type, and disk in GiB, of a server of its own.
    fn machine(self) -> (&'static str, i64) {
        match self {
            Self::Small => ("db.t4g.micro", 20),
            Self::Medium => ("db.t4g.medium", 50),
            Self::Large => ("db.m7g.large", 100),
        }
    }
}
