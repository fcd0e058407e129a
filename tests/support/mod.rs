//! Shared by the tests: every example as a request, and answers as documents.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

pub mod kstatus;
pub mod simulated;
pub mod virtual_environment;
pub mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::function::{self, Outside};
use function_paved_road::value;
use function_proto::v1::{
    Capability, Ready, RequestMeta, Resource, Resources, RunFunctionRequest, RunFunctionResponse,
    State, resource_selector::Match,
};
use serde_json::Value;

/// The function's own allocator, because allocations take up to a third of a test's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An example of one API, in the claims API or the namespaced API, in one state.
pub struct Example {
    pub api: &'static dyn AnyApi,
    pub flavour: Flavour,
    /// `nothing`, or the name of a file in `observed/`.
    pub state: String,
    pub folder: PathBuf,
}

impl Example {
    /// `gpu-workspace__namespaced__ready`
    pub fn name(&self) -> String {
        let flavour = match self.flavour {
            Flavour::Claims => "claims",
            Flavour::Namespaced => "namespaced",
        };
        format!("{}__{flavour}__{}", self.api.info().name, self.state)
    }

    pub fn xr(&self) -> Value {
        stored(&self.folder.join("xr.yaml"))
    }

    pub fn input(&self) -> Value {
        read(&self.folder.join("composition.yaml"))[0]["spec"]["pipeline"][0]["input"].clone()
    }

    pub fn observed(&self) -> Vec<Value> {
        let file = self.folder.join("observed").join(format!("{}.yaml", self.state));
        if file.exists() { read(&file) } else { Vec::new() }
    }

    pub fn request(&self) -> RunFunctionRequest {
        request(&self.xr(), &self.observed(), &self.input())
    }
}

