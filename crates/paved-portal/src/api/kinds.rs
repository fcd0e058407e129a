//! `/api/v1/kinds`: what can be made here.

use std::sync::Arc;

use axum::extract::State;
use paved_client::cluster;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::access::Access;
use crate::answer::Answer;
use crate::extract::{Path, Query, name};
use crate::kinds::{Catalog, SECRET, connection_keys, is_claim};
use crate::namespace::Namespaces;
use crate::problem::{Absent, Problem, Refusals};
use crate::signed_in::SignedIn;
use crate::who::Person;

/// A kind of environment.
// The field is what Kubernetes calls it.
#[allow(clippy::struct_field_names)]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    kind: String,
    api_version: String,
    /// As it stands in paths.
    plural: String,
    /// What it is, as its schema says.
    description: String,
    /// Whether it is a claim: then its connection details go to a Secret that it names.
    claim: bool,
    /// Whether I may create one in `namespace`. Absent where no namespace was asked for, nothing says where mine would go, and I may not
    /// create it in every one: then it is known once I name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_create: Option<bool>,
    /// The namespace that was asked for, or the first of mine where I may create one.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// The JSON schema of its spec, from the cluster's own XRD; of a claim, with the Secret for its connection details.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
}

/// The kinds, and what people may make of them.
#[derive(Clone)]
pub(crate) struct Kinds {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) access: Arc<Access>,
    pub(crate) namespaces: Namespaces,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Where {
    /// The namespace that the question whether I may is about.
    namespace: Option<String>,
}

/// All kinds.
#[utoipa::path(get, path = "/api/v1/kinds", operation_id = "listKinds", tag = "kinds", params(Where),
    responses((status = 200, description = "All kinds.", body = Vec<Kind>), Refusals))]
pub(crate) async fn list(
    State(kinds): State<Kinds>,
    SignedIn(person): SignedIn,
    Query(query): Query<Where>,
) -> Result<Answer<Vec<Kind>>, Problem> {
    let seen = kinds.catalog.seen();
    let mut shown = Vec::new();
    for kind in seen.all() {
        shown.push(kinds.shown(&person, kind, query.namespace.as_deref()).await?);
    }
    Ok(Answer(shown))
}

/// A kind.
#[utoipa::path(get, path = "/api/v1/kinds/{kind}", operation_id = "getKind", tag = "kinds",
    params(("kind" = String, Path, example = "stockpools", description = "A name of the kind, such as its plural, alone or with .group"), Where),
    responses((status = 200, description = "The kind.", body = Kind), Refusals, Absent))]
pub(crate) async fn get(
    State(kinds): State<Kinds>,
    SignedIn(person): SignedIn,
    Path(kind): Path<String>,
    Query(query): Query<Where>,
) -> Result<Answer<Kind>, Problem> {
    let kind = kinds.catalog.seen().called(&kind)?;
    Ok(Answer(kinds.shown(&person, &kind, query.namespace.as_deref()).await?))
}

impl Kinds {
    /// A kind as the person may use it.
    async fn shown(
        &self,
        person: &Person,
        kind: &cluster::Kind,
        chosen: Option<&str>,
    ) -> Result<Kind, Problem> {
        let candidates = match chosen {
            Some(chosen) => vec![name("namespace", chosen)?.to_owned()],
            None => self.namespaces.candidates(person),
        };
        let mut namespace = None;
        for candidate in &candidates {
            if self.access.may_create(person, kind, candidate).await? {
                namespace = Some(candidate.clone());
                break;
            }
        }
        let may_create = if candidates.is_empty() {
            self.access.may_create(person, kind, "").await?.then_some(true)
        } else {
            Some(namespace.is_some())
        };
        let seen = self.catalog.seen();
        let schema = seen.schema(kind);
        let text = |path: &str| schema.and_then(|schema| schema.pointer(path)?.as_str()).map(str::to_owned);
        let description = text("/description").or_else(|| text("/properties/spec/description"));
        Ok(Kind {
            kind: kind.name().to_owned(),
            api_version: kind.resource.api_version.clone(),
            plural: kind.resource.plural.clone(),
            description: description.unwrap_or_default(),
            claim: is_claim(kind),
            may_create,
            namespace: namespace.or_else(|| chosen.map(str::to_owned)),
            schema: schema
                .and_then(|schema| schema.pointer("/properties/spec"))
                .map(|spec| with_secret(spec, kind)),
        })
    }
}

/// A spec's schema with what core adds to a claim's for its connection details. The portal names a Secret where nobody does, so nothing
/// of it is required.
fn with_secret(spec: &Value, kind: &cluster::Kind) -> Value {
    let (mut spec, keys) = (spec.clone(), connection_keys(kind));
    let fields = spec.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(fields) = fields.filter(|_| !keys.is_empty()) {
        let what = format!("Where the connection details go: {}.", keys.join(", "));
        let name = json!({"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            "description": "Name of a Secret beside the claim. Default: the claim's own name and -conn."});
        let field = json!({"type": "object", "description": what, "properties": {"name": name}});
        fields.entry(SECRET).or_insert(field);
    }
    spec
}
