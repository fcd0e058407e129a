//! Flags of `paved portal`. Environment variables and the file of `--config` can also set them,
//! except the flags that select the cluster.

// The help prints URLs as they are.
#![allow(rustdoc::bare_urls)]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

/// Flags of `paved portal`. All values are strings, so that flags, environment variables and the
/// file have the same error messages.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Flags {
    /// YAML file with these flags.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// Print the OpenAPI description of the API and exit, without a cluster.
    #[arg(long)]
    #[serde(skip)]
    pub print_openapi: bool,

    /// Address and port to listen on [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS:PORT", env = "PAVED_PORTAL_LISTEN")]
    pub(crate) listen: Option<String>,

    /// TLS certificate with its chain (PEM), if no proxy terminates TLS. Reloaded on change.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the TLS certificate (PEM).
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,

    /// URL of the portal, for example https://portal.example.org [default: the listen address].
    #[arg(long, value_name = "URL", env = "PAVED_PORTAL_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,

    /// Network of proxies whose X-Forwarded-For headers the log uses. Repeatable.
    #[arg(long, value_name = "CIDR", env = "PAVED_PORTAL_TRUSTED_PROXY", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<String>,

    /// Authentication: oidc, or none (your kubeconfig's user, on loopback only) [default: oidc].
    #[arg(long, value_name = "HOW", env = "PAVED_PORTAL_AUTH", help_heading = "Sign-in")]
    pub(crate) auth: Option<String>,

    /// URL of the OpenID provider.
    #[arg(long, value_name = "URL", env = "PAVED_PORTAL_OIDC_ISSUER", help_heading = "Sign-in")]
    pub(crate) oidc_issuer: Option<String>,

    /// Client ID of the portal at the OpenID provider.
    #[arg(long, value_name = "ID", env = "PAVED_PORTAL_OIDC_CLIENT_ID", help_heading = "Sign-in")]
    pub(crate) oidc_client_id: Option<String>,

    /// File with the client secret [default: none; the portal is a public client with PKCE].
    #[arg(
        long,
        value_name = "FILE",
        env = "PAVED_PORTAL_OIDC_CLIENT_SECRET_FILE",
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_client_secret_file: Option<PathBuf>,

    /// Scope to request besides openid. Repeatable [default: profile, email, groups].
    #[arg(
        long,
        value_name = "SCOPE",
        env = "PAVED_PORTAL_OIDC_SCOPES",
        value_delimiter = ',',
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_scopes: Vec<String>,

    /// Token claim with the user name [default: email].
    #[arg(
        long,
        value_name = "CLAIM",
        env = "PAVED_PORTAL_OIDC_USERNAME_CLAIM",
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_username_claim: Option<String>,

    /// Token claim with the groups [default: groups].
    #[arg(
        long,
        value_name = "CLAIM",
        env = "PAVED_PORTAL_OIDC_GROUPS_CLAIM",
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_groups_claim: Option<String>,

    /// Prefix of user names, as in the API server's own flag, for example oidc: (- means none).
    #[arg(
        long,
        value_name = "TEXT",
        env = "PAVED_PORTAL_OIDC_USERNAME_PREFIX",
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_username_prefix: Option<String>,

    /// Prefix of group names, as in the API server's own flag.
    #[arg(
        long,
        value_name = "TEXT",
        env = "PAVED_PORTAL_OIDC_GROUPS_PREFIX",
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_groups_prefix: Option<String>,

    /// File with CA certificates (PEM) of the OpenID provider, besides the system's certificates.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_OIDC_CA_FILE", help_heading = "Sign-in")]
    pub(crate) oidc_ca_file: Option<PathBuf>,

    /// Key file (32 random bytes or more). Repeatable: the first key encrypts, all keys decrypt.
    #[arg(
        long,
        value_name = "FILE",
        env = "PAVED_PORTAL_SESSION_KEY_FILE",
        value_delimiter = ',',
        help_heading = "Sign-in"
    )]
    pub(crate) session_key_file: Vec<PathBuf>,

    /// Lifetime of a session, for example 30m or 8h [default: 1h].
    #[arg(
        long,
        value_name = "DURATION",
        env = "PAVED_PORTAL_SESSION_TTL",
        help_heading = "Sign-in"
    )]
    pub(crate) session_ttl: Option<String>,

    /// Template of the default namespace: team-{group} or {user}. Skips groups without rights.
    #[arg(long, value_name = "TEMPLATE", env = "PAVED_PORTAL_NAMESPACE_TEMPLATE")]
    pub(crate) namespace_template: Option<String>,

    /// APIs for new environments: claims, namespaced or both, if a cluster has both [default: claims].
    #[arg(long, value_name = "APIS", env = "PAVED_PORTAL_APIS")]
    pub(crate) apis: Option<String>,

    /// Log level: error, warn, info or debug [default: info].
    #[arg(long, value_name = "LEVEL", env = "PAVED_PORTAL_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,

    /// Whether the portal may listen on any address without authentication.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) is_demo: bool,
}

impl Flags {
    /// The flags for a cluster that is not real: no authentication, on any address.
    pub fn demo(listen: SocketAddr) -> Self {
        Self {
            listen: Some(listen.to_string()),
            auth: Some("none".to_owned()),
            log_level: Some("warn".to_owned()),
            is_demo: true,
            ..Self::default()
        }
    }
}
