//! The environments at the start of the demo.

use anyhow::{Context, Result, anyhow};
use crossplane::json::overlay;
use fake_kube::Cluster;
use fake_kube::api::admitted;
use fake_kube::json::{seconds, text};
use fake_kube::kinds::Kinds;
use fake_kube::store::{Key, Store};
use function_paved_road::apis::Flavour;
use function_paved_road::lifecycle::STOPPED_AT;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::crossplane::Crossplane;
use crate::files;
use crate::platform;
use crate::recipes::Recipes;

/// The annotation with the owner for the portal.
const OWNER: &str = "paved-road.fn.crossplane.io/owner";

/// The time between two steps, at pace 1.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// The maximum seconds until an environment is settled, at pace 1.
const MAX_SETTLE_SECONDS: f64 = 120.0;

/// An environment that was created some time ago, from an example.
pub struct Seed {
    /// The example's folder.
    pub api: &'static str,
    /// The claims API or the namespaced API.
    pub flavour: Flavour,
    /// Its namespace.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its owner.
    pub owner: &'static str,
    /// Its age.
    pub age: SignedDuration,
    /// The differences from the example.
    pub spec: Value,
    /// The time since its user has stopped it.
    pub stopped: Option<SignedDuration>,
    /// Whether its deletion has just been requested.
    pub leaves: bool,
}

/// Environments of every kind: ready ones of different ages, one in creation, one that the cloud
/// has rejected, one near its end, one that is stopped, one in deletion.
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
        stopped: None,
        leaves: false,
    };
    let machine =
        |kind: &str, owner: &str| json!({"parameters": {"owner": owner, "instanceType": kind}});
    let living = |ttl: &str, mut spec: Value| {
        spec["lifecycle"] = json!({"ttl": ttl});
        spec
    };
    vec![
        seed(
            "gpu-workspace",
            "team-vision",
            "ada",
            "ada",
            hours(75),
            living("76h", machine("g4dn.xlarge", "ada")),
        ),
        Seed {
            stopped: Some(hours(5)),
            ..seed(
                "gpu-workspace",
                "team-vision",
                "batch",
                "ada",
                hours(30),
                living("3d", machine("g5.xlarge", "ada")),
            )
        },
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

/// Stores the environments, each with its history.
pub fn plant(
    seeds: &[Seed],
    cluster: &Cluster,
    recipes: &Recipes,
    crossplane: &mut Crossplane,
    pace: f64,
) -> Result<()> {
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
        let key = seed.plant(store, kinds, now)?;
        let mut play = |from: Timestamp| {
            let end = now.min(from + SignedDuration::from_secs_f64(MAX_SETTLE_SECONDS * pace));
            let mut clock = from;
            while clock <= end && crossplane.tick_one(&key, clock) {
                clock += STEP.min(SignedDuration::from_secs_f64(pace));
            }
        };
        play(now - seed.age);
        if let Some(ago) = seed.stopped {
            let at = now - ago;
            store.put(&key, at, |there| {
                let mut object = there?.clone();
                object["metadata"]["annotations"][STOPPED_AT] = json!(seconds(at).to_string());
                Some(object)
            });
            play(at);
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

/// The claim or composite of an example.
pub fn example(api: &str, flavour: Flavour) -> Result<Value> {
    let file = match flavour {
        Flavour::Claims => "claim.yaml",
        Flavour::Namespaced => "namespaced/xr.yaml",
    };
    let path = format!("{api}/{file}");
    files::example(&path)?.into_iter().next().with_context(|| format!("{path} is empty"))
}
