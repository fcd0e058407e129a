//! The state that a provider reports.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::models::Managed;
use crate::value::{Object, at};

/// The reported state of a managed resource, with the fields of the model. The providers' schemas
/// in tests have only these fields, so code must not read others.
pub(crate) fn status_of<M: Managed>(object: &Object) -> Option<M::Status> {
    status(object)
}

/// The reported state, with the fields of a type.
pub(crate) fn status<S: DeserializeOwned>(object: &Object) -> Option<S> {
    at(object, &["status", "atProvider"]).and_then(lenient)
}

/// Reads a value. A malformed field is left out, and the other fields are kept.
pub(crate) fn lenient<T: DeserializeOwned>(source: &Value) -> Option<T> {
    if let Ok(value) = T::deserialize(source) {
        return Some(value);
    }
    let mut rest = source.clone();
    loop {
        match serde_path_to_error::deserialize::<_, T>(&rest) {
            Ok(value) => return Some(value),
            Err(error) => {
                let path = error.path().to_string();
                let field = path.split(['.', '[']).next()?;
                rest.as_object_mut()?.remove(field)?;
            }
        }
    }
}
