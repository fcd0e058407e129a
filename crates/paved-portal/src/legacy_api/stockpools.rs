//! Stock pools for existing clients: `/api/v1/operator/stockpools`. Jobs are derived from the
//! claims.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use function_paved_road::check::kubernetes;
use kube::api::{DynamicObject, ListParams, VersionMatch};
use paved_client::cluster::{Kind, Selector};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{CreateParams, NoParams, message, only, phase, text};
use crate::answer::Answer;
use crate::api::environments::Environments;
use crate::api::write::{self, WriteParams, WriteRequest, Writer, name_fits};
use crate::bodies::Body;
use crate::extract::{Path, Query, location, name};
use crate::identity::Person;
use crate::kinds::{Catalog, api};
use crate::live::Entry;
use crate::owner::{LABEL, hash, unique};
use crate::problem::{Conflicts, ErrorResponses, NotFound, Problem, UnprocessableEntity};
use crate::request::{BODY, REQUEST};
use crate::signed_in::SignedIn;

/// The claim's kind.
const KIND: &str = "StockPool";

/// The header with a client's key for repeated requests.
const IDEMPOTENCY: &str = "idempotency-key";

/// Returns 200 while the API runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// ok
    status: &'static str,
}

/// A new stock pool.
#[derive(ToSchema)]
#[allow(dead_code)]
#[schema(rename_all = "camelCase", example = json!({"name": "render", "specName": "g1.1", "replicas": 2}))]
pub(crate) struct NewStockPool {
    /// The name. Default: a generated name.
    name: Option<String>,
    /// The namespace. Default: my namespace.
    namespace: Option<String>,
    /// For example g1.1.
    #[schema(min_length = 1)]
    spec_name: String,
    /// Container image of the pods.
    image: Option<String>,
    /// Memory per pod: a quantity, for example 2Gi.
    memory: Option<String>,
    /// Number of GPUs per pod.
    #[schema(minimum = 0, maximum = 16)]
    gpu: Option<i64>,
    /// Number of pods.
    #[schema(minimum = 0, maximum = 2_147_483_647)]
    replicas: i64,
}

/// A stock pool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StockPool {
    name: String,
    namespace: String,
    spec_name: Option<String>,
    image: Option<String>,
    memory: Option<String>,
    gpu: Option<i64>,
    replicas: Option<i64>,
    status: Status,
    creation_timestamp: Option<String>,
}

/// The state.
#[derive(Serialize, ToSchema)]
#[schema(as = StockPoolStatus)]
pub(crate) struct Status {
    phase: String,
    available: Option<i64>,
    allocated: Option<i64>,
    /// Why the pool waits or failed.
    message: Option<String>,
}

/// A job that creates a stock pool.
// Existing clients expect these names.
#[allow(clippy::struct_field_names)]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    #[serde(rename = "jobID")]
    job_id: String,
    /// `succeeded` if the claim exists; `deleting` while the claim is deleted.
    status: &'static str,
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

/// Returns 200 while the API runs.
#[utoipa::path(get, path = "/api/v1/health", operation_id = "getHealth", tag = "stock pools", responses((status = 200, description = "The process runs.", body = Health)))]
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { status: "ok" })
}

fn kinds(catalog: &Catalog) -> Vec<Kind> {
    api(KIND).map(|api| catalog.seen().for_api(api)).unwrap_or_default()
}

impl StockPool {
    fn from_entry(entry: &Entry) -> Self {
        let spec = &entry.spec;
        let text = |name: &str| spec[name].as_str().map(str::to_owned);
        let number = |name: &str| entry.view.status.get(name).and_then(Value::as_i64);
        Self {
            name: entry.key.name.clone(),
            namespace: entry.key.namespace.clone(),
            spec_name: text("specName"),
            image: text("image"),
            memory: text("memory"),
            gpu: spec["gpu"].as_i64(),
            replicas: spec["replicas"].as_i64(),
            status: Status {
                phase: phase(entry),
                available: number("available"),
                allocated: number("allocated"),
                message: message(entry),
            },
            creation_timestamp: entry.view.created_at.clone(),
        }
    }
}

