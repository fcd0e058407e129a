//! PostgreSQL's kinds, on a real server.

use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls};

use super::bench::{Bench, Composite, until};
use super::sibling;

const SQL: &str = "postgresql.sql.crossplane.io/v1alpha1";

/// The Role, the Database and the Grants that an app needs.
async fn app(composite: &Composite<'_>) -> [Value; 4] {
    let both = |more: Value| {
        let mut params = json!({"roleSelector": sibling(), "databaseSelector": sibling()});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let mut role = composite.resource(
        SQL,
        "Role",
        "role",
        json!({"privileges": {"login": true}, "connectionLimit": 3}),
    );
    role["spec"]["writeConnectionSecretToRef"] =
        json!({"name": composite.name, "namespace": "default"});
    let on_database =
        both(json!({"privileges": ["CONNECT", "TEMPORARY"], "revokePublicOnDb": true}));
    let on_schema = both(json!({"privileges": ["USAGE", "CREATE"], "schema": "public"}));
    [
        composite.make(composite.resource(SQL, "Grant", "schema-grant", on_schema)).await,
        composite.make(composite.resource(SQL, "Grant", "grant", on_database)).await,
        composite.make(composite.resource(SQL, "Database", "db", json!({}))).await,
        composite.make(role).await,
    ]
}

/// Connects with the credentials in the Secret.
async fn connect(bench: &Bench, composite: &str) -> Result<Client, tokio_postgres::Error> {
    use base64::Engine as _;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": composite, "namespace": "default"}});
    let secret = bench.get(&secret).await;
    let part = |key: &str| {
        let encoded = secret["data"][key].as_str().unwrap_or_default();
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded).unwrap())
            .unwrap()
    };
    let mut config = tokio_postgres::Config::new();
    config.host(part("endpoint")).port(part("port").parse().unwrap());
    config.user(part("username")).password(part("password")).dbname(format!("{composite}-db"));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn superuser(bench: &Bench) -> Client {
    let url = bench.postgres.as_ref().unwrap().url();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub async fn an_app_gets_a_database_of_its_own(bench: &Bench) {
    let composite = bench.composite("sql-app").await;
    let [schema_grant, grant, database, role] = app(&composite).await;
    for resource in [&role, &database, &grant, &schema_grant] {
        bench.ready(resource).await;
    }
    assert_eq!(
        bench.get(&database).await["spec"]["forProvider"]["encoding"],
        "UTF8",
        "late initialisation"
    );
    let client = connect(bench, "sql-app").await.unwrap();
    client.batch_execute("CREATE TABLE mine (id int); DROP TABLE mine").await.unwrap();
    drop(client);
    let limit = "SELECT rolconnlimit FROM pg_roles WHERE rolname = 'sql-app-role'";
    let server = superuser(bench).await;
    assert_eq!(server.query_one(limit, &[]).await.unwrap().get::<_, i32>(0), 3);
    bench.patch(&role, json!({"spec": {"forProvider": {"connectionLimit": 5}}})).await;
    until("the new limit", || async {
        let found: i32 = server.query_one(limit, &[]).await.unwrap().get(0);
        if found == 5 { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
    // A stranger has no access, because the default rights on a new database were revoked.
    server.batch_execute("CREATE ROLE stranger LOGIN PASSWORD 'stranger'").await.unwrap();
    let port = bench.postgres.as_ref().unwrap().port;
    let stranger = format!("postgres://stranger:stranger@127.0.0.1:{port}/sql-app-db");
    assert!(tokio_postgres::connect(&stranger, NoTls).await.is_err());

    for resource in [&schema_grant, &grant, &database, &role] {
        bench.delete(resource).await;
        bench.gone(resource).await;
    }
    let left = "SELECT count(*) FROM pg_roles FULL JOIN pg_database ON false WHERE rolname LIKE 'sql-app%' OR datname LIKE 'sql-app%'";
    assert_eq!(server.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

pub async fn database_in_use_cannot_be_dropped(bench: &Bench) {
    let composite = bench.composite("sql-used").await;
    let [schema_grant, grant, database, role] = app(&composite).await;
    for resource in [&role, &database, &grant, &schema_grant] {
        bench.ready(resource).await;
    }
    let client = connect(bench, "sql-used").await.unwrap();
    client.batch_execute("CREATE TABLE kept (id int)").await.unwrap();
    for resource in [&schema_grant, &grant] {
        bench.delete(resource).await;
        bench.gone(resource).await;
    }
    bench.delete(&database).await;
    bench.told(&database, "Synced", "False", "is being accessed by other users").await;
    bench.delete(&role).await;
    bench
        .told(&role, "Synced", "False", "cannot be dropped because some objects depend on it")
        .await;
    drop(client);
    bench.gone(&database).await;
    bench.gone(&role).await;
}

pub async fn a_grant_hangs_without_its_database(bench: &Bench) {
    let composite = bench.composite("sql-hung").await;
    let [schema_grant, grant, database, role] = app(&composite).await;
    for resource in [&role, &database, &grant, &schema_grant] {
        bench.ready(resource).await;
    }
    // Polls of a grant connect to its database for a moment.
    bench.delete(&database).await;
    bench.gone(&database).await;
    bench.delete(&grant).await;
    bench
        .told(
            &grant,
            "Synced",
            "False",
            r#"observe failed: cannot select grant: pq: database "sql-hung-db" does not exist (3D000)"#,
        )
        .await;
    bench.patch(&grant, json!({"metadata": {"finalizers": null}})).await;
    bench.gone(&grant).await;
}
