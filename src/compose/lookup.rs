//! Objects that an answer depends on and does not compose. The answer asks for them, and Crossplane
//! calls the function again at once with what it found.

use std::collections::BTreeMap;

use super::Composition;
use crate::value::Object;

/// An object that Crossplane looks up by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// `apiVersion` of the object.
    pub api_version: &'static str,
    /// `kind` of the object.
    pub kind: &'static str,
    /// `metadata.namespace`; `None` for a kind that is cluster-scoped.
    pub namespace: Option<String>,
    /// `metadata.name` of the object.
    pub name: String,
}

impl Lookup {
    /// A Namespace.
    pub fn namespace(name: &str) -> Self {
        Self { api_version: "v1", kind: "Namespace", namespace: None, name: name.to_owned() }
    }

    /// The name of the requirement. It names the object, because a request may hold what an earlier
    /// answer asked for.
    pub fn requirement(&self) -> String {
        let namespace = self.namespace.iter().map(String::as_str);
        let words: Vec<&str> =
            [self.kind].into_iter().chain(namespace).chain([self.name.as_str()]).collect();
        words.join("/")
    }
}

/// What is known of an object that Crossplane looks up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'c> {
    /// Crossplane has not been asked yet.
    Unknown,
    /// The object does not exist.
    Absent,
    /// The object, as the cluster stores it.
    Present(&'c Object),
}

impl Composition<'_> {
    /// Takes what Crossplane found, by the names of the requirements.
    pub fn take_found(&mut self, found: BTreeMap<String, Option<Object>>) {
        self.found = found;
    }

    /// An object that the composition does not compose. The answer asks for the object, also when
    /// it is known: Crossplane calls again until two answers ask for the same objects.
    pub fn look_up(&mut self, lookup: Lookup) -> Found<'_> {
        let requirement = lookup.requirement();
        self.lookups.insert(requirement.clone(), lookup);
        match self.found.get(&requirement) {
            None => Found::Unknown,
            Some(None) => Found::Absent,
            Some(Some(object)) => Found::Present(object),
        }
    }

    /// Everything that was looked up, by the names of the requirements.
    pub fn lookups(&self) -> &BTreeMap<String, Lookup> {
        &self.lookups
    }
}