/// The filter of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Namespace of the pools. Default: all namespaces.
    namespace: Option<String>,
}

/// The stock pools that I may read.
#[utoipa::path(get, path = "/api/v1/operator/stockpools", operation_id = "listStockPools", tag = "stock pools", params(Which),
    responses((status = 200, description = "The list.", body = Vec<StockPool>), ErrorResponses))]
pub(crate) async fn list(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Query(which): Query<Which>,
) -> Result<Answer<Vec<StockPool>>, Problem> {
    let namespace = which.namespace.as_deref();
    let namespace = namespace.map(|text| name("namespace", text)).transpose()?;
    let names: Vec<String> = kinds(&environments.catalog).iter().map(Kind::full_name).collect();
    let fits = |entry: &Entry| {
        names.contains(&entry.key.kind)
            && namespace.is_none_or(|namespace| namespace == entry.key.namespace)
    };
    let all = environments.visible(&person, fits).await?;
    Ok(Answer(all.iter().map(|entry| StockPool::from_entry(entry)).collect()))
}

/// Create a stock pool.
///
/// Requests with the same `Idempotency-Key` create one pool and return one job. A different body is
/// a conflict.
#[utoipa::path(post, path = "/api/v1/operator/stockpools", operation_id = "createStockPool", tag = "stock pools", request_body = NewStockPool,
    params(CreateParams, ("Idempotency-Key" = Option<String>, Header, description = "The client's id of this request: at most 255 visible characters.")),
    responses((status = 202, description = "The claim is created: the job.", body = Job), ErrorResponses, UnprocessableEntity, Conflicts))]
pub(crate) async fn create(
    State(writer): State<Writer>,
    SignedIn(person): SignedIn,
    headers: HeaderMap,
    Query(params): Query<CreateParams>,
    body: Body,
) -> Result<Response, Problem> {
    let body = body.read(&person).await?;
    let job = make(&writer, &person, &headers, &body.value, params.into()).await?;
    let location = location(&["operator", "jobs", &job.job_id])?;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Answer(job)).into_response())
}

/// A validated body.
struct Wanted<'b> {
    name: Option<&'b str>,
    namespace: Option<&'b str>,
    spec: Value,
}

impl<'b> Wanted<'b> {
    fn from_body(body: &'b Value) -> Result<Self, Problem> {
        let body: &Map<String, Value> =
            body.as_object().ok_or_else(|| Problem::field("body", "allowed: an object"))?;
        only(body, &["name", "namespace", "specName", "image", "memory", "gpu", "replicas"])?;
        let mut spec = Map::new();
        let name =
            text(body, "specName")?.ok_or_else(|| Problem::field("specName", "is required"))?;
        spec.insert("specName".to_owned(), json!(name));
        for field in ["image", "memory"] {
            text(body, field)?
                .into_iter()
                .for_each(|value| drop(spec.insert(field.to_owned(), json!(value))));
        }
        if let Some(memory) = text(body, "memory")? {
            // The schema accepts `0`, but the function rejects it.
            kubernetes::memory(memory)
                .map_err(|refused| Problem::field("memory", refused.to_string()))?;
        }
        let number = |field: &str, most: i64| match body.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64().filter(|number| (0..=most).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(Problem::field(
                    field,
                    format!("found {value}; allowed: a whole number from 0 to {most}"),
                )),
            },
        };
        if let Some(gpu) = number("gpu", 16)? {
            spec.insert("gpu".to_owned(), json!(gpu));
        }
        let replicas = number("replicas", i64::from(i32::MAX))?;
        spec.insert(
            "replicas".to_owned(),
            json!(replicas.ok_or_else(|| Problem::field("replicas", "is required"))?),
        );
        let name = text(body, "name")?;
        name.map(name_fits).transpose()?;
        Ok(Self { name, namespace: text(body, "namespace")?, spec: Value::Object(spec) })
    }

    /// A hash that is equal for equal requests.
    fn hash(&self) -> String {
        hash(
            &[
                self.name.unwrap_or_default(),
                self.namespace.unwrap_or_default(),
                &self.spec.to_string(),
            ],
            16,
        )
    }
}

