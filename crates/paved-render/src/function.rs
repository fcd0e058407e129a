//! Runs the function in this process.

use function_paved_road::apis::gpu_workspace::is_closed_to_ssh;
use function_paved_road::diagnosis::Code;
use function_paved_road::function::{CONDITION, Outside, run};
use function_paved_road::reason::Reason;
use function_proto::v1::{RunFunctionResponse, Severity};
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::{RunError, World};

use crate::redact::{as_written, fatal_violation};
use crate::{Written, regions};

/// Advice for a GPU workspace without an allowed network.
pub const CLOSED: &str = "SSH is closed, because no network is allowed. Add networks to \
                          spec.parameters.allowedCidrs, or use `paved connect`, which then uses AWS \
                          Session Manager";

/// Runs the function on a world as Crossplane would, with the operating system's random numbers.
pub fn answer(world: &World, input: &Value, now: Timestamp) -> Result<RunFunctionResponse, String> {
    let mut broken = None;
    let mut random = |buffer: &mut [u8]| broken = getrandom::fill(buffer).err().or(broken);
    let response = answer_with(world, input, Outside { now, random: &mut random })?;
    broken.map_or(Ok(response), |error| Err(format!("no random numbers: {error}")))
}

/// Runs the function with the caller's random numbers.
pub fn answer_with(
    world: &World,
    input: &Value,
    mut outside: Outside<'_>,
) -> Result<RunFunctionResponse, String> {
    world.run(Some(input), |request| run(request, &mut outside)).map_err(|error| match error {
        RunError::Function(malformed) => malformed.to_string(),
        RunError::Unstable => error.to_string(),
    })
}

/// All fatal results of a response in one line, with numbers as written. `None` if no result is
/// fatal.
pub fn fatal(response: &RunFunctionResponse, written: &Written) -> Option<String> {
    let fatal = response.results.iter().filter(|result| result.severity() == Severity::Fatal);
    let quoted = |message: &str| as_written(fatal_violation(message), written).to_string();
    let messages: Vec<String> = fatal.map(|result| quoted(&result.message)).collect();
    if messages.is_empty() { None } else { Some(messages.join("; also ")) }
}

/// Advice for a GPU workspace without a key.
pub const NO_KEY: &str = "No SSH key: you will connect by Session Manager. Add your key to \
                          spec.parameters.sshPublicKeys before the machine is created, because \
                          keys cannot be changed later";

/// Advice for the user of a valid environment: about its access, and about unknown regions in its
/// spec and in the Settings.
pub fn advice(world: &World, input: &Value, response: &RunFunctionResponse) -> Vec<String> {
    let composite = world.composite();
    let kind = composite["kind"].as_str().unwrap_or_default();
    let mut advice = regions::in_spec(kind, &composite["spec"]);
    advice.extend(regions::in_settings(input));
    let slots = response.desired.iter().flat_map(|desired| desired.resources.keys());
    let slots: Vec<&str> = slots.map(String::as_str).collect();
    if slots.is_empty() {
        return advice;
    }
    if is_closed_to_ssh(kind, slots.iter().copied()) {
        advice.push(CLOSED.to_owned());
    }
    advice.extend(no_key(kind, &composite["spec"]).map(str::to_owned));
    advice
}

/// Advice for the spec of a GPU workspace without a key.
pub fn no_key(kind: &str, spec: &Value) -> Option<&'static str> {
    let keys = spec["parameters"]["sshPublicKeys"].as_array();
    let is_workspace = kind.trim_end_matches("Claim") == "GpuDevWorkspace";
    (is_workspace && keys.is_none_or(Vec::is_empty)).then_some(NO_KEY)
}

/// The function's warnings about fields and requests in a document that have no effect.
pub fn warnings_about_fields(response: &RunFunctionResponse) -> impl Iterator<Item = String> {
    let about = [Reason::NoEffect, Reason::RequestIgnored].map(|reason| reason.to_string());
    let results = response.results.iter();
    let warnings = results.filter(move |result| about.iter().any(|one| one == result.reason()));
    warnings.map(|result| result.message.clone())
}

/// The function's warnings about a Composition that is older than the document needs.
pub fn warnings_about_revision(response: &RunFunctionResponse) -> impl Iterator<Item = String> {
    let old = Reason::OldSchemaRevision.to_string();
    let results = response.results.iter().filter(move |result| result.reason() == old);
    results.map(|result| result.message.clone())
}

/// Whether the function rejects the Settings, which belong to the platform team.
pub fn is_about_settings(response: &RunFunctionResponse) -> bool {
    let of_settings = Code::InvalidSettings.to_string();
    let condition = response.conditions.iter().find(|condition| condition.r#type == CONDITION);
    condition.is_some_and(|condition| condition.reason == of_settings)
}
