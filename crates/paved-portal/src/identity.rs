//! The user of a request, with the name in Kubernetes, and the credential.

use std::sync::Arc;

use jiff::Timestamp;
use paved_client::owner::{KUBERNETES, Owner};
use sha2::{Digest, Sha256};

/// Prefix of Kubernetes' own names. Users from outside must not have such a name or group.
const RESERVED: &str = "system:";

/// The Kubernetes names of the OpenID provider's users. A user is the same owner with a session and
/// with a token.
#[derive(Clone, Debug)]
pub(super) struct Naming {
    issuer: String,
    username_prefix: String,
    groups_prefix: String,
}

impl Naming {
    pub(super) fn new(issuer: String, username_prefix: String, groups_prefix: String) -> Self {
        Self { issuer, username_prefix, groups_prefix }
    }

    /// Login and issuer of a Kubernetes user. A name without the prefix does not belong to the
    /// provider. The same applies to Kubernetes' own names.
    pub(super) fn login<'n>(&'n self, username: &'n str) -> (&'n str, &'n str) {
        let login = username.strip_prefix(&self.username_prefix);
        let login = login.filter(|login| !login.is_empty() && !username.starts_with(RESERVED));
        login.map_or((username, KUBERNETES), |login| (login, self.issuer.as_str()))
    }

    /// The Kubernetes name of a user, from a name with or without the prefix.
    pub(super) fn username(&self, name: &str) -> String {
        let is_whole = name.starts_with(&self.username_prefix) || name.starts_with(RESERVED);
        if is_whole { name.to_owned() } else { format!("{}{name}", self.username_prefix) }
    }
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            issuer: KUBERNETES.to_owned(),
            username_prefix: String::new(),
            groups_prefix: String::new(),
        }
    }
}

/// The user of a request.
#[derive(Clone, Debug)]
pub(super) struct Person {
    /// The name in Kubernetes.
    username: String,
    /// The login, without the prefix.
    login: String,
    /// The issuer: the URL of the OpenID provider, or `kubernetes`.
    issuer: String,
    /// The groups in Kubernetes.
    groups: Vec<String>,
    /// The prefix of the provider's groups in `groups`.
    groups_prefix: String,
    credential: Credential,
    key: [u8; 32],
}

/// The credential of a user.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    /// The kubeconfig's own user, on loopback.
    Own,
    /// A session of the portal. Requests impersonate the user.
    Session {
        /// The hash of the session's ID.
        id: String,
        /// The expiry.
        expires: Timestamp,
    },
    /// A Kubernetes token. The portal passes it on.
    Bearer(Token),
}

/// A token that is never printed.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(super) fn secret(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Person {
    /// Returns the person with this username and these groups in the API server.
    pub(super) fn from_kubernetes(
        naming: &Naming,
        username: &str,
        groups: Vec<String>,
        credential: Credential,
    ) -> Self {
        let (login, issuer) = naming.login(username);
        Self::new(username, login, issuer, groups, &naming.groups_prefix, credential)
    }

    /// A user.
    pub(super) fn new(
        username: &str,
        login: &str,
        issuer: &str,
        groups: Vec<String>,
        groups_prefix: &str,
        credential: Credential,
    ) -> Self {
        let mut hash = Sha256::new();
        let (kind, token) = match &credential {
            Credential::Own => ("own", ""),
            Credential::Session { .. } => ("session", ""),
            // Two tokens of one user may have different rights.
            Credential::Bearer(token) => ("bearer", token.secret()),
        };
        for part in
            [kind, token, issuer, username].into_iter().chain(groups.iter().map(String::as_str))
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self {
            username: username.to_owned(),
            login: login.to_owned(),
            issuer: issuer.to_owned(),
            groups,
            groups_prefix: groups_prefix.to_owned(),
            credential,
            key: hash.finalize().into(),
        }
    }

    /// The same user with only these groups. Cached answers of the two are separate.
    pub(super) fn in_groups(&self, groups: Vec<String>) -> Self {
        let Self { username, login, issuer, groups_prefix, credential, .. } = self;
        Self::new(username, login, issuer, groups, groups_prefix, credential.clone())
    }

    /// The name in Kubernetes.
    pub(super) fn username(&self) -> &str {
        &self.username
    }

    /// The login, without the prefix.
    pub(super) fn login(&self) -> &str {
        &self.login
    }

    /// The issuer.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The groups in Kubernetes.
    pub(super) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The groups without the prefix, and without Kubernetes' own groups.
    pub(super) fn own_groups(&self) -> impl Iterator<Item = &str> {
        let own = self.groups.iter().filter(|group| !group.starts_with(RESERVED));
        own.map(|group| group.strip_prefix(&self.groups_prefix).unwrap_or(group))
    }

    /// The credential.
    pub(super) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The owner of this user's environments.
    pub(super) fn owner(&self) -> Owner {
        Owner::new(&self.login, &self.issuer, &self.username)
    }

    /// The cache key of a user. Users with different rights have different keys.
    pub(super) fn key(&self) -> [u8; 32] {
        self.key
    }

    /// Whether a text names this user: the username, the login, or the part of the login before the
    /// @.
    pub(super) fn is_called(&self, text: &str) -> bool {
        let short = self.login.split('@').next().unwrap_or_default();
        [self.username.as_str(), &self.login, short].contains(&text)
    }

    #[cfg(test)]
    pub(super) fn for_tests(login: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self::new(login, login, "https://id.example.org", groups, "", Credential::Own)
    }
}

/// Whether a user from outside may have this name. It must not be empty or one of Kubernetes' own
/// names, and must be valid in a header.
pub(super) fn may_be_named(name: &str) -> bool {
    let visible = !name.chars().any(char::is_control) && name.trim() == name;
    !name.is_empty() && visible && name.len() <= 1024 && !name.starts_with(RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(prefix: &str) -> Naming {
        Naming {
            issuer: "https://id".into(),
            username_prefix: prefix.into(),
            groups_prefix: String::new(),
        }
    }

    #[test]
    fn username_with_the_prefix_belongs_to_the_issuer() {
        let builder = "system:serviceaccount:ci:builder";
        for (prefix, username, login, issuer) in [
            ("oidc:", "oidc:ada@acme.io", "ada@acme.io", "https://id"),
            ("oidc:", "ada@acme.io", "ada@acme.io", KUBERNETES),
            ("oidc:", "oidc:", "oidc:", KUBERNETES),
            ("oidc:", builder, builder, KUBERNETES),
            ("", "ada@acme.io", "ada@acme.io", "https://id"),
            ("", builder, builder, KUBERNETES),
        ] {
            assert_eq!(naming(prefix).login(username), (login, issuer), "{prefix} {username}");
        }
    }

    #[test]
    fn person_is_named_with_or_without_the_prefix() {
        for (prefix, name, username) in [
            ("oidc:", "bob", "oidc:bob"),
            ("oidc:", "oidc:bob", "oidc:bob"),
            ("oidc:", "system:serviceaccount:ci:builder", "system:serviceaccount:ci:builder"),
            ("", "bob", "bob"),
        ] {
            assert_eq!(naming(prefix).username(name), username, "{prefix} {name}");
        }
    }
}
