//! The composite resource (XR) of a request: its identity, its claim and its scope.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::error::Error;
use crate::fingerprint::{fingerprint, hash};
use crate::models::Scope;
use crate::value::{self, Object, at, text};

/// A Secret's name and namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
}

/// The observed composite resource.
#[derive(Clone, Debug)]
pub struct Composite {
    /// `apiVersion`. The platform team chose its group.
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.name`, at most 63 characters.
    pub name: String,
    /// `metadata.namespace` of a namespaced XR.
    pub namespace: Option<String>,
    /// `metadata.uid`. Empty in a local preview of a manifest without a uid.
    pub uid: String,
    /// `metadata.generation`. `None` in a local preview.
    pub generation: Option<i64>,
    /// Name and namespace of the claim, if there is one.
    pub claim: Option<(String, String)>,
    /// `apiVersion` and `kind` of the claim, if the composite has them.
    pub claim_type: Option<(String, String)>,
    /// The scope of the XR and its resources.
    pub scope: Scope,
    /// The Secret for the XR's connection details, which Crossplane writes (claims API only).
    pub connection_secret: Option<SecretName>,
    /// `metadata.creationTimestamp`. `None` in a local preview.
    pub created: Option<Timestamp>,
    /// The latest write by the API server's clock. `None` in a local preview.
    pub written: Option<Timestamp>,
    /// Name of the Composition that Crossplane selected.
    pub composition: Option<String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// `metadata.labels`. Crossplane copies the labels of a claim.
    pub labels: BTreeMap<String, String>,
    /// `spec`, without Crossplane's own fields and without `lifecycle`.
    pub spec: Value,
    /// `spec.lifecycle`, as it was written.
    pub lifecycle: Option<Value>,
    /// Hash of the `spec`: see [`spec_hash`]. Absent in a preview.
    pub spec_hash: Option<String>,
    /// `status`, as last stored.
    pub status: Object,
    /// Kind and name of all resources that Crossplane set out to create.
    pub resource_refs: Vec<(String, String)>,
    /// The XR's own connection details, as published before.
    pub connection: BTreeMap<String, Vec<u8>>,
}

impl Composite {
    /// Reads the XR. `connection` are its connection details.
    pub fn read(mut xr: Object, connection: BTreeMap<String, Vec<u8>>) -> Result<Self, Error> {
        let not_empty = |path: &[&str]| owned(&xr, path).filter(|text| !text.is_empty());
        let missing = || Error::spec("metadata.name", "missing; a composite must have a name");
        let name = not_empty(&["metadata", "name"]).ok_or_else(missing)?;
        let namespace = not_empty(&["metadata", "namespace"]);
        let scope = scope(&xr, namespace.as_deref())?;
        let resource_refs = resource_refs(&xr);
        let composition = owned(&xr, &["spec", "crossplane", "compositionRef", "name"])
            .or_else(|| owned(&xr, &["spec", "compositionRef", "name"]));
        let claim = Claim::read(&xr, scope);
        let mut spec = own_fields(xr.remove("spec").unwrap_or_default());
        // Without a generation the spec is not stored, so no client waits for its hash.
        let generation = at(&xr, &["metadata", "generation"]).and_then(Value::as_i64);
        let spec_hash = generation.map(|_| spec_hash(&spec));
        let lifecycle = spec.as_object_mut().and_then(|fields| fields.remove("lifecycle"));
        Ok(Self {
            created: created(&xr),
            written: written(&xr),
            composition,
            annotations: texts(&xr, "annotations"),
            labels: texts(&xr, "labels"),
            api_version: owned(&xr, &["apiVersion"]).unwrap_or_default(),
            kind: owned(&xr, &["kind"]).unwrap_or_default(),
            uid: owned(&xr, &["metadata", "uid"]).unwrap_or_default(),
            generation,
            resource_refs,
            status: match xr.remove("status") {
                Some(Value::Object(status)) => status,
                _ => Object::new(),
            },
            spec,
            lifecycle,
            spec_hash,
            name,
            namespace,
            claim: claim.name,
            claim_type: claim.kind,
            scope,
            connection_secret: claim.connection_secret,
            connection,
        })
    }

    /// The user's namespace: the namespace of the claim, or the XR's own.
    pub fn user_namespace(&self) -> Option<&str> {
        self.namespace
            .as_deref()
            .or_else(|| self.claim.as_ref().map(|(_, namespace)| namespace.as_str()))
    }

    /// The name and namespace that the user chose: those of the claim, or the XR's own. `what` is
    /// the object of the error message that needs a namespace.
    ///
    /// # Errors
    /// A composite of the claims API without a claim.
    pub fn asked_as(&self, what: &str) -> Result<(&str, &str), Error> {
        match (&self.namespace, &self.claim) {
            (Some(namespace), _) => Ok((&self.name, namespace)),
            (None, Some((name, namespace))) => Ok((name, namespace)),
            (None, None) => {
                let message = format!(
                    "missing; allowed: a claim, because {what} is in the namespace of the \
                             claim"
                );
                Err(Error::spec("spec.claimRef", message))
            }
        }
    }

    /// Five characters that distinguish this XR from other XRs with its name.
    pub fn uid5(&self) -> String {
        self.uid(5)
    }

    /// The first `length` letters and digits of the XR's uid. Without a uid, in a local preview,
    /// those of a hash of its name.
    pub fn uid(&self, length: usize) -> String {
        let known = self.uid.chars().filter(char::is_ascii_alphanumeric).take(length);
        let uid = known.collect::<String>().to_ascii_lowercase();
        if uid.len() == length {
            return uid;
        }
        hash(&format!("{}/{}", self.namespace.as_deref().unwrap_or_default(), self.name), length)
    }
}

/// The fields of a composite that come from its claim.
#[derive(Default)]
struct Claim {
    name: Option<(String, String)>,
    kind: Option<(String, String)>,
    connection_secret: Option<SecretName>,
}

impl Claim {
    fn read(xr: &Object, scope: Scope) -> Self {
        if scope != Scope::LegacyCluster {
            return Self::default();
        }
        let pair = |object: &str, [first, second]: [&str; 2]| {
            Some((owned(xr, &["spec", object, first])?, owned(xr, &["spec", object, second])?))
        };
        let name = pair("claimRef", ["name", "namespace"]);
        let kind = name.as_ref().and_then(|_| pair("claimRef", ["apiVersion", "kind"]));
        let secret = pair("writeConnectionSecretToRef", ["name", "namespace"]);
        let secret = secret.map(|(name, namespace)| SecretName { name, namespace });
        Self { name, kind, connection_secret: secret }
    }
}

fn owned(xr: &Object, path: &[&str]) -> Option<String> {
    text(xr, path).map(str::to_owned)
}

/// The texts of a map in `metadata`.
fn texts(xr: &Object, field: &str) -> BTreeMap<String, String> {
    let texts = at(xr, &["metadata", field]).and_then(Value::as_object);
    let texts = texts.into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The fields of a `spec` that belong to the API.
fn own_fields(mut spec: Value) -> Value {
    if let Value::Object(fields) = &mut spec {
        fields.retain(|field, _| !crossplane::spec::FIELDS.contains(&field.as_str()));
    }
    spec
}

/// The hash of a `spec` for [`CommonStatus`](crate::status::CommonStatus). A claim and its
/// composite have the same hash. Crossplane's fields, nulls and the notation of numbers make no
/// difference.
pub fn spec_hash(spec: &Value) -> String {
    let Value::Object(own) = own_fields(spec.clone()) else { return fingerprint("") };
    let mut own = Value::Object(value::object(value::structure(own)));
    drop_nulls(&mut own);
    fingerprint(&own.to_string())
}

/// The API server drops some nulls, and Crossplane drops others.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn scope(xr: &Object, namespace: Option<&str>) -> Result<Scope, Error> {
    if namespace.is_some() {
        return Ok(Scope::Namespaced);
    }
    if at(xr, &["spec", "crossplane"]).is_some_and(Value::is_object) {
        let message = "missing, because the XRD has scope Cluster; allowed: an XRD with scope \
                       Namespaced, \
                       or with claims (XRD v1)";
        return Err(Error::spec("metadata.namespace", message));
    }
    Ok(Scope::LegacyCluster)
}

/// The creation of an object.
fn created(object: &Object) -> Option<Timestamp> {
    text(object, &["metadata", "creationTimestamp"])?.parse().ok()
}

/// The latest write of an object by the API server's clock.
fn written(object: &Object) -> Option<Timestamp> {
    let fields = at(object, &["metadata", "managedFields"]).and_then(Value::as_array);
    let times = fields.into_iter().flatten().filter_map(|entry| entry["time"].as_str());
    times.filter_map(|time| time.parse().ok()).max()
}

fn resource_refs(xr: &Object) -> Vec<(String, String)> {
    let refs = at(xr, &["spec", "crossplane", "resourceRefs"])
        .or_else(|| at(xr, &["spec", "resourceRefs"]))
        .and_then(Value::as_array);
    let named = |entry: &Value| {
        let kind = entry.get("kind")?.as_str()?;
        let name = entry.get("name")?.as_str().filter(|name| !name.is_empty())?;
        Some((kind.to_owned(), name.to_owned()))
    };
    refs.into_iter().flatten().filter_map(named).collect()
}
