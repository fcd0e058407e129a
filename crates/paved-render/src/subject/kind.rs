//! Finds a document's API, and whether it is a claim or a composite, in the claims API or the
//! namespaced API.

use crossplane::api_version;
use crossplane::spec::OF_CLAIMS;
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests;
use k8s_schema::Violation;
use serde_json::Value;

use crossplane::suggest;

/// The API and type of a document.
pub struct Target {
    /// The API.
    pub api: &'static dyn AnyApi,
    /// The claims API or the namespaced API.
    pub flavour: Flavour,
    /// Whether the document is a claim. Otherwise it is a composite.
    pub is_claim: bool,
    /// The API group. A company can use its own.
    pub group: String,
}

impl Target {
    /// The kind of the document.
    pub fn kind(&self) -> &'static str {
        if self.is_claim { self.api.info().claim.kind } else { self.composite() }
    }

    /// Whether objects of the document's kind have a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.is_claim || self.flavour == Flavour::Namespaced
    }

    /// The warning for a namespace in a document of a cluster-scoped kind.
    pub fn ignored_namespace(&self, document: &Value) -> Option<String> {
        let found = document["metadata"]["namespace"].as_str().filter(|_| !self.is_namespaced())?;
        let kind = self.kind();
        Some(format!(
            "metadata.namespace: found {found:?}; ignored, because {kind} is \
                      cluster-scoped"
        ))
    }

    /// The kind of the composite.
    pub fn composite(&self) -> &'static str {
        manifests::names(self.api.info(), self.flavour).kind
    }

    /// The XRD that defines the document's kind.
    pub fn xrd(&self) -> Value {
        manifests::xrd(self.api, self.flavour, &self.group)
    }
}

/// Finds the API and type of a document. A violation lists the known kinds.
pub fn find(document: &Value) -> Result<Target, Violation> {
    find_in(document, None)
}

/// The same, where a cluster or a Composition decides between the claims API and the namespaced API
/// because the document [leaves this open](is_open).
pub fn find_in(document: &Value, told: Option<Flavour>) -> Result<Target, Violation> {
    let target = target_for_kind(document, told)?;
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    let allowed = manifests::api_version(&target.group);
    if api_version == allowed {
        return Ok(target);
    }
    let found = if api_version.is_empty() { "none" } else { api_version };
    Err(violation("apiVersion", format!("found {found}; allowed: {allowed}")))
}

/// The intended document, if [`find`] rejects its apiVersion or a misspelled kind of ours. It
/// allows reporting the document's other errors too.
pub fn as_meant(document: &Value) -> Option<Value> {
    let mut meant = document.clone();
    let (kind, known) = (document["kind"].as_str()?, known());
    if !known.contains(&kind) {
        meant["kind"] = crossplane::nearest(kind, known)?.into();
    }
    let target = target_for_kind(&meant, None).ok()?;
    meant["apiVersion"] = manifests::api_version(&target.group).into();
    Some(meant)
}

/// Finds the API and type of a document by its kind, in the groups that the kind can have.
fn target_for_kind(document: &Value, told: Option<Flavour>) -> Result<Target, Violation> {
    let kind = document["kind"].as_str().unwrap_or_default();
    let group = api_version::group_of(document);
    let claim = APIS.iter().find(|api| api.info().claim.kind == kind).copied();
    let composite = function_paved_road::apis::find(kind);
    let is_claim =
        claim.is_some() && (composite.is_none() || !is_namespaced(document, group, told));
    let Some(api) = claim.filter(|_| is_claim).or(composite) else {
        return Err(violation("kind", suggest::names("kind", kind, &known())));
    };
    let flavour = if is_claim { Flavour::Claims } else { flavour(api, kind, group, document) };
    Ok(Target { api, flavour, is_claim, group: meant(group, flavour).to_owned() })
}

/// Whether the document's kind can be in the claims API or in the namespaced API. Some claims have
/// the same kind as namespaced composites, and a company's own group does not decide it.
pub fn is_open(document: &Value) -> bool {
    let kind = document["kind"].as_str().unwrap_or_default();
    let group = api_version::group_of(document);
    let mut infos = APIS.iter().map(|api| api.info());
    !is_our_group(group)
        && infos.any(|info| info.claim.kind == kind && info.namespaced.kind == kind)
}

/// Whether a document is in the namespaced API, if its kind can be a claim's or a composite's. Its
/// group decides, or else the caller, or else the fields that Crossplane added to its spec.
fn is_namespaced(document: &Value, group: &str, told: Option<Flavour>) -> bool {
    if is_our_group(group) {
        return group == namespaced_group();
    }
    let spec = &document["spec"];
    let is_claims = OF_CLAIMS.iter().any(|field| !spec[*field].is_null());
    told.map_or(!is_claims && spec["crossplane"].is_object(), |told| told == Flavour::Namespaced)
}

/// The group for a kind of this API: any domain, unless it is one of ours or a misspelling of one.
fn meant(group: &str, flavour: Flavour) -> &str {
    let is_theirs = !is_our_group(group) && manifests::group(group).is_ok();
    if is_theirs { group } else { flavour.default_group() }
}

/// The API of a composite. Its kind or its group decides if unambiguous, or else whether it has a
/// namespace.
fn flavour(api: &dyn AnyApi, kind: &str, group: &str, document: &Value) -> Flavour {
    let (legacy, namespaced) = (api.info().composite.kind, api.info().namespaced.kind);
    let lives_in_namespace =
        document["metadata"]["namespace"].is_string() || document["spec"]["crossplane"].is_object();
    match kind {
        _ if legacy != namespaced && kind == namespaced => Flavour::Namespaced,
        _ if legacy != namespaced => Flavour::Claims,
        _ if group == namespaced_group() => Flavour::Namespaced,
        _ if group == Flavour::Claims.default_group() || !lives_in_namespace => Flavour::Claims,
        _ => Flavour::Namespaced,
    }
}

/// Whether a group is one of ours, or a misspelling of one.
pub fn is_our_group(group: &str) -> bool {
    let near = |flavour: &Flavour| strsim::damerau_levenshtein(flavour.default_group(), group) <= 1;
    Flavour::ALL.iter().any(near)
}

fn namespaced_group() -> &'static str {
    Flavour::Namespaced.default_group()
}

/// All kinds that users write.
pub fn known() -> Vec<&'static str> {
    let claims = APIS.iter().map(|api| api.info().claim.kind);
    let mut known: Vec<_> = claims.chain(function_paved_road::apis::kinds()).collect();
    known.sort_unstable();
    known.dedup();
    known
}

fn violation(path: &str, message: String) -> Violation {
    Violation { path: path.to_owned(), message }
}
