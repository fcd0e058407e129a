//! The APIs, one file each, and their list. Dispatch, XRDs, Compositions, tests and docs iterate
//! over the list.

pub mod application_environment;
pub mod gpu_workspace;
pub mod stock_pool;
pub mod unified_environment;
pub mod virtual_environment;

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::catalog::tags;
use crate::check::Fields;
use crate::compose::Composer;
use crate::error::{Error, FieldError};
use crate::lifecycle::{CannotStop, Lifecycle, LifecycleSettings};
use crate::models::Kind;
use crate::offers::{Offer, Prices};
use crate::settings::{LIFECYCLE, Settings};
use crate::status::Addition;
use crate::value::Object;

/// Every API.
pub static APIS: &[&dyn AnyApi] = &[
    &Entry::<gpu_workspace::GpuDevWorkspace>::NEW,
    &Entry::<application_environment::ApplicationEnvironment>::NEW,
    &Entry::<unified_environment::UnifiedEnvironment>::NEW,
    &Entry::<stock_pool::StockPool>::NEW,
    &Entry::<virtual_environment::VirtualEnvironment>::NEW,
];

/// The API that serves a kind of composite of the claims API or the namespaced API. Any group
/// matches, because a company can rename the group.
pub fn find(kind: &str) -> Option<&'static dyn AnyApi> {
    APIS.iter().copied().find(|api| {
        let info = api.info();
        [info.composite.kind, info.namespaced.kind].contains(&kind)
    })
}

/// The API of a kind of environment: a claim or a composite. Any group matches.
pub fn for_environment_kind(kind: &str) -> Option<&'static dyn AnyApi> {
    APIS.iter().copied().find(|api| api.info().claim.kind == kind).or_else(|| find(kind))
}

/// The kinds of composites of the claims API and the namespaced API.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = APIS
        .iter()
        .flat_map(|api| [api.info().composite.kind, api.info().namespaced.kind])
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// A kind of environment as commands of `paved` take it. The group follows if the claims API and the
/// namespaced API both have the kind.
pub fn called(api_version: &str, kind: &str) -> String {
    let name = kind.to_lowercase();
    let is_shared = APIS.iter().any(|api| {
        let info = api.info();
        info.claim.kind == kind && info.namespaced.kind == kind
    });
    match crossplane::api_version::group(api_version) {
        group if is_shared && !group.is_empty() => format!("{name}.{group}"),
        _ => name,
    }
}

/// The keys of the APIs' sections in Settings.
pub fn sections() -> Vec<&'static str> {
    APIS.iter().map(|api| api.info().settings).collect()
}

/// The errors of a body of Settings, the errors of common fields first. Each section has at most
/// one error. Tags are checked by the rules of the resources that carry them, for each API with a
/// section.
pub fn check_settings(body: Object) -> Vec<Error> {
    let settings = match Settings::read(body, &sections()) {
        Ok(settings) => settings,
        Err(error) => return vec![error],
    };
    let mut wrong = settings.common.check_names();
    for checked in [settings.common.check_revision(), settings.common.check_minimum()] {
        wrong.extend(checked.err().iter().flat_map(Error::fields).cloned());
    }
    for api in APIS.iter().filter(|api| settings.has(api.info().settings)) {
        let Ok(Tagged { kinds, own }) = api.tagged(&settings) else { continue };
        let chosen = settings.common.chosen_tags();
        let own: Vec<&str> = own.iter().copied().chain(tags::attribution(chosen)).collect();
        for refused in kinds.iter().flat_map(|kind| tags::check(kind, chosen, &own)) {
            if wrong.iter().all(|known| known.path != refused.path) {
                wrong.push(refused);
            }
        }
    }
    let common = (!wrong.is_empty()).then_some(Error::InvalidSettings(wrong));
    common
        .into_iter()
        .chain(APIS.iter().filter_map(|api| api.check_settings(&settings).err()))
        .collect()
}

/// The fields of a body of Settings that have no effect on environments without a `ttl` in their
/// claim. None if the Settings are invalid.
pub fn settings_without_effect(body: Object) -> Vec<FieldError> {
    let Ok(settings) = Settings::read(body, &sections()) else { return Vec::new() };
    let of = |key: &'static str| {
        let lifecycle = settings.lifecycle(key).unwrap_or_default();
        lifecycle.without_effect(&format!("{key}.{LIFECYCLE}"))
    };
    sections().into_iter().flat_map(of).collect()
}

