//! The portal's configuration: flags, then the environment, then a file. Each error names the
//! field, the found value and the allowed values.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use function_paved_road::apis::Flavour;
use ipnet::IpNet;
use jiff::SignedDuration;
use tracing::Level;
use url::{Origin, Url};

use super::identity::Naming;
use super::template::Template;
use crate::Failure;
use crate::Flags;

/// The minimum length of a session key, in bytes.
const KEY: usize = 32;

/// The limits of a session's lifetime, in seconds: a minute and a day.
const TTL: std::ops::RangeInclusive<i64> = 60..=86_400;

/// The whole configuration.
pub(super) struct Config {
    pub(super) listen: SocketAddr,
    pub(super) tls: Option<Tls>,
    /// The URL for browsers. Without a configured one, the port is known after the start.
    pub(super) public_url: Option<Url>,
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) auth: Auth,
    pub(super) template: Option<Template>,
    pub(super) apis: Apis,
    pub(super) level: Level,
}

/// The API style of new environments, if a cluster has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apis {
    /// One style, for one card of each API.
    Only(Flavour),
    /// Both styles, for two cards of each API.
    Both,
}

impl Apis {
    /// Whether the portal offers a kind of this style. `others` has the styles of the other kinds
    /// of the same API.
    pub(super) fn offers(self, flavour: Flavour, others: &[Flavour]) -> bool {
        match self {
            Self::Only(wanted) => flavour == wanted || !others.contains(&wanted),
            Self::Both => true,
        }
    }
}

/// A certificate and its key.
pub(super) struct Tls {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

/// How users identify themselves. Tokens of Kubernetes count in both cases.
pub(super) enum Auth {
    /// Each caller of the portal is the kubeconfig's own user.
    None,
    Oidc(Box<Oidc>),
}

impl Auth {
    /// The names of the provider's users in Kubernetes.
    pub(super) fn naming(&self) -> Naming {
        match self {
            Self::None => Naming::default(),
            Self::Oidc(oidc) => Naming::new(
                oidc.issuer.clone(),
                oidc.username_prefix.clone(),
                oidc.groups_prefix.clone(),
            ),
        }
    }
}

/// The OpenID provider, and the meaning of its claims.
pub(super) struct Oidc {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) username_claim: String,
    pub(super) groups_claim: String,
    pub(super) username_prefix: String,
    /// Whether the prefix is configured: `-` means no prefix.
    pub(super) prefix_is_chosen: bool,
    pub(super) groups_prefix: String,
    /// Certificates, as PEM.
    pub(super) ca: Option<Vec<u8>>,
    /// The first one encrypts.
    pub(super) session_keys: Vec<Vec<u8>>,
    pub(super) session_ttl: Duration,
}

/// An error: the field by its flag, the found value, the allowed values.
fn wrong(field: &str, found: impl Display, allowed: &str) -> Failure {
    Failure::Usage(format!("--{field}: found {found}; {allowed}"))
}

impl Config {
    /// Merges flags and environment variables over the file, and validates the result.
    pub(super) fn from_flags(flags: &Flags) -> Result<Self, Failure> {
        let flags = &match &flags.config {
            Some(path) => over(flags.clone(), file(path)?),
            None => flags.clone(),
        };
        let listen = flags.listen.as_deref().unwrap_or("127.0.0.1:8080");
        let listen: SocketAddr = listen.parse().map_err(|_| {
            wrong(
                "listen",
                format!("{listen:?}"),
                "allowed: an address and a port, for example 127.0.0.1:8080",
            )
        })?;
        let auth = match flags.auth.as_deref().unwrap_or("oidc") {
            "none" if !listen.ip().is_loopback() && !flags.is_demo => {
                let allowed = "allowed with --auth none: a loopback address, because every client \
                               acts as the kubeconfig's user";
                return Err(wrong("listen", listen, allowed));
            }
            "none" => Auth::None,
            "oidc" => Auth::Oidc(Box::new(oidc(flags)?)),
            other => return Err(wrong("auth", format!("{other:?}"), "allowed: oidc, none")),
        };
        let public_url = flags.public_url.as_deref().map(public_url).transpose()?;
        if let Some(url) =
            public_url.as_ref().filter(|url| matches!(auth, Auth::None) && !is_loopback(url))
        {
            let allowed = "allowed with --auth none: a loopback host, because every client acts \
                           as the kubeconfig's user";
            return Err(wrong("public-url", url, allowed));
        }
        Ok(Self {
            listen,
            tls: tls(flags)?,
            public_url,
            trusted_proxies: proxies(flags)?,
            auth,
            template: flags.namespace_template.as_deref().map(template).transpose()?,
            apis: apis(flags.apis.as_deref().unwrap_or("claims"))?,
            level: level(flags.log_level.as_deref().unwrap_or("info"))?,
        })
    }
}

