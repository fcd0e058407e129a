//! Crossplane's request, and the repeated runs for a function's requirements.

use std::collections::HashMap;

use function_proto::structs;
use function_proto::v1::{
    Capability, RequestMeta, Requirements, Resource, ResourceSelector, Resources,
    RunFunctionRequest, RunFunctionResponse, State, resource_selector::Match,
};
use prost_types::Struct;
use serde_json::{Value, json};

use super::{World, naming, status};
use crossplane::json::{at, set, text};

/// The maximum number of repeated runs for new requirements.
const RERUNS: usize = 5;

/// Why running a function failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The function returned an error.
    #[error(transparent)]
    Function(E),
    /// The function changed its requirements in each run.
    #[error("requirements didn't stabilize after the maximum number of iterations ({RERUNS})")]
    Unstable,
}

impl World {
    /// The first request of a reconcile, as Crossplane builds it.
    pub fn request(&self, input: Option<&Value>) -> RunFunctionRequest {
        let observed = State {
            composite: Some(self.observed(&self.marked_responsive())),
            resources: self
                .resources
                .iter()
                .map(|(slot, object)| (slot.clone(), self.observed(object)))
                .collect(),
        };
        let capabilities = [
            Capability::Capabilities,
            Capability::RequiredResources,
            Capability::Credentials,
            Capability::Conditions,
            Capability::RequiredSchemas,
        ];
        let identity = json!([self.composite, self.resources, input]);
        RunFunctionRequest {
            meta: Some(RequestMeta {
                tag: naming::hex(&identity.to_string()),
                capabilities: capabilities.into_iter().map(i32::from).collect(),
            }),
            observed: Some(observed),
            desired: Some(State::default()),
            input: input.map(structure),
            context: Some(Struct::default()),
            ..RunFunctionRequest::default()
        }
    }

    /// Runs a function as Crossplane does. It runs again with the required resources while the
    /// requirements change.
    pub fn run<E>(
        &self,
        input: Option<&Value>,
        mut function: impl FnMut(RunFunctionRequest) -> Result<RunFunctionResponse, E>,
    ) -> Result<RunFunctionResponse, RunError<E>> {
        let mut request = self.request(input);
        let mut requirements: Option<Requirements> = None;
        for _ in 0..=RERUNS {
            let response = function(request.clone()).map_err(RunError::Function)?;
            if status::fatal(&response).is_some() || response.requirements == requirements {
                return Ok(response);
            }
            requirements.clone_from(&response.requirements);
            let asked = response.requirements.unwrap_or_default();
            request.extra_resources = self.fetch(&asked.extra_resources);
            request.required_resources = self.fetch(&asked.resources);
            request.context = response.context;
        }
        Err(RunError::Unstable)
    }

    fn fetch(&self, selectors: &HashMap<String, ResourceSelector>) -> HashMap<String, Resources> {
        selectors
            .iter()
            .map(|(name, selector)| (name.clone(), self.select_resources(selector)))
            .collect()
    }

    fn select_resources(&self, selector: &ResourceSelector) -> Resources {
        let all = self.others.iter().chain(self.resources.values()).chain(self.secrets.values());
        let mut found: Vec<&Value> = all.filter(|object| matches(selector, object)).collect();
        found.sort_by_key(|object| {
            (text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]))
        });
        let items = found
            .into_iter()
            .map(|object| Resource { resource: Some(structure(object)), ..Resource::default() });
        Resources { items: items.collect() }
    }

    fn observed(&self, object: &Value) -> Resource {
        Resource {
            resource: Some(structure(object)),
            connection_details: self.connection_details(object).into_iter().collect(),
            ready: 0,
        }
    }

    /// Crossplane first sets the condition Responsive, before it runs functions.
    fn marked_responsive(&self) -> Value {
        let mut composite = self.composite.clone();
        set(&mut composite, &["status", "conditions"], status::with_responsive(self));
        composite
    }
}

fn matches(selector: &ResourceSelector, object: &Value) -> bool {
    let namespace = selector.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    text(object, &["apiVersion"]) == Some(&selector.api_version)
        && text(object, &["kind"]) == Some(&selector.kind)
        && match &selector.r#match {
            Some(Match::MatchName(name)) => {
                text(object, &["metadata", "name"]) == Some(name)
                    && text(object, &["metadata", "namespace"]) == namespace
            }
            Some(Match::MatchLabels(labels)) => {
                in_namespace(object, namespace)
                    && labels.labels.iter().all(|(key, value)| {
                        at(object, &["metadata", "labels", key]).and_then(Value::as_str)
                            == Some(value)
                    })
            }
            None => in_namespace(object, namespace),
        }
}

fn in_namespace(object: &Value, namespace: Option<&str>) -> bool {
    namespace.is_none() || text(object, &["metadata", "namespace"]) == namespace
}

fn structure(value: &Value) -> Struct {
    value.as_object().cloned().map(structs::structure).unwrap_or_default()
}
