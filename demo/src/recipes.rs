//! The APIs of the environments: every API as claims API and as namespaced API, with the Settings
//! of all examples.

use anyhow::Result;
use fake_kube::kinds::{Kind, Kinds};
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use k8s_schema::Schemas;
use serde_json::{Map, Value, json};

use crate::files;

/// The definitions of one API.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kind of the claim or of the composite that users apply.
    pub kind: Kind,
    /// The kind of the composite.
    pub composite: Kind,
    /// Its definition.
    pub xrd: Value,
    /// Its Composition.
    pub composition: Value,
}

impl Recipe {
    /// Whether users apply a claim.
    pub fn is_claim(&self) -> bool {
        self.kind.name != self.composite.name || self.kind.group != self.composite.group
    }
}

/// The recipes of all APIs.
pub struct Recipes {
    /// One for each API, as claims API and as namespaced API.
    pub all: Vec<Recipe>,
    /// The platform team's Settings, as needed by the examples.
    pub config: Value,
}

impl Recipes {
    /// Creates the recipes from the types, and the Settings from the examples.
    pub fn load() -> Result<Self> {
        Ok(Self { all: Flavour::ALL.into_iter().flat_map(recipes).collect(), config: config()? })
    }

    /// The kinds of environments, and the kinds in the reduced CRDs of the providers.
    pub fn kinds(&self) -> Result<Kinds> {
        let mut more = Vec::new();
        for crd in files::crds()? {
            more.extend(Kind::from_crd(&crd));
        }
        for recipe in &self.all {
            more.push(recipe.kind.clone());
            more.extend(Some(recipe.composite.clone()).filter(|_| recipe.is_claim()));
        }
        let schemas = Schemas::new(self.all.iter().map(|recipe| &recipe.xrd))?;
        let groups = Flavour::ALL.map(|flavour| (flavour, flavour.default_group()));
        let policies = manifests::policy::policies(&groups, manifests::policy::CROSSPLANE);
        Ok(Kinds::new(more, schemas, policies))
    }
}

fn recipes(flavour: Flavour) -> impl Iterator<Item = Recipe> {
    let group = flavour.default_group();
    APIS.iter().map(move |api| {
        let xrd = manifests::xrd(*api, flavour, group);
        let kind = |names: &str, namespaced| {
            Kind::from_names(group, manifests::VERSION, &xrd["spec"][names], namespaced)
        };
        let composite = kind("names", flavour == Flavour::Namespaced);
        let mut kind = if flavour == Flavour::Claims {
            // Crossplane gives every claim this category.
            let mut claim = kind("claimNames", true);
            claim.categories.push("claim".to_owned());
            claim
        } else {
            composite.clone()
        };
        kind.foreground = true;
        let composition = manifests::composition(*api, flavour, group);
        Recipe { kind, composite, xrd, composition }
    })
}

/// The EnvironmentConfig of the Compositions, with the Settings of all examples and one
/// expensive machine type.
fn config() -> Result<Value> {
    let mut data = Map::new();
    for api in APIS {
        for composition in files::example(&format!("{}/composition.yaml", api.info().name))? {
            let input = composition["spec"]["pipeline"][0]["input"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            data.extend(
                input.into_iter().filter(|(key, value)| value.is_object() && key != "settingsFrom"),
            );
        }
    }
    // SSH can reach a GPU workspace with all defaults.
    data["gpuWorkspace"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
    // Includes a machine that is more expensive than the default ones. The account's quota rejects
    // it, which the demo shows.
    data["gpuWorkspace"]["instanceTypes"] =
        json!(["g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge", "g5.2xlarge", "p5.4xlarge"]);
    data["gpuWorkspace"]["lifecycle"] = json!({"ttl": "8h", "maximum": "14d"});
    data.insert("pricing".to_owned(), pricing());
    Ok(manifests::environment_config(data))
}

/// Prices for types without a list price in the demo's regions. Virtual clusters have no price, so
/// the demo shows an unknown price.
fn pricing() -> Value {
    let prices = [
        ("g1.1", "1.2"),
        ("gce-disk-pd-balanced", "0.000136987"),
        ("cloud-sql-disk-pd-ssd", "0.000232877"),
        ("public-ipv4-address", "0.005"),
        ("backend-medium", "0.08"),
        ("backend-small", "0.04"),
        ("shared-database-medium", "0.06"),
        ("shared-database-small", "0.03"),
    ];
    let overrides = prices.map(|(name, price)| json!({"type": name, "usdPerHour": price}));
    json!({"overrides": overrides})
}