/// Every example: each API × claims API or namespaced API × state.
pub fn examples() -> Vec<Example> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut examples = Vec::new();
    for api in APIS {
        for flavour in Flavour::ALL {
            let mut folder = root.join(api.info().name);
            if flavour == Flavour::Namespaced {
                folder.push("namespaced");
            }
            let mut states: Vec<String> = fs::read_dir(folder.join("observed"))
                .map(|files| files.map(|file| stem(&file.unwrap().path())).collect())
                .unwrap_or_default();
            states.push("nothing".to_owned());
            states.sort();
            let example = |state| Example { api: *api, flavour, state, folder: folder.clone() };
            examples.extend(states.into_iter().map(example));
        }
    }
    examples
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// The documents of a YAML file.
pub fn read(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first document of a file, an XR, as the API server stores it: with a uid.
pub fn stored(path: &Path) -> Value {
    let mut xr = read(path).remove(0);
    if xr["metadata"]["uid"].is_null() {
        xr["metadata"]["uid"] = simulator::core::uid(&xr).into();
    }
    xr
}

/// A request as Crossplane makes it. A Secret among `observed` without a slot holds the connection
/// details of the objects that name it in `writeConnectionSecretToRef`.
pub fn request(xr: &Value, observed: &[Value], input: &Value) -> RunFunctionRequest {
    let secrets: BTreeMap<&str, &Value> = observed
        .iter()
        .filter(|document| slot(document).is_none())
        .map(|document| (document["metadata"]["name"].as_str().unwrap(), document))
        .collect();
    let resource = |object: &Value| {
        let name =
            object["spec"]["writeConnectionSecretToRef"]["name"].as_str().unwrap_or_default();
        let data = secrets.get(name).and_then(|secret| secret["data"].as_object());
        let decode = |(key, value): (&String, &Value)| {
            (
                key.clone(),
                base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap(),
            )
        };
        Resource {
            resource: Some(value::structure(object.as_object().unwrap().clone())),
            connection_details: data.into_iter().flatten().map(decode).collect(),
            ready: Ready::Unspecified.into(),
        }
    };
    let composed =
        observed.iter().filter_map(|object| Some((slot(object)?.to_owned(), resource(object))));
    RunFunctionRequest {
        meta: Some(RequestMeta {
            tag: "test".to_owned(),
            capabilities: vec![
                Capability::Capabilities.into(),
                Capability::RequiredResources.into(),
            ],
        }),
        observed: Some(State { composite: Some(resource(xr)), resources: composed.collect() }),
        input: input.as_object().map(|input| value::structure(input.clone())),
        ..RunFunctionRequest::default()
    }
}

fn slot(document: &Value) -> Option<&str> {
    document["metadata"]["annotations"]["crossplane.io/composition-resource-name"].as_str()
}

/// Runs the function with a fixed time and fixed bytes instead of random ones.
pub fn answer(request: RunFunctionRequest) -> RunFunctionResponse {
    answer_at("2026-11-21T09:00:00Z", request)
}

/// The same at another time. Resources that the function requires do not exist.
pub fn answer_at(now: &str, request: RunFunctionRequest) -> RunFunctionResponse {
    answer_among(now, request, &[])
}

/// The same in a cluster that has these objects.
pub fn answer_among(
    now: &str,
    request: RunFunctionRequest,
    cluster: &[Value],
) -> RunFunctionResponse {
    let first = answer_once(now, request.clone());
    let asked = first.requirements.clone().unwrap_or_default();
    let unanswered =
        asked.resources.keys().any(|name| !request.required_resources.contains_key(name));
    if !unanswered {
        return first;
    }
    let mut request = request;
    for (name, selector) in asked.resources {
        let is_asked_for = |object: &&Value| {
            let of = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let named = matches!(&selector.r#match, Some(Match::MatchName(name)) if name == of("/metadata/name"));
            named && of("/apiVersion") == selector.api_version && of("/kind") == selector.kind
        };
        let items = cluster.iter().filter(is_asked_for).map(|object| Resource {
            resource: Some(value::structure(object.as_object().unwrap().clone())),
            ..Resource::default()
        });
        request.required_resources.entry(name).or_insert(Resources { items: items.collect() });
    }
    let second = answer_once(now, request);
    assert_eq!(
        second.requirements, first.requirements,
        "Crossplane calls again while the requirements change"
    );
    second
}

/// One call, even if the function requires resources.
pub fn answer_once(now: &str, request: RunFunctionRequest) -> RunFunctionResponse {
    let mut random = |bytes: &mut [u8]| {
        bytes.iter_mut().zip(7_u8..).for_each(|(byte, n)| *byte = n.wrapping_mul(37));
    };
    let now = now.parse().unwrap();
    function::run(request, &mut Outside { now, random: &mut random }).unwrap()
}

/// The paths at which `now` changes or lacks a value of `before`. New values are allowed.
pub fn rewritten(before: &Value, now: &Value) -> Vec<String> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let below = |(key, value): (&String, &Value)| {
                let found = rewritten(value, now.get(key).unwrap_or(&Value::Null));
                found.into_iter().map(|path| format!(".{key}{path}")).collect::<Vec<_>>()
            };
            before.iter().flat_map(below).collect()
        }
        (Value::Array(before), Value::Array(now)) if before.len() <= now.len() => {
            let below = |(index, (before, now)): (usize, (&Value, &Value))| {
                let found = rewritten(before, now);
                found.into_iter().map(|path| format!("[{index}]{path}")).collect::<Vec<_>>()
            };
            before.iter().zip(now).enumerate().flat_map(below).collect()
        }
        (before, now) if before == now => Vec::new(),
        (Value::String(before), Value::String(now))
            if let Some((before, now)) = note(before).zip(note(now)) =>
        {
            rewritten(&before, &now)
        }
        (before, now) => vec![format!(": {before} became {now}")],
    }
}

/// An annotation with a JSON object as its text.
fn note(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// Whether a later round may make this change. A resource inside a managed cluster is orphaned
/// first. When its Usages are in force, it is to be deleted.
pub fn is_now_deleted(slot: &str, change: &str) -> bool {
    if !virtual_environment::INSIDE.contains(&slot) {
        return false;
    }
    // A stopped resource has the policies in a note.
    let policies = ["spec", "running"]
        .map(|parent| format!("{parent}.managementPolicies: [\"Observe\",\"Create\",\"Update\""));
    change == ".spec.deletionPolicy: \"Orphan\" became null"
        || policies.iter().any(|one| change.contains(one)) && change.ends_with(" became null")
}
