//! Kubeconfigs that lead to the cluster behind all virtual ones and EKS', whatever address each of
//! them is given.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// The name in every API server's certificate, beside its addresses, by which it is checked where
/// it is reached by another name.
pub const SERVER_NAME: &str = "kubernetes.default.svc";

/// An administrator's kubeconfig without an address: a proxy knows where each address leads.
/// `authority` is the certificate, in PEM, that signs the API server's; `token` is the
/// administrator's.
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

/// The same with an address.
pub fn at(server: &str, kubeconfig: &Value) -> Value {
    let mut kubeconfig = kubeconfig.clone();
    kubeconfig["clusters"][0]["cluster"]["server"] = server.into();
    kubeconfig
}
