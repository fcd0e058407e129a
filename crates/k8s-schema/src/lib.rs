//! An API server's checks, offline: defaults, structure and CEL rules of CRDs, including the CRDs
//! that Crossplane creates from XRDs, and [admission policies](policy).

mod crd;
mod defaults;
mod editors;
mod formats;
pub mod policy;
mod structure;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crossplane::api_version;
use crossplane::json::{at, quote, text};
use kube_cel::{CompiledSchema, ErrorKind, RootContext, Validator};
use serde_json::Value;

pub use editors::for_editors;
pub use structure::child;

/// The kinds that an API server would serve, by apiVersion and kind.
#[derive(Debug, Default)]
pub struct Schemas {
    definitions: BTreeMap<(String, String), Definition>,
}

/// One served version of one kind.
#[derive(Debug)]
pub struct Definition {
    api_version: String,
    kind: String,
    role: Role,
    namespaced: bool,
    schema: Value,
    compiled: OnceLock<CompiledSchema>,
}

/// The role of a kind in Crossplane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A kind with its own CRD: a managed resource or any other resource.
    Resource,
    /// A composite resource (XR), defined by an XRD.
    Composite,
    /// The claim of a legacy composite resource, defined by the same XRD.
    Claim,
}

/// A field or rule that an API server would reject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path of the field: `spec.parameters.diskGB`, `spec.rules[2].port`. It is empty for the
    /// object itself.
    pub path: String,
    /// The found value and the allowed values.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// A document that cannot be read as a definition.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Neither a CustomResourceDefinition nor a CompositeResourceDefinition.
    #[error(
        "{kind} {name:?} is not a definition: expected a CustomResourceDefinition or a CompositeResourceDefinition"
    )]
    NotADefinition {
        /// The document's kind, empty if it has none.
        kind: String,
        /// The document's metadata.name, empty if it has none.
        name: String,
    },
    /// A required field of every definition is missing or has another type.
    #[error("definition {name:?}: {path} is missing or malformed")]
    Malformed {
        /// The document's metadata.name.
        name: String,
        /// The field's path.
        path: String,
    },
}

impl Schemas {
    /// Reads CRDs (`apiextensions.k8s.io`) and XRDs (`apiextensions.crossplane.io`, v1 and v2). An
    /// XRD defines its composite. A LegacyCluster XRD with claim names also defines its claim.
    pub fn new<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Result<Self, SchemaError> {
        let mut definitions = BTreeMap::new();
        for document in documents {
            for definition in crd::definitions(document)? {
                definitions
                    .insert((definition.api_version.clone(), definition.kind.clone()), definition);
            }
        }
        Ok(Self { definitions })
    }

    /// The definition of a kind.
    pub fn get(&self, api_version: &str, kind: &str) -> Option<&Definition> {
        self.definitions.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// The definition of an object's kind.
    pub fn for_object(&self, object: &Value) -> Option<&Definition> {
        self.get(text(object, &["apiVersion"])?, text(object, &["kind"])?)
    }

    /// All definitions, sorted by apiVersion and kind.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.values()
    }
}

impl Definition {
    fn new(api_version: String, kind: String, role: Role, namespaced: bool, schema: Value) -> Self {
        Self { api_version, kind, role, namespaced, schema, compiled: OnceLock::new() }
    }

    /// The kind's apiVersion: `ec2.aws.upbound.io/v1beta2`.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The kind's name.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The role of the kind in Crossplane.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether objects of the kind have a namespace.
    pub fn namespaced(&self) -> bool {
        self.namespaced
    }

    /// The OpenAPI schema, with the fields that Crossplane adds.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Drops nulls where the schema does not allow them, and sets missing fields to their defaults,
    /// at all levels. An API server does the same before it validates.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::apply(object, &self.schema);
    }

    /// All violations for which an API server would reject `object`, sorted by path. Transition
    /// rules compare it with `old`, the stored object. This does not apply defaults.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Violation> {
        let mut violations = structure::validate(object, &self.schema);
        violations.extend(self.broken_rules(object, old, violations.is_empty()));
        violations.sort();
        violations.dedup();
        violations
    }

    /// Violated CEL rules. A rule that fails to evaluate is ignored while the structure is invalid,
    /// because the structure's violations are the cause.
    fn broken_rules(&self, object: &Value, old: Option<&Value>, sound: bool) -> Vec<Violation> {
        let compiled = self.compiled.get_or_init(|| kube_cel::compile_schema(&self.schema));
        let root = RootContext {
            api_version: self.api_version.clone(),
            api_group: api_version::group(&self.api_version).to_owned(),
            kind: self.kind.clone(),
        };
        let checked =
            Validator::new().validate_compiled_with_context(compiled, object, old, Some(&root));
        let broken = checked.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
        broken
            .into_iter()
            .filter(|error| sound || error.kind == ErrorKind::ValidationFailure)
            .map(|error| violation_of(object, error.field_path, &error.message))
            .collect()
    }
}

/// A violated rule as a violation. If the rule is on a plain value, the message quotes the value.
fn violation_of(object: &Value, path: String, message: &str) -> Violation {
    let keys: Vec<&str> = path.split('.').collect();
    let message = match at(object, &keys) {
        Some(value) if !(value.is_object() || value.is_array()) => {
            format!("found {}: {message}", quote(value))
        }
        _ => message.to_owned(),
    };
    Violation { path, message }
}
