//! Settings from an EnvironmentConfig: requested, awaited, merged over the input.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use function_proto::v1::{
    Capability, RequestMeta, Resource, Resources, Severity, State, Status as ConditionStatus,
    resource_selector,
};
use serde_json::{Value, json};

use super::*;
use crate::request::{SETTINGS_AT_FIRST, SETTINGS_REQUIREMENT};
use crate::status::OUTDATED;
use crate::value;

const XR: &str = "GpuDevWorkspace";

/// A workspace with an input that names an EnvironmentConfig. Crossplane sends `capabilities`.
fn request(capabilities: &[Capability]) -> RunFunctionRequest {
    let xr = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": XR, "metadata": {"name": "ada", "uid": "abcde"},
        "spec": {"parameters": {"owner": "ada"}},
    });
    let input = json!({
        "settingsFrom": {"name": "paved-road"},
        "tags": {"Team": "input", "Cost": "input"},
        "gpuWorkspace": {"amis": {"us-east-1": {"default": "ami-0a0a0a0a"}}, "allowedCidrs": ["10.0.0.0/8", "10.1.0.0/16"]},
    });
    RunFunctionRequest {
        meta: Some(RequestMeta {
            tag: "t".to_owned(),
            capabilities: capabilities.iter().map(|c| i32::from(*c)).collect(),
        }),
        observed: Some(State { composite: Some(resource(&xr)), ..State::default() }),
        input: Some(structure(&input)),
        ..RunFunctionRequest::default()
    }
}

fn structure(value: &Value) -> prost_types::Struct {
    value::structure(value.as_object().unwrap().clone())
}

fn resource(object: &Value) -> Resource {
    Resource { resource: Some(structure(object)), ..Resource::default() }
}

fn environment_config(data: &Value) -> Resources {
    let config = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "data": data});
    Resources { items: vec![resource(&config)] }
}

fn answer(request: RunFunctionRequest) -> RunFunctionResponse {
    run(request, &mut Outside { now: Timestamp::UNIX_EPOCH, random: &mut |_| {} }).unwrap()
}

fn for_provider(response: &RunFunctionResponse, slot: &str) -> Value {
    let resource = response.desired.as_ref().unwrap().resources[slot].resource.clone().unwrap();
    Value::Object(value::object(resource))["spec"]["forProvider"].clone()
}

#[test]
fn requirements_match_crossplanes_capabilities() {
    let modern = [Capability::Capabilities, Capability::RequiredResources];
    for (capabilities, older_field) in [(&modern[..], false), (&[], true)] {
        let response = answer(request(capabilities));
        let requirements = response.requirements.unwrap();
        let asked = &requirements.resources[SETTINGS_REQUIREMENT];
        assert_eq!(
            (asked.kind.as_str(), asked.api_version.as_str()),
            ("EnvironmentConfig", "apiextensions.crossplane.io/v1beta1")
        );
        assert_eq!(
            asked.r#match,
            Some(resource_selector::Match::MatchName("paved-road".to_owned()))
        );
        assert_eq!(
            requirements.extra_resources.get(SETTINGS_REQUIREMENT),
            older_field.then_some(asked)
        );
    }
}

#[test]
fn pending_requirements_return_no_results_and_no_resources() {
    let response = answer(request(&[]));
    assert_eq!(response.results, []);
    assert_eq!(response.conditions, []);
    assert!(response.desired.unwrap().resources.is_empty());
}

#[test]
fn settings_of_the_first_request_need_no_second_call() {
    let data = json!({"gpuWorkspace": {"amis": {"us-east-1": {"default": "ami-0d0d0d0d"}}}});
    let at_first = |name: &str| {
        let config = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1",
            "kind": "EnvironmentConfig", "metadata": {"name": name}, "data": data});
        let mut request = request(&[Capability::Capabilities, Capability::RequiredResources]);
        let found = Resources { items: vec![resource(&config)] };
        request.required_resources.insert(SETTINGS_AT_FIRST.to_owned(), found);
        answer(request)
    };
    let response = at_first("paved-road");
    assert_eq!(response.requirements, None);
    assert_eq!(for_provider(&response, "instance")["ami"], "ami-0d0d0d0d");
    // An object that Settings do not name is not used.
    assert!(at_first("another").requirements.is_some());
}

