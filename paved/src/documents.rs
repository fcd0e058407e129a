//! Documents for pipes, as YAML or JSON.

use std::io;

use kube::core::DynamicObject;
use paved_client::environment::tidy;
use serde::{Serialize, Serializer, ser::Error};
use serde_json::Value;

use crate::Console;
use crate::failure::Failure;
use crate::stream::{Stream, has_command, is_harmful};

/// The format of printed documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Yaml,
    Json,
}

/// A tidy object as JSON text. Thousands of objects take a tenth of the memory this way, until they
/// are printed one by one.
pub(crate) struct Packed(String);

impl Packed {
    pub(crate) fn from_object(object: &DynamicObject) -> Self {
        Self(tidy(object).to_string())
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<Value>(&self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'i, T> {
    api_version: &'static str,
    kind: &'static str,
    items: &'i [T],
}

/// Prints documents as one List.
pub(crate) fn print_list<T: Serialize>(
    items: &[T],
    format: Format,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    print(&List { api_version: "v1", kind: "List", items }, format, console)
}

/// Prints one document.
pub(crate) fn print<T: Serialize>(
    document: &T,
    format: Format,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match format {
        Format::Yaml => {
            let text = yaml(document)?;
            console.out.whole(|out| write!(out, "{text}"))?;
        }
        Format::Json => {
            console.out.json(|out| Ok(serde_json::to_writer_pretty(out, document)?))?;
            writeln!(console.out)?;
        }
    }
    Ok(())
}

/// A document as YAML for any reader. A long line, for example of a public key, is not wrapped. A
/// document with texts that a terminal or a CI system would execute becomes JSON, which is also
/// YAML. These texts are escaped there.
pub(crate) fn yaml<T: Serialize>(document: &T) -> Result<String, Failure> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(document, options).map_err(unprintable)?;
    if has_command(&text) || text.chars().any(is_harmful) { json(document) } else { Ok(text) }
}

fn json<T: Serialize>(document: &T) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let mut stream = Stream::new(&mut bytes);
    stream.json(|out| Ok(serde_json::to_writer_pretty(out, document)?))?;
    writeln!(stream)?;
    String::from_utf8(bytes).map_err(unprintable)
}

fn unprintable(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Output(io::Error::other(error))
}
