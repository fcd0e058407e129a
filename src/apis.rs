//! The APIs: one file each, and the list from which everything else iterates: dispatch, XRDs,
//! Compositions, tests, docs.

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
use crate::compose::{Addition, Composition};
use crate::error::Error;
use crate::lifecycle::{CannotStop, Lifecycle, LifecycleSettings};
use crate::models::Kind;
use crate::settings::{LIFECYCLE, Settings};
use crate::value::Object;

/// Every API.
pub static APIS: &[&dyn AnyApi] = &[
    &Entry::<gpu_workspace::GpuDevWorkspace>::NEW,
    &Entry::<application_environment::ApplicationEnvironment>::NEW,
    &Entry::<unified_environment::UnifiedEnvironment>::NEW,
    &Entry::<stock_pool::StockPool>::NEW,
    &Entry::<virtual_environment::VirtualEnvironment>::NEW,
];

/// The API that serves a kind of composite, in either flavour. The group does not matter: a company
/// can rename it.
pub fn find(kind: &str) -> Option<&'static dyn AnyApi> {
    APIS.iter().copied().find(|api| {
        let info = api.info();
        [info.composite.kind, info.namespaced.kind].contains(&kind)
    })
}

/// The API of the environments of a kind: of a claim, else of a composite. The group does not
/// matter.
pub fn for_environment_kind(kind: &str) -> Option<&'static dyn AnyApi> {
    APIS.iter().copied().find(|api| api.info().claim.kind == kind).or_else(|| find(kind))
}

/// The kinds of composite that there are, in both flavours.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = APIS
        .iter()
        .flat_map(|api| [api.info().composite.kind, api.info().namespaced.kind])
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The keys of the APIs' sections in Settings.
pub fn sections() -> Vec<&'static str> {
    APIS.iter().map(|api| api.info().settings).collect()
}

/// What is wrong with a body of Settings: an error of each part that has one, the common one first.
/// Tags are checked by the rules of the resources that carry them, of those APIs that have a
/// section.
pub fn check_settings(body: Object) -> Vec<Error> {
    let settings = match Settings::read(body, &sections()) {
        Ok(settings) => settings,
        Err(error) => return vec![error],
    };
    let mut wrong = settings.common.check_names();
    for api in APIS.iter().filter(|api| settings.has(api.info().settings)) {
        let Ok(Tagged { kinds, own }) = api.tagged(&settings) else { continue };
        for refused in kinds.iter().flat_map(|kind| tags::check(kind, &settings.common.tags, own)) {
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

/// An API: its `spec` is `Self`.
pub trait Api: DeserializeOwned + JsonSchema {
    /// Its names and what the manifests need to know.
    const INFO: Info;
    /// Its section of Settings.
    type Settings: DeserializeOwned + Serialize + Default + JsonSchema;
    /// Its own status fields, beside [`CommonStatus`](crate::compose::CommonStatus); unknown ones
    /// are `None`.
    type Status: Serialize + JsonSchema;

    /// Asks for the environment's resources and says what is known of it.
    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composition<'_>,
    ) -> Result<Self::Status, Error>;

    /// What can be said of Settings before anybody asks for an environment.
    fn check_settings(settings: &Self::Settings) -> Result<(), Error>;

    /// The reason why an environment with this spec cannot be stopped. The spec may be invalid.
    fn cannot_stop(_spec: &Value, _settings: &Self::Settings) -> CannotStop {
        None
    }

    /// What carries the tags of Settings in the environments that these Settings allow.
    fn tagged(_settings: &Self::Settings) -> Tagged {
        Tagged::default()
    }

    /// Settings with which the examples work: a body of the API's section.
    fn example_settings() -> Self::Settings {
        Self::Settings::default()
    }
}

/// What carries the tags of Settings.
#[derive(Clone, Debug, Default)]
pub struct Tagged {
    /// The kinds that carry them.
    pub kinds: Vec<Kind>,
    /// The keys of the tags that the API adds itself.
    pub own: &'static [&'static str],
}

/// What an API is called, and what its manifests say beside the schemas.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name in paths, object names and documents: `gpu-workspace`.
    pub name: &'static str,
    /// Its name in sentences: `GPU workspace`.
    pub title: &'static str,
    /// What one gets, in one sentence.
    pub summary: &'static str,
    /// Label `provider` of its Compositions.
    pub provider: &'static str,
    /// Key of its section in Settings.
    pub settings: &'static str,
    /// The composite of the claims flavour.
    pub composite: Names,
    /// The claim of the claims flavour.
    pub claim: Names,
    /// The composite of the namespaced flavour.
    pub namespaced: Names,
    /// What suggested names of new environments end in: `gpu`, as in `ada-gpu`.
    pub suffix: &'static str,
    /// The status fields with the address of an environment, the best one first. Empty: no
    /// environment of this API has an address.
    pub endpoints: &'static [&'static str],
    /// Keys of the connection details.
    pub connection_keys: &'static [&'static str],
    /// The parts of an environment that a user can connect to, the usual one first.
    pub connection_targets: &'static [ConnectionTarget],
    /// Printer columns before the common ones: name, JSON path, type.
    pub columns: &'static [(&'static str, &'static str, &'static str)],
    /// Slots of which every environment has one: its resource records the schema revision that the
    /// environment was made with.
    pub first_slots: &'static [&'static str],
    /// Slots of the resources that a stop of the environment stops.
    pub stoppable: &'static [&'static str],
    /// What a stopped environment keeps and loses, in sentences for users.
    pub when_stopped: &'static str,
    /// What the schema revisions after the first added to the API's own status.
    pub since_revision: &'static [Addition],
}

impl Info {
    /// The title at the beginning of a line: `Application environment`.
    pub fn heading(&self) -> String {
        let mut letters = self.title.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }
}

/// A part of an environment that a user can connect to with `paved connect`.
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

/// The two flavours in which every API comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// XRD v1 with claims; cluster-scoped composites and managed resources.
    Claims,
    /// XRD v2; everything in the composite's namespace.
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

/// An API without its types: what the list holds.
pub trait AnyApi: Sync {
    /// Its names and what the manifests need to know.
    fn info(&self) -> &'static Info;
    /// Composes with a spec and Settings that are still to be read.
    fn compose(&self, settings: &Settings, cx: &mut Composition<'_>) -> Result<Object, Error>;
    /// The reason why an environment with this spec cannot be stopped. The spec may be invalid.
    fn cannot_stop(&self, spec: &Value, settings: &Settings) -> CannotStop;
    /// What can be said of its section of Settings before anybody asks for an environment.
    fn check_settings(&self, settings: &Settings) -> Result<(), Error>;
    /// What carries the tags of Settings in the environments that these Settings allow.
    fn tagged(&self, settings: &Settings) -> Result<Tagged, Error>;
    /// JSON schema of `spec`.
    fn spec_schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// JSON schema of its own part of `status`.
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

    fn compose(&self, settings: &Settings, cx: &mut Composition<'_>) -> Result<Object, Error> {
        crate::check::numbers::exact(&cx.xr.spec)?;
        let spec: A = crate::check::typed(&cx.xr.spec, "spec")
            .map_err(|field| Error::InvalidSpec(vec![field]))?;
        let section: A::Settings = settings.section(A::INFO.settings)?;
        match serde_json::to_value(spec.compose(&section, cx)?) {
            Ok(Value::Object(status)) => Ok(status),
            _ => Err(Error::Defect(format!("the status of {} is no object", A::INFO.name))),
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