#[test]
fn settings_requested_by_an_earlier_call_need_no_second_call() {
    let mut seeded = request(&[Capability::Capabilities, Capability::RequiredResources]);
    let found = environment_config(&json!({}));
    seeded.required_resources.insert(SETTINGS_REQUIREMENT.to_owned(), found);
    let response = answer(seeded);
    assert_eq!(for_provider(&response, "instance")["ami"], "ami-0a0a0a0a");
    // Crossplane 2.4 calls again only if the answer requires more than it has sent.
    assert!(response.requirements.unwrap().resources.keys().eq([SETTINGS_REQUIREMENT]));
}

#[test]
fn missing_settings_from_makes_no_requirement() {
    let mut request = request(&[]);
    request.input.as_mut().unwrap().fields.remove("settingsFrom");
    let response = answer(request);
    assert_eq!(response.requirements, None);
    assert_eq!(for_provider(&response, "instance")["ami"], "ami-0a0a0a0a");
}

#[test]
fn environment_config_is_merged_over_the_input() {
    let data = json!({
        "tags": {"Team": "config"},
        "gpuWorkspace": {"amis": {"eu-west-1": {"default": "ami-0c0c0c0c"}}, "allowedCidrs": ["192.0.2.0/24"]},
    });
    let mut modern = request(&[]);
    modern.required_resources.insert(SETTINGS_REQUIREMENT.to_owned(), environment_config(&data));
    let mut older = request(&[]);
    older.extra_resources.insert(SETTINGS_REQUIREMENT.to_owned(), environment_config(&data));
    for request in [modern, older] {
        let response = answer(request);
        let instance = for_provider(&response, "instance");
        assert_eq!(
            (&instance["tags"]["Team"], &instance["tags"]["Cost"]),
            (&json!("config"), &json!("input")),
            "maps merge"
        );
        assert_eq!(instance["ami"], "ami-0a0a0a0a", "deeply");
        let slots = &response.desired.as_ref().unwrap().resources;
        assert!(slots.contains_key("ssh-192.0.2.0/24"), "lists replace");
        assert!(!slots.contains_key("ssh-10.0.0.0/8"), "lists replace");
        assert!(
            response.requirements.is_some(),
            "Crossplane takes a dropped requirement for a changed requirement"
        );
    }
}

/// A request to which Crossplane answers that the EnvironmentConfig does not exist.
fn without_config(optional: bool) -> RunFunctionRequest {
    let mut request = request(&[]);
    request.required_resources.insert(SETTINGS_REQUIREMENT.to_owned(), Resources::default());
    let from = json!({"settingsFrom": {"name": "paved-road", "optional": optional}});
    request.input.as_mut().unwrap().fields.extend(structure(&from).fields);
    request
}

fn with_status(mut request: RunFunctionRequest, status: &Value) -> RunFunctionRequest {
    let composite =
        request.observed.as_mut().unwrap().composite.as_mut().unwrap().resource.as_mut().unwrap();
    composite.fields.extend(structure(&json!({"status": status})).fields);
    request
}

fn fatals(response: &RunFunctionResponse) -> Vec<&str> {
    let fatal = response.results.iter().filter(|result| result.severity() == Severity::Fatal);
    fatal.map(|result| result.message.as_str()).collect()
}

#[test]
fn missing_environment_config_rejects_new_environments_only() {
    let mut no_data = without_config(false);
    let config = json!({"kind": "EnvironmentConfig", "metadata": {"name": "paved-road"}});
    let config = Resources { items: vec![resource(&config)] };
    no_data.required_resources.insert(SETTINGS_REQUIREMENT.to_owned(), config);
    for request in [without_config(false), no_data] {
        let response = answer(request.clone());
        let [fatal] = fatals(&response)[..] else { panic!("{:?}", response.results) };
        assert!(fatal.starts_with("settings.settingsFrom.name: found \"paved-road\""), "{fatal}");
        assert!(response.desired.unwrap().resources.is_empty());
        let listed = json!({"resources": [{"slot": "instance", "ready": false}]});
        let running = answer(with_status(request, &listed));
        assert_eq!(fatals(&running), [""; 0]);
        assert_eq!(for_provider(&running, "instance")["ami"], "ami-0a0a0a0a");
    }
}

