//! Checks of many fields, whose refusals are told together.

use std::fmt::Display;

use crate::error::{Error, FieldError};

/// What is wrong so far, in the order in which it was found.
#[derive(Debug, Default)]
pub struct Fields(Vec<FieldError>);

impl Fields {
    /// What a check of the field at `path` gave; a refusal is kept.
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

    /// Keeps a refusal of the field at `path`.
    pub fn refuse(&mut self, path: impl Into<String>, refused: impl Display) {
        self.0.push(FieldError { path: path.into(), message: refused.to_string() });
    }

    /// Everything that was refused.
    pub fn refused(self) -> Vec<FieldError> {
        self.0
    }

    /// Everything that was refused, as the error that it is; nothing is none.
    pub fn verdict(self, error: fn(Vec<FieldError>) -> Error) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(error(self.0)) }
    }
}
