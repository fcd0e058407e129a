//! The observation of one composed resource, as typed values.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::OWNED_LABEL;
use super::health::{self, Health};
use super::reported::status;
use super::stopped::{RUNNING, as_running};
use crate::models::CHOICE_PREFIX;
use crate::value::{Object, at, text};

/// One observed composed resource.
#[derive(Debug, Default)]
pub(crate) struct Resource {
    /// The object; a stopped one with the values that it has while it runs.
    pub object: Object,
    pub connection: BTreeMap<String, Vec<u8>>,
    /// The object as it was observed, if it is stopped.
    stopped: Option<Object>,
}

impl Resource {
    pub fn new(object: Object, connection: BTreeMap<String, Vec<u8>>) -> Self {
        match as_running(&object) {
            Some(running) => Self { object: running, connection, stopped: Some(object) },
            None => Self { object, connection, stopped: None },
        }
    }

    /// The object as it was observed.
    pub fn seen(&self) -> &Object {
        self.stopped.as_ref().unwrap_or(&self.object)
    }

    /// Whether this call finds the resource with the values of a stopped one.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Whether it has our label. Resources of other steps do not have it.
    pub fn is_ours(&self) -> bool {
        text(&self.object, &["metadata", "labels", OWNED_LABEL]) == Some("true")
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        text(&self.object, &["metadata", "annotations", key])
    }

    /// The annotations that note the choices of users.
    pub fn choices(&self) -> Vec<(String, Value)> {
        let all = at(&self.object, &["metadata", "annotations"]).and_then(Value::as_object);
        let is_choice = |key: &str| key.starts_with(CHOICE_PREFIX) && key != RUNNING;
        let notes = all.into_iter().flatten().filter(|(key, _)| is_choice(key));
        notes.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub fn name(&self) -> Option<&str> {
        text(&self.object, &["metadata", "name"])
    }

    pub fn health(&self) -> Health {
        health::from_object(self.seen())
    }

    /// The decoded data of a Secret.
    pub fn secret_data(&self) -> BTreeMap<String, Vec<u8>> {
        let decode = |(key, value): (&String, &Value)| {
            let value = base64::engine::general_purpose::STANDARD.decode(value.as_str()?).ok()?;
            Some((key.clone(), value))
        };
        let data = at(&self.object, &["data"]).and_then(Value::as_object);
        data.into_iter().flatten().filter_map(decode).collect()
    }
}

/// The observed values of a slot. Empty if the resource was not observed yet.
#[derive(Clone, Debug)]
pub struct Observed<S> {
    status: Option<S>,
    connection: BTreeMap<String, Vec<u8>>,
}

impl<S: DeserializeOwned> Observed<S> {
    pub(crate) fn read(resource: Option<&Resource>) -> Self {
        let Some(resource) = resource else {
            return Self { status: None, connection: BTreeMap::new() };
        };
        Self { status: status(&resource.object), connection: resource.connection.clone() }
    }

    /// A value of the status, if it is known.
    pub fn get<T>(&self, read: impl FnOnce(&S) -> Option<T>) -> Option<T> {
        self.status.as_ref().and_then(read)
    }

    /// A text of the status, if it is known and not empty.
    pub fn text(&self, read: impl FnOnce(&S) -> Option<String>) -> Option<String> {
        self.get(read).filter(|text| !text.is_empty())
    }

    /// A connection detail that the provider wrote.
    pub fn connection(&self, key: &str) -> Option<Vec<u8>> {
        self.connection.get(key).filter(|value| !value.is_empty()).cloned()
    }
}
