//! `/api/v1/kinds`: the kinds of environment in this cluster.

use std::sync::Arc;

use axum::extract::State;
use function_paved_road::apis::{APIS, AnyApi, ConnectionTarget, Info};
use function_paved_road::patterns::describe;
use paved_client::cluster;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::composer;
use super::options::{FieldOptions, options};
use crate::access::Access;
use crate::answer::Answer;
use crate::clients::Clients;
use crate::config::Apis;
use crate::extract::{Path, Query, name};
use crate::identity::Person;
use crate::kinds::{Catalog, SECRET, connection_keys, is_claim};
use crate::namespace::Namespaces;
use crate::problem::{ErrorResponses, NotFound, Problem};
use crate::signed_in::SignedIn;

/// A kind of environment.
// The field has the name of Kubernetes' own field.
#[allow(clippy::struct_field_names)]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    kind: String,
    api_version: String,
    /// The name in paths.
    plural: String,
    /// The name of its API in this repository, for example gpu-workspace. Absent for an API that
    /// this portal does not know, as are the title, the suffix and the endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<&'static str>,
    /// The title for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The suffix of suggested names for new environments.
    #[serde(skip_serializing_if = "Option::is_none")]
    suffix: Option<&'static str>,
    /// The status fields with the address of an environment, the best one first. Empty: no
    /// environment of this kind has an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<&'static str>>,
    /// The keys of its connection details.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_keys: Option<Vec<&'static str>>,
    /// The parts that `paved connect` connects to, the usual one first: machine, cluster or
    /// database.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    connection_targets: Option<&'static [ConnectionTarget]>,
    /// Data and resources that a stopped environment keeps or loses, in sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    when_stopped: Option<&'static str>,
    /// The description in the schema.
    description: String,
    /// Whether the kind is a claim. A claim names the Secret for its connection details.
    claim: bool,
    /// Whether the portal offers the kind for new environments. It offers one kind of each API,
    /// unless --apis says both.
    offered: bool,
    /// Whether I may create the kind in `namespace`. Absent if the request has no namespace, I have
    /// no default namespace, and I may not create the kind in all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_create: Option<bool>,
    /// The requested namespace, or the first of my namespaces in which I may create the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// The JSON schema of the spec from the cluster's XRD. The schema of a claim includes the
    /// Secret for its connection details. `x-pattern-in-words` describes each pattern.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    /// The known values of fields, if the request names one kind. Other values may be valid too.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<FieldOptions>>,
}

/// The kinds, and the users' rights to create them.
#[derive(Clone)]
pub(crate) struct Kinds {
    pub(crate) clients: Clients,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) access: Arc<Access>,
    pub(crate) namespaces: Namespaces,
    pub(crate) apis: Apis,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Where {
    /// The namespace in which `mayCreate` is checked.
    namespace: Option<String>,
}

/// All kinds, grouped by API.
#[utoipa::path(get, path = "/api/v1/kinds", operation_id = "listKinds", tag = "kinds", params(Where),
    responses((status = 200, description = "All kinds.", body = Vec<Kind>), ErrorResponses))]
pub(crate) async fn list(
    State(kinds): State<Kinds>,
    SignedIn(person): SignedIn,
    Query(query): Query<Where>,
) -> Result<Answer<Vec<Kind>>, Problem> {
    let seen = kinds.catalog.seen();
    let mut known: Vec<_> = seen.all().iter().collect();
    known.sort_by_key(|kind| place(kind));
    let mut shown = Vec::new();
    for kind in known {
        shown.push(kinds.shown(&person, kind, query.namespace.as_deref()).await?);
    }
    Ok(Answer(shown))
}

/// A kind.
#[utoipa::path(get, path = "/api/v1/kinds/{kind}", operation_id = "getKind", tag = "kinds",
    params(("kind" = String, Path, example = "stockpools", description = "A name of the kind, for example its plural, alone or with .group."), Where),
    responses((status = 200, description = "The kind.", body = Kind), ErrorResponses, NotFound))]
pub(crate) async fn get(
    State(kinds): State<Kinds>,
    SignedIn(person): SignedIn,
    Path(kind): Path<String>,
    Query(query): Query<Where>,
) -> Result<Answer<Kind>, Problem> {
    let kind = kinds.catalog.seen().called(&kind)?;
    let mut shown = kinds.shown(&person, &kind, query.namespace.as_deref()).await?;
    shown.options = Some(kinds.options(&kind, shown.may_create == Some(true)).await);
    Ok(Answer(shown))
}

/// The index of a kind's API in the list of all APIs. Unknown APIs come last.
fn place(kind: &cluster::Kind) -> usize {
    let name = kind.paved_api().map(|api| api.info().name);
    APIS.iter().position(|api| Some(api.info().name) == name).unwrap_or(APIS.len())
}

impl Kinds {
    /// The known values of a kind's fields. Only users with the right to create the kind may see
    /// the effect of the Settings.
    async fn options(&self, kind: &cluster::Kind, may_create: bool) -> Vec<FieldOptions> {
        let Some(api) = kind.paved_api() else { return Vec::new() };
        let settings = if may_create {
            let step = composer::step(&self.clients.own(), kind, &Value::Null).await;
            step.ok().and_then(|step| step.settings())
        } else {
            None
        };
        options(api, settings.as_ref())
    }

    /// A kind with the user's right to create it.
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
        let text = |path: &str| {
            schema.and_then(|schema| schema.pointer(path)?.as_str()).map(str::to_owned)
        };
        let description = text("/description").or_else(|| text("/properties/spec/description"));
        let info = kind.paved_api().map(AnyApi::info);
        let is_other = |other: &&cluster::Kind| {
            let same = other.paved_api().map(|api| api.info().name);
            info.is_some_and(|info| same == Some(info.name))
                && other.full_name() != kind.full_name()
        };
        let others: Vec<_> =
            seen.all().iter().filter(is_other).map(cluster::Kind::flavour).collect();
        Ok(Kind {
            kind: kind.name().to_owned(),
            api: info.map(|info| info.name),
            title: info.map(Info::heading),
            suffix: info.map(|info| info.suffix),
            endpoints: info.map(|info| info.endpoints.to_vec()),
            connection_keys: info.map(|info| info.connection_keys.to_vec()),
            connection_targets: info.map(|info| info.connection_targets),
            when_stopped: info.map(|info| info.when_stopped),
            api_version: kind.resource.api_version.clone(),
            plural: kind.resource.plural.clone(),
            description: description.unwrap_or_default(),
            claim: is_claim(kind),
            offered: self.apis.offers(kind.flavour(), &others),
            may_create,
            namespace: namespace.or_else(|| chosen.map(str::to_owned)),
            schema: schema
                .and_then(|schema| schema.pointer("/properties/spec"))
                .map(|spec| with_secret(spec, kind)),
            options: None,
        })
    }
}

/// A spec's schema with the field that Crossplane adds to claims for connection details. The field
/// is optional, because the portal names a Secret by default.
fn with_secret(spec: &Value, kind: &cluster::Kind) -> Value {
    let (mut spec, keys) = (spec.clone(), connection_keys(kind));
    let fields = spec.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(fields) = fields.filter(|_| !keys.is_empty()) {
        let what = format!("The Secret for the connection details: {}.", keys.join(", "));
        let name = json!({"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            "description": "Name of a Secret in the claim's namespace. Default: the claim's name and -conn."});
        let field = json!({"type": "object", "description": what, "properties": {"name": name}});
        fields.entry(SECRET).or_insert(field);
    }
    describe(&mut spec);
    spec
}
