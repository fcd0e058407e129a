//! Locations of charts and sources: URLs without secrets.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::{Refused, host, shape};

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

/// Rejects a repository that is not encrypted or not on a public host, and a path that leaves its
/// folder. The value has the shape of [`chart_repository`] or [`git_repository`].
pub fn public(value: &str) -> Result<(), Refused> {
    let url = Url::read(value);
    let refused = |why: &str, allowed: &str| Err(Refused::because(value, why, allowed));
    if let Err(why) = host::public(url.host) {
        return refused(why, "a host on the internet, for example charts.example.org");
    }
    if url.scheme == "http" {
        return refused("a URL without encryption", "a URL that begins with https://");
    }
    if url.path.split('/').any(|part| [".", ".."].contains(&part)) {
        return refused("a path with . or ..", "a path without them");
    }
    Ok(())
}

/// Whether a repository is one of `prefixes` or below one. A prefix ends at the end of a path's
/// segment. No prefixes allow every repository.
pub fn is_within(value: &str, prefixes: &[String]) -> bool {
    let url = Url::read(value);
    let begins = |prefix: &String| {
        let prefix = Url::read(prefix);
        let folder = prefix.path.trim_end_matches('/');
        let rest = url.path.strip_prefix(folder);
        url.scheme == prefix.scheme
            && url.host.eq_ignore_ascii_case(prefix.host)
            && url.port() == prefix.port()
            && rest
                .is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
    };
    prefixes.is_empty() || prefixes.iter().any(begins)
}

/// The parts of a URL, or of Git's short form `user@host:path`.
struct Url<'v> {
    scheme: &'v str,
    host: &'v str,
    port: Option<&'v str>,
    path: &'v str,
}

impl<'v> Url<'v> {
    fn read(value: &'v str) -> Self {
        let (scheme, rest, before_path) = value
            .split_once("://")
            .map_or(("ssh", value, ':'), |(scheme, rest)| (scheme, rest, '/'));
        let (authority, path) = rest.split_once(before_path).unwrap_or((rest, ""));
        let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        let (host, port) =
            place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
        Self { scheme, host, port, path }
    }

    /// The port as a number. Web addresses and registries have 443 by default.
    fn port(&self) -> Option<u16> {
        self.port.map_or(Some(443), |port| port.parse().ok())
    }
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
