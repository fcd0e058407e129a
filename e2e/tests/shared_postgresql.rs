//! The statements that provider-sql 0.16 issues for an environment, on real PostgreSQL servers, with
//! an administrator without the rights of a superuser.
//!
//! The servers are Debian's version and the newest one that a package ships. The test is skipped if
//! PostgreSQL is not installed.
#![allow(clippy::unwrap_used)]

use e2e::control_plane::postgres::{Postgres, session};
use tokio_postgres::Client;

const ADMINISTRATOR: &str = "crossplane";
/// The name of an environment's role and database. It needs quotes.
const NAME: &str = "shop-1f53a";

/// A server with an administrator.
struct Server {
    postgres: Postgres,
    password: String,
    _logs: tempfile::TempDir,
}

impl Server {
    /// Debian's version. None if it is not installed.
    async fn installed() -> Option<Self> {
        let logs = tempfile::tempdir().unwrap();
        match Postgres::start(logs.path()).await {
            Ok(postgres) => Some(Self::with(postgres, logs).await),
            Err(error) => {
                eprintln!("skipped: {error:#}");
                None
            }
        }
    }

    async fn newest() -> Self {
        let logs = tempfile::tempdir().unwrap();
        Self::with(Postgres::newest(logs.path()).await.unwrap(), logs).await
    }

    async fn with(postgres: Postgres, logs: tempfile::TempDir) -> Self {
        let password = postgres.administrator(ADMINISTRATOR).await.unwrap();
        Self { postgres, password, _logs: logs }
    }

    /// The administrator's session in a database.
    async fn administrator(&self, database: &str) -> Client {
        self.login(ADMINISTRATOR, &self.password, database).await
    }

    async fn login(&self, user: &str, password: &str, database: &str) -> Client {
        let url = self.postgres.url_of(user, password);
        session(&format!("{url}/{database}")).await.unwrap()
    }

    async fn version(&self) -> u32 {
        let row = self.postgres.superuser("postgres").await.unwrap();
        let row = row.query_one("SHOW server_version_num", &[]).await.unwrap();
        row.get::<_, String>(0).parse::<u32>().unwrap() / 10_000
    }

