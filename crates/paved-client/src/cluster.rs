//! The cluster: its connection, the kinds of environment that it serves, and the environments that
//! a name selects.

mod client;
mod composition;
mod connectivity;
mod error;
mod kinds;
mod path;
mod pod;
mod proxy;
mod reference;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod samples;
mod search;
mod selector;
mod served;
mod watch;

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, stderr, stdin};
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

pub use composition::{Composition, compositions};
pub use connectivity::Contact;
pub use error::{ASK, explain, is_denied, lacks_rights, one_line, refusal};
pub use kinds::{CATEGORY, Kind, Kinds, group_name};
pub use path::{Api, Segment, invalid_name};
pub use reference::Reference;
pub use search::{Found, find, find_each, pages};
pub use selector::{InvalidSelector, Selector};
pub use served::Served;
pub use watch::{WatchItem, anew, cause, watch, watch_since, while_allowed};

use crate::Failure;
use crate::names::{A_NAME, is_name};
use pod::Pod;

/// The maximum duration of connecting to a cluster.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest pause between two bytes of a response. A longer pause restarts a watch. The pause is
/// shorter than the patience with a rejected resource: stale state after a silent break of the
/// connection must not decide a wait.
const SILENCE: Duration = Duration::from_mins(2);

/// The cluster and the user of a command.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Kubeconfig. The default is `$KUBECONFIG`, `~/.kube/config`, or the service account of the
    /// pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. The default is the current context.
    pub context: Option<String>,
    /// Namespace. The default is the context's namespace.
    pub namespace: Option<String>,
    /// User to impersonate.
    pub impersonate: Option<String>,
}

/// A cluster, accessed as a user.
#[derive(Clone)]
pub struct Cluster {
    /// Sends requests as the user.
    pub client: Client,
    /// The default namespace.
    pub namespace: String,
    /// Whether the user chose this namespace by a flag.
    pub is_namespace_chosen: bool,
    /// The server's address, for messages.
    pub server: String,
}

impl Cluster {
    /// The cluster that the flags select. This sends no request, but may run a credential plugin.
    pub async fn connect(access: &Access) -> Result<Self, Failure> {
        Self::from_config(configure(access).await?, access)
    }

    /// Returns the cluster of a given client configuration. Sends no request.
    pub fn from_config(config: Config, access: &Access) -> Result<Self, Failure> {
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace =
            access.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        if !is_name(&namespace) {
            return Err(Failure::Usage(format!(
                "--namespace: found {namespace:?}; allowed: {A_NAME}"
            )));
        }
        let client = client::client(config).map_err(|error| match error {
            kube::Error::Auth(_) => explain(&error, &server, "connect"),
            other => error::unusable(&other),
        })?;
        let is_namespace_chosen = access.namespace.is_some();
        Ok(Self { client, namespace, is_namespace_chosen, server })
    }

    /// Whether this process runs in a pod of the cluster. Names of Services resolve only there.
    pub fn is_around(&self) -> bool {
        Pod::here().is_some_and(|pod| pod.is_in(&self.server))
    }

    /// Explains an error of the API server after the attempt to `act`, for example `list
    /// StockPool`.
    pub fn explain(&self, error: &kube::Error, act: &str) -> Failure {
        explain(error, &self.server, act)
    }
}

/// The client configuration for the flags.
pub async fn configure(access: &Access) -> Result<Config, Failure> {
    let mut config = configuration(access).await?;
    let user = &mut config.auth_info;
    for (field, data, file) in [
        ("client-certificate", user.client_certificate_data.is_some(), &user.client_certificate),
        ("client-key", user.client_key_data.is_some(), &user.client_key),
    ] {
        if let Some(file) = file.as_ref().filter(|_| !data)
            && let Err(error) = File::open(file)
        {
            return Err(Failure::NoAccess {
                message: format!("the kubeconfig's {field} could not be read: {file}: {error}"),
                check: "that the kubeconfig's user is correct and logged in".to_owned(),
            });
        }
    }
    // An interactive plugin writes to standard error itself. Without a terminal, we read its
    // output.
    let nobody = !stdin().is_terminal() && !stderr().is_terminal();
    if let Some(plugin) = user.exec.as_mut().filter(|_| nobody) {
        plugin.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    if let Some(user) = &access.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    Ok(config)
}

/// The context that the flags select, or the current one. `None` for a pod's service account.
///
/// # Errors
/// The kubeconfig is unreadable.
pub fn context(access: &Access) -> Result<Option<String>, Failure> {
    if access.context.is_some() {
        return Ok(access.context.clone());
    }
    match kubeconfig(access) {
        Ok(file) => Ok(file.current_context.filter(|name| !name.is_empty())),
        Err(error) if is_nowhere(&error) && may_be_in_a_pod(access) => Ok(None),
        Err(error) => Err(unreadable(&error, access)),
    }
}

fn kubeconfig(access: &Access) -> Result<Kubeconfig, KubeconfigError> {
    match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => kubeconfig_from_env(),
    }
}

