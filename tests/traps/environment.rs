//! An environment with the function, Crossplane and the simulator's providers.

use crossplane::conditions::find as condition;
use function_proto::v1::RunFunctionResponse;
use jiff::SignedDuration;
use serde_json::{Map, Value};
use simulator::core::World;
use simulator::provider::{Pace, Provider};

use super::support::simulated::{self, Case};
use super::support::world::desired;

/// More calls than any environment needs.
const LIMIT: usize = 40;

/// One environment and its clouds.
pub struct Environment {
    case: Case,
    pub world: World,
    pub provider: Provider,
    rounds: usize,
}

/// The example of an API, or a variant, in the claims API and in the namespaced API, before any
/// resource exists.
pub fn beginnings(api: &str, variant: Option<&str>) -> Vec<Environment> {
    let cases = simulated::all()
        .into_iter()
        .filter(|case| case.api().info().name == api && case.variant().as_deref() == variant);
    let begin = |case: Case| Environment {
        world: case.world(),
        provider: Provider::new(Pace::Instant),
        rounds: 0,
        case,
    };
    let environments: Vec<_> = cases.map(begin).collect();
    assert_eq!(environments.len(), 2, "{api} {variant:?}");
    environments
}

/// The same after all resources are ready.
pub fn running(api: &str, variant: Option<&str>) -> Vec<Environment> {
    let mut environments = beginnings(api, variant);
    for environment in &mut environments {
        environment.settle();
        assert_eq!(environment.status()["phase"], "Ready", "{}", environment.name());
    }
    environments
}

impl Environment {
    /// The same with providers that need several rounds.
    pub fn slowly(mut self) -> Self {
        self.provider = Provider::new(Pace::Rounds);
        self
    }

    /// The same with providers that poll every ten minutes.
    pub fn polled(mut self) -> Self {
        self.provider = self.provider.polling();
        self
    }

    pub fn name(&self) -> String {
        self.case.name()
    }

    /// One call of the function, which Crossplane applies.
    pub fn call(&mut self) -> RunFunctionResponse {
        let response = self.case.call(&self.world);
        let applied = self.world.apply(&response).unwrap();
        assert_eq!(applied.fatal, None, "{}", self.name());
        response
    }

    /// One call of the function, and one observation by the providers.
    pub fn round(&mut self) {
        self.rounds += 1;
        assert!(self.rounds < 10 * LIMIT, "{}: too many rounds", self.name());
        self.call();
        self.provider.answer(&mut self.world);
    }

    /// Runs rounds until the state does not change any more.
    pub fn settle(&mut self) {
        for _ in 0..LIMIT {
            let before = simulated::timeless(&self.world);
            self.round();
            let is_quiet = before == simulated::timeless(&self.world);
            if is_quiet && !self.provider.is_at_work(&self.world) {
                return;
            }
        }
        panic!("{}: still changing after {LIMIT} calls", self.name());
    }

    /// The desired resource of a slot.
    pub fn asked(&self, slot: &str) -> Map<String, Value> {
        desired(&self.case.call(&self.world)).remove(slot).unwrap_or_default()
    }

    /// The input of the step that runs the function.
    pub fn input(&self) -> Value {
        self.case.input()
    }

    /// The desired resource of a slot, with another input.
    pub fn asked_with(&self, input: &Value, slot: &str) -> Map<String, Value> {
        desired(&simulated::call(&self.world, input)).remove(slot).unwrap_or_default()
    }

    /// A composed resource.
    pub fn resource(&self, slot: &str) -> &Value {
        &self.world.resources()[slot]
    }

    pub fn external_name(&self, slot: &str) -> &str {
        let annotations = &self.resource(slot)["metadata"]["annotations"];
        annotations["crossplane.io/external-name"].as_str().unwrap_or_default()
    }

    /// The status of a resource's condition.
    pub fn condition(&self, slot: &str, kind: &str) -> &str {
        condition_of(self.resource(slot), kind)
    }

    /// The status of a condition. An empty text if the resource does not exist yet.
    pub fn condition_or_nothing(&self, slot: &str, kind: &str) -> &str {
        self.world.resources().get(slot).map_or("", |object| condition_of(object, kind))
    }

    /// Lets time pass.
    pub fn wait(&mut self, duration: SignedDuration) {
        self.world.set_now(self.world.now() + duration);
    }

    /// Runs rounds until the creation of a slot's resource has begun.
    pub fn begin(&mut self, slot: &str) {
        while self.condition_or_nothing(slot, "Ready") != "False" {
            self.round();
        }
    }

    /// The environment's status.
    pub fn status(&self) -> &Value {
        &self.world.composite()["status"]
    }

    /// The entry of a slot in the environment's status.
    pub fn line(&self, slot: &str) -> &Value {
        let lines = self.status()["resources"].as_array().unwrap();
        lines
            .iter()
            .find(|line| line["slot"] == slot)
            .unwrap_or_else(|| panic!("{slot} is not in the status"))
    }

    /// The cause code in the entry of a slot.
    pub fn cause(&self, slot: &str) -> &str {
        self.line(slot)["cause"]["code"].as_str().unwrap_or_default()
    }

    /// Fails unless the message of a slot contains these words.
    pub fn says(&self, slot: &str, words: &str) {
        let line = self.line(slot);
        let message = line["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{}: {line:#}", self.name());
    }

    /// Changes the cloud's resource of a slot, as its console would.
    pub fn in_the_cloud(&mut self, slot: &str, field: &str, value: Value) {
        let external = self.provider.external_mut(slot).unwrap();
        external.parameters[field] = value;
    }

    /// Changes a field of the composite's spec, as a user would.
    pub fn change(&mut self, path: &[&str], value: Value) {
        let spec = &mut self.world.composite_mut()["spec"];
        *path.iter().fold(spec, |here, field| &mut here[*field]) = value;
    }
}

fn condition_of<'o>(object: &'o Value, kind: &str) -> &'o str {
    condition(object, kind).and_then(|found| found["status"].as_str()).unwrap_or_default()
}
