//! Creates a composite from a claim, as Crossplane does.

use crossplane::json::{at, text};
use crossplane::names::{CLAIM_NAME, CLAIM_NAMESPACE};
use crossplane::spec::KEPT_BY_CLAIMS;
use serde_json::{Map, Value, json};

use super::naming;

/// A claim that cannot have an XR.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// A required field of every claim is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The XRD defines another claim.
    #[error("kind: found {found}; the definition {xrd} has the claim {allowed}")]
    OtherKind {
        /// The claim's kind.
        found: String,
        /// The XRD's name.
        xrd: String,
        /// The kind of the XRD's claim.
        allowed: String,
    },
}

/// The composite resource that Crossplane creates from a claim: its spec without the claim's own
/// fields, the claimRef, labels and annotations. For a bound claim, the name is in
/// `spec.resourceRef`. Otherwise it is derived from the claim's UID (or namespace and name), while
/// Crossplane uses five random characters.
pub fn composite_from_claim(claim: &Value, xrd: &Value) -> Result<Value, ClaimError> {
    let name = text(claim, &["metadata", "name"]).ok_or(ClaimError::Missing("metadata.name"))?;
    let api_version = text(claim, &["apiVersion"]).ok_or(ClaimError::Missing("apiVersion"))?;
    let kind = text(claim, &["kind"]).ok_or(ClaimError::Missing("kind"))?;
    let allowed = text(xrd, &["spec", "claimNames", "kind"]).unwrap_or_default();
    if kind != allowed {
        let xrd = text(xrd, &["metadata", "name"]).unwrap_or_default().to_owned();
        return Err(ClaimError::OtherKind {
            found: kind.to_owned(),
            xrd,
            allowed: allowed.to_owned(),
        });
    }
    let composite = text(xrd, &["spec", "names", "kind"])
        .ok_or(ClaimError::Missing("spec.names.kind of the XRD"))?;
    let namespace = text(claim, &["metadata", "namespace"]).unwrap_or("default");
    let identity = text(claim, &["metadata", "uid"])
        .map_or_else(|| format!("{namespace}/{name}"), str::to_owned);
    let bound = text(claim, &["spec", "resourceRef", "name"]).map(str::to_owned);
    let mut labels = public_entries(claim, "labels");
    labels.insert(CLAIM_NAME.to_owned(), json!(name));
    labels.insert(CLAIM_NAMESPACE.to_owned(), json!(namespace));
    let mut metadata = json!({"name": bound.unwrap_or_else(|| naming::composite(name, &identity)), "labels": labels});
    let annotations = public_entries(claim, "annotations");
    if !annotations.is_empty() {
        metadata["annotations"] = Value::Object(annotations);
    }
    let mut spec = at(claim, &["spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    spec.retain(|field, _| !KEPT_BY_CLAIMS.contains(&field.as_str()));
    let claim_ref =
        json!({"apiVersion": api_version, "kind": kind, "name": name, "namespace": namespace});
    spec.insert("claimRef".to_owned(), claim_ref);
    Ok(json!({"apiVersion": api_version, "kind": composite, "metadata": metadata, "spec": spec}))
}

/// Labels or annotations without Kubernetes' reserved ones.
fn public_entries(claim: &Value, field: &str) -> Map<String, Value> {
    let mut entries =
        at(claim, &["metadata", field]).and_then(Value::as_object).cloned().unwrap_or_default();
    entries.retain(|key, _| {
        let domain = key.split('/').next().unwrap_or_default();
        !(domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io"))
    });
    entries
}