/// The configuration of the kubeconfig, or else of the pod's service account.
async fn configuration(access: &Access) -> Result<Config, Failure> {
    let options =
        KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
    let kubeconfig = match kubeconfig(access) {
        Ok(kubeconfig) => kubeconfig,
        Err(error) if is_nowhere(&error) && may_be_in_a_pod(access) => {
            let pod = Pod::here().ok_or_else(|| Failure::NoAccess {
                message: "no kubeconfig, and this pod has no service account".to_owned(),
                check: "that automountServiceAccountToken of the pod is not false".to_owned(),
            })?;
            return pod.config();
        }
        Err(error) => return Err(unreadable(&error, access)),
    };
    let contexts: Vec<String> =
        kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let own_proxy = proxy::own(&kubeconfig, access.context.as_deref());
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            match (&error, &access.context) {
                (KubeconfigError::LoadContext(_), Some(asked)) => Failure::Usage(format!(
                    "--context: {}",
                    crossplane::suggest::names(
                        "context",
                        asked,
                        &contexts.iter().map(String::as_str).collect::<Vec<_>>()
                    )
                )),
                _ => unreadable(&error, access),
            }
        });
    let mut config = config?;
    config.proxy_url =
        proxy::to(&config.cluster_url, own_proxy.as_deref(), |name| std::env::var(name).ok());
    Ok(config)
}

/// Reads `$KUBECONFIG` as kubectl does. In a list of files, missing files are skipped.
fn kubeconfig_from_env() -> Result<Kubeconfig, KubeconfigError> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let listed: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    let there: Vec<&PathBuf> =
        listed.iter().filter(|path| !matches!(path.try_exists(), Ok(false))).collect();
    if listed.len() < 2 || there.is_empty() {
        return Kubeconfig::read();
    }
    there
        .into_iter()
        .try_fold(Kubeconfig::default(), |all, path| all.merge(Kubeconfig::read_from(path)?))
}

/// Whether the kubeconfig is missing. A file in `$KUBECONFIG` counts even if it is unreadable.
fn is_nowhere(error: &KubeconfigError) -> bool {
    let is_named = || std::env::var_os("KUBECONFIG").is_some_and(|named| !named.is_empty());
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(why, _) => why.kind() == ErrorKind::NotFound || !is_named(),
        _ => false,
    }
}

fn may_be_in_a_pod(access: &Access) -> bool {
    access.kubeconfig.is_none()
        && access.context.is_none()
        && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn unreadable(error: &KubeconfigError, access: &Access) -> Failure {
    let told = std::env::var_os("KUBECONFIG").filter(|told| !told.is_empty()).map(PathBuf::from);
    let told = access.kubeconfig.clone().or(told);
    if let KubeconfigError::ParseNoProxy(why) = error {
        return Failure::NoAccess {
            message: format!("$NO_PROXY is invalid: {why}"),
            check: "that it is a comma-separated list of names, addresses and networks".to_owned(),
        };
    }
    let check = "--kubeconfig, $KUBECONFIG and --context".to_owned();
    let message = match (error, told) {
        (KubeconfigError::ReadConfig(error, path), _) => {
            format!("could not read kubeconfig {}: {error}", path.display())
        }
        (error, Some(path)) => format!("kubeconfig {}: {error}", path.display()),
        (error, None) => format!("kubeconfig ~/.kube/config: {error}"),
    };
    Failure::NoAccess { message: message.lines().next().unwrap_or_default().to_owned(), check }
}
