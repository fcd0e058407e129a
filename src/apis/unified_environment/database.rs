//! The database: on a shared PostgreSQL server, or on a dedicated RDS instance. In both cases, the
//! provider writes the connection details to one Secret in the environment's namespace.

use super::place::{NAMESPACE_READY, Place, keep_namespace_usage};
use super::settings::Mode;
use super::{Database, Size, UnifiedEnvironmentSettings};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::aws::rds;
use crate::models::{SIBLING, SecretKeyRef, sql};
use crate::observe::{NameRule, Observed, SecretName};
use crate::offers::{Offered, Prices};

const DATABASE: &str = "postgres-db";
const ROLE: &str = "postgres-role";
const GRANT: &str = "postgres-grant";
const SCHEMA_GRANT: &str = "postgres-schema-grant";
const INSTANCE: &str = "postgres-instance";

/// provider-sql knows a password only when it creates the role.
const LOST_PASSWORD: &str = "its Secret has no password, and provider-sql writes one only once: restore the Secret from a copy";

/// Name of database and user on a dedicated server.
const OWN: &str = "app";

/// The backend's information about its database.
pub(super) struct Connection {
    /// The slot of the database, or of its own server.
    slot: &'static str,
    /// The database's name.
    pub name: String,
    /// The key of the Secret with only the host.
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

    /// All connection details except the password, with the environment's uid.
    pub fn way(&self, uid: &str) -> String {
        let text = |value: &Option<Vec<u8>>| {
            value.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned()
        };
        let host = self.host.as_deref().unwrap_or_default();
        [uid, host, &text(&self.port), &text(&self.username)].join("\n")
    }

    /// Protects a database from its deletion as long as `client` exists, because PostgreSQL drops no
    /// database with connections. RDS deletes a server with connections.
    pub fn outlives(&self, client: &str, cx: &mut Composer<'_>) -> Result<(), Error> {
        if self.slot == DATABASE {
            cx.usage(DATABASE, client)
        } else {
            cx.keep_usage(self.slot, client)
        }
    }

    /// The password, once all connection details were observed.
    pub fn credentials(&self) -> Option<&[u8]> {
        let whole = self.host.is_some() && self.port.is_some() && self.username.is_some();
        self.password.as_deref().filter(|_| whole)
    }
}

impl Database {
    /// Composes the database in the mode of Settings. An existing database keeps its mode.
    pub(super) fn compose(
        &self,
        place: &Place,
        region: &str,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composer<'_>,
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

    /// Database and role have the same name, unique on the server. It begins with the XR's name and
    /// ends with a part of its uid. Its hyphens need quotes in SQL, which the provider adds. A
    /// connection URL needs no escapes for them.
    fn shared(&self, place: &Place, cx: &mut Composer<'_>) -> Result<Connection, Error> {
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
        // PostgreSQL drops no role that owns objects in a database.
        cx.usage(ROLE, DATABASE)?;
        keep_namespace_usage(ROLE, cx)?;
        cx.keep_usage(DATABASE, GRANT)?;
        cx.keep_usage(DATABASE, SCHEMA_GRANT)?;
        let name = cx.external_name(DATABASE).unwrap_or(name);
        Ok(Connection::new(DATABASE, name, "endpoint", &role))
    }

    /// Private and encrypted. A deletion keeps a final snapshot, unless Settings disable it. A
    /// change of size restarts the server at once. Otherwise the provider would repeat the request
    /// until a maintenance window. The disk keeps its first size, or the size that AWS gave it
    /// later.
    fn instance(
        &self,
        place: &Place,
        region: &str,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Connection, Error> {
        let name = cx.xr.cloud_name(NameRule::dns(63));
        // Subnets and security groups apply at creation only, so an existing server needs no
        // lookup.
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
        keep_namespace_usage(INSTANCE, cx)?;
        Ok(Connection::new(INSTANCE, OWN.to_owned(), "address", &server))
    }
}

/// Grants the role access to its database, and revokes the access of other roles. By default,
/// PostgreSQL allows all roles of the server. The role may create tables in the schema that every
/// database has.
///
/// The privileges are deleted with the database, so they are not revoked. provider-sql would revoke
/// them inside the database. If the database was deleted first, before a Usage protected it, the
/// grant would wait for it permanently.
fn grants(cx: &mut Composer<'_>) -> Result<(), Error> {
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

/// The Secret of the password, beside the Secret with all connection details.
fn password(secret: &SecretName, cx: &Composer<'_>) -> SecretKeyRef {
    SecretKeyRef {
        name: format!("{}-password", secret.name),
        namespace: cx.xr.namespace.is_none().then(|| secret.namespace.clone()),
        key: "password".to_owned(),
    }
}

impl Size {
    /// Maximum number of connections on a shared server.
    fn connections(self) -> i64 {
        match self {
            Self::Small => 20,
            Self::Medium => 50,
            Self::Large => 200,
        }
    }

    /// The size with the database and the backend that Settings give it.
    pub(super) fn offered(
        self,
        settings: &UnifiedEnvironmentSettings,
        prices: Prices<'_>,
    ) -> Offered {
        let (cpu, memory) = settings.amounts(self);
        let (machine, _) = self.machine();
        let (database, price) = match settings.database.mode {
            Mode::Shared => {
                let name = format!("shared-database-{}", self.name());
                (format!("{} connections", self.connections()), name)
            }
            Mode::Rds => (machine.to_owned(), machine.to_owned()),
        };
        let description = format!("{database}; backend with {cpu} CPU and {memory}");
        Offered {
            hourly_usd: prices.of(&price, &settings.region),
            ..Offered::described(self.name(), description)
        }
    }

    /// Machine type, and disk in GiB, of a dedicated server.
    fn machine(self) -> (&'static str, i64) {
        match self {
            Self::Small => ("db.t4g.micro", 20),
            Self::Medium => ("db.t4g.medium", 50),
            Self::Large => ("db.m7g.large", 100),
        }
    }
}
