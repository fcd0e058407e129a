//! Errors of a claim, of Settings or of our own answer. Each wrong field, or else the error itself,
//! becomes a FATAL result.

use std::fmt;

use crate::diagnosis::Code;

/// A request that is not Crossplane's. The server answers it with the gRPC code `INVALID_ARGUMENT`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// The error that stopped composing. Its text is the message of `Provisioned=False`, and the name
/// of its [`code`](Error::code) is the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fields of the claim or composite are wrong.
    #[error("{}", joined(.0))]
    InvalidSpec(Vec<FieldError>),
    /// Fields of the step's input, or of the EnvironmentConfig that it names, are wrong or missing.
    #[error("{}", joined(.0))]
    InvalidSettings(Vec<FieldError>),
    /// Composing left out our resources that exist and were not removed by name.
    #[error(
        "not applied, because it would delete {}, which {} not removed by name. \
         Nothing was changed. This is a bug in the function; please report it",
        quoted(.0),
        if .0.len() == 1 { "exists and was" } else { "exist and were" }
    )]
    WouldDelete(Vec<String>),
    /// An earlier step of the Composition desires resources under the names of our slots.
    #[error(
        "not applied, because an earlier step of the Composition also composes {}. Nothing was \
         changed. Give the resource of that step another name",
        quoted(.0)
    )]
    SlotTaken(Vec<String>),
    /// The namespace of the environment already exists, and belongs to another owner.
    #[error(
        "namespace {0} exists, but belongs to another owner. Nothing was changed. \
         Delete this environment and create it again to get another namespace"
    )]
    NamespaceTaken(String),
    /// An object in the user's namespace has the name of an object that the environment needs.
    #[error(
        "{kind} {name} exists in namespace {namespace}, and does not belong to this environment. \
         Nothing was changed. Give the environment another name, or rename or delete the {kind}"
    )]
    ObjectExists {
        /// The kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// Paved Road has no API for the composite's kind.
    #[error("{found} is not a kind of Paved Road; allowed: {}", .known.join(", "))]
    UnsupportedKind {
        /// The kind that was found.
        found: String,
        /// The kinds that our APIs serve.
        known: Vec<&'static str>,
    },
    /// An error that no input should cause, for example a slot that is used twice.
    #[error("{0}. This is a bug in the function; please report it")]
    Defect(String),
}

impl Error {
    /// A wrong field of the claim, by its path, with the found and the allowed value.
    pub fn spec(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::InvalidSpec(vec![FieldError { path: path.into(), message: message.to_string() }])
    }

    /// A wrong or missing field of Settings, by its path below `settings.`.
    pub fn settings(path: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::InvalidSettings(vec![FieldError {
            path: format!("settings.{path}"),
            message: message.to_string(),
        }])
    }

    /// The wrong fields. Empty for an error that is not about fields.
    pub fn fields(&self) -> &[FieldError] {
        match self {
            Self::InvalidSpec(fields) | Self::InvalidSettings(fields) => fields,
            _ => &[],
        }
    }

    /// The code of the rejection.
    pub fn code(&self) -> Code {
        match self {
            Self::InvalidSpec(_) => Code::InvalidSpec,
            Self::InvalidSettings(_) => Code::InvalidSettings,
            Self::WouldDelete(_) | Self::SlotTaken(_) | Self::Defect(_) => Code::WouldDelete,
            Self::NamespaceTaken(_) => Code::NamespaceTaken,
            Self::ObjectExists { .. } => Code::ObjectExists,
            Self::UnsupportedKind { .. } => Code::UnsupportedKind,
        }
    }
}

/// An error of one field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// The field's path, for example `spec.parameters.diskGB`.
    pub path: String,
    /// The value that was found and the allowed values.
    pub message: String,
}

fn joined(fields: &[FieldError]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; also ")
}

fn quoted(slots: &[String]) -> String {
    slots.iter().map(|slot| format!("`{slot}`")).collect::<Vec<_>>().join(", ")
}
