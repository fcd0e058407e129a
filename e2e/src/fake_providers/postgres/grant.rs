//! Grants: on a database, on a schema in it, or of one role to another.

use serde_json::Value;

use super::super::Trouble;
use super::super::reconcile::Observation;
use super::super::resource::Resource;
use super::{MAINTENANCE, Postgres, param, quoted};

/// The privileges of a grant, their object and their role.
struct Grant {
    role: String,
    /// The database of the grant, to which the provider connects.
    database: Option<String>,
    schema: Option<String>,
    member_of: Option<String>,
    /// In capitals, sorted.
    privileges: Vec<String>,
    revoke_public: bool,
}

impl Postgres {
    pub(super) async fn observe_grant(
        &self,
        resource: &mut Resource,
    ) -> Result<Observation, Trouble> {
        let Some(grant) = Grant::from_resource(resource) else { return Ok(Observation::Missing) };
        let session = self.session(grant.connects_to()).await?;
        let (query, object) = match (&grant.member_of, &grant.schema, &grant.database) {
            (Some(group), _, _) => (MEMBERSHIP, group),
            (None, Some(schema), _) => (ON_SCHEMA, schema),
            (None, None, Some(database)) => (ON_DATABASE, database),
            (None, None, None) => return Ok(Observation::Missing),
        };
        let row = if grant.member_of.is_some() {
            session.row(query, &[object, &grant.role]).await?
        } else {
            session.row(query, &[object, &grant.role, &grant.privileges]).await?
        };
        let is_there = row.is_some_and(|row| row.get(0));
        Ok(if is_there { Observation::Made { outdated: false } } else { Observation::Missing })
    }

    pub(super) async fn create_grant(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let Some(grant) = Grant::from_resource(resource) else {
            return Err(Trouble::Refused("a grant needs a role".to_owned()));
        };
        let (role, object) = (quoted(&grant.role), grant.object()?);
        let first =
            grant.member_of.is_none().then(|| format!("REVOKE ALL PRIVILEGES{object} FROM {role}"));
        let then = format!("GRANT {}{object} TO {role}", grant.words());
        let public = grant.database.as_ref().filter(|_| grant.revoke_public);
        let last = public
            .map(|database| format!("REVOKE ALL ON DATABASE {} FROM PUBLIC", quoted(database)));
        // Several statements in one message are one transaction.
        let statements: Vec<String> = first.into_iter().chain([then]).chain(last).collect();
        self.session(grant.connects_to()).await?.run(&statements.join("; ")).await
    }

    pub(super) async fn delete_grant(&self, resource: &mut Resource) -> Result<(), Trouble> {
        let Some(grant) = Grant::from_resource(resource) else { return Ok(()) };
        let statement =
            format!("REVOKE {}{} FROM {}", grant.words(), grant.object()?, quoted(&grant.role));
        self.session(grant.connects_to()).await?.run(&statement).await
    }
}

impl Grant {
    fn from_resource(resource: &Resource) -> Option<Self> {
        let name = |field| param(resource, field).as_str().map(str::to_owned);
        let listed = param(resource, "privileges").as_array();
        let mut privileges: Vec<String> =
            listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        privileges.sort();
        Some(Self {
            role: name("role")?,
            database: name("database"),
            schema: name("schema"),
            member_of: name("memberOf"),
            privileges,
            revoke_public: *param(resource, "revokePublicOnDb") == true,
        })
    }

    fn connects_to(&self) -> &str {
        self.database.as_deref().unwrap_or(MAINTENANCE)
    }

    /// The granted privileges, or the group of a membership.
    fn words(&self) -> String {
        let group = self.member_of.as_deref().map(quoted);
        group.unwrap_or_else(|| {
            self.privileges
                .iter()
                .filter(|word| is_word(word))
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        })
    }

    /// The object of the grant, as SQL.
    fn object(&self) -> Result<String, Trouble> {
        match (&self.member_of, &self.schema, &self.database) {
            (Some(_), _, _) => Ok(String::new()),
            (None, Some(schema), _) => Ok(format!(" ON SCHEMA {}", quoted(schema))),
            (None, None, Some(database)) => Ok(format!(" ON DATABASE {}", quoted(database))),
            (None, None, None) => {
                Err(Trouble::Refused("a grant needs a database or a group".to_owned()))
            }
        }
    }
}

/// Whether a word has the form of a privilege. The CRD allows only such words.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == ' ')
}

/// Whether a role has exactly these privileges on a database.
const ON_DATABASE: &str = "SELECT coalesce(array_agg(acl.privilege_type ORDER BY acl.privilege_type), '{}') = $3::text[] \
    FROM pg_database AS db, aclexplode(db.datacl) AS acl JOIN pg_roles AS grantee ON acl.grantee = grantee.oid \
    WHERE db.datname = $1 AND grantee.rolname = $2";

/// Whether a role has exactly these privileges on a schema.
const ON_SCHEMA: &str = "SELECT coalesce(array_agg(acl.privilege_type ORDER BY acl.privilege_type), '{}') = $3::text[] \
    FROM pg_namespace AS ns, aclexplode(ns.nspacl) AS acl JOIN pg_roles AS grantee ON acl.grantee = grantee.oid \
    WHERE ns.nspname = $1 AND grantee.rolname = $2";

/// Whether a role is a member of a group.
const MEMBERSHIP: &str = "SELECT count(*) > 0 FROM pg_auth_members AS m JOIN pg_roles AS grp ON m.roleid = grp.oid \
    JOIN pg_roles AS member ON m.member = member.oid WHERE grp.rolname = $1 AND member.rolname = $2";
