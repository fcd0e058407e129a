//! Kubeconfigs for the cluster behind all virtual clusters and EKS clusters, under any address.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// A name in every API server's certificate. Clients verify this name when they connect by another
/// name.
pub const SERVER_NAME: &str = "kubernetes.default.svc";

/// An administrator's kubeconfig without an address, because a proxy routes each address.
/// `authority` is the certificate, in PEM, that signs the API server's. `token` is the
/// administrator's token.
pub fn through(proxy: &str, authority: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {
            "certificate-authority-data": BASE64_STANDARD.encode(authority),
            "proxy-url": proxy,
            "tls-server-name": SERVER_NAME,
        }}],
        "users": [{"name": "administrator", "user": {"token": token}}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "administrator"}}],
        "current-context": "cluster",
    })
}

/// The same kubeconfig with an address.
pub fn at(server: &str, kubeconfig: &Value) -> Value {
    let mut kubeconfig = kubeconfig.clone();
    kubeconfig["clusters"][0]["cluster"]["server"] = server.into();
    kubeconfig
}
