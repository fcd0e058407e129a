//! Databases on a shared PostgreSQL server of the newest version, with the real provider-sql and an
//! administrator without the rights of a superuser.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use crossplane::names::EXTERNAL_NAME;
use function_paved_road::apis::Flavour;
use serde_json::{Value, json};

use super::claims::{self, DbClient};
use super::{in_each_flavour, portrayed};
use crate::control_plane::postgres::Postgres;
use crate::control_plane::providers::SQL_ADMINISTRATOR;
use crate::control_plane::{ControlPlane, Options};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::objects::{reference, resource};

const API: &str = "unified-environment";

/// The slot of the role on the server.
const ROLE: &str = "postgres-role";

/// The administrator lacks the ADMIN option on the roles that it created before a move from
/// PostgreSQL 15. The environment names the cause, and is ready again after the statements of the
/// guide. So does a deletion.
pub(super) async fn lost_admin_option_is_named_and_repaired(fixture: Fixture) -> Result<()> {
    let options = Options { real_sql: true, ..fixture.plane.beside() };
    let plane = ControlPlane::start(&options).await.context("a control plane with provider-sql")?;
    let own = Fixture::set(Arc::new(plane), "shared-database").await?.with_rights().await?;
    let played = in_each_flavour(&own, async |flavour| named_and_repaired(&own, flavour).await);
    portrayed(played.await, &own, "shared-database").await
}

async fn named_and_repaired(fixture: &Fixture, flavour: Flavour) -> Result<()> {
    let environment = fixture.ready(API, flavour, json!({})).await?;
    let secret = claims::connection_secret(fixture, API, flavour, &environment).await?;
    // The session ends at once, because the server does not drop a database in use.
    drop(DbClient::with(&secret.context("a unified environment has a Secret")?).await?);

    let role = environment.slot(ROLE).await?;
    let name = role["metadata"]["annotations"][EXTERNAL_NAME].as_str().context("no name")?;
    lose_admin_option(fixture, name).await?;
    environment.edit(&json!({"spec": {"database": {"size": "medium"}}})).await?;
    poke(fixture, &role).await?;
    environment.until("failed by its administrator", is_failed).await?;
    repair(fixture, name).await?;
    poke(fixture, &role).await?;
    environment.ready().await?;

    lose_admin_option(fixture, name).await?;
    environment.delete().await?;
    eventually("the server refuses to drop the role", async || {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        let found = fixture.objects.referred(&reference(&role), namespace).await?;
        let found = found.context("the role is gone although the administrator lost its rights")?;
        let refused = conditions::get(&found, "Synced")["message"].to_string();
        Ok(refused.contains("permission denied to drop role").then_some(()))
    })
    .await?;
    let grant = format!("GRANT \"{name}\" TO \"{SQL_ADMINISTRATOR}\" WITH ADMIN OPTION");
    superuser(fixture, &grant).await?;
    environment.gone().await?;
    let left = server(fixture)?.names().await?;
    ensure!(!left.contains(name), "the server still has {name}");
    Ok(())
}

/// Whether the cause of the role's failure is its administrator.
fn is_failed(environment: &Value) -> bool {
    let resources = environment["status"]["resources"].as_array();
    let is_role = |one: &&Value| one["slot"] == ROLE;
    let role = resources.into_iter().flatten().find(is_role);
    environment["status"]["phase"] == "Failed"
        && role.is_some_and(|role| role["cause"]["code"] == "DatabaseAdministrator")
}

/// Leaves the administrator without a membership in the role, as a dump and a restore of version 15
/// do.
async fn lose_admin_option(fixture: &Fixture, role: &str) -> Result<()> {
    superuser(fixture, &format!("REVOKE \"{role}\" FROM \"{SQL_ADMINISTRATOR}\"")).await
}

/// Runs the statements of the guide's query. Environments of other flavours may need some too.
async fn repair(fixture: &Fixture, role: &str) -> Result<()> {
    let statements = server(fixture)?.missing_rights(SQL_ADMINISTRATOR).await?;
    let is_listed = statements.iter().any(|statement| statement.contains(role));
    ensure!(is_listed, "the query does not find {role}: {statements:?}");
    for statement in &statements {
        superuser(fixture, statement).await?;
    }
    Ok(())
}

async fn superuser(fixture: &Fixture, statement: &str) -> Result<()> {
    let session = server(fixture)?.superuser("postgres").await?;
    session.batch_execute(statement).await.with_context(|| statement.to_owned())
}

fn server(fixture: &Fixture) -> Result<&Postgres> {
    fixture.plane.postgres.as_ref().context("the control plane has no PostgreSQL server")
}

/// Makes provider-sql look at a role now instead of in ten minutes.
async fn poke(fixture: &Fixture, role: &Value) -> Result<()> {
    let kind = resource(role);
    let (name, namespace) = (&role["metadata"]["name"], &role["metadata"]["namespace"]);
    let poked = format!("e2e.paved-road/poked={}", jiff::Timestamp::now());
    let mut args =
        vec!["annotate", &kind, name.as_str().unwrap_or_default(), "--overwrite", &poked];
    args.extend(namespace.as_str().into_iter().flat_map(|namespace| ["-n", namespace]));
    fixture.admin.run(&args).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cause_of_the_role_counts() {
        let of = |slot: &str, code: &str| {
            let resources = json!([{"slot": slot, "cause": {"code": code}}]);
            json!({"status": {"phase": "Failed", "resources": resources}})
        };
        assert!(is_failed(&of(ROLE, "DatabaseAdministrator")));
        assert!(!is_failed(&of(ROLE, "QuotaExceeded")));
        assert!(!is_failed(&of("postgres-db", "DatabaseAdministrator")));
    }
}
