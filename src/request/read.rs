//! Reads a request.

use std::collections::{BTreeMap, HashMap};

use function_proto::v1::{
    Credentials, Resource, Resources, RunFunctionRequest, credentials::Source,
};
use jiff::Timestamp;
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::Value;

use super::{Response, SETTINGS_AT_FIRST, SETTINGS_REQUIREMENT};
use crate::compose::Lookup;
use crate::error::{Error, Malformed};
use crate::observe::{ApiFacts, Composite, Observation, Resource as Observed};
use crate::settings::{Common, Settings};
use crate::value::{self, Object};

/// The connection details of a resource.
type Details = BTreeMap<String, Vec<u8>>;

/// A request of Crossplane. Each method moves its part out of the request.
pub struct Request {
    kind: String,
    xr: Object,
    connection: Details,
    resources: HashMap<String, Resource>,
    input: Option<Struct>,
    extra: HashMap<String, Resources>,
    required: HashMap<String, Resources>,
    credentials: HashMap<String, Credentials>,
}

impl Request {
    /// Reads a request, and begins the response to it.
    ///
    /// # Errors
    /// The request has no observed composite, or a composite without a kind.
    pub fn read(mut message: RunFunctionRequest) -> Result<(Self, Response), Malformed> {
        let mut observed = message.observed.take().unwrap_or_default();
        let composite = observed.composite.take().filter(|composite| composite.resource.is_some());
        let mut composite =
            composite.ok_or(Malformed("the request has no observed composite resource"))?;
        let xr = value::take_object(&mut composite);
        let kind = value::text(&xr, &["kind"]).map(str::to_owned);
        let kind = kind.ok_or(Malformed("the observed composite resource has no kind"))?;
        let response = Response::new(&mut message, &xr);
        let request = Self {
            kind,
            xr,
            connection: composite.connection_details.into_iter().collect(),
            resources: observed.resources,
            input: message.input,
            extra: message.extra_resources,
            required: message.required_resources,
            credentials: message.credentials,
        };
        Ok((request, response))
    }

    /// The kind of the composite.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The composite.
    ///
    /// # Errors
    /// Wrong fields of the composite.
    pub fn composite(&mut self) -> Result<Composite, Error> {
        Composite::read(std::mem::take(&mut self.xr), std::mem::take(&mut self.connection))
    }

    /// The observation of an environment of `api`.
    pub(crate) fn observe<'s>(
        &mut self,
        api: ApiFacts,
        xr: Composite,
        settings: &'s Common,
        now: Timestamp,
    ) -> Observation<'s> {
        let resources = std::mem::take(&mut self.resources).into_iter();
        let resources = resources.map(|(slot, mut resource)| {
            let object = value::take_object(&mut resource);
            (slot, Observed::new(object, resource.connection_details.into_iter().collect()))
        });
        Observation {
            xr,
            settings,
            api,
            resources: resources.collect(),
            found: self.found(),
            credentials: self.credentials(),
            now,
        }
    }

    /// The objects that Crossplane found for the requirements of earlier answers, by the
    /// requirement's name.
    fn found(&mut self) -> BTreeMap<String, Option<Object>> {
        let extra = std::mem::take(&mut self.extra);
        let required = std::mem::take(&mut self.required);
        let first = |resources: Resources| resources.items.into_iter().next();
        extra
            .into_iter()
            .chain(required)
            .map(|(name, resources)| {
                (name, first(resources).map(|mut one| value::take_object(&mut one)))
            })
            .collect()
    }

    /// The values of the step's credentials.
    fn credentials(&mut self) -> Vec<Vec<u8>> {
        let all = std::mem::take(&mut self.credentials).into_values();
        all.filter_map(|Credentials { source }| match source {
            Some(Source::CredentialData(secret)) => Some(secret.data.into_values()),
            _ => None,
        })
        .flatten()
        .collect()
    }

    /// The schema revision in the step's input, although the input may be invalid. Read it before
    /// [`settings`](Self::settings).
    pub fn schema_revision(&self) -> Option<u32> {
        match self.input.as_ref()?.fields.get("schemaRevision")?.kind.as_ref()? {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            Kind::NumberValue(revision) => Some(revision.clamp(1.0, 1e6) as u32),
            _ => None,
        }
    }

    /// The step's input, with the EnvironmentConfig that it names merged over it. `sections` are
    /// the keys of the APIs' sections. `None` if the response asks for the EnvironmentConfig first.
    ///
    /// # Errors
    /// Wrong fields of the input or of the EnvironmentConfig.
    pub fn settings(
        &mut self,
        sections: &[&'static str],
        response: &mut Response,
    ) -> Result<Option<Settings>, Error> {
        let body = self.input.take().map(value::object).unwrap_or_default();
        let mut input = Settings::read(body.clone(), sections)?;
        let Some(from) = &input.common.settings_from else { return Ok(Some(input)) };
        let Some(found) = self.environment_config(&from.name, response) else {
            tracing::debug!(name = from.name, "asks for the EnvironmentConfig");
            return Ok(None);
        };
        let Some(data) = data(found) else {
            response.warn_of_missing_settings(from);
            input.common.config_not_found = true;
            return Ok(Some(input));
        };
        let mut whole = body;
        crossplane::object::merge(&mut whole, data);
        Settings::read(whole, sections).map(Some)
    }

    /// The EnvironmentConfig of a name, as Crossplane sent it. `None` if Crossplane was not asked
    /// for it yet.
    fn environment_config(&mut self, name: &str, response: &mut Response) -> Option<Resources> {
        let at_first = self.required.remove(SETTINGS_AT_FIRST);
        // The requirement of a Composition may name another object than its Settings.
        let at_first = at_first.filter(|found| name_of(found) == Some(name));
        at_first.or_else(|| {
            let config = Lookup {
                api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
                kind: "EnvironmentConfig".to_owned(),
                namespace: None,
                name: name.to_owned(),
            };
            response.require(SETTINGS_REQUIREMENT, &config);
            let modern = self.required.remove(SETTINGS_REQUIREMENT);
            modern.or_else(|| self.extra.remove(SETTINGS_REQUIREMENT))
        })
    }
}

/// The name of the first object that was found.
fn name_of(found: &Resources) -> Option<&str> {
    let metadata = found.items.first()?.resource.as_ref()?.fields.get("metadata")?;
    let Kind::StructValue(metadata) = metadata.kind.as_ref()? else { return None };
    match metadata.fields.get("name")?.kind.as_ref()? {
        Kind::StringValue(name) => Some(name),
        _ => None,
    }
}

/// The `data` of an EnvironmentConfig. `None` if the EnvironmentConfig does not exist or has none.
fn data(found: Resources) -> Option<Object> {
    let config = value::take_object(&mut found.items.into_iter().next()?);
    match config.into_iter().find(|(key, _)| key == "data")? {
        (_, Value::Object(data)) => Some(data),
        _ => None,
    }
}