impl Config {
    /// Warns of allowed values that are probably a mistake.
    pub(super) fn warn(&self) {
        let Auth::Oidc(oidc) = &self.auth else { return };
        if oidc.username_claim != "email" && !oidc.prefix_is_chosen {
            tracing::warn!(
                claim = oidc.username_claim,
                "--oidc-username-prefix is not set. Users choose their names at the provider, and a \
                 chosen name may have rights in this cluster. Set the prefix of the API server, or \
                 - for no prefix"
            );
        }
    }
}

fn file(path: &Path) -> Result<Flags, Failure> {
    let text = read(path, "config")?;
    serde_saphyr::from_slice(&text).map_err(|error| {
        let message = error.to_string();
        Failure::Usage(format!(
            "--config {}: {}",
            path.display(),
            message.lines().next().unwrap_or_default()
        ))
    })
}

/// Flags take precedence over the file.
fn over(flags: Flags, file: Flags) -> Flags {
    let many = |own: Vec<String>, other: Vec<String>| if own.is_empty() { other } else { own };
    Flags {
        listen: flags.listen.or(file.listen),
        tls_cert: flags.tls_cert.or(file.tls_cert),
        tls_key: flags.tls_key.or(file.tls_key),
        public_url: flags.public_url.or(file.public_url),
        trusted_proxy: many(flags.trusted_proxy, file.trusted_proxy),
        auth: flags.auth.or(file.auth),
        oidc_issuer: flags.oidc_issuer.or(file.oidc_issuer),
        oidc_client_id: flags.oidc_client_id.or(file.oidc_client_id),
        oidc_client_secret_file: flags.oidc_client_secret_file.or(file.oidc_client_secret_file),
        oidc_scopes: many(flags.oidc_scopes, file.oidc_scopes),
        oidc_username_claim: flags.oidc_username_claim.or(file.oidc_username_claim),
        oidc_groups_claim: flags.oidc_groups_claim.or(file.oidc_groups_claim),
        oidc_username_prefix: flags.oidc_username_prefix.or(file.oidc_username_prefix),
        oidc_groups_prefix: flags.oidc_groups_prefix.or(file.oidc_groups_prefix),
        oidc_ca_file: flags.oidc_ca_file.or(file.oidc_ca_file),
        session_key_file: if flags.session_key_file.is_empty() {
            file.session_key_file
        } else {
            flags.session_key_file
        },
        session_ttl: flags.session_ttl.or(file.session_ttl),
        namespace_template: flags.namespace_template.or(file.namespace_template),
        apis: flags.apis.or(file.apis),
        log_level: flags.log_level.or(file.log_level),
        ..flags
    }
}

fn tls(flags: &Flags) -> Result<Option<Tls>, Failure> {
    match (&flags.tls_cert, &flags.tls_key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(Tls { cert: cert.clone(), key: key.clone() })),
        (Some(_), None) => {
            Err(wrong("tls-key", "nothing", "--tls-cert needs the certificate's key"))
        }
        (None, Some(_)) => Err(wrong("tls-cert", "nothing", "--tls-key needs its certificate")),
    }
}

/// An origin without a path: cookies with the prefix `__Host-` belong to the whole origin.
fn public_url(text: &str) -> Result<Url, Failure> {
    let refused = || {
        let allowed = "allowed: an https URL without a path, for example \
                       https://portal.example.org, or an http URL of a loopback address";
        wrong("public-url", format!("{text:?}"), allowed)
    };
    let url = Url::parse(text).map_err(|_| refused())?;
    let secure = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    };
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let anonymous = url.username().is_empty() && url.password().is_none();
    let fits = secure && bare && anonymous && matches!(url.origin(), Origin::Tuple(..));
    fits.then_some(url).ok_or_else(refused)
}

