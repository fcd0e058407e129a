//! The kinds that this cluster serves: Kubernetes' own as far as anybody here needs them, Crossplane's, both flavours of every API,
//! and what these compose.

use std::fs;

use anyhow::{Context, Result};
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use k8s_schema::Schemas;
use serde_json::{Map, Value, json};
use xtask::{workspace, yaml};

use crate::json::{list, text};
use crate::store::Key;

/// Group, version, kind, plural, and whether its objects live in a namespace.
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

/// A kind that is served.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its group, empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub name: String,
    /// Its name in paths.
    pub plural: String,
    singular: String,
    short: Vec<String>,
    categories: Vec<String>,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

/// What an environment's own object is made by.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kind of the claim, or of the composite that people apply.
    pub kind: Kind,
    /// The kind of the composite.
    pub composite: Kind,
    /// Its definition.
    pub xrd: Value,
    /// What composes it.
    pub composition: Value,
}

impl Recipe {
    /// Whether people apply a claim.
    pub fn is_claim(&self) -> bool {
        self.kind.name != self.composite.name || self.kind.group != self.composite.group
    }
}

/// All kinds.
pub struct Kinds {
    all: Vec<Kind>,
    recipes: Vec<Recipe>,
    schemas: Schemas,
    policies: Vec<Value>,
    /// What the platform team has decided: that which the examples need.
    pub config: Value,
}

impl Kind {
    /// `group/version`, or the version alone for the core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Where an object of it is.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        let namespace = if self.namespaced { namespace } else { "" };
        Key { resource: self.resource(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `plural.group`.
    pub fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Its line in the discovery of one group and version.
    pub fn line(&self) -> Value {
        json!({"name": self.plural, "singularName": self.singular, "namespaced": self.namespaced, "kind": self.name,
            "verbs": VERBS, "shortNames": self.short, "categories": self.categories})
    }

    /// Its line in the discovery of everything.
    pub fn aggregated(&self) -> Value {
        json!({"resource": self.plural, "responseKind": {"group": self.group, "version": self.version, "kind": self.name},
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": self.singular,
            "verbs": VERBS, "shortNames": self.short, "categories": self.categories})
    }

    fn of(group: &str, version: &str, names: &Value, namespaced: bool) -> Self {
        let texts =
            |pointer| list(names, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect();
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
        }
    }
}

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

impl Kinds {
    /// Reads them from the types, and from the slices of the providers' CRDs.
    pub fn load() -> Result<Self> {
        let built_in = BUILT_IN.iter().map(|(group, version, kind, plural, namespaced)| {
            Kind::of(group, version, &json!({"kind": kind, "plural": plural}), *namespaced)
        });
        let mut all: Vec<Kind> = built_in.collect();
        let schemas = workspace::root().join("tests/schemas");
        let files = fs::read_dir(&schemas).with_context(|| format!("reading {}", schemas.display()))?;
        for file in files {
            for crd in yaml::read(&file?.path())? {
                all.extend(of_crd(&crd));
            }
        }
        let recipes: Vec<Recipe> = Flavour::ALL.into_iter().flat_map(recipes).collect();
        for recipe in &recipes {
            all.push(recipe.kind.clone());
            all.extend(Some(recipe.composite.clone()).filter(|_| recipe.is_claim()));
        }
        let schemas = Schemas::new(recipes.iter().map(|recipe| &recipe.xrd))?;
        let groups = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
        let policies = manifests::policy::policies(&groups, manifests::policy::CROSSPLANE);
        Ok(Self { all, recipes, schemas, policies, config: config()? })
    }

    /// All of them.
    pub fn all(&self) -> &[Kind] {
        &self.all
    }

    /// What environments are made by.
    pub fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    /// What the API server checks objects of an environment's kind by.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// The admission policies that are installed.
    pub fn policies(&self) -> &[Value] {
        &self.policies
    }

    /// The kind that a path means.
    pub fn called(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        self.all.iter().find(|one| one.group == group && one.version == version && one.plural == plural)
    }

    /// The kind of an object.
    pub fn of(&self, object: &Value) -> Option<&Kind> {
        let version = text(object, "/apiVersion");
        self.all.iter().find(|one| one.name == text(object, "/kind") && one.api_version() == version)
    }
}

fn recipes(flavour: Flavour) -> impl Iterator<Item = Recipe> {
    let group = flavour.default_group();
    APIS.iter().map(move |api| {
        let xrd = manifests::xrd(*api, flavour, group);
        let kind =
            |names: &str, namespaced| Kind::of(group, manifests::VERSION, &xrd["spec"][names], namespaced);
        let composite = kind("names", flavour == Flavour::Namespaced);
        let kind = if flavour == Flavour::Claims {
            // As Crossplane says of every claim.
            let mut claim = kind("claimNames", true);
            claim.categories.push("claim".to_owned());
            claim
        } else {
            composite.clone()
        };
        let composition = manifests::composition(*api, flavour, group);
        Recipe { kind, composite, xrd, composition }
    })
}

fn of_crd(crd: &Value) -> Vec<Kind> {
    let namespaced = crd["spec"]["scope"] == "Namespaced";
    let kind = |version: &Value| {
        Kind::of(text(crd, "/spec/group"), text(version, "/name"), &crd["spec"]["names"], namespaced)
    };
    list(crd, "/spec/versions").iter().map(kind).collect()
}

/// The EnvironmentConfig that the Compositions name, with the settings of all examples, and machines of the p family on offer.
fn config() -> Result<Value> {
    let mut data = Map::new();
    for api in APIS {
        let file = workspace::root().join("examples").join(api.info().name).join("composition.yaml");
        for composition in yaml::read(&file)? {
            let input = composition["spec"]["pipeline"][0]["input"].as_object().cloned().unwrap_or_default();
            data.extend(input.into_iter().filter(|(key, value)| value.is_object() && key != "settingsFrom"));
        }
    }
    // A GPU workspace with all defaults can be reached by SSH.
    data["gpuWorkspace"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
    // Machines that cost more than those on offer by default: the account's quota refuses them, as the demo shows.
    data["gpuWorkspace"]["instanceTypes"] =
        json!(["g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge", "g5.2xlarge", "p5.4xlarge"]);
    Ok(manifests::environment_config(data))
}