#[test]
fn missing_optional_environment_config_is_a_warning() {
    let response = answer(without_config(true));
    let warnings: Vec<_> =
        response.results.iter().filter(|result| result.severity() == Severity::Warning).collect();
    let [warning] = warnings[..] else { panic!("{:?}", response.results) };
    assert_eq!(warning.reason.as_deref(), Some("SettingsNotFound"));
    assert_eq!(
        warning.message,
        "EnvironmentConfig paved-road was not found, so only the input of the step applies. \
         Create it, or remove settingsFrom"
    );
    assert_eq!(for_provider(&response, "instance")["ami"], "ami-0a0a0a0a");
}

/// A request of a Composition with these fields in its input.
fn with_input(fields: &Value) -> RunFunctionRequest {
    let mut request = request(&[]);
    let input = request.input.as_mut().unwrap();
    input.fields.remove("settingsFrom");
    let Value::Object(mut whole) = Value::Object(value::object(input.clone())) else { panic!() };
    crossplane::object::merge(&mut whole, fields.as_object().unwrap().clone());
    *input = value::structure(whole);
    request
}

#[test]
fn limit_that_the_revision_cannot_carry_rejects_new_environments_and_warns_others() {
    for (limit, path) in [
        (json!({"gpuWorkspace": {"lifecycle": {"ttl": "8h"}}}), "gpuWorkspace.lifecycle.ttl"),
        (
            json!({"gpuWorkspace": {"lifecycle": {"maximum": "8h"}}}),
            "gpuWorkspace.lifecycle.maximum",
        ),
        (
            json!({"gpuWorkspace": {"lifecycle": {"onExpiry": "Delete"}}}),
            "gpuWorkspace.lifecycle.onExpiry",
        ),
        (
            json!({"gpuWorkspace": {"lifecycle": {"keepStoppedFor": "8h"}}}),
            "gpuWorkspace.lifecycle.keepStoppedFor",
        ),
        (json!({"budget": {"defaultHourlyUSD": "1"}}), "budget"),
        (json!({"minimumSchemaRevision": 3}), "minimumSchemaRevision"),
    ] {
        for revision in 1..=crate::settings::SCHEMA_REVISION {
            let mut input = limit.clone();
            input["schemaRevision"] = json!(revision);
            let response = answer(with_input(&input));
            let running =
                with_status(with_input(&input), &json!({"resources": [{"slot": "instance"}]}));
            let running = answer(running);
            assert_eq!(fatals(&running), [""; 0], "{path} {revision}");
            let warned = running.results.iter().find(|one| one.reason() == "OldSchemaRevision");
            let condition = running.conditions.iter().find(|one| one.r#type == OUTDATED);
            if revision == crate::settings::SCHEMA_REVISION {
                assert_eq!(fatals(&response), [""; 0], "{path}");
                assert_eq!((warned, condition), (None, None), "{path}");
                continue;
            }
            let [fatal] = fatals(&response)[..] else { panic!("{path}: {:?}", response.results) };
            assert!(fatal.starts_with(&format!("settings.{path}: ")), "{fatal}");
            assert!(fatal.contains("spec.pipeline[].input.schemaRevision to 3"), "{fatal}");
            assert!(response.desired.as_ref().unwrap().resources.is_empty());
            assert_eq!(warned.unwrap().message, fatal);
            assert_eq!(condition.unwrap().status(), ConditionStatus::ConditionTrue);
        }
    }
}

#[test]
fn unknown_minimum_of_the_schema_revision_is_one_error() {
    for (minimum, revision) in [(99, 3), (99, 1), (0, 3)] {
        let input = json!({"minimumSchemaRevision": minimum, "schemaRevision": revision});
        let response = answer(with_input(&input));
        let [fatal] = fatals(&response)[..] else { panic!("{:?}", response.results) };
        let words = format!("settings.minimumSchemaRevision: found {minimum}; allowed: 1 to 3");
        assert!(fatal.starts_with(&words), "{fatal}");
        let Value::Object(body) = input else { panic!() };
        assert_eq!(apis::check_settings(body).len(), 1);
    }
}

/// The environment goes on after the function was rolled back.
#[test]
fn later_schema_revision_is_an_error_of_the_settings_alone() {
    let input = json!({"schemaRevision": 99});
    assert_eq!(fatals(&answer(with_input(&input))), [""; 0]);
    let Value::Object(body) = input else { panic!() };
    let errors = apis::check_settings(body);
    let expected = "settings.schemaRevision: found 99; allowed: 1 to 3";
    assert!(errors.len() == 1 && errors[0].to_string().starts_with(expected), "{errors:?}");
}

#[test]
fn lifecycle_of_a_claim_under_an_older_revision_is_a_warning_for_each_field() {
    let mut request = with_input(&json!({"schemaRevision": 2}));
    let composite =
        request.observed.as_mut().unwrap().composite.as_mut().unwrap().resource.as_mut().unwrap();
    let mut xr = value::object(composite.clone());
    xr["spec"] = json!({"parameters": {"owner": "ada"}, "compositionRef": {"name": "own"},
        "lifecycle": {"ttl": "8h", "onExpiry": "Delete", "power": "Running"}});
    xr["metadata"] = json!({"name": "ada", "uid": "abcde",
        "annotations": {crate::lifecycle::STOPPED_AT: "2026-11-25T08:00:00Z"}});
    *composite = value::structure(xr);
    let response = answer(request);
    assert_eq!(fatals(&response), [""; 0]);
    let told: Vec<&str> = response
        .results
        .iter()
        .filter(|one| one.reason() == "OldSchemaRevision")
        .map(|one| one.message.split(':').next().unwrap())
        .collect();
    let stop = "annotation paved-road.fn.crossplane.io/stopped-at";
    assert_eq!(told, ["spec.lifecycle.onExpiry", "spec.lifecycle.ttl", stop]);
    let condition = response.conditions.iter().find(|one| one.r#type == OUTDATED).unwrap();
    assert!(condition.message().contains("because Composition own has schemaRevision 2"));
}

#[test]
fn mistakes_in_environment_config_are_rejected_like_mistakes_in_the_input() {
    let mut request = request(&[]);
    let config = environment_config(&json!({"gpuWorkspace": {"ami": "ami-1"}}));
    request.required_resources.insert(SETTINGS_REQUIREMENT.to_owned(), config);
    let response = answer(request);
    assert_eq!(response.results[0].severity(), Severity::Fatal);
    assert!(
        response.results[0].message.starts_with("settings.gpuWorkspace.ami: "),
        "{}",
        response.results[0].message
    );
}

#[test]
fn result_is_returned_only_for_a_changed_message() {
    let mut request = request(&[]);
    request.input.as_mut().unwrap().fields.remove("settingsFrom");
    let first = answer(request.clone());
    assert_eq!(first.results.len(), 1);
    assert_eq!(first.results[0].severity(), Severity::Normal);
    assert_eq!(Some(&first.results[0].message), first.conditions[0].message.as_ref());

    let said = &first.conditions[0];
    let condition = json!({"type": "Provisioned", "status": "False", "reason": said.reason, "message": said.message});
    let composite =
        request.observed.as_mut().unwrap().composite.as_mut().unwrap().resource.as_mut().unwrap();
    composite.fields.extend(structure(&json!({"status": {"conditions": [condition]}})).fields);
    let second = answer(request);
    assert_eq!(second.results, []);
    assert_eq!(second.conditions, first.conditions);
}

#[test]
fn resource_of_an_earlier_step_is_never_replaced() {
    let mut request = request(&[]);
    request.input.as_mut().unwrap().fields.remove("settingsFrom");
    let theirs = State {
        resources: [("instance".to_owned(), resource(&json!({"kind": "Other"})))].into(),
        ..State::default()
    };
    request.desired = Some(theirs.clone());
    let response = answer(request);
    assert_eq!(response.results[0].severity(), Severity::Fatal);
    assert!(
        response.results[0].message.contains("also composes `instance`"),
        "{}",
        response.results[0].message
    );
    assert_eq!(response.desired, Some(theirs));
}

/// A virtual environment of the claims API. Its Composition looks up the namespace.
fn virtual_environment(settings_from: bool) -> RunFunctionRequest {
    let xr = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "XEnvironment",
        "metadata": {"name": "team-payments", "uid": "5f0c9a6e-4c1d-4b7e-9a53-0d8a4f6b2c10"},
        "spec": {"claimRef": {"name": "innocent", "namespace": "team-vision"}, "parameters": {}},
    });
    let mut input = json!({"schemaRevision": 2});
    if settings_from {
        input["settingsFrom"] = json!({"name": "paved-road"});
    }
    let mut request = request(&[Capability::Capabilities, Capability::RequiredResources]);
    request.observed = Some(State { composite: Some(resource(&xr)), ..State::default() });
    request.input = Some(structure(&input));
    request
}