async fn make(
    writer: &Writer,
    person: &Person,
    headers: &HeaderMap,
    body: &Value,
    params: WriteParams,
) -> Result<Job, Problem> {
    let environments = &writer.environments;
    let wanted = Wanted::from_body(body)?;
    let owner = person.owner();
    let key = key(headers)?;
    let job_id = match &key {
        Some(key) => hash(&[&owner.hash(), key], 16),
        None => unique(16)?,
    };
    // Checks the owner's label too, because another user could put this job's ID on a visible
    // claim.
    let mine = claims_with(&[(REQUEST, &job_id), (LABEL, &owner.label())])?;
    if key.is_some()
        && let Some((_, object)) =
            environments.find(person, &kinds(&environments.catalog), &mine).await?.first()
    {
        return again(&job_id, &wanted, object);
    }
    let kind = kinds(&environments.catalog).into_iter().next();
    let kind =
        kind.ok_or_else(|| Problem::not_found("This cluster has no kind for stock pools."))?;
    let namespace = writer.namespace(person, &kind, wanted.namespace).await?;
    let name = wanted.name.map_or_else(|| format!("pool-{}", &job_id[..12]), str::to_owned);
    let mut draft = WriteRequest::new(
        kind.clone(),
        namespace.clone(),
        name.clone(),
        &owner,
        wanted.spec.clone(),
    );
    draft.note("labels", REQUEST, &job_id);
    draft.note("annotations", BODY, &wanted.hash());
    match draft.create(environments, person, params).await {
        Ok(object) => {
            if key.is_some()
                && let Some(first) = before(environments, person, mine, &object).await?
            {
                let place = (namespace.as_str(), name.as_str());
                write::delete(environments, person, &kind, place, object.metadata.uid).await?;
                return again(&job_id, &wanted, &first);
            }
            Ok(job(&job_id, &object))
        }
        // An equal request may have arrived at the same time, here or at another replica.
        Err(problem) if problem.status() == StatusCode::CONFLICT && key.is_some() => {
            let client = environments.clients.for_person(person)?;
            let there = kind.api(&client, Some(&namespace)).get_opt(&name).await?;
            let same = there.filter(|there| label(there, REQUEST) == Some(&job_id));
            same.map_or(Err(problem), |there| again(&job_id, &wanted, &there))
        }
        Err(problem) => Err(problem),
    }
}

/// The same job for the same request. Another body with the same key is a conflict.
fn again(job_id: &str, wanted: &Wanted<'_>, object: &DynamicObject) -> Result<Job, Problem> {
    let before = object.metadata.annotations.as_ref().and_then(|all| all.get(BODY));
    if before == Some(&wanted.hash()) {
        return Ok(job(job_id, object));
    }
    Err(Problem::conflict("Idempotency-Key: the key belongs to another request. Use a new key."))
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY) else { return Ok(None) };
    let text = value.to_str().ok().map(str::trim);
    let fits =
        |text: &&str| !text.is_empty() && text.len() <= 255 && !text.contains(char::is_control);
    let text = text.filter(fits);
    text.map(|text| Some(text.to_owned()))
        .ok_or_else(|| Problem::field("Idempotency-Key", "allowed: 1 to 255 visible characters"))
}

fn label<'o>(object: &'o DynamicObject, key: &str) -> Option<&'o String> {
    object.metadata.labels.as_ref()?.get(key)
}

/// Selects the claims with these labels.
fn claims_with(labels: &[(&str, &str)]) -> Result<ListParams, Problem> {
    let selector = Selector::with(labels);
    selector.map(|one| one.list_params()).map_err(|error| Problem::bad_request(error.to_string()))
}

