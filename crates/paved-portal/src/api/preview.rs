//! `/api/v1/preview` and `…/{name}/preview`: what a claim would become, and what a change of one
//! would do, composed in this process with the cluster's own Composition and Settings.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use crossplane::names::SLOT;
use function_paved_road::apis::gpu_workspace::is_closed_to_ssh;
use function_paved_road::function::Outside;
use function_sdk_rust::proto::v1::Severity;
use jiff::Timestamp;
use k8s_schema::Violation;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster, Kind, compositions};
use paved_render::discreet::without_secrets;
use paved_render::function;
use paved_render::rendered;
use paved_render::subject::Stored;
use paved_render::subject::observed::Observed;
use paved_render::subject::step::{CONFIG, CONFIG_VERSION, Step, is_our_config};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;

use super::changes::{Document, drafted};
use super::environments::Place;
use super::write::{Draft, Writer};
use crate::answer::Answer;
use crate::extract::{Json, Path};
use crate::live::Part;
use crate::problem::{Absent, FieldError, Problem, Refusals, Unfit};
use crate::signed_in::SignedIn;

/// How many claims are composed at once: it takes a processor each.
const AT_ONCE: usize = 2;

/// How many requests may wait for a place: the document of each is held in memory, which takes a
/// multiple of its length.
const WAITING: usize = 8;

/// The places where claims are composed.
pub(crate) struct Preview {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Preview {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { places: places(AT_ONCE), waiting: places(AT_ONCE + WAITING) }
    }
}

impl Preview {
    /// A place among those who wait, for as long as it is held.
    fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let detail = "The portal is composing too many previews. Try again in a moment.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    /// Composes in a place of its own, and writes the answer there too. That goes on where nobody
    /// waits for it any more, and keeps its place until it is done.
    async fn answer<T: Serialize>(
        &self,
        waits: OwnedSemaphorePermit,
        compose: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Problem::bad_request("The portal is shutting down."))?;
        let composed = tokio::task::spawn_blocking(move || {
            let _held = (waits, place);
            compose().map(|made| Answer(made).into_response())
        });
        composed.await.unwrap_or_else(|_| {
            Err(Problem::bad_request(
                "The preview failed unexpectedly. Ask your platform team to read the log of the \
                 portal.",
            ))
        })
    }
}

/// A preview of an environment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Previewed {
    /// The Composition that would be used.
    composition: String,
    /// All resources, including resources that are created later.
    parts: Vec<Part>,
    /// The resources that are created first, by slot, without secrets.
    resources: Vec<Resource>,
    /// Notes of the function.
    notes: Vec<String>,
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    ssh_closed: bool,
}

/// A preview of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewedChange {
    /// The Composition that would be used.
    composition: String,
    /// The resources that the change affects, by slot.
    changes: Vec<ChangedResource>,
    /// Notes of the function.
    notes: Vec<String>,
    /// Whether the machine would be unreachable by SSH because no network is allowed.
    ssh_closed: bool,
}

/// A resource that a change affects.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedResource {
    /// The slot: the permanent name of the resource in the environment.
    slot: String,
    kind: String,
    /// The effect on the resource.
    action: Action,
    /// The changed fields of a resource that is not deleted. A long list is truncated.
    fields: Vec<ChangedField>,
}

/// The effect on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Create,
    Change,
    Delete,
}

/// A changed field. Long values are truncated.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ChangedField {
    /// The path, for example `spec.forProvider.instanceType`.
    path: String,
    /// The current value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The new value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// A resource that would be created.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// The slot: the permanent name of the resource in the environment.
    slot: String,
    kind: String,
    /// The object, without secrets.
    #[schema(value_type = Object)]
    manifest: Value,
}

/// Preview an environment, without creating it.
///
/// The portal checks the schema itself, without a request to the API server.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewEnvironment", tag = "environments", request_body = Document,
    responses((status = 200, description = "The preview.", body = Previewed), Refusals, Unfit))]
pub(crate) async fn preview(
    State(preview): State<Arc<Preview>>,
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Json(document): Json<Value>,
) -> Result<Response, Problem> {
    let waits = preview.enter()?;
    let draft = Draft::from_document(&writer, &person, document, None).await?;
    // What the platform's settings make of a claim is for those who may make one.
    if !writer.environments.access.may_create(&person, &draft.kind, &draft.namespace).await? {
        let (kind, namespace) = (draft.kind.name(), &draft.namespace);
        return Err(Problem::forbidden(format!(
            "You may not create {kind} in namespace {namespace}."
        )));
    }
    let step = step(&writer.environments.clients.own(), &draft).await?;
    let document = draft.document();
    let made =
        move || Composed::new(&document, None, &step).map(Previewed::from).map_err(Problem::from);
    preview.answer(waits, made).await
}

