//! Who asks: a person as Kubernetes knows them, and by which credential.

use std::sync::Arc;

use jiff::Timestamp;
use paved_client::owner::{KUBERNETES, Owner};
use sha2::{Digest, Sha256};

/// What Kubernetes keeps for itself: nobody outside may be given such a name or group.
const RESERVED: &str = "system:";

/// How Kubernetes calls the people of the OpenID provider. One person is one owner, by session and
/// by token.
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

    /// Login and issuer of whomever Kubernetes calls so: names without the prefix are not the
    /// provider's, nor are those of Kubernetes' own.
    pub(super) fn login<'n>(&'n self, username: &'n str) -> (&'n str, &'n str) {
        let login = username.strip_prefix(&self.username_prefix);
        let login = login.filter(|login| !login.is_empty() && !username.starts_with(RESERVED));
        login.map_or((username, KUBERNETES), |login| (login, self.issuer.as_str()))
    }

    /// How Kubernetes calls whomever people name, with the prefix or without it.
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

/// Somebody who asks.
#[derive(Clone, Debug)]
pub(super) struct Person {
    /// As Kubernetes knows them.
    username: String,
    /// As they know themselves: the username without the prefix.
    login: String,
    /// Who says so: the OpenID provider's URL, or `kubernetes`.
    issuer: String,
    /// As Kubernetes knows them.
    groups: Vec<String>,
    /// What stands before groups of the provider in `groups`.
    groups_prefix: String,
    credential: Credential,
    key: [u8; 32],
}

/// By what somebody is known.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    /// The kubeconfig's own user, on loopback.
    Own,
    /// A session of the portal: requests are made under the person by impersonation.
    Session {
        /// The hash of the session's id.
        id: String,
        /// When it ends.
        expires: Timestamp,
    },
    /// A token of Kubernetes, which is passed on.
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

    /// Somebody.
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
            // Two tokens of one user need not mean the same rights.
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

    /// The same person in these groups alone: what is remembered of one is not told the other.
    pub(super) fn in_groups(&self, groups: Vec<String>) -> Self {
        let Self { username, login, issuer, groups_prefix, credential, .. } = self;
        Self::new(username, login, issuer, groups, groups_prefix, credential.clone())
    }

    /// As Kubernetes knows them.
    pub(super) fn username(&self) -> &str {
        &self.username
    }

    /// As they know themselves.
    pub(super) fn login(&self) -> &str {
        &self.login
    }

    /// Who says so.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// As Kubernetes knows them.
    pub(super) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The groups that people know, without prefix and without those of Kubernetes itself.
    pub(super) fn own_groups(&self) -> impl Iterator<Item = &str> {
        let own = self.groups.iter().filter(|group| !group.starts_with(RESERVED));
        own.map(|group| group.strip_prefix(&self.groups_prefix).unwrap_or(group))
    }

    /// By what they are known.
    pub(super) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The owner that this person's environments have.
    pub(super) fn owner(&self) -> Owner {
        Owner::new(&self.login, &self.issuer, &self.username)
    }

    /// What tells apart whoever may have different rights: whatever is remembered of somebody is
    /// remembered under it.
    pub(super) fn key(&self) -> [u8; 32] {
        self.key
    }

    /// Whether a text means this person: the username, the login, or what stands before the login's
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

/// Whether a name may be given to somebody from outside: not empty, no name of Kubernetes' own, and
/// fit for a header.
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
    fn a_name_of_kubernetes_is_the_providers_where_it_has_its_prefix() {
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
    fn somebody_is_named_with_the_prefix_or_without_it() {
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
