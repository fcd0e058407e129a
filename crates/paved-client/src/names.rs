//! Names of Kubernetes objects.

pub use crossplane::names::{IN_USE, PAUSED, SLOT};
use kube::api::ObjectMeta;

/// The name of Argo CD.
const ARGO_CD: &str = "Argo CD";

/// The name of Flux.
pub const FLUX: &str = "Flux";

/// Labels and annotations of Argo CD and Flux on the objects that they apply from Git, with the
/// name of the tool. Sources: "Resource tracking" in the documentation of Argo CD, and the API
/// references of Flux's kustomize-controller and helm-controller.
const GIT_TOOLS: [(&str, &str); 4] = [
    ("argocd.argoproj.io/tracking-id", ARGO_CD),
    ("argocd.argoproj.io/instance", ARGO_CD),
    ("kustomize.toolkit.fluxcd.io/name", FLUX),
    ("helm.toolkit.fluxcd.io/name", FLUX),
];

/// The tool that applies an object from Git, if a label or an annotation names the tool.
pub fn git_tool(metadata: &ObjectMeta) -> Option<&'static str> {
    let has = |name: &str| {
        metadata.labels.iter().chain(&metadata.annotations).any(|names| names.contains_key(name))
    };
    GIT_TOOLS.into_iter().find(|(name, _)| has(name)).map(|(_, tool)| tool)
}

/// A description of valid Kubernetes names.
pub const A_NAME: &str = "a name with lowercase letters, digits, - and .";

/// Whether a text is a valid Kubernetes name. A valid name is safe in a URL.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && text.len() <= 253 && text.chars().all(fits)
}