/// Preview a change of an environment, without changing it.
///
/// Takes the body of a PUT. Does not repeat errors that the current environment already has.
#[utoipa::path(post, path = "/api/v1/environments/{namespace}/{kind}/{name}/preview", operation_id = "previewChange", tag = "environments", params(Place), request_body = Document,
    responses((status = 200, description = "The effect of the change.", body = PreviewedChange), Refusals, Absent, Unfit))]
pub(crate) async fn change(
    State(preview): State<Arc<Preview>>,
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    Path(place): Path<Place>,
    Json(document): Json<Value>,
) -> Result<Response, Problem> {
    let waits = preview.enter()?;
    let (kind, namespace, name) = place.read(&writer.environments.catalog)?;
    let (before, draft) = drafted(&writer, &person, (&kind, namespace, name), document).await?;
    if !writer.environments.access.may_change(&person, &kind, namespace).await? {
        return Err(Problem::forbidden(format!(
            "You may not change {} in namespace {namespace}.",
            kind.name()
        )));
    }
    let step = step(&writer.environments.clients.own(), &draft).await?;
    let after = draft.document();
    let mut now = after.clone();
    now["spec"] = before.data["spec"].clone();
    let made = move || {
        let now_composed = Composed::new(&now, None, &step);
        let known =
            now_composed.as_ref().err().map(|rejected| rejected.fields.clone()).unwrap_or_default();
        match Composed::new(&after, Some(&now), &step) {
            Ok(composed) => Ok(composed.since(now_composed.ok())),
            Err(mut rejected) => {
                rejected.fields.retain(|field| !known.contains(field));
                // What is rejected already cannot be composed: there is nothing to compare.
                if rejected.fields.is_empty() {
                    Ok(PreviewedChange::unknown(&step))
                } else {
                    Err(rejected.into())
                }
            }
        }
    };
    preview.answer(waits, made).await
}

/// The step of the Composition that the API server would choose, with its Settings.
async fn step(cluster: &Cluster, draft: &Draft) -> Result<Step, Problem> {
    let all = compositions(cluster).await.map_err(|failure| unreadable(&failure))?;
    let all = all.ok_or_else(|| {
        Problem::forbidden(
            "The portal cannot show a preview, because it may not read Compositions.",
        )
    })?;
    let spec = draft.object.get("spec").cloned().unwrap_or_default();
    let suited = all.iter().find(|one| one.serves(&draft.kind) && one.suits(&spec));
    let suited = suited.ok_or_else(|| no_composition(&draft.kind))?;
    let mut step =
        Step::from_composition(suited.document()).map_err(|failure| unreadable(&failure))?;
    step.configs = configs(cluster).await?;
    Ok(step)
}

fn no_composition(kind: &Kind) -> Problem {
    let detail = format!("This cluster has no Composition for this {}.", kind.name());
    Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// The EnvironmentConfigs with Settings of ours.
async fn configs(cluster: &Cluster) -> Result<Vec<Value>, Problem> {
    let (group, version) = crossplane::api_version::split(CONFIG_VERSION);
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: CONFIG_VERSION.to_owned(),
        kind: CONFIG.to_owned(),
        plural: "environmentconfigs".to_owned(),
    };
    let api = Api::for_resource(&cluster.client, None, &resource);
    let list = match api.list(&kube::api::ListParams::default()).await {
        Ok(list) => list.items,
        // A cluster without the kind has no Settings there.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let complete = |object: DynamicObject| {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = CONFIG_VERSION.into();
        value["kind"] = CONFIG.into();
        value
    };
    Ok(list.into_iter().map(complete).filter(is_our_config).collect())
}

fn unreadable(failure: &impl Display) -> Problem {
    tracing::warn!(%failure, "a claim cannot be previewed");
    Problem::new(
        http::StatusCode::BAD_GATEWAY,
        "The cluster's Compositions could not be read. Try again in a moment.",
    )
}

/// What the function makes of a claim.
struct Composed {
    composition: String,
    parts: Vec<Part>,
    resources: Vec<Resource>,
    notes: Vec<String>,
    ssh_closed: bool,
}

/// Why a claim is not composed.
struct Rejected {
    /// The words before them.
    words: String,
    fields: Vec<FieldError>,
}

impl From<Rejected> for Problem {
    fn from(Rejected { words, fields }: Rejected) -> Self {
        Self::refused(&words, fields)
    }
}