/// Whether the address is on this machine only.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn proxies(flags: &Flags) -> Result<Vec<IpNet>, Failure> {
    let network = |text: &String| {
        let network = text
            .parse::<IpNet>()
            .or_else(|_| text.parse().map(|address: std::net::IpAddr| address.into()));
        network.map_err(|_| {
            wrong(
                "trusted-proxy",
                format!("{text:?}"),
                "allowed: an address or a network, for example 10.0.0.0/8",
            )
        })
    };
    flags.trusted_proxy.iter().map(network).collect()
}

fn template(text: &str) -> Result<Template, Failure> {
    Template::parse(text)
        .map_err(|allowed| wrong("namespace-template", format!("{text:?}"), &allowed))
}

fn apis(text: &str) -> Result<Apis, Failure> {
    match text {
        "both" => Ok(Apis::Both),
        text => text
            .parse()
            .map(Apis::Only)
            .map_err(|_| wrong("apis", format!("{text:?}"), "allowed: claims, namespaced, both")),
    }
}

fn level(text: &str) -> Result<Level, Failure> {
    match text {
        "error" => Ok(Level::ERROR),
        "warn" => Ok(Level::WARN),
        "info" => Ok(Level::INFO),
        "debug" => Ok(Level::DEBUG),
        _ => Err(wrong("log-level", format!("{text:?}"), "allowed: error, warn, info, debug")),
    }
}

fn oidc(flags: &Flags) -> Result<Oidc, Failure> {
    let needed = |field: &str, value: &Option<String>| {
        let value = value.clone().filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            wrong(field, "nothing", "required with --auth oidc; use --auth none for local use")
        })
    };
    let issuer = needed("oidc-issuer", &flags.oidc_issuer)?;
    let url = Url::parse(&issuer).ok();
    if !url
        .is_some_and(|url| url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)))
    {
        let allowed = "allowed: an https URL, or an http URL of a loopback address";
        return Err(wrong("oidc-issuer", format!("{issuer:?}"), allowed));
    }
    let or = |value: &Option<String>, otherwise: &str| {
        value.clone().unwrap_or_else(|| otherwise.to_owned())
    };
    let scopes = if flags.oidc_scopes.is_empty() {
        ["profile", "email", "groups"].map(str::to_owned).to_vec()
    } else {
        flags.oidc_scopes.clone()
    };
    Ok(Oidc {
        issuer,
        client_id: needed("oidc-client-id", &flags.oidc_client_id)?,
        client_secret: secret(flags.oidc_client_secret_file.as_deref())?,
        scopes,
        username_claim: or(&flags.oidc_username_claim, "email"),
        groups_claim: or(&flags.oidc_groups_claim, "groups"),
        // The same rule as the API server's own flag.
        username_prefix: flags
            .oidc_username_prefix
            .clone()
            .filter(|prefix| prefix != "-")
            .unwrap_or_default(),
        prefix_is_chosen: flags
            .oidc_username_prefix
            .as_deref()
            .is_some_and(|prefix| !prefix.is_empty()),
        groups_prefix: or(&flags.oidc_groups_prefix, ""),
        ca: flags.oidc_ca_file.as_deref().map(|path| read(path, "oidc-ca-file")).transpose()?,
        session_keys: session_keys(&flags.session_key_file)?,
        session_ttl: session_ttl(flags.session_ttl.as_deref().unwrap_or("1h"))?,
    })
}

/// Editors end a file with a newline, which does not belong to the secret.
fn secret(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let field = "oidc-client-secret-file";
    let bytes = read(path, field)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| wrong(field, "bytes that are not UTF-8", "allowed: a text"))?;
    let text = text.trim_end();
    if text.is_empty() {
        return Err(wrong(
            field,
            format!("an empty file: {}", path.display()),
            "allowed: a file with the secret",
        ));
    }
    Ok(Some(text.to_owned()))
}

