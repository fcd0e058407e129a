//! Golden files: the function's answers as YAML documents.
//!
//! The ready state of the claims API is whole. The other states of the claims API have their
//! differences from this file. In the namespaced API, `ready` and `nothing` have their differences
//! from the same state of the claims API, and the other states from `ready`.

mod fields;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use function_paved_road::value;
use function_proto::v1::{Ready, RunFunctionResponse};
use serde_json::{Value, json};

/// Note of a resource that the other answer has, and this answer lacks.
const REMOVED: &str = "removed";

/// Note of a native object whose differences are those from the manifest in the other answer's
/// provider-kubernetes Object.
const FROM_MANIFEST: &str = ", from its manifest";

/// The documents of an answer, or of its differences from another answer.
#[derive(PartialEq, Debug)]
pub struct Golden(BTreeMap<Title, Document>);

/// The name of a document, in the order of the documents.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Title {
    Answer,
    Composite,
    Slot(String),
}

#[derive(Clone, PartialEq, Debug)]
struct Document {
    /// `ready: TRUE` of a resource, otherwise empty. Differences also have [`REMOVED`] and
    /// [`FROM_MANIFEST`].
    note: String,
    /// An object. Differences have paths instead of fields, as `fields` describes.
    value: Value,
}

impl Golden {
    /// The documents of an answer.
    pub fn of(response: &RunFunctionResponse) -> Self {
        let desired = response.desired.clone().unwrap_or_default();
        let composite = desired.composite.unwrap_or_default();
        let object = |resource: Option<_>| resource.map(value::object).unwrap_or_default().into();
        let resources = desired.resources.into_iter().map(|(slot, resource)| {
            let note = format!("ready: {}", ready(resource.ready));
            (Title::Slot(slot), Document { note, value: object(resource.resource) })
        });
        let mut documents: BTreeMap<_, _> = resources.collect();
        let mut connection_keys: Vec<&String> = composite.connection_details.keys().collect();
        connection_keys.sort();
        let results = response.results.iter().map(|result| {
            let severity = result.severity().as_str_name();
            json!({"severity": severity, "reason": result.reason, "message": result.message})
        });
        let conditions = response.conditions.iter().map(|c| {
            let status = c.status().as_str_name();
            json!({"type": c.r#type, "status": status, "reason": c.reason, "message": c.message})
        });
        let answer = json!({
            "conditions": conditions.collect::<Vec<_>>(),
            "results": results.collect::<Vec<_>>(),
            "ttlSeconds": response.meta.as_ref()
                .and_then(|meta| meta.ttl.as_ref())
                .map(|ttl| ttl.seconds),
            "connectionKeys": connection_keys,
            "ready": ready(composite.ready),
        });
        let plain = |value| Document { note: String::new(), value };
        documents.insert(Title::Answer, plain(answer));
        documents.insert(Title::Composite, plain(object(composite.resource)));
        Self(documents)
    }

    /// The answer in the committed file with this name, rebuilt from the files it differs from.
    pub fn committed(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
        let text = fs::read_to_string(folder.join(format!("{name}.snap"))).unwrap();
        let (_, documents) = text.split_once("\n---\n").unwrap();
        let documents = Self::parse(documents);
        match base_of(name) {
            None => documents,
            Some(base) => Self::committed(&base).with(&documents),
        }
    }

    fn parse(text: &str) -> Self {
        let text = format!("\n{text}");
        let documents = text.split("\n--- # ").skip(1).map(|document| {
            let (heading, body) = document.split_once('\n').unwrap_or((document, ""));
            let (name, note) = heading.split_once(" (").unwrap_or((heading, ""));
            let title = match name {
                "answer" => Title::Answer,
                "composite" => Title::Composite,
                slot => Title::Slot(slot.to_owned()),
            };
            let note = note.trim_end_matches(')').to_owned();
            let value = if body.trim().is_empty() { json!({}) } else { yaml(body) };
            (title, Document { note, value })
        });
        Self(documents.collect())
    }

    /// The differences of this answer from another one.
    pub fn differences_from(&self, base: &Self) -> Self {
        let changed = self.0.iter().filter(|(title, document)| base.0.get(title) != Some(document));
        let changed = changed.map(|(title, document)| {
            let before = base.0.get(title).map(|document| &document.value);
            let manifest = before.and_then(manifest_in);
            let manifest = manifest.filter(|manifest| manifest["kind"] == document.value["kind"]);
            let note = manifest.map_or("", |_| FROM_MANIFEST);
            let note = format!("{}{note}", document.note);
            let before = manifest.or(before).cloned().unwrap_or_else(|| json!({}));
            let value = fields::between(&before, &document.value).into();
            (title.clone(), Document { note, value })
        });
        let removed =
            base.0.keys().filter(|title| !self.0.contains_key(title)).map(|title| {
                (title.clone(), Document { note: REMOVED.to_owned(), value: json!({}) })
            });
        Self(changed.chain(removed).collect())
    }

    /// The answer that has these differences from this one.
    fn with(mut self, differences: &Self) -> Self {
        for (title, Document { note, value }) in &differences.0 {
            let before = self.0.remove(title).map(|document| document.value);
            if note == REMOVED {
                assert!(before.is_some(), "no {title} to remove");
                continue;
            }
            let mut before = before.unwrap_or_else(|| json!({}));
            if note.ends_with(FROM_MANIFEST) {
                before = manifest_in(&before).cloned().unwrap();
            }
            fields::set_all(&mut before, value.as_object().unwrap());
            let note = note.trim_end_matches(FROM_MANIFEST).to_owned();
            self.0.insert(title.clone(), Document { note, value: before });
        }
        self
    }
}

/// The name of the golden file that another one differs from. A name is `API__FLAVOUR__STATE`.
pub fn base_of(name: &str) -> Option<String> {
    let (flavour, state) = name.rsplit_once("__").unwrap();
    let (api, flavour) = flavour.split_once("__").unwrap();
    match (flavour, state) {
        ("claims", "ready") => None,
        // Before resources exist, the answers of both APIs are closer to each other.
        ("namespaced", "ready" | "nothing") => Some(format!("{api}__claims__{state}")),
        _ => Some(format!("{api}__{flavour}__ready")),
    }
}

/// The manifest in a provider-kubernetes Object.
fn manifest_in(object: &Value) -> Option<&Value> {
    object.pointer("/spec/forProvider/manifest")
}

fn ready(ready: i32) -> &'static str {
    Ready::try_from(ready).unwrap().as_str_name().trim_start_matches("READY_")
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl fmt::Display for Golden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, Document { note, value }) in &self.0 {
            write!(f, "--- # {title}")?;
            if !note.is_empty() {
                write!(f, " ({note})")?;
            }
            writeln!(f)?;
            if *value != json!({}) {
                f.write_str(&serde_saphyr::to_string(value).unwrap())?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Composite => "composite",
            Self::Slot(slot) => slot,
        })
    }
}
