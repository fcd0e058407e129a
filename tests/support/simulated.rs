//! Environments in the simulator: every example and its variants, with the real Composition.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use function_paved_road::apis::{AnyApi, Flavour};
use function_paved_road::function::{self, Outside};
use function_paved_road::manifests;
use function_proto::v1::RunFunctionResponse;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use simulator::core::World;
use simulator::provider::{Pace, Provider};

use super::{Example, read};

/// More calls than any environment needs.
const LIMIT: usize = 12;

/// An example, or a variant of it from `variants/`.
pub struct Case {
    example: Example,
    variant: Option<PathBuf>,
}

/// The example of every API, as claims API and as namespaced API.
pub fn examples() -> Vec<Case> {
    let beginnings = super::examples().into_iter().filter(|example| example.state == "nothing");
    beginnings.map(|example| Case { example, variant: None }).collect()
}

/// The examples and their variants: `variants/*.yaml` beside an example. Each file has an XR. It
/// may have Settings, which are merged over those of the example's Composition.
pub fn all() -> Vec<Case> {
    let mut all = Vec::new();
    for case in examples() {
        for file in variants(&case.example.folder) {
            all.push(Case { example: copy(&case.example), variant: Some(file) });
        }
        all.push(case);
    }
    all
}

fn copy(example: &Example) -> Example {
    Example { state: example.state.clone(), folder: example.folder.clone(), ..*example }
}

fn variants(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder.join("variants")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

impl Case {
    pub fn api(&self) -> &'static dyn AnyApi {
        self.example.api
    }

    pub fn flavour(&self) -> Flavour {
        self.example.flavour
    }

    /// `virtual-environment, claims API, variant gke`
    pub fn name(&self) -> String {
        let flavour = match self.flavour() {
            Flavour::Claims => "claims API",
            Flavour::Namespaced => "namespaced API",
        };
        let variant = self.variant().map(|variant| format!(", variant {variant}"));
        format!("{}, {flavour}{}", self.api().info().name, variant.unwrap_or_default())
    }

    /// The variant's name. `None` for the example itself.
    pub fn variant(&self) -> Option<String> {
        self.variant.as_deref().map(super::stem)
    }

    /// Whether the environment can be stopped.
    pub fn can_stop(&self) -> bool {
        let is_virtual = self.api().info().name == "virtual-environment";
        !is_virtual || matches!(self.variant().as_deref(), Some("gke" | "eks"))
    }

    fn documents(&self) -> Vec<Value> {
        match &self.variant {
            Some(file) => read(file),
            None => vec![self.example.xr()],
        }
    }

    /// The environment before any resource exists, with the XR as the API server stores it.
    pub fn world(&self) -> World {
        let group = self.flavour().default_group();
        let xrd = manifests::xrd(self.api(), self.flavour(), group);
        let mut xr = self
            .documents()
            .into_iter()
            .find(|document| document["kind"] != "Settings")
            .expect("an XR");
        let schemas = Schemas::new([&xrd]).unwrap();
        let definition = schemas
            .for_object(&xr)
            .unwrap_or_else(|| panic!("{}: the XR is of another kind", self.name()));
        definition.apply_defaults(&mut xr);
        let violations = definition.validate(&xr, None);
        assert!(violations.is_empty(), "{}: {violations:?}", self.name());
        World::new(xr)
            .defined_by(&xrd)
            .select(&read(&self.example.folder.join("composition.yaml"))[0])
    }

    /// The input of the step: that of the example's Composition, merged with the variant's
    /// Settings.
    pub fn input(&self) -> Value {
        let mut input = self.example.input().as_object().cloned().unwrap_or_default();
        let over = self.documents().into_iter().find(|document| document["kind"] == "Settings");
        if let Some(Value::Object(over)) = over {
            crossplane::object::merge(&mut input, over);
        }
        input.into()
    }

    /// One function call, as Crossplane makes it.
    pub fn call(&self, world: &World) -> RunFunctionResponse {
        call(world, &self.input())
    }

    /// The environment after all its resources are composed and ready.
    pub fn settled(&self) -> World {
        self.settle(self.world())
    }

    /// The settled environment after a stop.
    pub fn stopped(&self) -> World {
        let mut world = self.settled();
        world.composite_mut()["spec"]["lifecycle"] = json!({"power": "Stopped"});
        let world = self.settle(world);
        assert_eq!(world.composite()["status"]["phase"], "Stopped", "{}", self.name());
        world
    }

    fn settle(&self, mut world: World) -> World {
        let mut provider = Provider::new(Pace::Instant);
        for _ in 0..LIMIT {
            let before = timeless(&world);
            let response = self.call(&world);
            let applied =
                world.apply(&response).unwrap_or_else(|error| panic!("{}: {error}", self.name()));
            assert_eq!(applied.fatal, None, "{}", self.name());
            provider.answer(&mut world);
            if before == timeless(&world) {
                return world;
            }
        }
        panic!("{}: still changing after {LIMIT} calls", self.name());
    }
}

/// One function call with an input.
pub fn call(world: &World, input: &Value) -> RunFunctionResponse {
    // Each call gets other bytes, so that a test notices regenerated values.
    static CALLS: AtomicU8 = AtomicU8::new(0);
    let mut random = |bytes: &mut [u8]| bytes.fill(CALLS.fetch_add(1, Ordering::Relaxed));
    let mut outside = Outside { now: world.now(), random: &mut random };
    world.run(Some(input), |request| function::run(request, &mut outside)).unwrap()
}

/// All objects that the function can see, without the times of conditions.
pub fn timeless(world: &World) -> Vec<Value> {
    let all =
        std::iter::once(world.composite()).chain(world.resources().values()).chain(world.secrets());
    let mut all: Vec<Value> = all.cloned().collect();
    for object in &mut all {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
        }
    }
    all
}