/// An API. `Self` is the type of its `spec`.
pub trait Api: DeserializeOwned + JsonSchema {
    /// Its names and the facts that the manifests need.
    const INFO: Info;
    /// Its section of Settings.
    type Settings: DeserializeOwned + Serialize + Default + JsonSchema;
    /// Its own status fields, besides [`CommonStatus`](crate::status::CommonStatus). Unknown
    /// fields are `None`.
    type Status: Serialize + JsonSchema;

    /// Composes the environment's resources and returns the observed status.
    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error>;

    /// Checks Settings before a user creates an environment.
    fn check_settings(settings: &Self::Settings) -> Result<(), Error>;

    /// The reason why an environment with this spec cannot be stopped. The spec may be invalid.
    fn cannot_stop(_spec: &Value, _settings: &Self::Settings) -> CannotStop {
        None
    }

    /// The kinds that carry the tags of Settings, in environments that these Settings allow.
    fn tagged(_settings: &Self::Settings) -> Tagged {
        Tagged::default()
    }

    /// The values of fields that users can choose with these Settings.
    fn offers(_settings: &Self::Settings, _prices: Prices<'_>) -> Vec<Offer> {
        Vec::new()
    }

    /// Settings for the examples: a body of the API's section.
    fn example_settings() -> Self::Settings {
        Self::Settings::default()
    }
}

/// The kinds that carry the tags of Settings.
#[derive(Clone, Debug, Default)]
pub struct Tagged {
    /// The kinds.
    pub kinds: Vec<Kind>,
    /// The keys of the tags that the API adds itself.
    pub own: &'static [&'static str],
}

/// The names of an API, and the content of its manifests besides the schemas.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name in paths, object names and documents: `gpu-workspace`.
    pub name: &'static str,
    /// Its name in sentences: `GPU workspace`.
    pub title: &'static str,
    /// The result for a user, in one sentence.
    pub summary: &'static str,
    /// Label `provider` of its Compositions.
    pub provider: &'static str,
    /// Key of its section in Settings.
    pub settings: &'static str,
    /// The composite of the claims API.
    pub composite: Names,
    /// The claim of the claims API.
    pub claim: Names,
    /// The composite of the namespaced API.
    pub namespaced: Names,
    /// The end of suggested names of new environments: `gpu`, as in `ada-gpu`.
    pub suffix: &'static str,
    /// The status fields with the address of an environment, the best one first. Empty if
    /// environments of this API have no address.
    pub endpoints: &'static [&'static str],
    /// Keys of the connection details.
    pub connection_keys: &'static [&'static str],
    /// The targets in an environment that a user can connect to, the usual one first.
    pub connection_targets: &'static [ConnectionTarget],
    /// Printer columns before the common ones: name, JSON path, type.
    pub columns: &'static [(&'static str, &'static str, &'static str)],
    /// Every environment uses one of these slots. The resource in the slot records the schema
    /// revision that the environment was created with.
    pub first_slots: &'static [&'static str],
    /// Slots of the resources that a stop of the environment stops.
    pub stoppable: &'static [&'static str],
    /// Data and resources that a stopped environment keeps or loses, in sentences for users.
    pub when_stopped: &'static str,
    /// The additions of later schema revisions to the API's own status.
    pub since_revision: &'static [Addition],
}

impl Info {
    /// The title at the beginning of a line: `Application environment`.
    pub fn heading(&self) -> String {
        let mut letters = self.title.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }
}

/// A target in an environment that a user can connect to with `paved connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionTarget {
    /// A machine, by SSH or an SSM session.
    Machine,
    /// A Kubernetes cluster.
    Cluster,
    /// A database.
    Database,
}

/// The names of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// `GpuDevWorkspace`
    pub kind: &'static str,
    /// `gpudevworkspaces`
    pub plural: &'static str,
    /// `gpudevworkspace`
    pub singular: &'static str,
    /// Abbreviations for kubectl.
    pub short: &'static [&'static str],
}

/// The two Crossplane API styles of every API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The claims API: XRD v1 with claims, and cluster-scoped composites and managed resources.
    Claims,
    /// The namespaced API: XRD v2, with all objects in the composite's namespace.
    Namespaced,
}

