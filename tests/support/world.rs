//! A small fake of Crossplane around the function. It applies desired resources, and providers of
//! the simulator respond in the mood that a test selects.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::{self, AnyApi, Flavour};
use function_paved_road::value;
use function_proto::v1::{
    Capability, RequestMeta, Resource, RunFunctionRequest, RunFunctionResponse, Severity, State,
};
use prost_types::{Struct, value::Kind};
use serde_json::{Map, Value, json};
use simulator::core::World as Outside;
use simulator::provider::State as Told;
use simulator::provider::model::Model;

use super::Example;

/// Connection details.
pub type Details = BTreeMap<String, Vec<u8>>;

/// A text that replaces a number which JSON cannot express.
pub const NOT_A_NUMBER: &str = "\u{0}NaN";

/// The response of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It has not observed the resource yet.
    Silent,
    /// It creates the resource.
    Creating,
    /// The resource is ready.
    Ready,
    /// The creation was rejected.
    Failing,
    /// The resource was ready, but its change was rejected.
    Stuck,
}

impl Mood {
    /// Whether the resource exists and was ready once.
    pub fn is_made(self) -> bool {
        matches!(self, Self::Ready | Self::Stuck)
    }
}

/// More reconciles than any environment needs.
const LIMIT: usize = 12;

/// The state for the next request.
#[derive(Clone)]
pub struct World {
    pub flavour: Flavour,
    pub xr: Value,
    /// The XR's connection secret.
    pub details: Details,
    pub composed: BTreeMap<String, Composed>,
    pub input: Value,
    pub now: &'static str,
    /// Slots whose deletion is blocked, for example by a finalizer of the object behind them.
    pub held: BTreeSet<&'static str>,
    /// Resources that Crossplane deleted and that still exist, because their deletion is blocked.
    pub leaving: BTreeMap<String, Composed>,
    /// The Secrets that providers write.
    pub outside: Outside,
}

/// A composed resource that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    pub object: Value,
    pub details: Details,
}

impl World {
    /// An example, before any resource exists.
    pub fn new(example: &Example) -> Self {
        Self {
            flavour: example.flavour,
            xr: example.xr(),
            details: Details::new(),
            composed: BTreeMap::new(),
            input: example.input(),
            now: "2026-11-21T09:00:00Z",
            held: BTreeSet::new(),
            leaving: BTreeMap::new(),
            outside: Outside::new(json!({})),
        }
    }

