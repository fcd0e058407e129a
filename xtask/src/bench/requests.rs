//! The requests: a running environment of each API, a GPU workspace of any size, and a request
//! close to the size limit.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use crossplane::names::SLOT;
use function_paved_road::apis::APIS;
use function_paved_road::server;
use function_proto::v1::{Resource, RunFunctionRequest, RunFunctionResponse, Severity, State};
use prost::Message as _;
use serde_json::{Value, json};
use simulator::core::World;

use crate::{workspace, yaml};

/// The number of resources of a GPU workspace that do not depend on its CIDRs, including its three
/// Usages.
const FIXED: usize = 9;

/// Largest request that a function accepts by default.
const LIMIT: usize = 4 * 1024 * 1024;

/// A request and its properties.
pub(super) struct Case {
    /// The API's name.
    pub(super) environment: String,
    /// The number of composed resources.
    pub(super) resources: usize,
    /// The request, as the first step of a pipeline gets it.
    pub(super) request: Bytes,
    /// The same with the function's resources as desired state, as in a later step.
    pub(super) carrying: Bytes,
    /// Bytes of the function's answer.
    pub(super) answer: usize,
}

/// The example of each API, ready.
pub(super) fn every_api() -> Result<Vec<Case>> {
    APIS.iter()
        .map(|api| {
            let name = api.info().name;
            let folder = workspace::root().join("examples").join(name);
            let composition = first(&folder.join("composition.yaml"))?;
            let observed = yaml::read(&folder.join("observed/ready.yaml"))?;
            let world = World::from_documents(first(&folder.join("xr.yaml"))?, observed)
                .select(&composition);
            case(name, world, &input(&composition))
        })
        .collect()
}

/// A ready GPU workspace with this many composed resources. Each open CIDR adds one.
pub(super) fn gpu_workspace(resources: usize) -> Result<Case> {
    let (world, input) = example(resources)?;
    let case = case("gpu-workspace", world, &input)?;
    ensure!(case.resources == resources, "{} resources composed, not {resources}", case.resources);
    Ok(case)
}

/// The request for a settled world.
fn case(environment: &str, mut world: World, input: &Value) -> Result<Case> {
    for _ in 0..3 {
        let response = world.run(Some(input), server::paved_road)?;
        accepted(&response)?;
        world.apply(&response)?;
        world.resources_mut().values_mut().for_each(answer_for);
    }
    let request = world.request(Some(input));
    let response = server::paved_road(request.clone())?;
    accepted(&response)?;
    let resources = response.desired.as_ref().map_or(0, |desired| desired.resources.len());
    let answer = response.encoded_len();
    let carrying = RunFunctionRequest { desired: response.desired, ..request.clone() };
    Ok(Case {
        environment: environment.to_owned(),
        resources,
        request: request.encode_to_vec().into(),
        carrying: carrying.encode_to_vec().into(),
        answer,
    })
}

fn first(file: &Path) -> Result<Value> {
    yaml::read(file)?.into_iter().next().with_context(|| format!("{} is empty", file.display()))
}

fn input(composition: &Value) -> Value {
    composition["spec"]["pipeline"][0]["input"].clone()
}

/// A small workspace among resources of another step, so that the request is nearly 4 MiB.
pub(super) fn large() -> Result<Bytes> {
    let (world, input) = example(FIXED + 1)?;
    let mut request = world.request(Some(&input));
    let observed = request.observed.get_or_insert_with(State::default);
    let foreign =
        observed.resources.get("instance").context("the example observes an instance")?.clone();
    let foreign = unmarked(foreign);
    let each = foreign.encoded_len() + 32;
    let room = LIMIT - request.encoded_len();
    let observed = request.observed.get_or_insert_with(State::default);
    let others = (0..room / each).map(|n| (format!("another-{n:06}"), foreign.clone()));
    observed.resources.extend(others);
    let message = request.encode_to_vec();
    ensure!(
        (LIMIT * 9 / 10..=LIMIT).contains(&message.len()),
        "{} bytes are not nearly 4 MiB",
        message.len()
    );
    Ok(message.into())
}

/// The example's XR, with open CIDRs for this many resources, and its ready composed resources.
fn example(resources: usize) -> Result<(World, Value)> {
    let folder = workspace::root().join("examples/gpu-workspace");
    let (mut xr, composition) =
        (first(&folder.join("xr.yaml"))?, first(&folder.join("composition.yaml"))?);
    let cidrs: Vec<_> =
        (1..=resources - FIXED).map(|n| format!("10.0.{}.{}/32", n / 250, n % 250)).collect();
    xr["spec"]["parameters"]["allowedCidrs"] = json!(cidrs);
    let is_rule = |document: &Value| {
        document["metadata"]["annotations"][SLOT]
            .as_str()
            .is_some_and(|slot| slot.starts_with("ssh-"))
    };
    let observed = yaml::read(&folder.join("observed/ready.yaml"))?
        .into_iter()
        .filter(|document| !is_rule(document));
    let input = input(&composition);
    Ok((World::from_documents(xr, observed).select(&composition), input))
}

/// Sets the status of a ready resource.
fn answer_for(resource: &mut Value) {
    if !resource["status"]["conditions"].is_array() {
        resource["status"] = json!({"atProvider": {"id": "sgr-0a1b2c3d4e5f60718", "arn": "arn:aws:ec2:us-east-1:1:x"}, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-11-20T08:02:00Z"},
            {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-11-20T08:01:10Z"},
        ]});
    }
}

fn accepted(response: &RunFunctionResponse) -> Result<()> {
    let fatal = response.results.iter().find(|result| result.severity() == Severity::Fatal);
    fatal.map_or(Ok(()), |fatal| anyhow::bail!("{}", fatal.message))
}

/// Removes our label, so that the resource belongs to another step.
fn unmarked(mut resource: Resource) -> Resource {
    let mut object = function_paved_road::value::take_object(&mut resource);
    if let Some(labels) = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("labels"))
    {
        *labels = json!({});
    }
    resource.resource = Some(function_paved_road::value::structure(object));
    resource
}
