//! Roles, and the Secrets with their credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::Trouble;
use super::super::reconcile::Seen;
use super::super::resource::{Resource, text};
use super::super::secrets::connection_ref;
use super::{MAINTENANCE, Postgres, literal, param, quoted};

/// A role's privileges in Kubernetes, in SQL, and in the server's catalogue.
const PRIVILEGES: [(&str, &str, &str); 7] = [
    ("superUser", "SUPERUSER", "rolsuper"),
    ("inherit", "INHERIT", "rolinherit"),
    ("createDb", "CREATEDB", "rolcreatedb"),
    ("createRole", "CREATEROLE", "rolcreaterole"),
    ("login", "LOGIN", "rolcanlogin"),
    ("replication", "REPLICATION", "rolreplication"),
    ("bypassRls", "BYPASSRLS", "rolbypassrls"),
];

impl Postgres {
    pub(super) async fn observe_role(&self, resource: &mut Resource) -> Result<Seen, Trouble> {
        let columns = PRIVILEGES.map(|(_, _, column)| column).join(", ");
        let query = format!("SELECT rolconnlimit, {columns} FROM pg_roles WHERE rolname = $1");
        let session = self.session(MAINTENANCE).await?;
        let Some(row) = session.row(&query, &[&resource.external_name()]).await? else {
            return Ok(Seen::Missing);
        };
        let limit = param(resource, "connectionLimit").as_i64();
        let limited = limit.is_some_and(|limit| limit != i64::from(row.get::<_, i32>(0)));
        let wanted = param(resource, "privileges");
        let differs = |(field, _, column): &(&str, &str, &str)| {
            wanted[field].as_bool().is_some_and(|wanted| wanted != row.get::<_, bool>(column))
        };
        let place = connection_ref(&resource.object);
        let known =
            place.map(|(namespace, name)| resource.world.secret_data(&namespace, &name).remove("password"));
        // Nobody can read a password from a server: where the Secret has none, the role gets a new one.
        let unknown = known
            .is_some_and(|known| known.is_none() || given(resource).is_some_and(|new| Some(new) != known));
        let outdated = limited || PRIVILEGES.iter().any(differs) || unknown;
        if !resource.is_deleted() {
            self.hand_out(resource);
        }
        Ok(Seen::Made { outdated })
    }

    pub(super) async fn create_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        self.write_role("CREATE", resource).await
    }

    pub(super) async fn update_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        self.write_role("ALTER", resource).await
    }

    async fn write_role(&self, verb: &str, resource: &mut Resource) -> Result<(), Trouble> {
        let password = self.hand_out(resource);
        let wanted = param(resource, "privileges");
        let privileges = PRIVILEGES.iter().filter_map(|(field, word, _)| {
            wanted[field].as_bool().map(|yes| if yes { (*word).to_owned() } else { format!("NO{word}") })
        });
        let limit =
            param(resource, "connectionLimit").as_i64().map(|limit| format!("CONNECTION LIMIT {limit}"));
        let words: Vec<String> = privileges.chain(limit).collect();
        let (name, words) = (quoted(resource.external_name()), words.join(" "));
        let statement = format!("{verb} ROLE {name} {words} PASSWORD {}", literal(&password));
        self.session(MAINTENANCE).await?.run(&statement).await
    }

    pub(super) async fn delete_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let statement = format!("DROP ROLE IF EXISTS {}", quoted(resource.external_name()));
        self.session(MAINTENANCE).await?.run(&statement).await
    }

    /// Writes the credentials into the world's Secret, and says the password: the one that was given, or one made up.
    fn hand_out(&self, resource: &mut Resource) -> String {
        resource.model.finish(&mut resource.object, &mut resource.world);
        let place = connection_ref(&resource.object);
        let details = place.as_ref().map(|(namespace, name)| resource.world.secret_data(namespace, name));
        let made_up = details.and_then(|mut details| details.remove("password"));
        let password = given(resource).or(made_up).unwrap_or_else(|| resource.uid().as_bytes().to_vec());
        let secret = place.and_then(|(namespace, name)| resource.world.secret(&namespace, &name).cloned());
        if let Some(mut secret) = secret {
            secret["data"]["endpoint"] = json!(STANDARD.encode(&self.endpoint));
            secret["data"]["port"] = json!(STANDARD.encode(self.port.to_string()));
            secret["data"]["password"] = json!(STANDARD.encode(&password));
            resource.world.put_secret(secret);
        }
        String::from_utf8_lossy(&password).into_owned()
    }
}

/// The password that `passwordSecretRef` names.
fn given(resource: &Resource) -> Option<Vec<u8>> {
    let reference: &Value = param(resource, "passwordSecretRef");
    let own = Some(resource.text("/metadata/namespace")).filter(|own| !own.is_empty());
    let namespace = own.unwrap_or_else(|| text(reference, "/namespace"));
    resource.world.secret_data(namespace, text(reference, "/name")).remove(text(reference, "/key"))
}