const NAMESPACE: &str = "Namespace/team-payments-5f0c9";

#[test]
fn namespace_lookup_is_not_fatal_and_delays_its_resources() {
    let response = answer(virtual_environment(false));
    assert!(
        response.results.iter().all(|result| result.severity() != Severity::Fatal),
        "{:?}",
        response.results
    );
    let asked = &response.requirements.as_ref().unwrap().resources[NAMESPACE];
    assert_eq!((asked.kind.as_str(), asked.api_version.as_str()), ("Namespace", "v1"));
    assert_eq!(
        asked.r#match,
        Some(resource_selector::Match::MatchName("team-payments-5f0c9".to_owned()))
    );
    let slots = &response.desired.as_ref().unwrap().resources;
    for slot in ["host-namespace", "vcluster"] {
        assert!(!slots.contains_key(slot), "{slot}");
    }
}

#[test]
fn crossplane_1_20_is_asked_for_an_extra_resource() {
    let mut request = virtual_environment(false);
    request.meta.as_mut().unwrap().capabilities.clear();
    let first = answer(request.clone());
    let requirements = first.requirements.as_ref().unwrap();
    assert_eq!(requirements.extra_resources.get(NAMESPACE), requirements.resources.get(NAMESPACE));
    request.extra_resources.insert(NAMESPACE.to_owned(), Resources::default());
    let second = answer(request);
    assert!(second.desired.as_ref().unwrap().resources.contains_key("host-namespace"));
    assert_eq!(
        second.requirements, first.requirements,
        "Crossplane accepts an answer with the same requirements"
    );
}