    /// Creates the role, the database and the grants of an environment.
    async fn create(&self) {
        let server = self.administrator("postgres").await;
        for statement in [
            format!("CREATE DATABASE \"{NAME}\""),
            format!("CREATE ROLE \"{NAME}\" PASSWORD 'secret' LOGIN"),
            format!("ALTER ROLE \"{NAME}\" CONNECTION LIMIT 20"),
        ] {
            run(&server, &statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let database = self.administrator(NAME).await;
        for statement in [
            format!(
                "REVOKE CONNECT,CREATE,TEMPORARY ON DATABASE \"{NAME}\" FROM \"{NAME}\"; \
                 GRANT CONNECT,CREATE,TEMPORARY ON DATABASE \"{NAME}\" TO \"{NAME}\"; \
                 REVOKE ALL ON DATABASE \"{NAME}\" FROM PUBLIC"
            ),
            format!(
                "REVOKE CREATE,USAGE ON SCHEMA \"public\" FROM \"{NAME}\"; \
                 GRANT CREATE,USAGE ON SCHEMA \"public\" TO \"{NAME}\""
            ),
        ] {
            run(&database, &statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// Creates a table as the environment's role.
    async fn use_database(&self) {
        let tenant = self.login(NAME, "secret", NAME).await;
        run(&tenant, "CREATE TABLE orders (id int); INSERT INTO orders VALUES (1)").await.unwrap();
    }

    async fn alter(&self) -> Result<(), String> {
        let server = self.administrator("postgres").await;
        run(&server, &format!("ALTER ROLE \"{NAME}\" CONNECTION LIMIT 50")).await
    }

    async fn drop_database(&self) -> Result<(), String> {
        let server = self.administrator("postgres").await;
        run(&server, &format!("DROP DATABASE IF EXISTS \"{NAME}\"")).await
    }

    async fn drop_role(&self) -> Result<(), String> {
        let server = self.administrator("postgres").await;
        run(&server, &format!("DROP ROLE IF EXISTS \"{NAME}\"")).await
    }

    /// Runs the statements that the guide's query prints, and returns them.
    async fn repair(&self) -> Vec<String> {
        let statements = self.postgres.missing_rights(ADMINISTRATOR).await.unwrap();
        let superuser = self.postgres.superuser("postgres").await.unwrap();
        for statement in &statements {
            run(&superuser, statement).await.unwrap();
        }
        statements
    }

    async fn deletes_everything(&self) {
        self.drop_database().await.unwrap();
        self.drop_role().await.unwrap();
        assert!(!self.postgres.names().await.unwrap().contains(NAME));
    }
}

/// Runs a statement. The error is the server's message.
async fn run(client: &Client, statement: &str) -> Result<(), String> {
    let done = client.batch_execute(statement).await;
    done.map_err(|error| {
        error.as_db_error().map_or(error.to_string(), |said| said.message().into())
    })
}

/// The statement with which a superuser repairs the role.
fn grant() -> String {
    format!("GRANT \"{NAME}\" TO {ADMINISTRATOR} WITH ADMIN OPTION;")
}

async fn create_use_and_delete(server: &Server) {
    server.create().await;
    server.use_database().await;
    server.alter().await.unwrap();
    server.deletes_everything().await;
}

#[tokio::test]
async fn administrator_without_superuser_creates_uses_and_deletes_on_the_installed_version() {
    let Some(server) = Server::installed().await else { return };
    create_use_and_delete(&server).await;
}

#[tokio::test]
async fn administrator_without_superuser_creates_uses_and_deletes_on_the_newest_version() {
    let server = Server::newest().await;
    assert_eq!(server.version().await, 18);
    create_use_and_delete(&server).await;
}

/// A server of version 15 with an environment, if that version is installed.
async fn version_15() -> Option<Server> {
    let server = Server::installed().await?;
    if server.version().await != 15 {
        eprintln!("skipped: PostgreSQL 15 is not installed");
        return None;
    }
    server.create().await;
    server.use_database().await;
    Some(server)
}

/// The newest version with all databases and roles of a server.
async fn moved(from: &Server) -> Server {
    let logs = tempfile::tempdir().unwrap();
    let mut postgres = Postgres::newest(logs.path()).await.unwrap();
    from.postgres.move_to(&mut postgres).await.unwrap();
    Server { postgres, password: from.password.clone(), _logs: logs }
}

#[tokio::test]
async fn role_after_a_move_obeys_after_the_documented_statements() {
    let Some(old) = version_15().await else { return };
    let new = moved(&old).await;
    assert_eq!(new.alter().await.unwrap_err(), "permission denied to alter role");
    assert_eq!(new.repair().await, [grant()]);
    new.alter().await.unwrap();
    assert_eq!(new.repair().await, Vec::<String>::new());
    new.deletes_everything().await;
}

#[tokio::test]
async fn deletion_after_a_move_ends_after_the_documented_statement() {
    let Some(old) = version_15().await else { return };
    let new = moved(&old).await;
    new.drop_database().await.unwrap();
    assert_eq!(new.drop_role().await.unwrap_err(), "permission denied to drop role");
    // The query finds roles by their databases.
    assert_eq!(new.repair().await, Vec::<String>::new());
    let superuser = new.postgres.superuser("postgres").await.unwrap();
    run(&superuser, &grant()).await.unwrap();
    new.deletes_everything().await;
}

#[tokio::test]
async fn statements_before_a_move_prevent_the_refusal() {
    let Some(old) = version_15().await else { return };
    assert_eq!(old.repair().await, [grant()]);
    let new = moved(&old).await;
    new.alter().await.unwrap();
    new.deletes_everything().await;
}

/// The second login needs the rights of the first one, and no right on each role.
async fn second_administrator_obeys_after_one_statement(server: Server) {
    server.create().await;
    server.use_database().await;
    let password = server.postgres.administrator("second").await.unwrap();
    let refused = server.as_second(&password).await;
    let version = server.version().await;
    let expected =
        if version >= 16 { Err("permission denied to alter role".into()) } else { Ok(()) };
    assert_eq!(refused.0, expected);
    assert_eq!(refused.1, Err(format!("must be owner of database {NAME}")));
    let superuser = server.postgres.superuser("postgres").await.unwrap();
    run(&superuser, &format!("GRANT \"{ADMINISTRATOR}\" TO \"second\"")).await.unwrap();
    assert_eq!(server.as_second(&password).await, (Ok(()), Ok(())));
    let second = server.login("second", &password, "postgres").await;
    run(&second, &format!("DROP ROLE \"{NAME}\"")).await.unwrap();
    assert!(!server.postgres.names().await.unwrap().contains(NAME));
}

impl Server {
    /// The errors of a login named `second` for an ALTER ROLE and for a DROP DATABASE.
    async fn as_second(&self, password: &str) -> (Result<(), String>, Result<(), String>) {
        let second = self.login("second", password, "postgres").await;
        let alter = run(&second, &format!("ALTER ROLE \"{NAME}\" CONNECTION LIMIT 50")).await;
        (alter, run(&second, &format!("DROP DATABASE \"{NAME}\"")).await)
    }
}

#[tokio::test]
async fn second_administrator_of_the_installed_version_needs_the_rights_of_the_first() {
    let Some(server) = Server::installed().await else { return };
    second_administrator_obeys_after_one_statement(server).await;
}

#[tokio::test]
async fn second_administrator_of_the_newest_version_needs_the_rights_of_the_first() {
    second_administrator_obeys_after_one_statement(Server::newest().await).await;
}

/// The superuser, the administrator itself and roles of others must never be granted.
#[tokio::test]
async fn query_finds_only_roles_of_environments() {
    let server = Server::newest().await;
    server.create().await;
    let superuser = server.postgres.superuser("postgres").await.unwrap();
    for statement in [
        "CREATE ROLE reporting",
        "CREATE ROLE other LOGIN",
        "CREATE DATABASE other",
        "CREATE ROLE root SUPERUSER",
        "CREATE DATABASE root OWNER crossplane",
        "CREATE DATABASE crossplane OWNER crossplane",
        &format!("REVOKE \"{NAME}\" FROM {ADMINISTRATOR}"),
    ] {
        run(&superuser, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    assert_eq!(server.alter().await.unwrap_err(), "permission denied to alter role");
    assert_eq!(server.repair().await, [grant()]);
    server.alter().await.unwrap();
}
