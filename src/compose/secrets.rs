//! Secrets: generated once, published with the connection details, and read back from there.
//!
//! In the claims API, Crossplane writes them to the composite's own connection Secret. In the
//! namespaced API, we compose a Secret.

use base64::Engine as _;
use serde_json::Value;

use super::{CONNECTION_SLOT, Composer};
use crate::error::Error;
use crate::models::Scope;
use crate::observe::{Composite, Resource, SecretName};
use crate::value::{Object, at, text};

/// Characters of a generated password. There are 64, so that six random bits select one evenly.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Characters in a generated password: 192 bits.
const LENGTH: usize = 32;

/// A secret that we generated.
pub struct Generated {
    /// Its location: name, namespace (claims API only) and key. `None` if the composite has no
    /// connection Secret.
    pub reference: Option<(String, Option<String>, String)>,
    /// Whether it was observed there. Its consumers are created only then.
    pub published: bool,
}

impl Composer<'_> {
    /// A password under a connection key: the published password, or a new one.
    pub fn generated(&mut self, key: &str) -> Generated {
        let before = self.published(key);
        let published = before.is_some();
        let value = before.unwrap_or_else(|| self.password());
        self.secrets.add(&value);
        self.connection.insert(key.to_owned(), value);
        let reference = match self.xr.scope {
            Scope::Namespaced => Some((self.connection_secret_name(), None, key.to_owned())),
            Scope::LegacyCluster => {
                let secret = self.xr.connection_secret.clone();
                secret.map(|secret| (secret.name, Some(secret.namespace), key.to_owned()))
            }
        };
        self.unpublished |= !published && reference.is_some();
        Generated { reference, published }
    }

    /// The published value of a connection key.
    pub fn published(&self, key: &str) -> Option<Vec<u8>> {
        let value = match self.xr.scope {
            Scope::LegacyCluster => self.xr.connection.get(key).cloned(),
            Scope::Namespaced => self
                .observation
                .resources
                .get(CONNECTION_SLOT)
                .and_then(|secret| secret.secret_data().remove(key)),
        };
        value.filter(|value| !value.is_empty())
    }

    fn password(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        (self.random)(&mut bytes);
        bytes.iter().map(|byte| ALPHABET[usize::from(byte & 63)]).collect()
    }

    fn connection_secret_name(&self) -> String {
        format!("{}-{}", self.xr.name, self.api.name)
    }

    /// In the namespaced API, composes the Secret with the connection details.
    pub(super) fn compose_connection_secret(&mut self) -> Result<(), Error> {
        let wanted = !self.connection.is_empty() || self.exists(CONNECTION_SLOT);
        if self.xr.scope != Scope::Namespaced || !wanted {
            return Ok(());
        }
        let encode = |value: &Vec<u8>| {
            Value::String(base64::engine::general_purpose::STANDARD.encode(value))
        };
        // Published details that are not known now are preserved.
        let mut details = self
            .observation
            .resources
            .get(CONNECTION_SLOT)
            .map(Resource::secret_data)
            .unwrap_or_default();
        details.append(&mut self.connection);
        let data: Object =
            details.iter().map(|(key, value)| (key.clone(), encode(value))).collect();
        let mut secret = Object::new();
        secret.insert("apiVersion".into(), "v1".into());
        secret.insert("kind".into(), "Secret".into());
        secret.insert(
            "metadata".into(),
            serde_json::json!({ "name": self.connection_secret_name() }),
        );
        secret.insert("type".into(), "connection.crossplane.io/v1alpha1".into());
        secret.insert("data".into(), data.into());
        // Crossplane calls again at once if the name has to be looked up.
        if self.is_name_free(CONNECTION_SLOT, &secret)? {
            self.insert(CONNECTION_SLOT, secret, true)?;
        }
        Ok(())
    }
}

impl Composer<'_> {
    /// The Secret with the connection details of a slot's resource.
    pub fn secret_of(&self, slot: &str) -> SecretName {
        let new = self.xr.secret_named(&self.xr.object_name(slot));
        let running = self.observation.resources.get(slot).and_then(|resource| {
            at(&resource.object, &["spec", "writeConnectionSecretToRef"])?.as_object()
        });
        let field = |key| running.and_then(|reference| text(reference, &[key])).map(str::to_owned);
        SecretName {
            name: field("name").unwrap_or(new.name),
            namespace: field("namespace").unwrap_or(new.namespace),
        }
    }
}

impl Composite {
    /// `writeConnectionSecretToRef` of a managed resource: in the namespace of the composite's own
    /// Secret, or in the XR's namespace.
    pub(super) fn secret_reference(&self, name: &str) -> Object {
        self.reference_to(&self.secret_named(name))
    }

    /// The Secret that a managed resource writes: in the namespace of the composite's own Secret,
    /// or in the XR's namespace.
    pub(super) fn secret_named(&self, name: &str) -> SecretName {
        let own = || {
            self.connection_secret.as_ref().map_or("crossplane-system", |secret| &secret.namespace)
        };
        let namespace = self.namespace.as_deref().unwrap_or_else(own);
        SecretName { name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// `writeConnectionSecretToRef` for a Secret. In the namespaced API, the namespace is always
    /// the XR's.
    pub(super) fn reference_to(&self, secret: &SecretName) -> Object {
        let mut reference = Object::new();
        reference.insert("name".into(), secret.name.as_str().into());
        if self.scope == Scope::LegacyCluster {
            reference.insert("namespace".into(), secret.namespace.as_str().into());
        }
        reference
    }
}
