//! A release to come, as far as upgrades are concerned: every API says one thing more in its status.

use std::sync::LazyLock;

use function_paved_road::apis::{APIS, AnyApi, Info, find as today};
use function_paved_road::compose::Composition;
use function_paved_road::error::Error;
use function_paved_road::manifests::SCHEMA_REVISION;
use function_paved_road::settings::Settings;
use function_paved_road::value::Object;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

/// The revision of its status schemas.
pub const REVISION: u32 = SCHEMA_REVISION + 1;

/// The status field that the revision brought.
pub const FIELD: &str = "later";

/// Its APIs.
static LATER: LazyLock<Vec<Later>> = LazyLock::new(|| APIS.iter().map(|api| Later::of(*api)).collect());

/// The API that serves a kind.
pub fn find(kind: &str) -> Option<&'static dyn AnyApi> {
    let name = today(kind)?.info().name;
    let found = LATER.iter().find(|api| api.info.name == name)?;
    Some(found)
}

/// An API as it is today, and the field.
struct Later {
    today: &'static dyn AnyApi,
    info: &'static Info,
}

impl Later {
    fn of(today: &'static dyn AnyApi) -> Self {
        let info = Info { since_revision: &[(FIELD, REVISION)], ..*today.info() };
        // As long-lived as those of the other APIs, which are constants.
        Self { today, info: Box::leak(Box::new(info)) }
    }
}

impl AnyApi for Later {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn compose(&self, settings: &Settings, cx: &mut Composition<'_>) -> Result<Object, Error> {
        let mut status = self.today.compose(settings, cx)?;
        status.insert(FIELD.to_owned(), "what the later release says".into());
        Ok(status)
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), Error> {
        self.today.check_settings(settings)
    }

    fn spec_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        self.today.spec_schema(generator)
    }

    fn status_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        self.today.status_schema(generator)
    }

    fn settings_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        self.today.settings_schema(generator)
    }

    fn example_settings(&self) -> Value {
        self.today.example_settings()
    }
}