    pub fn api(&self) -> &'static dyn AnyApi {
        apis::find(self.xr["kind"].as_str().unwrap()).unwrap()
    }

    pub fn request(&self) -> RunFunctionRequest {
        let resource = |object: &Value, details: &Details| Resource {
            resource: Some(structure(object)),
            connection_details: details.clone().into_iter().collect(),
            ..Resource::default()
        };
        let composed = self
            .composed
            .iter()
            .map(|(slot, composed)| (slot.clone(), resource(&composed.object, &composed.details)));
        RunFunctionRequest {
            meta: Some(RequestMeta {
                tag: "test".to_owned(),
                capabilities: vec![
                    Capability::Capabilities.into(),
                    Capability::RequiredResources.into(),
                ],
            }),
            observed: Some(State {
                composite: Some(resource(&self.xr, &self.details)),
                resources: composed.collect(),
            }),
            input: Some(structure(&self.input)),
            ..RunFunctionRequest::default()
        }
    }

    /// The function's answer, which is not applied.
    pub fn answer(&self) -> RunFunctionResponse {
        super::answer_at(self.now, self.request())
    }

    /// One reconcile. Crossplane applies the function's answer, and each provider gives its
    /// resource the mood of its slot.
    pub fn reconcile(&mut self, mood: impl Fn(&str) -> Mood) -> RunFunctionResponse {
        let response = self.answer();
        self.apply(&response, mood);
        response
    }

    /// Reconciles until the state does not change any more.
    pub fn settle(mut self, mood: impl Fn(&str) -> Mood) -> Self {
        for _ in 0..LIMIT {
            let before = (self.composed.clone(), self.details.clone());
            self.reconcile(&mood);
            if before.0 == self.composed && before.1 == self.details {
                return self;
            }
        }
        panic!("{} is still changing after {LIMIT} reconciles: {self:?}", self.api().info().name)
    }

    pub fn apply(&mut self, response: &RunFunctionResponse, mood: impl Fn(&str) -> Mood) {
        if is_fatal(response) {
            return;
        }
        let before = std::mem::take(&mut self.composed);
        let desired = desired(response);
        let dropped = before.iter().filter(|(slot, _)| !desired.contains_key(*slot));
        self.leaving.extend(dropped.map(|(slot, composed)| (slot.clone(), composed.clone())));
        self.leaving.retain(|slot, _| self.held.contains(slot.as_str()));
        for (slot, object) in desired {
            let existing = before.get(&slot);
            let mut object = Value::Object(object);
            self.receive(&slot, &mut object, existing);
            let mut details = existing.map(|existing| existing.details.clone()).unwrap_or_default();
            match mood(&slot) {
                Mood::Silent => copy_status(&mut object, existing),
                mood => self.provide(&mut object, &mut details, mood),
            }
            self.composed.insert(slot, Composed { object, details });
        }
        self.look_on();
        self.own_usages();
        let composite = response.desired.clone().unwrap_or_default().composite.unwrap_or_default();
        self.details.extend(composite.connection_details);
        let status = composite.resource.map(value::object).unwrap_or_default().remove("status");
        self.xr["status"] = status.unwrap_or_default();
        self.xr["status"]["conditions"] = response
            .conditions
            .iter()
            .map(|c| json!({"type": c.r#type, "reason": c.reason, "message": c.message, "status": "False"}))
            .collect();
        self.refer();
    }

    /// An Object that only observes sees its resource while it is desired or its deletion is
    /// blocked.
    fn look_on(&mut self) {
        let there: BTreeSet<String> =
            self.composed.keys().chain(self.leaving.keys()).cloned().collect();
        for (slot, watch) in &mut self.composed {
            let Some(watched) = slot.strip_suffix("-leaving") else { continue };
            if !there.contains(watched) {
                watch.object["status"] = json!({"conditions": [
                    {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "external resource does not exist"},
                ]});
            }
        }
    }

    /// Crossplane makes the using resource an owner of its Usages while it exists.
    fn own_usages(&mut self) {
        let all =
            self.composed.values().chain(self.leaving.values()).map(|composed| &composed.object);
        let there: Vec<[Value; 3]> = all
            .map(|object| {
                [&object["kind"], &object["metadata"]["name"], &object["metadata"]["uid"]]
                    .map(Value::clone)
            })
            .collect();
        for usage in self
            .composed
            .values_mut()
            .map(|composed| &mut composed.object)
            .filter(|it| it["kind"] == "Usage")
        {
            let by = &usage["spec"]["by"];
            let user = there
                .iter()
                .find(|[kind, name, _]| *kind == by["kind"] && *name == by["resourceRef"]["name"]);
            if let Some([kind, name, uid]) = user {
                let owner =
                    json!({"apiVersion": by["apiVersion"], "kind": kind, "name": name, "uid": uid});
                usage["metadata"]["ownerReferences"].as_array_mut().unwrap().push(owner);
            }
        }
    }

    /// Sets the metadata that Crossplane gives a composed resource.
    fn receive(&self, slot: &str, object: &mut Value, existing: Option<&Composed>) {
        let xr = &self.xr["metadata"];
        let id = hash(slot);
        let generated = format!("{}-{id:012x}", xr["name"].as_str().unwrap());
        let metadata = &mut object["metadata"];
        let name = existing.map_or(&Value::Null, |existing| &existing.object["metadata"]["name"]);
        if metadata["name"].is_null() {
            metadata["name"] = if name.is_null() { json!(generated) } else { name.clone() };
        }
        if let Some(namespace) = xr.get("namespace") {
            metadata["namespace"] = namespace.clone();
        }
        metadata["uid"] = json!(format!("00000000-0000-4000-8000-{id:012x}"));
        metadata["generation"] = json!(1);
        metadata["resourceVersion"] = json!("7");
        metadata["creationTimestamp"] = json!("2026-11-21T08:00:00Z");
        metadata["annotations"]["crossplane.io/composition-resource-name"] = json!(slot);
        metadata["labels"]["crossplane.io/composite"] = xr["name"].clone();
        metadata["ownerReferences"] = json!([{
            "apiVersion": self.xr["apiVersion"], "kind": self.xr["kind"], "name": xr["name"], "uid": xr["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]);
    }

    /// Lets the resource's provider, or its cluster, respond in a mood.
    fn provide(&mut self, object: &mut Value, details: &mut Details, mood: Mood) {
        let (model, outside) = (Model::for_object(object), &mut self.outside);
        model.name(object);
        if mood.is_made() {
            model.identify(object);
            // A chart's Secret and the status of a wrapped object are known after the second call.
            model.finish(object, outside);
            model.finish(object, outside);
            model.set_status(object, &Told::Ready, outside);
            details.extend(outside.connection_details(object));
        }
        match mood {
            Mood::Silent | Mood::Ready => {}
            Mood::Creating => model.set_status(object, &Told::Creating, outside),
            Mood::Failing => {
                model.set_status(object, &Told::Failed("quota exceeded".into()), outside);
            }
            Mood::Stuck => model.set_status(object, &Told::Failed("cannot change".into()), outside),
        }
    }

    /// `resourceRefs`: all resources that Crossplane has started to create.
    fn refer(&mut self) {
        let refs: Vec<Value> = self
            .composed
            .values()
            .map(|composed| {
                let object = &composed.object;
                json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]})
            })
            .collect();
        match self.flavour {
            Flavour::Claims => self.xr["spec"]["resourceRefs"] = json!(refs),
            Flavour::Namespaced => self.xr["spec"]["crossplane"]["resourceRefs"] = json!(refs),
        }
    }
}

/// Converts a document to protobuf, with numbers that JSON cannot express.
pub fn structure(document: &Value) -> Struct {
    let mut structure = value::structure(document.as_object().cloned().unwrap_or_default());
    structure.fields.values_mut().for_each(forget_number);
    structure
}

fn forget_number(value: &mut prost_types::Value) {
    match &mut value.kind {
        Some(Kind::StringValue(text)) if text == NOT_A_NUMBER => {
            value.kind = Some(Kind::NumberValue(f64::NAN));
        }
        Some(Kind::StructValue(inner)) => inner.fields.values_mut().for_each(forget_number),
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(forget_number),
        _ => {}
    }
}

/// A hash of 48 bits (twelve hexadecimal digits), the same in every run.
fn hash(slot: &str) -> u64 {
    slot.bytes().fold(0xcbf2_9ce4, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0193) & 0xffff_ffff_ffff
    })
}

fn copy_status(object: &mut Value, existing: Option<&Composed>) {
    if let Some(status) = existing.and_then(|existing| existing.object.get("status")) {
        object["status"] = status.clone();
    }
}

/// Short enough to be readable in a failed test.
impl std::fmt::Debug for World {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            out,
            "{:?} {} input: {} details: {:?}",
            self.flavour,
            self.xr,
            self.input,
            self.details.keys()
        )?;
        self.composed
            .iter()
            .try_for_each(|(slot, composed)| writeln!(out, "  {slot}: {}", composed.object))
    }
}

/// Whether Crossplane would change no resource.
pub fn is_fatal(response: &RunFunctionResponse) -> bool {
    response.results.iter().any(|result| result.severity() == Severity::Fatal)
}

/// The desired resources of a response, by slot.
pub fn desired(response: &RunFunctionResponse) -> BTreeMap<String, Map<String, Value>> {
    let resources = &response.desired.as_ref().unwrap().resources;
    let object = |resource: &Resource| value::object(resource.resource.clone().unwrap_or_default());
    resources.iter().map(|(slot, resource)| (slot.clone(), object(resource))).collect()
}

/// The composite's desired status.
pub fn status(response: &RunFunctionResponse) -> Value {
    let composite = response.desired.clone().unwrap_or_default().composite.unwrap_or_default();
    composite.resource.map(value::object).unwrap_or_default().remove("status").unwrap_or_default()
}
