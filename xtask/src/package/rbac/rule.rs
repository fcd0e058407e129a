//! Rules of roles, and roles with them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use crossplane::api_version;
use serde_json::{Value, json};

use paved_render::packages::Package;

/// The verb to read objects with known names.
pub const GET: [&str; 1] = ["get"];

/// The verbs to read.
pub const READ: [&str; 3] = ["get", "list", "watch"];

/// The verbs to read and change the user's own objects.
pub const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Rights: verbs by API group and resource. Verbs for the same resource are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Verbs on all objects of a resource.
    all: Verbs<(String, String)>,
    /// Verbs on the objects of a resource with one name.
    named: Verbs<(String, String, String)>,
}

type Verbs<K> = BTreeMap<K, BTreeSet<String>>;

impl Rights {
    /// Adds verbs on a resource.
    pub fn allow(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        let key = (group.to_owned(), resource.to_owned());
        self.all.entry(key).or_default().extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    /// Adds verbs on objects with this name, in all namespaces. Kubernetes cannot limit `create`,
    /// `list` and `watch` by name, because such requests have no name.
    pub fn allow_named(&mut self, group: &str, resource: &str, name: &str, verbs: &[&str]) {
        const WITHOUT_NAME: [&str; 3] = ["create", "list", "watch"];
        let (all, named): (Vec<&str>, Vec<&str>) =
            verbs.iter().partition(|verb| WITHOUT_NAME.contains(*verb));
        if !all.is_empty() {
            self.allow(group, resource, &all);
        }
        let key = (group.to_owned(), resource.to_owned(), name.to_owned());
        self.named.entry(key).or_default().extend(named.into_iter().map(str::to_owned));
    }

    /// The union of these and other rights.
    pub fn and(mut self, others: Self) -> Self {
        for (key, verbs) in others.all {
            self.all.entry(key).or_default().extend(verbs);
        }
        for (key, verbs) in others.named {
            self.named.entry(key).or_default().extend(verbs);
        }
        self
    }

    /// The rules of a role. Resources with the same verbs share a rule, and so do groups with the
    /// same resources. Verbs on objects with one name follow, in rules of their own.
    pub fn rules(&self) -> Vec<Value> {
        let mut resources: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
        for ((group, resource), verbs) in &self.all {
            resources.entry((group, ordered(verbs))).or_default().push(resource);
        }
        let mut groups: BTreeMap<(Vec<&str>, Vec<&str>), Vec<&str>> = BTreeMap::new();
        for ((group, verbs), resources) in resources {
            groups.entry((resources, verbs)).or_default().push(group);
        }
        let mut rules: Vec<_> = groups
            .into_iter()
            .map(|((resources, verbs), groups)| (groups, resources, verbs))
            .collect();
        rules.sort_unstable();
        let rule = |(groups, resources, verbs)| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
        let named = self.named.iter().map(|((group, resource, name), verbs)| {
            json!({"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ordered(verbs)})
        });
        rules.into_iter().map(rule).chain(named).collect()
    }

    /// A ClusterRole with these rights and a sentence about it.
    pub fn role(&self, name: &str, about: &str) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "annotations": {"kubernetes.io/description": about}},
            "rules": self.rules(),
        })
    }
}

/// Verbs in their usual order.
fn ordered(verbs: &BTreeSet<String>) -> Vec<&str> {
    let known = WRITE.iter().copied().filter(|verb| verbs.contains(*verb));
    let others = verbs.iter().map(String::as_str).filter(|verb| !WRITE.contains(verb));
    known.chain(others).collect()
}

/// The plural names of kinds.
#[derive(Default)]
pub struct Plurals(BTreeMap<(String, String), String>);

impl Plurals {
    /// Adds the names of a CRD.
    pub fn add(&mut self, definition: &Value) {
        let text = |pointer| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        self.0.insert((text("/spec/group"), text("/spec/names/kind")), text("/spec/names/plural"));
    }

    /// The resource name of an object's kind: `deployments`. For kinds of providers and of
    /// Crossplane, the CRD must be known.
    pub fn for_object(&self, object: &Value) -> Result<String> {
        let (group, kind) =
            (api_version::group_of(object), object["kind"].as_str().unwrap_or_default());
        if let Some(plural) = self.0.get(&(group.to_owned(), kind.to_owned())) {
            return Ok(plural.clone());
        }
        is_native(object)
            .then(|| native(kind))
            .with_context(|| format!("no schema of {kind} in {group}"))
    }
}

/// Whether Kubernetes itself serves an object's kind.
pub fn is_native(object: &Value) -> bool {
    let group = api_version::group_of(object);
    let is_kubernetes = !group.contains('.') || group.ends_with(".k8s.io");
    is_kubernetes && Package::serving(group).is_none()
}

/// The plural names of Kubernetes' own kinds: services, ingresses, networkpolicies.
fn native(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if lower.ends_with('s') => format!("{lower}es"),
        None => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn kubernetes_names_its_kinds_like_this() {
        let names = ["Deployment", "Ingress", "NetworkPolicy", "Secret"].map(native);
        assert_eq!(names, ["deployments", "ingresses", "networkpolicies", "secrets"]);
    }

    #[test]
    fn rights_to_the_same_resource_add_up() {
        let mut rights = Rights::default();
        rights.allow("apps", "deployments", &["patch"]);
        rights.allow("apps", "deployments", &["get"]);
        rights.allow("apps", "statefulsets", &["get", "patch"]);
        let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": ["get", "patch"]}]);
        assert_eq!(json!(rights.rules()), rules);
    }

    #[test]
    fn rights_by_name_have_separate_rules_without_create() {
        let mut rights = Rights::default();
        rights.allow_named("", "secrets", "code", &["get", "create", "delete"]);
        let rules = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["code"], "verbs": ["get", "delete"]},
        ]);
        assert_eq!(json!(rights.clone().and(rights).rules()), rules);
    }

    #[test]
    fn unknown_foreign_kind_is_an_error() {
        let object = json!({"apiVersion": "example.org/v1", "kind": "Thing"});
        assert!(Plurals::default().for_object(&object).is_err());
    }
}
