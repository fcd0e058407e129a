//! provider-sql with PostgreSQL: a real server, with its own refusals.

mod database;
mod grant;
mod role;

use serde_json::Value;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};

use super::reconcile::{Observation, Outside};
use super::resource::Resource;
use super::{Rule, Trouble};

/// The database that every server has.
const MAINTENANCE: &str = "postgres";

/// A PostgreSQL server, with its superuser.
pub struct Postgres {
    config: Config,
    /// The host at which clients reach it.
    endpoint: String,
    port: u16,
}

impl Postgres {
    /// The server of a connection string, for example
    /// `postgres://postgres:password@127.0.0.1:5432`.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        use tokio_postgres::config::Host;
        let config: Config = url.parse()?;
        let endpoint = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => anyhow::bail!(
                "the PostgreSQL server must be given by host and port, as in postgres://user:password@127.0.0.1:5432"
            ),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Ok(Self { config, endpoint, port })
    }

    /// A session in a database, which ends when it is dropped.
    async fn session(&self, database: &str) -> Result<Session, Trouble> {
        let mut config = self.config.clone();
        config.dbname(database).application_name("provider-sql");
        let (client, connection) = config.connect(NoTls).await.map_err(|error| refused(&error))?;
        tokio::spawn(connection);
        Ok(Session(client))
    }
}

impl Outside for Postgres {
    async fn observe(&self, resource: &mut Resource) -> Result<Observation, Trouble> {
        match resource.text("/kind") {
            "Role" => self.observe_role(resource).await.map_err(doing("cannot select role")),
            "Database" => {
                self.observe_database(resource).await.map_err(doing("cannot select database"))
            }
            _ => self.observe_grant(resource).await.map_err(doing("cannot select grant")),
        }
    }

    async fn create(&self, resource: &mut Resource, _: &Rule) -> Result<(), Trouble> {
        match resource.text("/kind") {
            "Role" => self.create_role(resource).await.map_err(doing("cannot create role")),
            "Database" => {
                self.create_database(resource).await.map_err(doing("cannot create database"))
            }
            _ => self.create_grant(resource).await.map_err(doing("cannot create grant")),
        }
    }

    async fn update(&self, resource: &mut Resource, _: &Rule) -> Result<(), Trouble> {
        match resource.text("/kind") {
            "Role" => self.update_role(resource).await.map_err(doing("cannot update role")),
            "Database" => {
                self.update_database(resource).await.map_err(doing("cannot alter database"))
            }
            // A Grant that differs from its spec is created again instead.
            _ => Ok(()),
        }
    }

    async fn delete(&self, resource: &mut Resource, _: &Rule) -> Result<(), Trouble> {
        match resource.text("/kind") {
            "Role" => self.delete_role(resource).await.map_err(doing("cannot drop role")),
            "Database" => {
                self.delete_database(resource).await.map_err(doing("cannot drop database"))
            }
            _ => self.delete_grant(resource).await.map_err(doing("cannot revoke grant")),
        }
    }
}

/// A connection to one database.
struct Session(Client);

impl Session {
    /// Runs statements. Several statements are one transaction.
    async fn run(&self, statements: &str) -> Result<(), Trouble> {
        self.0.batch_execute(statements).await.map_err(|error| refused(&error))
    }

    async fn row(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Trouble> {
        self.0.query_opt(query, values).await.map_err(|error| refused(&error))
    }
}

/// A field of `spec.forProvider`.
fn param<'a>(resource: &'a Resource, field: &str) -> &'a Value {
    &resource.object["spec"]["forProvider"][field]
}

/// A name, quoted for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text, quoted for SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The server's message and its code, as Go's driver formats them.
fn refused(error: &tokio_postgres::Error) -> Trouble {
    let reported = error.as_db_error();
    let reported =
        reported.map(|reported| format!("pq: {} ({})", reported.message(), reported.code().code()));
    Trouble::Refused(reported.unwrap_or_else(|| error.to_string()))
}

fn doing(what: &'static str) -> impl Fn(Trouble) -> Trouble {
    move |trouble| match trouble {
        Trouble::Refused(why) => Trouble::Refused(format!("{what}: {why}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_leave_their_quotes() {
        assert_eq!(quoted(r#"a"; DROP ROLE x; --"#), r#""a""; DROP ROLE x; --""#);
        assert_eq!(literal("it's"), "'it''s'");
    }

    #[test]
    fn server_url_needs_host_and_port() {
        let server = Postgres::new("postgres://postgres:x@127.0.0.1:5433")
            .map_err(|error| error.to_string());
        assert_eq!(
            server.map(|server| (server.endpoint, server.port)),
            Ok(("127.0.0.1".to_owned(), 5433))
        );
        assert!(Postgres::new("postgres:///only").is_err());
    }
}
