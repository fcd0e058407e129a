//! The pod of this process, if any: its cluster and its service account.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kube::Config;

use crate::Failure;

/// The folder of a service account's files in a pod.
const FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The names of the API server inside its cluster, in addition to its address.
const NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A pod with a service account.
#[derive(Debug)]
pub(super) struct Pod {
    host: String,
    port: String,
    files: PathBuf,
}

impl Pod {
    /// The pod of this process. The variables alone are not proof: they may be inherited or set by
    /// hand.
    pub(super) fn here() -> Option<Self> {
        Self::from_env(|name| std::env::var_os(name), Path::new(FILES))
    }

    fn from_env(variable: impl Fn(&str) -> Option<OsString>, files: &Path) -> Option<Self> {
        let read = |name: &str| variable(name)?.into_string().ok().filter(|text| !text.is_empty());
        let (host, port) = (read("KUBERNETES_SERVICE_HOST")?, read("KUBERNETES_SERVICE_PORT")?);
        files.join("token").exists().then(|| Self { host, port, files: files.to_owned() })
    }

    /// Whether this is the address of the pod's own cluster.
    pub(super) fn is_in(&self, server: &str) -> bool {
        let Some(rest) = server.strip_prefix("https://") else { return false };
        let place = rest.split('/').next().unwrap_or_default();
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (place, "443"),
        };
        let host = host.trim_matches(['[', ']']);
        (host == self.host && port == self.port) || NAMES.contains(&host)
    }

    /// The configuration for the pod's cluster, with the service account. The client regularly
    /// rereads the token and the certificate authority.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let file = |name: &str| self.files.join(name);
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let url = format!("https://{host}:{}", self.port);
        let parsed = url.parse().map_err(|_| Failure::NoAccess {
            message: format!(
                "no kubeconfig, and the address of this pod's cluster is invalid: \
                 {url}"
            ),
            check: "$KUBERNETES_SERVICE_HOST and $KUBERNETES_SERVICE_PORT".to_owned(),
        })?;
        let mut config = Config::new(parsed);
        config.root_cert_file = Some(file("ca.crt"));
        config.auth_info.token_file = Some(file("token").display().to_string());
        if let Ok(namespace) = fs::read_to_string(file("namespace")) {
            namespace.trim().clone_into(&mut config.default_namespace);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pod(host: &str, files: &Path) -> Option<Pod> {
        let variable = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some(host.into()),
            "KUBERNETES_SERVICE_PORT" => Some("6443".into()),
            _ => None,
        };
        Pod::from_env(variable, files)
    }

    fn files() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("token", "t"), ("namespace", "team\n"), ("ca.crt", "")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn config_in_a_pod_uses_its_service_account() {
        let files = files();
        for (host, server) in
            [("10.96.0.1", "https://10.96.0.1:6443/"), ("fd00::1", "https://[fd00::1]:6443/")]
        {
            let pod = pod(host, files.path()).unwrap();
            let config = pod.config().unwrap();
            assert_eq!(config.cluster_url.to_string(), server);
            assert_eq!(config.default_namespace, "team");
            assert_eq!(
                config.auth_info.token_file.clone().unwrap(),
                files.path().join("token").display().to_string()
            );
            assert_eq!(config.root_cert_file.clone().unwrap(), files.path().join("ca.crt"));
            assert!(pod.is_in(server), "{server}");
        }
    }

    #[test]
    fn variables_alone_make_no_pod() {
        assert!(pod("10.96.0.1", Path::new("/no/such/folder")).is_none());
        assert!(Pod::from_env(|_| None, files().path()).is_none());
    }

    #[test]
    fn other_cluster_is_not_the_cluster_of_the_pod() {
        let files = files();
        let pod = pod("10.96.0.1", files.path()).unwrap();
        for (server, inside) in [
            ("https://10.96.0.1:6443", true),
            ("https://kubernetes.default.svc", true),
            ("https://10.96.0.1", false),
            ("https://10.96.0.2:6443", false),
            ("https://k.example.org", false),
        ] {
            assert_eq!(pod.is_in(server), inside, "{server}");
        }
    }
}
