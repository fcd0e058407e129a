//! Refused statements for databases on a shared PostgreSQL server.
//!
//! Since PostgreSQL 16, an administrator may alter and drop only the roles that it created. After an
//! upgrade from 15, or a change of the login, the server refuses statements for running
//! environments. `paved` does not connect to the server: it reads the errors of the provider.

use function_paved_road::diagnosis::{self, Code};
use kube::api::DynamicObject;
use kube::core::ApiResource;

use super::check::Check;
use super::objects::{environment, first, name};
use super::snapshot::{ClusterSnapshot, Databases, ListResult};
use crate::style::harmless;

/// The annotation with the name of an object on the server.
const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// A line with the environments that the server refuses, and the statements for their roles.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let what = "PostgreSQL administrator";
    let failed = snapshot.databases.iter().filter_map(|kind| match kind.objects {
        ListResult::Failed(_) => Some(kind.objects.unread(what)),
        _ => None,
    });
    let mut checks: Vec<Check> = failed.collect();
    let mut refused: Vec<(&ApiResource, &DynamicObject)> =
        snapshot.databases.iter().flat_map(Databases::refused).collect();
    refused.sort_by_key(|(_, object)| environment(object));
    if refused.is_empty() {
        return checks;
    }
    let mut environments: Vec<String> =
        refused.iter().map(|(_, object)| environment(object)).collect();
    environments.dedup();
    let roles = refused.iter().filter(|(resource, _)| resource.kind == "Role");
    let statements: Vec<String> = roles.map(|(_, role)| statement(role)).collect();
    let found = format!(
        "the server refuses statements for {}: {}",
        environments.len(),
        first(&environments)
    );
    let guide = "The guide \"Use a shared PostgreSQL server\" has the query for all statements, and \
                 the statement after a change of the login";
    let helps = if statements.is_empty() {
        format!("run the statements that the guide names as a superuser. {guide}")
    } else {
        format!(
            "run as a superuser, with your administrator's login: {}. {guide}",
            first(&statements)
        )
    };
    checks.push(Check::bad(what, found, &helps));
    checks
}

impl Databases {
    /// The objects with a refused statement.
    fn refused(&self) -> Vec<(&ApiResource, &DynamicObject)> {
        let ListResult::All(objects) = &self.objects else { return Vec::new() };
        let refused = objects.iter().filter(|one| is_refused(one));
        refused.map(|object| (&self.resource, object)).collect()
    }
}

/// Whether the latest error of the provider is about the rights of its administrator.
fn is_refused(object: &DynamicObject) -> bool {
    let synced = crossplane::conditions::get(&object.data, "Synced");
    let message = synced["message"].as_str().filter(|_| synced["status"] == "False");
    message.is_some_and(|message| {
        diagnosis::find(message, None).cause.code == Code::DatabaseAdministrator
    })
}

/// The statement that gives the administrator its rights on a role.
fn statement(role: &DynamicObject) -> String {
    let annotations = role.metadata.annotations.as_ref();
    let external = annotations.and_then(|all| all.get(EXTERNAL_NAME)).map(String::as_str);
    let quoted = external.unwrap_or_else(|| name(role)).replace('"', "\"\"");
    harmless(&format!("GRANT \"{quoted}\" TO \"ADMINISTRATOR\" WITH ADMIN OPTION;"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::database_kinds;
    use crate::style::Mark;

    /// An object of provider-sql in an environment, with the error of its provider.
    fn object(kind: &str, of: &str, error: Option<&str>) -> Value {
        let synced = match error {
            Some(error) => json!({"type": "Synced", "status": "False", "message": error}),
            None => json!({"type": "Synced", "status": "True"}),
        };
        json!({
            "metadata": {
                "name": format!("{of}-{kind}"), "annotations": {EXTERNAL_NAME: format!("{of}-n8w3r")},
                "labels": {"crossplane.io/claim-namespace": "team-shop",
                    "crossplane.io/claim-name": of},
            },
            "status": {"conditions": [synced]},
        })
    }

    fn checks_of(of: impl Fn(&ApiResource) -> ListResult) -> Vec<Check> {
        let databases = database_kinds().map(|resource| {
            let objects = of(&resource);
            Databases { resource, objects }
        });
        check(&ClusterSnapshot { databases: databases.collect(), ..snapshot() })
    }

    /// The message of provider-sql with a message of PostgreSQL 16.
    const ALTER: &str = "update failed: cannot update role: pq: permission denied to alter role";

    #[test]
    fn refused_role_has_its_environment_and_its_statement() {
        let checks =
            checks_of(|resource| match (resource.kind.as_str(), resource.group.as_str()) {
                ("Role", "postgresql.sql.crossplane.io") => objects(&[
                    object("role", "checkout", Some(ALTER)),
                    object("role", "blog", None),
                    object("role", "cart", Some("cannot update role: dial tcp: i/o timeout")),
                ]),
                ("Database", "postgresql.sql.crossplane.io") => objects(&[object(
                    "database",
                    "checkout",
                    Some("delete failed: cannot drop database: pq: must be owner of database x"),
                )]),
                _ => objects(&[]),
            });
        let [check] = &checks[..] else { panic!("{checks:?}") };
        assert_eq!(check.mark, Mark::Bad);
        let begin = "the server refuses statements for 1: team-shop/checkout; run as a superuser";
        assert!(check.found.starts_with(begin), "{}", check.found);
        let statement = "GRANT \"checkout-n8w3r\" TO \"ADMINISTRATOR\" WITH ADMIN OPTION;";
        assert_eq!(check.found.matches(statement).count(), 1, "{}", check.found);
        assert_eq!(check.found.matches("GRANT").count(), 1, "{}", check.found);
    }

    #[test]
    fn refused_grant_alone_leads_to_the_guide() {
        let refused = object("grant", "cart", Some("pq: permission denied for schema public"));
        let checks = checks_of(|resource| match resource.kind.as_str() {
            "Grant" => objects(std::slice::from_ref(&refused)),
            _ => ListResult::Hidden,
        });
        let [check] = &checks[..] else { panic!("{checks:?}") };
        assert!(check.found.contains("Use a shared PostgreSQL server"), "{}", check.found);
        assert!(!check.found.contains("GRANT"), "{}", check.found);
    }

    #[test]
    fn accepted_hidden_and_absent_databases_have_no_line() {
        let checks = checks_of(|resource| match resource.kind.as_str() {
            "Role" => objects(&[object("role", "cart", None)]),
            "Grant" => ListResult::Hidden,
            _ => ListResult::NoSuchKind,
        });
        assert!(checks.is_empty(), "{checks:?}");
    }

    #[test]
    fn failed_read_of_databases_is_a_line() {
        let checks = checks_of(|resource| match resource.kind.as_str() {
            "Role" => ListResult::Failed("timeout".to_owned()),
            _ => objects(&[]),
        });
        assert!(checks.iter().all(|check| check.found.contains("could not be read")), "{checks:?}");
        assert_eq!(checks.len(), 2);
    }
}
