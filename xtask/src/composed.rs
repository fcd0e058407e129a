//! The objects that each API composes. They are found by composing every example and its variants
//! until no object changes.
//!
//! Dependencies of packages and rights in clusters are derived from them, so they stay correct.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use crossplane::api_version;
use function_paved_road::apis::{self, APIS, AnyApi, Flavour};
use function_paved_road::function::{self, Outside};
use function_paved_road::settings::{self, Settings};
use function_paved_road::{manifests, value};
use function_proto::v1::RunFunctionResponse;
use k8s_schema::Schemas;
use serde_json::Value;
use simulator::core::World;
use simulator::provider::{Pace, Provider};

use crate::{workspace, yaml};
use paved_render::packages::Package;

/// More calls than any environment needs.
const LIMIT: usize = 12;

/// The objects that an API composes, in the claims API or the namespaced API.
pub struct Composed {
    /// The API.
    pub api: &'static dyn AnyApi,
    /// Claims API or namespaced API.
    pub flavour: Flavour,
    /// The objects of the example, which every environment has.
    pub always: Vec<Value>,
    /// The objects of variants, which depend on Settings or on the claim, and of a stop of the
    /// example.
    pub sometimes: Vec<Value>,
}

/// The composed objects of all APIs, in both the claims API and the namespaced API.
pub fn all() -> Result<&'static [Composed]> {
    for_root(workspace::root())
}

/// The same for the examples below a root. Each root is composed once.
pub fn for_root(root: &Path) -> Result<&'static [Composed]> {
    static FOUND: Mutex<BTreeMap<PathBuf, &'static [Composed]>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(all) = found.get(root) {
        return Ok(*all);
    }
    let each = APIS
        .iter()
        .flat_map(|api| Flavour::ALL.map(|flavour| Composed::from_example(root, *api, flavour)));
    let all: &'static [Composed] = each.collect::<Result<Vec<_>>>()?.leak();
    found.insert(root.to_owned(), all);
    Ok(all)
}

/// The composed objects of an API, in the claims API or the namespaced API.
pub fn by(api: &dyn AnyApi, flavour: Flavour) -> Result<&'static Composed> {
    among(all()?, api, flavour)
}

/// The same among all composed objects.
pub fn among<'a>(all: &'a [Composed], api: &dyn AnyApi, flavour: Flavour) -> Result<&'a Composed> {
    let found = all.iter().find(|composed| {
        composed.api.info().name == api.info().name && composed.flavour == flavour
    });
    found.with_context(|| format!("no API is called {}", api.info().name))
}

impl Composed {
    /// Composes an API's example below a root, and the example's variants.
    fn from_example(root: &Path, api: &'static dyn AnyApi, flavour: Flavour) -> Result<Self> {
        let mut folder = root.join("examples").join(api.info().name);
        if flavour == Flavour::Namespaced {
            folder.push("namespaced");
        }
        let case = |file: &Path| {
            let case = Case { api, flavour, folder: &folder, documents: yaml::read(file)? };
            case.objects().with_context(|| format!("composing {}", file.display()))
        };
        let (always, mut sometimes) = case(&folder.join("xr.yaml"))?;
        for file in variants(&folder)? {
            let (running, stopped) = case(&file)?;
            sometimes.extend(running.into_iter().chain(stopped));
        }
        Ok(Self { api, flavour, always, sometimes })
    }

    /// All objects of the example and its variants.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.always.iter().chain(&self.sometimes)
    }

    /// The providers that every environment of the API needs.
    pub fn needed(&self) -> BTreeSet<Package> {
        providers(&self.always)
    }

    /// The providers that only some options need.
    pub fn optional(&self) -> BTreeSet<Package> {
        let needed = self.needed();
        providers(&self.sometimes).into_iter().filter(|package| !needed.contains(package)).collect()
    }
}

fn providers(objects: &[Value]) -> BTreeSet<Package> {
    objects.iter().filter_map(|object| Package::serving(api_version::group_of(object))).collect()
}

fn variants(folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder.join("variants");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// An XR, and Settings that are merged over those of the example.
struct Case<'a> {
    api: &'static dyn AnyApi,
    flavour: Flavour,
    folder: &'a Path,
    documents: Vec<Value>,
}

impl Case<'_> {
    /// All objects that were desired in any call, until no object changed. The second list has all
    /// objects that were desired while the environment was stopped. It is empty for an environment
    /// that cannot be stopped.
    fn objects(&self) -> Result<(Vec<Value>, Vec<Value>)> {
        let composition = self.folder.join("composition.yaml");
        let composition =
            yaml::read(&composition)?.into_iter().next().context("an empty composition.yaml")?;
        let input = self.input(&composition);
        let mut world = self.world()?.select(&composition);
        let mut provider = Provider::new(Pace::Instant);
        let running = settle(&mut world, &mut provider, &input)?;
        let settings =
            Settings::read(input.as_object().cloned().unwrap_or_default(), &apis::sections())?;
        if self.api.cannot_stop(&world.composite()["spec"], &settings).is_some() {
            return Ok((running, Vec::new()));
        }
        world.composite_mut()["spec"]["lifecycle"]["power"] = "Stopped".into();
        Ok((running, settle(&mut world, &mut provider, &input).context("after a stop")?))
    }

    fn world(&self) -> Result<World> {
        let xrd = manifests::xrd(self.api, self.flavour, self.flavour.default_group());
        let xr = self.documents.iter().find(|document| document["kind"] != settings::KIND);
        let mut xr = xr.context("no XR")?.clone();
        let schemas = Schemas::new([&xrd])?;
        let definition = schemas.for_object(&xr).context("an XR of another kind")?;
        definition.apply_defaults(&mut xr);
        let violations = definition.validate(&xr, None);
        ensure!(violations.is_empty(), "{violations:?}");
        Ok(World::new(xr).defined_by(&xrd))
    }

    fn input(&self, composition: &Value) -> Value {
        let input = composition.pointer("/spec/pipeline/0/input").and_then(Value::as_object);
        let mut input = input.cloned().unwrap_or_default();
        let over = self.documents.iter().find(|document| document["kind"] == settings::KIND);
        if let Some(over) = over.and_then(Value::as_object) {
            crossplane::object::merge(&mut input, over.clone());
        }
        input.into()
    }
}

/// Calls the function until no object changes. Returns every object that was desired.
fn settle(world: &mut World, provider: &mut Provider, input: &Value) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for call in 0..LIMIT {
        let mut random = |bytes: &mut [u8]| bytes.fill(7);
        let mut outside = Outside { now: world.now(), random: &mut random };
        let response = world.run(Some(input), |request| function::run(request, &mut outside))?;
        let applied = world.apply(&response)?;
        if let Some(fatal) = applied.fatal {
            bail!("call {call}: {fatal}");
        }
        found.extend(desired(response));
        if provider.answer(world).is_empty() && call > 0 {
            return Ok(found);
        }
    }
    bail!("still changing after {LIMIT} calls")
}

fn desired(response: RunFunctionResponse) -> Vec<Value> {
    let resources = response.desired.unwrap_or_default().resources;
    resources
        .into_values()
        .filter_map(|slot| slot.resource.map(|object| value::object(object).into()))
        .collect()
}
