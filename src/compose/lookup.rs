//! Objects that an answer depends on, but does not compose. The answer requests them, and
//! Crossplane calls the function again at once with the objects that it found.

use super::Composer;
use crate::value::Object;

/// An object that Crossplane looks up by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// `kind` of the object.
    pub kind: String,
    /// `metadata.namespace`. `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// `metadata.name` of the object.
    pub name: String,
}

impl Lookup {
    /// A Namespace.
    pub fn namespace(name: &str) -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// The name of the requirement. It identifies the object, because a request may contain the
    /// results for an earlier answer.
    pub fn requirement(&self) -> String {
        let namespace = self.namespace.iter().map(String::as_str);
        let words: Vec<&str> =
            [self.kind.as_str()].into_iter().chain(namespace).chain([self.name.as_str()]).collect();
        words.join("/")
    }
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'c> {
    /// Crossplane has not been asked yet.
    Unknown,
    /// The object does not exist.
    Absent,
    /// The object, as the cluster stores it.
    Present(&'c Object),
}

impl Composer<'_> {
    /// Looks up an object that the composition does not compose. The answer requests the object
    /// even if it is known. Crossplane calls again until two answers request the same objects.
    pub fn look_up(&mut self, lookup: Lookup) -> Found<'_> {
        let requirement = lookup.requirement();
        self.lookups.insert(requirement.clone(), lookup);
        match self.observation.found.get(&requirement) {
            None => Found::Unknown,
            Some(None) => Found::Absent,
            Some(Some(object)) => Found::Present(object),
        }
    }
}
