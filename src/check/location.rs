//! Locations of charts and sources: URLs without secrets.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::{Refused, shape};

/// A repository of charts: a web address or a registry's address. It has no user, password or
/// query.
pub const CHART_REPOSITORY: &str =
    "^(https?|oci)://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$";

/// A Git repository: a web address without a user, or an SSH address. The user of an SSH address is
/// not secret.
pub const GIT_REPOSITORY: &str = "^(https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/[A-Za-z0-9._~/-]+|\
                                  ssh://([A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/[A-Za-z0-9._~/-]+|\
                                  [A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9._~/-]+)$";

/// The longest URL.
pub const LONGEST_URL: usize = 2048;

/// A repository of Helm charts.
pub fn chart_repository(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CHART_REPOSITORY).ok());
    without_secrets(value)?;
    let fits = |value: &str| PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(value));
    shape(
        value,
        LONGEST_URL,
        fits,
        "a URL, for example https://charts.example.org or oci://registry.example.org/charts",
    )
    .map_err(|refused| hidden(value, refused))
}

/// A Git repository.
pub fn git_repository(value: &str) -> Result<&str, Refused> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(GIT_REPOSITORY).ok());
    without_secrets(value)?;
    let fits = |value: &str| PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(value));
    shape(
        value,
        LONGEST_URL,
        fits,
        "a URL, for example https://git.example.org/team/app.git or \
         git@git.example.org:team/app.git",
    )
    .map_err(|refused| hidden(value, refused))
}

/// Rejects a URL with a password, a token or a query, without showing the URL. The user of an SSH
/// URL is not secret.
fn without_secrets(value: &str) -> Result<(), Refused> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("ssh", value));
    let user = rest.split('/').next().unwrap_or_default().rsplit_once('@').map(|(user, _)| user);
    let credentials = user.is_some_and(|user| scheme != "ssh" || user.contains(':'));
    if credentials || rest.contains(['?', '#']) {
        return Err(Refused {
            found: "a URL with credentials or a query".to_owned(),
            allowed: "a URL without credentials and query, because a claim must not have secrets"
                .to_owned(),
        });
    }
    Ok(())
}

/// Hides an invalid URL that contains an @, because it may contain a secret.
fn hidden(value: &str, refused: Refused) -> Refused {
    if value.contains('@') {
        return Refused { found: "a text with an @ (not shown)".to_owned(), ..refused };
    }
    refused
}
