//! Somebody who has an environment's connection details, and nothing else.

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use tokio_postgres::{Client, Config, NoTls};

/// Somebody who works in a database. Dropped, they have left.
pub(in crate::scenarios) struct DbClient {
    _session: Client,
}

impl DbClient {
    /// Logs in with what a Secret says, and makes something there that is their own.
    pub(in crate::scenarios) async fn with(secret: &Value) -> Result<Self> {
        let text = |key: &str| text(secret, key);
        let mut config = Config::new();
        config.host(text("endpoint")?).port(text("port")?.parse()?).dbname(text("database")?);
        config.user(text("username")?).password(text("password")?);
        let (session, connection) =
            config.connect(NoTls).await.context("the connection details let nobody in")?;
        // It ends with the session.
        tokio::spawn(connection);
        let table = "CREATE TABLE IF NOT EXISTS orders (id int); INSERT INTO orders VALUES (1)";
        session.batch_execute(table).await.context("nobody can make a table in their database")?;
        Ok(Self { _session: session })
    }
}

/// What a Secret has under a key.
pub(super) fn text(secret: &Value, key: &str) -> Result<String> {
    let data = secret["data"][key].as_str().with_context(|| format!("the Secret has no {key}"))?;
    String::from_utf8(BASE64_STANDARD.decode(data)?).with_context(|| format!("{key} is no text"))
}
