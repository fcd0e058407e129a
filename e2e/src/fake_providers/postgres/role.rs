//! Roles, and the Secrets with their credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::Trouble;
use super::super::reconcile::Observation;
use super::super::resource::{Resource, text};
use super::super::secrets::connection_ref;
use super::{MAINTENANCE, Postgres, literal, param, quoted};

/// A role's privileges in Kubernetes and in SQL.
const PRIVILEGES: [(&str, &str); 7] = [
    ("superUser", "SUPERUSER"),
    ("inherit", "INHERIT"),
    ("createDb", "CREATEDB"),
    ("createRole", "CREATEROLE"),
    ("login", "LOGIN"),
    ("replication", "REPLICATION"),
    ("bypassRls", "BYPASSRLS"),
];

impl Postgres {
    /// A role is always outdated, because provider-sql alters it at every check.
    pub(super) async fn observe_role(
        &self,
        resource: &mut Resource,
    ) -> Result<Observation, Trouble> {
        let session = self.session(MAINTENANCE).await?;
        let query = "SELECT 1 FROM pg_roles WHERE rolname = $1";
        if session.row(query, &[&resource.external_name()]).await?.is_none() {
            return Ok(Observation::Missing);
        }
        if !resource.is_deleted() {
            // A copy of the world, because only the creation knows the password.
            let mut aside = resource.world.clone();
            resource.model.finish(&mut resource.object, &mut aside);
        }
        Ok(Observation::Made { outdated: true })
    }

    /// The connection limit comes with the first update.
    pub(super) async fn create_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let password = given(resource).unwrap_or_else(|| resource.uid().as_bytes().to_vec());
        self.hand_out(resource, &password);
        let mut words = privileges(resource);
        words.push(format!("PASSWORD {}", literal(&String::from_utf8_lossy(&password))));
        self.write_role("CREATE", resource, &words).await
    }

    pub(super) async fn update_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let mut words = privileges(resource);
        let limit = param(resource, "connectionLimit").as_i64();
        words.extend(limit.map(|limit| format!("CONNECTION LIMIT {limit}")));
        let password = given(resource);
        words.extend(
            password.map(|new| format!("PASSWORD {}", literal(&String::from_utf8_lossy(&new)))),
        );
        if words.is_empty() {
            return Ok(());
        }
        self.write_role("ALTER", resource, &words).await
    }

    async fn write_role(
        &self,
        verb: &str,
        resource: &Resource,
        words: &[String],
    ) -> Result<(), Trouble> {
        let statement =
            format!("{verb} ROLE {} {}", quoted(resource.external_name()), words.join(" "));
        self.session(MAINTENANCE).await?.run(&statement).await
    }

    pub(super) async fn delete_role(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let statement = format!("DROP ROLE IF EXISTS {}", quoted(resource.external_name()));
        self.session(MAINTENANCE).await?.run(&statement).await
    }

    /// Writes the credentials into the world's Secret.
    fn hand_out(&self, resource: &mut Resource, password: &[u8]) {
        resource.model.finish(&mut resource.object, &mut resource.world);
        let place = connection_ref(&resource.object);
        let secret =
            place.and_then(|(namespace, name)| resource.world.secret(&namespace, &name).cloned());
        if let Some(mut secret) = secret {
            secret["data"]["username"] = json!(STANDARD.encode(resource.external_name()));
            secret["data"]["endpoint"] = json!(STANDARD.encode(&self.endpoint));
            secret["data"]["port"] = json!(STANDARD.encode(self.port.to_string()));
            secret["data"]["password"] = json!(STANDARD.encode(password));
            resource.world.put_secret(secret);
        }
    }
}

/// The privileges in SQL.
fn privileges(resource: &Resource) -> Vec<String> {
    let wanted = param(resource, "privileges");
    let word = |(field, word): &(&str, &str)| {
        wanted[field]
            .as_bool()
            .map(|yes| if yes { (*word).to_owned() } else { format!("NO{word}") })
    };
    PRIVILEGES.iter().filter_map(word).collect()
}

/// The password that `passwordSecretRef` names.
fn given(resource: &Resource) -> Option<Vec<u8>> {
    let reference: &Value = param(resource, "passwordSecretRef");
    let own = Some(resource.text("/metadata/namespace")).filter(|own| !own.is_empty());
    let namespace = own.unwrap_or_else(|| text(reference, "/namespace"));
    resource.world.secret_data(namespace, text(reference, "/name")).remove(text(reference, "/key"))
}
