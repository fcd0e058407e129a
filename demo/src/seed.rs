//! What stands there already when the demo begins.

use anyhow::{Context, Result, anyhow};
use crossplane::json::overlay;
use fake_kube::Cluster;
use fake_kube::api::admitted;
use fake_kube::json::{seconds, text};
use fake_kube::kinds::Kinds;
use fake_kube::store::{Key, Store};
use function_paved_road::apis::Flavour;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use xtask::{workspace, yaml};

use crate::crossplane::Crossplane;
use crate::platform;
use crate::recipes::Recipes;

/// The annotation by which the portal knows whose something is.
const OWNER: &str = "paved-road.fn.crossplane.io/owner";

/// The longest that anything takes to come to rest, in seconds at pace 1.
const LONGEST: f64 = 120.0;

/// An environment that was made some time ago, of an example.
pub struct Seed {
    /// The example's folder.
    pub api: &'static str,
    /// Which of its flavours.
    pub flavour: Flavour,
    /// The namespace that it is in.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Whose it is.
    pub owner: &'static str,
    /// How long it has been there.
    pub age: SignedDuration,
    /// What is otherwise than in the example.
    pub spec: Value,
    /// Whether its deletion was asked for just now.
    pub leaves: bool,
}

/// Environments of every kind: ready ones of different ages, one that comes up, one that the cloud
/// refuses, one that goes.
pub fn all() -> Vec<Seed> {
    let (hours, claims) = (SignedDuration::from_hours, Flavour::Claims);
    let seed = |api, namespace, name, owner, age, spec| Seed {
        api,
        flavour: claims,
        namespace,
        name,
        owner,
        age,
        spec,
        leaves: false,
    };
    let machine =
        |kind: &str, owner: &str| json!({"parameters": {"owner": owner, "instanceType": kind}});
    vec![
        seed(
            "gpu-workspace",
            "team-vision",
            "ada",
            "ada",
            hours(75),
            machine("g4dn.xlarge", "ada"),
        ),
        seed(
            "gpu-workspace",
            "team-vision",
            "training",
            "ada",
            hours(2),
            machine("p5.4xlarge", "ada"),
        ),
        seed(
            "gpu-workspace",
            "team-vision",
            "grace",
            "grace",
            SignedDuration::from_secs(2),
            machine("g5.2xlarge", "grace"),
        ),
        seed("stock-pool", "team-vision", "render", "grace", hours(24 * 12), json!({})),
        seed("application-environment", "team-shop", "shop", "linus", hours(24 * 41), json!({})),
        seed("unified-environment", "team-shop", "checkout", "ada", hours(20), json!({})),
        seed(
            "virtual-environment",
            "team-shop",
            "preview",
            "linus",
            SignedDuration::from_mins(50),
            json!({}),
        ),
        Seed {
            flavour: Flavour::Namespaced,
            ..seed("stock-pool", "team-vision", "nightly", "ada", hours(9), json!({}))
        },
        Seed {
            flavour: Flavour::Namespaced,
            leaves: true,
            ..seed(
                "unified-environment",
                "team-shop",
                "spring-sale",
                "ada",
                hours(24 * 30),
                json!({}),
            )
        },
    ]
}

/// Puts them there, each with the life that it has had.
pub fn plant(
    seeds: &[Seed],
    cluster: &Cluster,
    recipes: &Recipes,
    crossplane: &mut Crossplane,
    pace: f64,
) -> Result<()> {
    const STEP: SignedDuration = SignedDuration::from_secs(1);
    let (store, kinds) = (&cluster.store, &cluster.kinds);
    let now = Timestamp::now();
    for object in platform::installed(kinds, recipes) {
        let kind = kinds
            .for_object(&object)
            .with_context(|| format!("the kind {} is not served", object["kind"]))?;
        let key = kind.key(text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
        store.put(&key, now - SignedDuration::from_hours(24 * 60), |_| Some(object));
    }
    for seed in seeds {
        let (mut clock, key) = (now - seed.age, seed.plant(store, kinds, now)?);
        let end = now.min(clock + SignedDuration::from_secs_f64(LONGEST * pace));
        while clock <= end && crossplane.tick_one(&key, clock) {
            clock += STEP.min(SignedDuration::from_secs_f64(pace));
        }
        if seed.leaves {
            store.put(&key, now, |there| {
                let mut object = there?.clone();
                object["metadata"]["deletionTimestamp"] = json!(seconds(now).to_string());
                Some(object)
            });
        }
    }
    Ok(())
}

impl Seed {
    fn plant(&self, store: &Store, kinds: &Kinds, now: Timestamp) -> Result<Key> {
        let object = example(self.api, self.flavour)?;
        let kind = kinds
            .for_object(&object)
            .with_context(|| format!("{}: the kind is not served", self.api))?;
        let key = kind.key(self.namespace, self.name);
        let mut object = json!({"metadata": {"labels": {"owner": self.owner}, "annotations": {OWNER: self.owner}}, "spec": object["spec"]});
        overlay(&mut object["spec"], &self.spec);
        if kind.name != "StockPool" && self.flavour == Flavour::Claims {
            object["spec"]["writeConnectionSecretToRef"] =
                json!({"name": format!("{}-conn", self.name)});
        }
        let object = admitted(kinds, kind, &key, &object, None)
            .map_err(|refused| anyhow!("{}: {}", self.name, refused.message))?;
        store.put(&key, now - self.age, |_| Some(object));
        Ok(key)
    }
}

/// What people apply of an example.
pub fn example(api: &str, flavour: Flavour) -> Result<Value> {
    let file = match flavour {
        Flavour::Claims => "claim.yaml",
        Flavour::Namespaced => "namespaced/xr.yaml",
    };
    let path = workspace::root().join("examples").join(api).join(file);
    yaml::read(&path)?.into_iter().next().with_context(|| format!("{} is empty", path.display()))
}
