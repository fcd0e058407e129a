//! The kinds that a cluster serves: the built-in kinds of Kubernetes and Crossplane that tests
//! need, and kinds of CRDs and XRDs.

use k8s_schema::Schemas;
use serde_json::{Value, json};

use crate::json::{list, text};
use crate::store::Key;

/// Group, version, kind, plural, and whether the kind is namespaced.
const BUILT_IN: [(&str, &str, &str, &str, bool); 21] = [
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "Service", "services", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "Event", "events", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", true),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    (
        "apiextensions.crossplane.io",
        "v1",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
        false,
    ),
    ("apiextensions.crossplane.io", "v1", "Composition", "compositions", false),
    ("apiextensions.crossplane.io", "v1beta1", "EnvironmentConfig", "environmentconfigs", false),
    (
        "apiextensions.crossplane.io",
        "v2",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
        false,
    ),
    ("pkg.crossplane.io", "v1", "Function", "functions", false),
    ("pkg.crossplane.io", "v1", "Provider", "providers", false),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
];

/// A served kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its group. Empty for the core group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub name: String,
    /// Its name in paths.
    pub plural: String,
    singular: String,
    short: Vec<String>,
    /// Its categories.
    pub categories: Vec<String>,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
    /// Whether a controller behind the API completes foreground deletions. Other objects are
    /// deleted immediately.
    pub foreground: bool,
}

/// The object or collection at a path.
#[derive(Clone, Copy)]
pub struct Place<'k, 'p> {
    /// The kind of the objects.
    pub kind: &'k Kind,
    /// Empty for all namespaces, and for kinds without a namespace.
    pub namespace: &'p str,
    /// Empty for a collection.
    pub name: &'p str,
    /// Whether it is the object's status only.
    pub is_status: bool,
}

/// All kinds, and the schemas and policies that validate writes.
pub struct Kinds {
    all: Vec<Kind>,
    schemas: Schemas,
    policies: Vec<Value>,
}

impl Kind {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The key of an object of this kind.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        let namespace = if self.namespaced { namespace } else { "" };
        Key { resource: self.resource(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `plural.group`.
    pub fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Its entry in the discovery document of one group and version.
    pub fn line(&self) -> Value {
        json!({"name": self.plural, "singularName": self.singular, "namespaced": self.namespaced, "kind": self.name,
            "verbs": VERBS, "shortNames": self.short, "categories": self.categories})
    }

    /// Its entry in the discovery document of all groups.
    pub fn aggregated(&self) -> Value {
        json!({"resource": self.plural, "responseKind": {"group": self.group, "version": self.version, "kind": self.name},
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": self.singular,
            "verbs": VERBS, "shortNames": self.short, "categories": self.categories})
    }

    /// A kind with the names in a CRD or an XRD: `kind`, `plural`, `shortNames`, `categories`.
    pub fn from_names(group: &str, version: &str, names: &Value, namespaced: bool) -> Self {
        let texts = |pointer| {
            list(names, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let name = text(names, "/kind").to_owned();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: text(names, "/plural").to_owned(),
            singular: name.to_lowercase(),
            short: texts("/shortNames"),
            categories: texts("/categories"),
            name,
            namespaced,
            foreground: false,
        }
    }

    /// The kinds of a CRD, one for each version.
    pub fn from_crd(crd: &Value) -> Vec<Self> {
        let namespaced = crd["spec"]["scope"] == "Namespaced";
        let kind = |version: &Value| {
            Self::from_names(
                text(crd, "/spec/group"),
                text(version, "/name"),
                &crd["spec"]["names"],
                namespaced,
            )
        };
        list(crd, "/spec/versions").iter().map(kind).collect()
    }
}

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

impl Kinds {
    /// The built-in kinds of Kubernetes and Crossplane, and the kinds in `more`. Objects of a kind
    /// with a schema are validated by it. The policies validate all objects.
    pub fn new(
        more: impl IntoIterator<Item = Kind>,
        schemas: Schemas,
        policies: Vec<Value>,
    ) -> Self {
        let built_in = BUILT_IN.iter().map(|(group, version, kind, plural, namespaced)| {
            Kind::from_names(group, version, &json!({"kind": kind, "plural": plural}), *namespaced)
        });
        Self { all: built_in.chain(more).collect(), schemas, policies }
    }

    /// All kinds.
    pub fn all(&self) -> &[Kind] {
        &self.all
    }

    /// The schemas that validate objects.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// The installed admission policies.
    pub fn policies(&self) -> &[Value] {
        &self.policies
    }

    /// The kind with this group, version and plural.
    pub fn called(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        self.all
            .iter()
            .find(|one| one.group == group && one.version == version && one.plural == plural)
    }

    /// The object, its status or the collection at a path: `/api/v1/namespaces/default/secrets/a`.
    pub fn locate<'p>(&self, path: &'p str) -> Option<Place<'_, 'p>> {
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match path.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, plural, name) = match rest {
            ["namespaces", namespace, plural, name @ ..] => (*namespace, *plural, name),
            [plural, name @ ..] => ("", *plural, name),
            [] => return None,
        };
        let (name, is_status) = match name {
            [] => ("", false),
            [name] => (*name, false),
            [name, "status"] => (*name, true),
            _ => return None,
        };
        Some(Place { kind: self.called(group, version, plural)?, namespace, name, is_status })
    }

    /// The path of an object, under the first version of its kind.
    pub fn path(&self, key: &Key) -> Option<String> {
        let kind = self.all.iter().find(|kind| kind.resource() == key.resource)?;
        let api = if kind.group.is_empty() { "api" } else { "apis" };
        let namespace = match key.namespace.as_str() {
            "" => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        Some(format!("/{api}/{}{namespace}/{}/{}", kind.api_version(), kind.plural, key.name))
    }

    /// The kind of an object.
    pub fn for_object(&self, object: &Value) -> Option<&Kind> {
        let version = text(object, "/apiVersion");
        self.all
            .iter()
            .find(|one| one.name == text(object, "/kind") && one.api_version() == version)
    }
}
