//! Databases.

use serde_json::json;

use super::super::Trouble;
use super::super::reconcile::Observation;
use super::super::resource::Resource;
use super::{MAINTENANCE, Postgres, literal, param, quoted};

impl Postgres {
    pub(super) async fn observe_database(
        &self,
        resource: &mut Resource,
    ) -> Result<Observation, Trouble> {
        let query = "SELECT pg_get_userbyid(datdba)::text AS owner, pg_encoding_to_char(encoding)::text AS encoding, \
                     datcollate::text, datctype::text, datistemplate, spcname::text AS tablespace, \
                     datconnlimit, datallowconn FROM pg_database \
                     JOIN pg_tablespace AS space ON space.oid = dattablespace WHERE datname = $1";
        let session = self.session(MAINTENANCE).await?;
        let Some(row) = session.row(query, &[&resource.external_name()]).await? else {
            return Ok(Observation::Missing);
        };
        let owner: String = row.get("owner");
        let limit: i32 = row.get("datconnlimit");
        let open: bool = row.get("datallowconn");
        let outdated = param(resource, "owner").as_str().is_some_and(|wanted| wanted != owner)
            || param(resource, "connectionLimit")
                .as_i64()
                .is_some_and(|wanted| wanted != i64::from(limit))
            || param(resource, "allowConnections").as_bool().is_some_and(|wanted| wanted != open);
        if !resource.is_deleted() {
            // The server's values, because the model has only examples.
            resource.initialise_late([
                ("owner", json!(owner)),
                ("encoding", json!(row.get::<_, String>("encoding"))),
                ("lcCollate", json!(row.get::<_, String>("datcollate"))),
                ("lcCType", json!(row.get::<_, String>("datctype"))),
                ("isTemplate", json!(row.get::<_, bool>("datistemplate"))),
                ("tablespace", json!(row.get::<_, String>("tablespace"))),
                ("connectionLimit", json!(limit)),
                ("allowConnections", json!(open)),
            ]);
        }
        Ok(Observation::Made { outdated })
    }

    pub(super) async fn create_database(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let named = [("owner", "OWNER"), ("template", "TEMPLATE"), ("tablespace", "TABLESPACE")];
        let named = named.iter().filter_map(|(field, word)| {
            param(resource, field).as_str().map(|name| format!("{word} {}", quoted(name)))
        });
        let encoding =
            param(resource, "encoding").as_str().map(|name| format!("ENCODING {}", literal(name)));
        let name = quoted(resource.external_name());
        let words: Vec<String> = named.chain(encoding).chain(options(resource)).collect();
        self.session(MAINTENANCE)
            .await?
            .run(&format!("CREATE DATABASE {name} {}", words.join(" ")))
            .await
    }

    pub(super) async fn update_database(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let session = self.session(MAINTENANCE).await?;
        let name = quoted(resource.external_name());
        if let Some(owner) = param(resource, "owner").as_str() {
            session.run(&format!("ALTER DATABASE {name} OWNER TO {}", quoted(owner))).await?;
        }
        match options(resource).collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            options => session.run(&format!("ALTER DATABASE {name} {}", options.join(" "))).await,
        }
    }

    pub(super) async fn delete_database(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let statement = format!("DROP DATABASE IF EXISTS {}", quoted(resource.external_name()));
        self.session(MAINTENANCE).await?.run(&statement).await
    }
}

fn options(resource: &Resource) -> impl Iterator<Item = String> {
    let limit = param(resource, "connectionLimit")
        .as_i64()
        .map(|limit| format!("CONNECTION LIMIT {limit}"));
    let open = param(resource, "allowConnections")
        .as_bool()
        .map(|open| format!("ALLOW_CONNECTIONS {open}"));
    limit.into_iter().chain(open)
}