fn session_keys(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Failure> {
    let field = "session-key-file";
    if paths.is_empty() {
        let allowed = "required with --auth oidc: one file for all replicas, for example from \
                       `head -c 64 /dev/urandom`";
        return Err(wrong(field, "nothing", allowed));
    }
    let key = |path: &PathBuf| {
        let bytes = read(path, field)?;
        let enough = bytes.len() >= KEY;
        let found = || format!("{} bytes in {}", bytes.len(), path.display());
        if enough {
            Ok(bytes)
        } else {
            Err(wrong(field, found(), "allowed: at least 32 random bytes"))
        }
    };
    paths.iter().map(key).collect()
}

fn session_ttl(text: &str) -> Result<Duration, Failure> {
    let allowed = "allowed: 1m to 24h, for example 30m";
    let refused = || wrong("session-ttl", format!("{text:?}"), allowed);
    let ttl: SignedDuration = text.parse().map_err(|_| refused())?;
    if !TTL.contains(&ttl.as_secs()) {
        return Err(refused());
    }
    Ok(ttl.unsigned_abs())
}

fn read(path: &Path, field: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| wrong(field, path.display(), &format!("could not read the file: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn flags(yaml: &str) -> Flags {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn told(yaml: &str) -> String {
        Config::from_flags(&flags(yaml))
            .err()
            .map(|failure| failure.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn errors_name_field_found_value_and_allowed_values() {
        for (yaml, field, part) in [
            ("listen: here", "--listen: found \"here\"", "127.0.0.1:8080"),
            ("{auth: none, listen: '0.0.0.0:80'}", "--listen: found 0.0.0.0:80", "loopback"),
            ("auth: basic", "--auth: found \"basic\"", "oidc, none"),
            ("auth: oidc", "--oidc-issuer: found nothing", "--auth none"),
            ("{auth: oidc, oidc-issuer: 'http://id.example.org'}", "--oidc-issuer: found", "https"),
            ("{auth: none, tls-cert: a.pem}", "--tls-key: found nothing", "key"),
            ("{auth: none, public-url: 'https://a/b'}", "--public-url: found", "without a path"),
            (
                "{auth: none, public-url: 'http://a.example.org'}",
                "--public-url: found",
                "or an http URL of a loopback address",
            ),
            (
                "{auth: none, public-url: 'https://a.example.org'}",
                "--public-url: found",
                "loopback",
            ),
            ("{auth: none, trusted-proxy: [10.0.0.0/99]}", "--trusted-proxy: found", "10.0.0.0/8"),
            (
                "{auth: none, namespace-template: 'a-{team}'}",
                "--namespace-template: found",
                "{group}",
            ),
            ("{auth: none, apis: all}", "--apis: found \"all\"", "claims, namespaced, both"),
            ("{auth: none, log-level: loud}", "--log-level: found \"loud\"", "debug"),
        ] {
            let told = told(yaml);
            assert!(told.starts_with(field) && told.contains(part), "{yaml}: {told}");
        }
    }

    #[test]
    fn a_session_needs_a_long_key_and_an_end() {
        assert!(session_keys(&[]).is_err());
        for (text, fits) in [
            ("1h", true),
            ("30m", true),
            ("1s", false),
            ("2d", false),
            ("-1h", false),
            ("x", false),
        ] {
            assert_eq!(session_ttl(text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn one_style_of_each_api_is_offered_where_a_cluster_has_both() {
        let claims = apis("claims").unwrap();
        assert!(claims.offers(Flavour::Claims, &[Flavour::Namespaced]));
        assert!(!claims.offers(Flavour::Namespaced, &[Flavour::Claims]));
        assert!(claims.offers(Flavour::Namespaced, &[]));
        assert!(claims.offers(Flavour::Namespaced, &[Flavour::Namespaced]));
        let namespaced = apis("namespaced").unwrap();
        assert!(!namespaced.offers(Flavour::Claims, &[Flavour::Namespaced]));
        let both = apis("both").unwrap();
        assert!(both.offers(Flavour::Claims, &[Flavour::Namespaced]));
        assert!(both.offers(Flavour::Namespaced, &[Flavour::Claims]));
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let both = over(flags("{auth: none}"), flags("{auth: oidc, listen: '127.0.0.1:1'}"));
        assert_eq!(
            (both.auth.as_deref(), both.listen.as_deref()),
            (Some("none"), Some("127.0.0.1:1"))
        );
    }

    #[test]
    fn an_unknown_field_of_the_file_is_refused() {
        assert!(serde_saphyr::from_str::<Flags>("listn: x").is_err());
    }
}