/// An earlier claim with the same key, as of the creation of this claim. The API server orders all
/// writes, and can list the state at each version. So one of two concurrent claims is the first.
async fn before(
    environments: &Environments,
    person: &Person,
    same: ListParams,
    object: &DynamicObject,
) -> Result<Option<DynamicObject>, Problem> {
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    let same = same.at(version).matching(VersionMatch::Exact);
    let then = environments.find(person, &kinds(&environments.catalog), &same).await?;
    Ok(then.into_iter().map(|(_, one)| one).find(|one| one.metadata.uid != object.metadata.uid))
}

fn job(job_id: &str, object: &DynamicObject) -> Job {
    let metadata = &object.metadata;
    Job {
        job_id: job_id.to_owned(),
        status: if metadata.deletion_timestamp.is_some() { "deleting" } else { "succeeded" },
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        created_at: metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
    }
}

/// The state of a job that creates a stock pool.
#[utoipa::path(get, path = "/api/v1/operator/jobs/{jobID}", operation_id = "getJob", tag = "stock pools", params(("jobID" = String, Path, description = "The id in the response to the POST.", example = "0123456789abcdef0123456789abcdef")),
    responses((status = 200, description = "The job.", body = Job), ErrorResponses, NotFound))]
pub(crate) async fn job_of(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(job_id): Path<String>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<Job>, Problem> {
    let absent = || Problem::not_found("Job not found.");
    if job_id.len() != 32
        || !job_id.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    {
        return Err(absent());
    }
    let claims = claims_with(&[(REQUEST, &job_id)])?;
    let found = environments.find(&person, &kinds(&environments.catalog), &claims).await?;
    // Prefers the user's own claim, because another user could put this job's ID on a visible
    // claim.
    let own = person.owner().label();
    let is_mine = |object: &DynamicObject| label(object, LABEL) == Some(&own);
    let mine = found.iter().find(|(_, object)| is_mine(object)).or_else(|| found.first());
    mine.map(|(_, object)| Answer(job(&job_id, object))).ok_or_else(absent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_refusal_names_the_field() {
        for (body, field) in [
            (json!({"replicas": 1}), "specName"),
            (json!({"specName": "g1.1"}), "replicas"),
            (json!({"specName": "g1.1", "replicas": -1}), "replicas"),
            (json!({"specName": "g1.1", "replicas": 1.5}), "replicas"),
            (json!({"specName": "g1.1", "replicas": 1, "gpu": 17}), "gpu"),
            (json!({"specName": "g1.1", "replicas": 1, "memory": "0"}), "memory"),
            (json!({"specName": "g1.1", "replicas": 1, "memory": "999999999999999Ei"}), "memory"),
            (json!({"specName": "g1.1", "replicas": 1, "name": "A"}), "metadata.name"),
            (json!({"specName": "g1.1", "replicas": 1, "owner": "bob"}), "owner"),
            (json!({"specName": 3, "replicas": 1}), "specName"),
            (json!([]), "body"),
        ] {
            let problem = Wanted::from_body(&body).map(|_| ()).unwrap_err();
            assert!(
                problem.status().is_client_error() && problem.detail().starts_with(field),
                "{body}: {problem:?}"
            );
        }
    }

    #[test]
    fn the_order_of_fields_makes_no_other_request() {
        let hash =
            |text: &str| Wanted::from_body(&serde_json::from_str(text).unwrap()).unwrap().hash();
        let one = hash(r#"{"specName": "g1.1", "replicas": 1, "memory": "2Gi"}"#);
        assert_eq!(one, hash(r#"{"memory": "2Gi", "replicas": 1, "specName": "g1.1"}"#));
        assert_ne!(one, hash(r#"{"memory": "2Gi", "replicas": 2, "specName": "g1.1"}"#));
    }
}
