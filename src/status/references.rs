//! Which resource of an environment refers to which: a resource waits only for resources that it
//! refers to.

use std::collections::{BTreeMap, BTreeSet};

use crossplane::api_version;
use crossplane::names::EXTERNAL_NAME;
use serde_json::Value;

use super::is_common;
use crate::compose::Desired;
use crate::power::Composed;
use crate::value::{Object, at, text};

/// The slots that each slot refers to, directly or through others.
pub(super) struct References(BTreeMap<String, BTreeSet<String>>);

/// Fields of a spec that only inform people. A name there is not a reference.
const WORDS: [&str; 6] =
    ["tags", "labels", "resourceLabels", "userLabels", "description", "annotations"];

/// The shortest name that identifies a resource in another one.
const MIN_NAME_LEN: usize = 4;

impl References {
    /// The references of the resources that a call composes.
    pub fn new(composed: &Composed<'_>) -> Self {
        let parts: Vec<Part<'_>> = composed
            .desired
            .iter()
            .map(|(slot, desired)| Part::new(slot, desired, composed))
            .collect();
        let mut direct: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for part in &parts {
            let mut found = part.named(&parts);
            found.extend(part.selected(&parts));
            found.extend(part.around(&parts));
            found.remove(part.slot);
            direct.entry(part.slot).or_default().extend(found);
            if let Some((of, by)) = part.usage(&parts) {
                direct.entry(by).or_default().insert(of);
            }
        }
        let all = |slot: &str| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&str> = direct.get(slot).into_iter().flatten().copied().collect();
            while let Some(one) = next.pop() {
                if one != slot && reached.insert(one.to_owned()) {
                    next.extend(direct.get(one).into_iter().flatten().copied());
                }
            }
            reached
        };
        Self(direct.keys().map(|slot| ((*slot).to_owned(), all(slot))).collect())
    }

    /// The slots that a slot refers to.
    pub fn of(&self, slot: &str) -> impl Iterator<Item = &str> {
        self.0.get(slot).into_iter().flatten().map(String::as_str)
    }

    /// Whether a slot refers to another one.
    pub fn has(&self, slot: &str, other: &str) -> bool {
        self.0.get(slot).is_some_and(|others| others.contains(other))
    }
}

/// A resource, with its names in references of other resources.
struct Part<'c> {
    slot: &'c str,
    kind: &'c str,
    object: &'c Object,
    names: Vec<&'c str>,
    /// Whether the environment composes its provider config. Such a resource is inside a cluster of
    /// the environment.
    is_inside: bool,
}

impl<'c> Part<'c> {
    fn new(slot: &'c str, desired: &'c Desired, composed: &'c Composed<'_>) -> Self {
        let object = &desired.object;
        let observed = composed.observation.resources.get(slot);
        let paths: [&[&str]; 4] = [
            &["metadata", "name"],
            &["metadata", "annotations", EXTERNAL_NAME],
            &["spec", "writeConnectionSecretToRef", "name"],
            &["spec", "forProvider", "manifest", "metadata", "name"],
        ];
        let mut names: Vec<&str> = paths.iter().filter_map(|path| text(object, path)).collect();
        names.extend(observed.and_then(|observed| observed.name()));
        names.extend(observed.and_then(|observed| observed.annotation(EXTERNAL_NAME)));
        names.retain(|name| name.len() >= MIN_NAME_LEN);
        Self {
            slot,
            kind: text(object, &["kind"]).unwrap_or_default(),
            object,
            names,
            is_inside: composed.is_inside(object),
        }
    }

    /// The slots of resources with a name in the spec.
    fn named(&self, parts: &[Part<'c>]) -> BTreeSet<&'c str> {
        let mut words = BTreeSet::new();
        if self.kind != "Usage" {
            collect(self.object.get("spec").unwrap_or(&Value::Null), &mut words);
        }
        let is_named = |other: &&Part<'c>| other.names.iter().any(|name| words.contains(name));
        parts.iter().filter(is_named).map(|other| other.slot).collect()
    }

    /// The slots of resources that a selector of the spec selects: by labels, or by the kind that
    /// the field names.
    fn selected(&self, parts: &[Part<'c>]) -> BTreeSet<&'c str> {
        let fields = at(self.object, &["spec", "forProvider"]).and_then(Value::as_object);
        let mut found = BTreeSet::new();
        if let Some(fields) = fields {
            selectors(fields, &mut |field, selector| {
                let labels = at(selector, &["matchLabels"]).and_then(Value::as_object);
                found.extend(match labels.filter(|labels| !labels.is_empty()) {
                    Some(labels) => with_labels(labels, parts),
                    None => of_field(field, parts),
                });
            });
        }
        found
    }

    /// For a resource inside a cluster, the slots of all resources outside of it.
    fn around(&self, parts: &[Part<'c>]) -> BTreeSet<&'c str> {
        let is_around = |other: &&Part<'c>| self.is_inside && !other.is_inside;
        let is_resource = |other: &&Part<'c>| other.kind != "Usage";
        parts.iter().filter(is_around).filter(is_resource).map(|other| other.slot).collect()
    }

    /// The used and the using slot of a Usage. The using resource needs the used one.
    fn usage(&self, parts: &[Part<'c>]) -> Option<(&'c str, &'c str)> {
        if self.kind != "Usage" {
            return None;
        }
        let end = |end: &str| {
            let kind = text(self.object, &["spec", end, "kind"])?;
            let group = api_version::group(text(self.object, &["spec", end, "apiVersion"])?);
            let name = text(self.object, &["spec", end, "resourceRef", "name"])?;
            let is_end = |part: &&Part<'c>| {
                let version = text(part.object, &["apiVersion"]).unwrap_or_default();
                part.kind == kind
                    && part.names.contains(&name)
                    && api_version::group(version) == group
            };
            parts.iter().find(is_end).map(|part| part.slot)
        };
        end("of").zip(end("by"))
    }
}

fn with_labels<'c>(labels: &Object, parts: &[Part<'c>]) -> Vec<&'c str> {
    let has = |part: &&Part<'c>| {
        labels.iter().all(|(key, value)| {
            at(part.object, &["metadata", "labels", key]).is_some_and(|own| own == value)
        })
    };
    parts.iter().filter(has).map(|part| part.slot).collect()
}

/// The slots of the kind that a field names, for example `vpcSecurityGroupIdSelector`.
fn of_field<'c>(field: &str, parts: &[Part<'c>]) -> Vec<&'c str> {
    let field = field.trim_end_matches("Selector").to_ascii_lowercase();
    let of = |fits: &dyn Fn(&str) -> bool| -> Vec<&Part<'c>> {
        parts.iter().filter(|part| fits(&part.kind.to_ascii_lowercase())).collect()
    };
    let mut found = of(&|kind| field.contains(kind));
    if found.is_empty() {
        found = of(&|kind| kind.ends_with(&field));
    }
    let longest = found.iter().map(|part| part.kind.len()).max();
    found
        .into_iter()
        .filter(|part| Some(part.kind.len()) == longest)
        .map(|part| part.slot)
        .collect()
}

