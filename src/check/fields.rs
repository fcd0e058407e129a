//! Checks of many fields, with all errors reported together.

use std::fmt::Display;

use crate::error::{Error, FieldError};

/// The errors that were found so far, in their order.
#[derive(Debug, Default)]
pub struct Fields(Vec<FieldError>);

impl Fields {
    /// Returns the value of a check of the field at `path`, or records its error.
    pub fn check<T, E: Display>(
        &mut self,
        path: impl Into<String>,
        checked: Result<T, E>,
    ) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(refused) => {
                self.refuse(path, refused);
                None
            }
        }
    }

    /// Records an error of the field at `path`.
    pub fn refuse(&mut self, path: impl Into<String>, refused: impl Display) {
        self.0.push(FieldError { path: path.into(), message: refused.to_string() });
    }

    /// The recorded errors.
    pub fn refused(self) -> Vec<FieldError> {
        self.0
    }

    /// Returns the recorded errors as one error, or `Ok` if there are none.
    pub fn verdict(self, error: fn(Vec<FieldError>) -> Error) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(error(self.0)) }
    }
}
