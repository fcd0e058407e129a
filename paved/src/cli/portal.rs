//! Flags of `paved portal`. Each but those of the cluster can also stand in the environment, or in the file that `--config` names under the
//! same name.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::Access;

pub(super) const HELP: &str = "\
Every flag can also be given as PAVED_PORTAL_<FLAG> in the environment, or as `flag: value` in the file that --config names:
flags win over the environment, and the environment over the file. --kubeconfig, --context, --namespace, --as and
--print-openapi are flags only.

Examples:
  paved portal --auth none                    on this machine, with the kubeconfig's own rights
  paved portal --config portal.yaml --listen 0.0.0.0:8443
  paved portal --print-openapi >openapi.json

Exit codes:
  0  stopped by a signal
  1  usage: a bad flag, an unreadable file, an address that is taken
  6  no access: the cluster does not answer, or does not let the portal read what it needs";

/// Flags of `paved portal`. Values are text, so that a mistake is told in the same words wherever it stands.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Portal {
    /// A YAML file with these flags.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// Print the description of the API (OpenAPI) and end: no cluster is needed.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) print_openapi: bool,

    /// Address and port to listen on [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS:PORT", env = "PAVED_PORTAL_LISTEN")]
    pub(crate) listen: Option<String>,

    /// The certificate (PEM, with its chain), where no proxy ends TLS; read again when it changes.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,

    /// How browsers reach the portal, such as https://portal.example.org [default: the address listened on].
    #[arg(long, value_name = "URL", env = "PAVED_PORTAL_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,

    /// A network whose X-Forwarded-For is believed, for the addresses in the log. Repeatable.
    #[arg(long, value_name = "CIDR", env = "PAVED_PORTAL_TRUSTED_PROXY", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<String>,

    /// Who people are: oidc, or none, which means the kubeconfig's own user and a loopback address [default: oidc].
    #[arg(long, value_name = "HOW", env = "PAVED_PORTAL_AUTH", help_heading = "Sign-in")]
    pub(crate) auth: Option<String>,

    /// The OpenID provider.
    #[arg(long, value_name = "URL", env = "PAVED_PORTAL_OIDC_ISSUER", help_heading = "Sign-in")]
    pub(crate) oidc_issuer: Option<String>,

    /// Client ID at the provider.
    #[arg(long, value_name = "ID", env = "PAVED_PORTAL_OIDC_CLIENT_ID", help_heading = "Sign-in")]
    pub(crate) oidc_client_id: Option<String>,

    /// A file with the portal's secret there; without one the portal is a public client, with PKCE alone.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_OIDC_CLIENT_SECRET_FILE", help_heading = "Sign-in")]
    pub(crate) oidc_client_secret_file: Option<PathBuf>,

    /// What is asked for besides openid. Repeatable [default: profile, email, groups].
    #[arg(
        long,
        value_name = "SCOPE",
        env = "PAVED_PORTAL_OIDC_SCOPES",
        value_delimiter = ',',
        help_heading = "Sign-in"
    )]
    pub(crate) oidc_scopes: Vec<String>,

    /// The claim that holds the login [default: email].
    #[arg(long, value_name = "CLAIM", env = "PAVED_PORTAL_OIDC_USERNAME_CLAIM", help_heading = "Sign-in")]
    pub(crate) oidc_username_claim: Option<String>,

    /// The claim that holds the groups [default: groups].
    #[arg(long, value_name = "CLAIM", env = "PAVED_PORTAL_OIDC_GROUPS_CLAIM", help_heading = "Sign-in")]
    pub(crate) oidc_groups_claim: Option<String>,

    /// Prefix of user names in Kubernetes, as the API server's --oidc-username-prefix, for example oidc: (- means none).
    #[arg(long, value_name = "TEXT", env = "PAVED_PORTAL_OIDC_USERNAME_PREFIX", help_heading = "Sign-in")]
    pub(crate) oidc_username_prefix: Option<String>,

    /// Prefix of group names in Kubernetes, as the API server's --oidc-groups-prefix.
    #[arg(long, value_name = "TEXT", env = "PAVED_PORTAL_OIDC_GROUPS_PREFIX", help_heading = "Sign-in")]
    pub(crate) oidc_groups_prefix: Option<String>,

    /// A file with certificates (PEM) that the provider's is checked by, besides the system's.
    #[arg(long, value_name = "FILE", env = "PAVED_PORTAL_OIDC_CA_FILE", help_heading = "Sign-in")]
    pub(crate) oidc_ca_file: Option<PathBuf>,

    /// A file with at least 32 random bytes that sessions are encrypted with. Repeatable: the first one encrypts, all decrypt.
    #[arg(
        long,
        value_name = "FILE",
        env = "PAVED_PORTAL_SESSION_KEY_FILE",
        value_delimiter = ',',
        help_heading = "Sign-in"
    )]
    pub(crate) session_key_file: Vec<PathBuf>,

    /// How long a session lasts, such as 30m or 8h [default: 1h].
    #[arg(long, value_name = "DURATION", env = "PAVED_PORTAL_SESSION_TTL", help_heading = "Sign-in")]
    pub(crate) session_ttl: Option<String>,

    /// Where new environments go, such as team-{group} or {user}; of several groups the first whose namespace the user may create in.
    #[arg(long, value_name = "TEMPLATE", env = "PAVED_PORTAL_NAMESPACE_TEMPLATE")]
    pub(crate) namespace_template: Option<String>,

    /// What is logged: error, warn, info or debug [default: info].
    #[arg(long, value_name = "LEVEL", env = "PAVED_PORTAL_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,

    #[command(flatten)]
    #[serde(skip)]
    pub(crate) access: Access,
}
