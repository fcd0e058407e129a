//! The owner of an environment, as recorded on the object. It filters users' own lists, and never
//! grants a right.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::environment::{OWNER as ANNOTATION, OWNER_LABEL as LABEL};

/// The issuer of users that no OpenID provider authenticates.
pub const KUBERNETES: &str = "kubernetes";

/// The longest value of a label.
const MAX_LABEL_LEN: usize = 63;

/// An owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The user name, without the prefix of an OpenID provider.
    pub login: String,
    issuer: String,
    username: String,
}

impl Owner {
    /// The owner with this login. `issuer` is the authority for `username`: the URL of an OpenID
    /// provider, or `kubernetes`.
    pub fn new(login: &str, issuer: &str, username: &str) -> Self {
        Self { login: login.to_owned(), issuer: issuer.to_owned(), username: username.to_owned() }
    }

    /// Returns the owner with a Kubernetes username, when the OpenID provider of the portal is not
    /// known. The command line records owners in this form.
    pub fn from_kubernetes(username: &str) -> Self {
        Self::new(username, KUBERNETES, username)
    }

    /// Whether a text names this owner: the login, or its short form without a provider's prefix
    /// and without the `@` and its domain. A workspace's owner has dashes in place of characters
    /// that it cannot contain.
    pub fn is_called(&self, text: &str) -> bool {
        let plain =
            |text: &str| text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let short = self.login.split('@').next().unwrap_or_default();
        let bare = short.rsplit([':', '#', '/']).next().unwrap_or_default();
        [self.login.as_str(), short, bare].map(plain).contains(&plain(text))
    }

    /// A unique identifier of the owner.
    pub fn hash(&self) -> String {
        hash(&[&self.issuer, &self.username], 16)
    }

    /// The label's value: the login if it is a valid label value, or else a hash.
    pub fn label(&self) -> String {
        let edge =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let login = &self.login;
        let fits = edge(login.chars().next())
            && edge(login.chars().last())
            && login.len() <= MAX_LABEL_LEN;
        if fits && login.chars().all(inner) { login.clone() } else { format!("u-{}", self.hash()) }
    }

    /// Sets the owner in an object's metadata.
    pub fn mark(&self, metadata: &mut Map<String, Value>) {
        for (place, key, value) in
            [("labels", LABEL, self.label()), ("annotations", ANNOTATION, self.login.clone())]
        {
            let entries = metadata.entry(place).or_insert_with(|| Value::Object(Map::new()));
            if let Some(entries) = entries.as_object_mut() {
                entries.insert(key.to_owned(), value.into());
            }
        }
    }
}

/// The first bytes of a hash of several texts, in hexadecimal. The length of each text is part of
/// the hash, so different splits of the same text differ.
pub fn hash(texts: &[&str], bytes: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(bytes).fold(String::new(), |mut text, byte| {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_is_the_login_or_its_hash() {
        let label = |login: &str| Owner::new(login, "https://id.example.org", login).label();
        assert_eq!(label("ada.lovelace"), "ada.lovelace");
        for login in ["ada@acme.io", "-ada", "a b", "", &"a".repeat(64)] {
            let label = label(login);
            assert!(label.starts_with("u-") && label.len() == 34, "{label}");
        }
        assert_ne!(label("ada@acme.io"), label("bob@acme.io"));
    }

    #[test]
    fn owner_is_known_by_the_login_and_its_short_form() {
        for username in [
            "ada.lovelace@acme.io",
            "oidc:ada.lovelace@acme.io",
            "ada.lovelace",
            "https://id#ada.lovelace",
        ] {
            let owner = Owner::from_kubernetes(username);
            assert!(owner.is_called("ada-lovelace") && owner.is_called(username), "{username}");
            assert!(!owner.is_called("ada") && !owner.is_called("grace"), "{username}");
        }
    }

    #[test]
    fn texts_do_not_run_together() {
        assert_ne!(hash(&["a", "bc"], 16), hash(&["ab", "c"], 16));
    }

    #[test]
    fn owner_label_replaces_the_one_of_the_body() {
        let mut metadata =
            json!({"labels": {"owner": "bob", "a": "b"}}).as_object().cloned().unwrap_or_default();
        Owner::new("ada@acme.io", "https://id.example.org", "ada@acme.io").mark(&mut metadata);
        assert_ne!(metadata["labels"]["owner"], "bob");
        assert_eq!(metadata["labels"]["a"], "b");
        assert_eq!(metadata["annotations"][ANNOTATION], "ada@acme.io");
    }
}