/// Calls `act` with each selector of references among fields.
fn selectors<'o>(fields: &'o Object, act: &mut impl FnMut(&str, &'o Object)) {
    for (field, value) in fields {
        match value {
            Value::Object(selector) if field.ends_with("Selector") => act(field, selector),
            Value::Object(inner) => selectors(inner, act),
            Value::Array(items) => {
                for item in items.iter().filter_map(Value::as_object) {
                    selectors(item, act);
                }
            }
            _ => {}
        }
    }
}

/// The texts of a value, and the words of texts, for example of ARNs, addresses and policies.
fn collect<'v>(value: &'v Value, words: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => {
            words.insert(text);
            if text.contains([':', '/', '"']) || text.contains('.') {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                words.extend(text.split(|c| !is_name(c)));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(field, _)| !WORDS.contains(&field.as_str()));
            fields.for_each(|(_, value)| collect(value, words));
        }
        _ => {}
    }
}

impl Composed<'_> {
    /// Whether a resource is inside a cluster of the environment: its provider config is one that
    /// the environment composes.
    pub(super) fn is_inside(&self, object: &Object) -> bool {
        let Some(config) = text(object, &["spec", "providerConfigRef", "name"]) else {
            return false;
        };
        self.desired.values().any(|desired| {
            let kind = text(&desired.object, &["kind"]).unwrap_or_default();
            kind.ends_with("ProviderConfig")
                && text(&desired.object, &["metadata", "name"]) == Some(config)
        })
    }

    /// The host that a resource cannot reach, in words, if the host belongs to the environment: it
    /// is an endpoint in the status of the environment or of one of its resources, or a service in
    /// one of its namespaces. For a resource inside a cluster, every service does. The address of
    /// that cluster is among the connection details, and may be redacted.
    pub(super) fn own_host(&self, host: Option<&str>, slot: &str) -> Option<String> {
        let object = self.desired.get(slot).map(|desired| &desired.object);
        let is_inside = object.is_some_and(|object| self.is_inside(object));
        let Some(host) = host else {
            return is_inside.then(|| "its cluster".to_owned());
        };
        let service = host.strip_suffix(".cluster.local").unwrap_or(host).strip_suffix(".svc");
        let is_own = if let Some(service) = service {
            let namespace = service.rsplit('.').next().unwrap_or_default();
            is_inside
                || self.desired.values().any(|desired| has_namespace(&desired.object, namespace))
        } else {
            let own = self.observation.xr.status.iter().filter(|(field, _)| !is_common(field));
            let observed = self.observation.resources.values();
            let reported =
                observed.filter_map(|observed| at(&observed.object, &["status", "atProvider"]));
            own.map(|(_, value)| value).chain(reported).any(|value| has_host(value, host))
        };
        is_own.then(|| host.to_owned())
    }
}

/// Whether a resource is, or installs into, a namespace.
fn has_namespace(object: &Object, namespace: &str) -> bool {
    let manifest: [&[&str]; 3] = [
        &["spec", "forProvider", "namespace"],
        &["spec", "forProvider", "manifest", "metadata", "namespace"],
        &["metadata", "namespace"],
    ];
    let is_wrapped = text(object, &["spec", "forProvider", "manifest", "kind"])
        == Some("Namespace")
        && text(object, &["spec", "forProvider", "manifest", "metadata", "name"])
            == Some(namespace);
    is_wrapped || manifest.iter().any(|path| text(object, path) == Some(namespace))
}

/// Whether a value has an address with this host.
fn has_host(value: &Value, host: &str) -> bool {
    match value {
        Value::String(text) => {
            let rest = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
            rest.split([':', '/']).next().is_some_and(|found| found == host)
        }
        Value::Array(items) => items.iter().any(|item| has_host(item, host)),
        Value::Object(fields) => fields.values().any(|value| has_host(value, host)),
        _ => false,
    }
}