impl Flavour {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Claims, Self::Namespaced];

    /// The API group that the generated manifests use.
    pub fn default_group(self) -> &'static str {
        match self {
            Self::Claims => "platform.acme.io",
            Self::Namespaced => "platform.m.acme.io",
        }
    }

    /// `claims`, `namespaced`
    pub fn name(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Namespaced => "namespaced",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Flavour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |flavour: &Self| flavour.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            format!(
                "{text:?}: allowed: claims, \
            namespaced"
            )
        })
    }
}

/// An API without its types, for the list of APIs.
pub trait AnyApi: Sync {
    /// Its names and the facts that the manifests need.
    fn info(&self) -> &'static Info;
    /// Reads a spec and Settings, and composes.
    fn compose(&self, settings: &Settings, cx: &mut Composer<'_>) -> Result<Object, Error>;
    /// The reason why an environment with this spec cannot be stopped. The spec may be invalid.
    fn cannot_stop(&self, spec: &Value, settings: &Settings) -> CannotStop;
    /// Checks its section of Settings before a user creates an environment.
    fn check_settings(&self, settings: &Settings) -> Result<(), Error>;
    /// The kinds that carry the tags of Settings, in environments that these Settings allow.
    fn tagged(&self, settings: &Settings) -> Result<Tagged, Error>;
    /// The values of fields that users can choose. Prices are those of `region`, or of the usual
    /// region. Invalid Settings of the API count as none.
    fn offers(&self, settings: &Settings, region: Option<&str>) -> Vec<Offer>;
    /// JSON schema of `spec`.
    fn spec_schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// JSON schema of its own status fields.
    fn status_schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// JSON schema of its section of Settings.
    fn settings_schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// Its section of Settings in the examples.
    fn example_settings(&self) -> Value;
}

/// The schema of an object, with that of its field `lifecycle`.
fn with_lifecycle(mut schema: Schema, lifecycle: Schema) -> Schema {
    let fields = schema.ensure_object().entry("properties").or_insert_with(|| json!({}));
    fields[LIFECYCLE] = lifecycle.to_value();
    schema
}

struct Entry<A>(PhantomData<fn() -> A>);

impl<A> Entry<A> {
    const NEW: Self = Self(PhantomData);
}

impl<A: Api> AnyApi for Entry<A> {
    fn info(&self) -> &'static Info {
        &A::INFO
    }

    fn compose(&self, settings: &Settings, cx: &mut Composer<'_>) -> Result<Object, Error> {
        crate::check::numbers::exact(&cx.xr.spec)?;
        let spec: A = crate::check::typed(&cx.xr.spec, "spec")
            .map_err(|field| Error::InvalidSpec(vec![field]))?;
        let section: A::Settings = settings.section(A::INFO.settings)?;
        match serde_json::to_value(spec.compose(&section, cx)?) {
            Ok(Value::Object(status)) => Ok(status),
            _ => Err(Error::Defect(format!("the status of {} is not an object", A::INFO.name))),
        }
    }

    fn cannot_stop(&self, spec: &Value, settings: &Settings) -> CannotStop {
        A::cannot_stop(spec, &settings.section(A::INFO.settings).unwrap_or_default())
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), Error> {
        let key = A::INFO.settings;
        let mut fields = Fields::default();
        settings.lifecycle(key)?.check(&format!("settings.{key}.{LIFECYCLE}"), &mut fields);
        fields.verdict(Error::InvalidSettings)?;
        A::check_settings(&settings.section(key)?)
    }

    fn tagged(&self, settings: &Settings) -> Result<Tagged, Error> {
        Ok(A::tagged(&settings.section(A::INFO.settings)?))
    }

    fn offers(&self, settings: &Settings, region: Option<&str>) -> Vec<Offer> {
        let section = settings.section(A::INFO.settings).unwrap_or_default();
        let prices = Prices { pricing: &settings.common.pricing, region };
        let offers = A::offers(&section, prices);
        offers.into_iter().filter(|offer| !offer.values.is_empty()).collect()
    }

    fn spec_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let lifecycle = Lifecycle::json_schema(generator);
        with_lifecycle(A::json_schema(generator), lifecycle)
    }

    fn status_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        A::Status::json_schema(generator)
    }

    fn settings_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let lifecycle = LifecycleSettings::json_schema(generator);
        with_lifecycle(A::Settings::json_schema(generator), lifecycle)
    }

    fn example_settings(&self) -> Value {
        serde_json::to_value(A::example_settings()).unwrap_or_default()
    }
}