impl Composed {
    /// Composes a claim. For a change, `before` is the existing object. The random numbers are
    /// fixed, so that a change differs in nothing else. Generated values are not shown.
    fn new(document: &Value, before: Option<&Value>, step: &Step) -> Result<Self, Rejected> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let title = format!("{} {}", text(&document["kind"]), text(&document["metadata"]["name"]));
        let fatal = |fields: Vec<FieldError>| Rejected { words: String::new(), fields };
        let broken = |message: String| fatal(vec![FieldError::new(String::new(), message)]);
        let refused = |violations: Vec<Violation>| Rejected {
            words: format!("{title} is rejected: "),
            fields: violations
                .into_iter()
                .map(|one| FieldError::new(one.path, one.message))
                .collect(),
        };
        let seen = Observed::new(before.cloned().into_iter().collect());
        let stored =
            Stored::from_document(document, &seen).map_err(|violation| refused(vec![violation]))?;
        if !stored.violations.is_empty() {
            return Err(refused(stored.violations));
        }
        let composite = stored.composite(&Observed::default()).map_err(refused)?;
        let subject = stored.among(composite, step.clone(), title.clone());
        let mut random = |buffer: &mut [u8]| buffer.fill(7);
        let outside = Outside { now: Timestamp::now(), random: &mut random };
        let response =
            function::answer_with(&subject.world, &subject.step.input, outside).map_err(broken)?;
        let of =
            |severity| response.results.iter().filter(move |result| result.severity() == severity);
        let fatals: Vec<FieldError> =
            of(Severity::Fatal).map(|result| at_field(&result.message)).collect();
        if !fatals.is_empty() {
            return Err(fatal(fatals));
        }
        let shown =
            rendered(&subject.world, &response).map_err(|error| broken(error.to_string()))?;
        let lines = shown.composite["status"]["resources"].as_array().cloned().unwrap_or_default();
        let parts: Vec<Part> =
            lines.into_iter().filter_map(|line| serde_json::from_value(line).ok()).collect();
        let resource = |mut manifest: Value| {
            without_secrets(&mut manifest);
            let (slot, kind) =
                (text(&manifest["metadata"]["annotations"][SLOT]), text(&manifest["kind"]));
            Resource { slot, kind, manifest }
        };
        let resources: Vec<Resource> = shown.resources.into_iter().map(resource).collect();
        let slots = parts.iter().map(|part| part.slot.as_str());
        let ssh_closed = is_closed_to_ssh(&text(&document["kind"]), slots);
        let closed =
            ssh_closed.then(|| "Nobody can connect by SSH: no network is allowed.".to_owned());
        let others = step.others.iter();
        let others = others.map(|other| {
            format!(
                "The preview does not include {other}, another step of the \
                 Composition."
            )
        });
        let warnings = of(Severity::Warning).map(|result| result.message.clone());
        Ok(Self {
            composition: text(&step.composition["metadata"]["name"]),
            parts,
            resources,
            notes: closed.into_iter().chain(others).chain(warnings).collect(),
            ssh_closed,
        })
    }

    /// What differs from what there is.
    fn since(self, before: Option<Self>) -> PreviewedChange {
        let Self { composition, resources: after, notes, ssh_closed, .. } = self;
        // What there is cannot be composed any more: nobody knows what the change touches.
        let changes =
            before.map(|before| differences(&before.resources, &after)).unwrap_or_default();
        PreviewedChange { composition, changes, notes, ssh_closed }
    }
}

impl From<Composed> for Previewed {
    fn from(Composed { composition, parts, resources, notes, ssh_closed }: Composed) -> Self {
        Self { composition, parts, resources, notes, ssh_closed }
    }
}

impl PreviewedChange {
    /// Where the environment is rejected as it is, and the change does not make that worse.
    fn unknown(step: &Step) -> Self {
        let composition =
            step.composition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let notes = vec![
            "The current environment is rejected, so the preview cannot compare resources."
                .to_owned(),
        ];
        Self { composition, changes: Vec::new(), notes, ssh_closed: false }
    }
}

/// A result of the function's as an error of a field: its message begins with the field's path, if
/// it is about one.
fn at_field(message: &str) -> FieldError {
    let found = message.split_once(": ").filter(|(path, _)| {
        let first = path.split(['.', '[']).next();
        matches!(first, Some("spec" | "metadata")) && !path.contains(char::is_whitespace)
    });
    let (path, message) = found.unwrap_or(("", message));
    FieldError::new(path.to_owned(), message.to_owned())
}

/// How many fields of a resource are named.
const FIELDS: usize = 30;

