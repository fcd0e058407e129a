//! A later release, for tests of upgrades. Every API has one more status field, and decides
//! differently about new environments.

use std::sync::LazyLock;

use crossplane::object::merge;
use function_paved_road::apis::{APIS, AnyApi, Info, Tagged, find as today, sections};
use function_paved_road::compose::Composer;
use function_paved_road::error::Error;
use function_paved_road::lifecycle::CannotStop;
use function_paved_road::manifests::SCHEMA_REVISION;
use function_paved_road::offers::Offer;
use function_paved_road::settings::Settings;
use function_paved_road::status::Addition;
use function_paved_road::value::Object;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The revision of its status schemas.
pub const REVISION: u32 = SCHEMA_REVISION + 1;

/// The status field that the revision adds.
pub const FIELD: &str = "later";

/// What the revision added to the status of every API.
const ADDITION: Addition = Addition::field(FIELD, REVISION);

/// The machine image of its workspaces in us-east-1.
pub const IMAGE: &str = "ami-0fedcba9876543210";

/// Its decisions that differ from today's. Existing resources keep their values. If a resource
/// follows one of these decisions, an upgrade has changed it.
fn decisions() -> Value {
    json!({
        "gpuWorkspace": {"amis": {"us-east-1": {"default": IMAGE}}},
        "applicationEnvironment": {
            "databaseVersion": "POSTGRES_18",
            "databaseTier": "db-custom-2-7680",
            "machineTypes": {"small": "e2-standard-2", "medium": "e2-standard-8", "large": "e2-standard-16"},
        },
        "unifiedEnvironment": {"resources": {
            "small": {"cpu": "200m", "memory": "512Mi"},
            "medium": {"cpu": "1", "memory": "2Gi"},
            "large": {"cpu": "2", "memory": "4Gi"},
        }},
        "stockPool": {"runtimeClassName": "nvidia"},
        "environment": {
            "charts": {"vcluster": "0.37.0", "argocd": "10.2.0", "knative": "1.24.0"},
            "machineTypes": {
                "gke": {"small": "n2-standard-2", "medium": "n2-standard-4", "large": "n2-standard-8"},
                "eks": {"small": "m7i.large", "medium": "m7i.xlarge", "large": "m7i.2xlarge"},
                "aks": {"small": "Standard_D2s_v6", "medium": "Standard_D4s_v6", "large": "Standard_D8s_v6"},
            },
        },
    })
}

/// An API's section of Settings with these decisions. They override the platform team's Settings,
/// which on our control planes are mostly today's defaults, written out. The composition already
/// has the settings that all APIs share.
fn decided(settings: &Settings, section: &'static str) -> Result<Settings, Error> {
    let own: Object = settings.section(section)?;
    let mut body = Object::from_iter([(section.to_owned(), Value::Object(own))]);
    if let Value::Object(decisions) = decisions() {
        merge(&mut body, decisions);
    }
    Settings::read(body, &sections())
}

/// The APIs of the later release.
static LATER: LazyLock<Vec<Later>> =
    LazyLock::new(|| APIS.iter().map(|api| Later::new(*api)).collect());

/// The API that serves a kind.
pub fn find(kind: &str) -> Option<&'static dyn AnyApi> {
    let name = today(kind)?.info().name;
    let found = LATER.iter().find(|api| api.info.name == name)?;
    Some(found)
}

/// An API of today with the additional field and the decisions.
struct Later {
    today: &'static dyn AnyApi,
    info: &'static Info,
}

impl Later {
    fn new(today: &'static dyn AnyApi) -> Self {
        let additions: Vec<_> =
            today.info().since_revision.iter().copied().chain([ADDITION]).collect();
        // As long-lived as those of the other APIs, which are constants.
        let info = Info { since_revision: Vec::leak(additions), ..*today.info() };
        // Leaked, to live as long as the other APIs, which are constants.
        Self { today, info: Box::leak(Box::new(info)) }
    }
}

impl AnyApi for Later {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn compose(&self, settings: &Settings, cx: &mut Composer<'_>) -> Result<Object, Error> {
        let mut status = self.today.compose(&decided(settings, self.info.settings)?, cx)?;
        status.insert(FIELD.to_owned(), "a value of the later release".into());
        Ok(status)
    }

    fn cannot_stop(&self, spec: &Value, settings: &Settings) -> CannotStop {
        self.today.cannot_stop(spec, settings)
    }

    fn offers(&self, settings: &Settings, region: Option<&str>) -> Vec<Offer> {
        self.today.offers(settings, region)
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), Error> {
        self.today.check_settings(settings)
    }

    fn tagged(&self, settings: &Settings) -> Result<Tagged, Error> {
        self.today.tagged(settings)
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    /// Only differing decisions can prove that an upgrade changes no existing resource.
    #[test]
    fn later_settings_differ_for_every_api() {
        for api in APIS {
            let section = api.info().settings;
            let body = Object::from_iter([(section.to_owned(), api.example_settings())]);
            let today = Settings::read(body, &sections()).unwrap();
            let later = decided(&today, section).unwrap();
            api.check_settings(&later).unwrap();
            let [today, later] =
                [&today, &later].map(|all| all.section::<Object>(section).unwrap());
            assert_ne!(today, later, "{section}");
        }
    }
}