#[test]
fn settings_and_namespace_are_requested_together() {
    let mut request = virtual_environment(true);
    request
        .required_resources
        .insert(SETTINGS_REQUIREMENT.to_owned(), environment_config(&json!({})));
    let mut asked: Vec<_> = answer(request).requirements.unwrap().resources.into_keys().collect();
    asked.sort();
    assert_eq!(asked, [NAMESPACE, SETTINGS_REQUIREMENT]);
}

#[test]
fn namespace_of_another_composite_is_fatal() {
    let mut request = virtual_environment(false);
    let labels = json!({"paved-road.fn.crossplane.io/composite-uid": "another"});
    for labels in [json!({}), labels] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team-payments-5f0c9", "labels": labels}});
        let found = Resources { items: vec![resource(&namespace)] };
        request.required_resources.insert(NAMESPACE.to_owned(), found);
        let response = answer(request.clone());
        assert_eq!(response.results[0].severity(), Severity::Fatal);
        let [condition, _] = &response.conditions[..] else { panic!("{:?}", response.conditions) };
        assert_eq!(
            (condition.r#type.as_str(), condition.reason.as_str()),
            (CONDITION, "NamespaceTaken")
        );
        assert_eq!(condition.status(), ConditionStatus::ConditionFalse);
        assert!(
            response.requirements.unwrap().resources.contains_key(NAMESPACE),
            "Crossplane keeps watching the namespace"
        );
    }
}