/// The longest value that is shown, in characters.
const SHOWN: usize = 200;

/// What differs between two sets of resources, slot by slot.
fn differences(before: &[Resource], after: &[Resource]) -> Vec<ChangedResource> {
    let slots = |all: &'_ [Resource]| -> BTreeSet<String> {
        all.iter().map(|one| one.slot.clone()).collect()
    };
    let find = |all: &'_ [Resource], slot: &str| all.iter().position(|one| one.slot == slot);
    let mut changes = Vec::new();
    for slot in slots(before).union(&slots(after)) {
        let (old, new) = (find(before, slot), find(after, slot));
        let (old, new) = (old.map(|index| &before[index]), new.map(|index| &after[index]));
        let Some(kind) = new.or(old).map(|one| one.kind.clone()) else { continue };
        let (action, fields) = match (old, new) {
            (Some(old), Some(new)) => {
                let mut fields = Vec::new();
                // Labels and annotations are ours, and status is the provider's.
                for (name, value) in new.manifest.as_object().into_iter().flatten() {
                    if !["metadata", "status"].contains(&name.as_str()) {
                        compare(name, Some(&old.manifest[name]), Some(value), &mut fields);
                    }
                }
                (Action::Change, fields)
            }
            (None, _) => (Action::Create, Vec::new()),
            (_, None) => (Action::Delete, Vec::new()),
        };
        if action != Action::Change || !fields.is_empty() {
            changes.push(ChangedResource { slot: slot.clone(), kind, action, fields });
        }
    }
    changes
}

/// Notes the fields that differ; a list counts as one.
fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    fields: &mut Vec<ChangedField>,
) {
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            compare(&format!("{path}.{name}"), old.get(name), new.get(name), fields);
        }
        return;
    }
    let told = |value: Option<&Value>| {
        let value = value.filter(|value| !value.is_null())?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(text.chars().take(SHOWN).collect())
    };
    if before != after && fields.len() < FIELDS {
        fields.push(ChangedField {
            path: path.to_owned(),
            before: told(before),
            after: told(after),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fatal_result_is_an_error_of_its_field() {
        for (message, field, rest) in [
            (
                "spec.parameters.instanceType: found \"x\"; allowed: y",
                "spec.parameters.instanceType",
                "found \"x\"; allowed: y",
            ),
            ("spec.backend.env[0]: is missing", "spec.backend.env[0]", "is missing"),
            ("settings.gpuWorkspace: no vpcId", "", "settings.gpuWorkspace: no vpcId"),
            ("no Settings: ask your platform team", "", "no Settings: ask your platform team"),
            ("special: x", "", "special: x"),
        ] {
            assert_eq!(
                at_field(message),
                FieldError { field: field.to_owned(), message: rest.to_owned() }
            );
        }
    }

    #[test]
    fn change_names_the_resources_and_fields_that_differ() {
        let resource = |slot: &str, manifest: Value| Resource {
            slot: slot.into(),
            kind: "Instance".into(),
            manifest,
        };
        let machine = |kind: &str| json!({"metadata": {"annotations": {"hash": kind}}, "spec": {"type": kind, "disks": [1, 2]}});
        let before = [
            resource("a", machine("small")),
            resource("b", machine("small")),
            resource("c", machine("x")),
        ];
        let after = [
            resource("a", machine("large")),
            resource("b", machine("small")),
            resource("d", machine("x")),
        ];
        let changes = differences(&before, &after);
        let told: Vec<(&str, Action, usize)> =
            changes.iter().map(|one| (one.slot.as_str(), one.action, one.fields.len())).collect();
        assert_eq!(
            told,
            [("a", Action::Change, 1), ("c", Action::Delete, 0), ("d", Action::Create, 0)]
        );
        let field = ChangedField {
            path: "spec.type".into(),
            before: Some("small".into()),
            after: Some("large".into()),
        };
        assert_eq!(changes[0].fields, [field]);
    }

    #[test]
    fn change_of_many_long_fields_is_short() {
        let manifest = |text: &str| {
            let data: serde_json::Map<String, Value> =
                (0..1_000).map(|number| (number.to_string(), json!(text.repeat(10_000)))).collect();
            json!({"data": data})
        };
        let resource = |text: &str| {
            [Resource { slot: "a".into(), kind: "ConfigMap".into(), manifest: manifest(text) }]
        };
        let changes = differences(&resource("a"), &resource("b"));
        assert_eq!(changes[0].fields.len(), FIELDS);
        assert!(serde_json::to_string(&changes).unwrap_or_default().len() < 50_000);
    }
}
