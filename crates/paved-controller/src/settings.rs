//! The Settings of the platform team, from the EnvironmentConfig.

use std::time::Duration;

use function_paved_road::apis;
use function_paved_road::lifecycle::LifecycleSettings;
use function_paved_road::settings::Settings;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster};
use serde_json::Value;

/// How often Settings are read.
const PERIOD: Duration = Duration::from_mins(1);

/// Reads Settings, and keeps those that it read last.
pub(crate) struct Source {
    api: Api<DynamicObject>,
    name: String,
    read: Option<Duration>,
    /// `None`: they cannot be read, and no environment is deleted.
    settings: Option<Settings>,
}

impl Source {
    /// The EnvironmentConfig with this name.
    pub fn new(cluster: &Cluster, name: &str) -> Self {
        let resource = ApiResource {
            group: "apiextensions.crossplane.io".to_owned(),
            version: "v1beta1".to_owned(),
            api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
            kind: "EnvironmentConfig".to_owned(),
            plural: "environmentconfigs".to_owned(),
        };
        let api = Api::for_resource(&cluster.client, None, &resource);
        Self { api, name: name.to_owned(), read: None, settings: None }
    }

    /// Reads Settings if they are a minute old.
    pub async fn refresh(&mut self, steady: Duration) {
        if self.read.is_some_and(|read| steady.saturating_sub(read) < PERIOD) {
            return;
        }
        self.read = Some(steady);
        let settings = match self.api.get_opt(&self.name).await {
            Ok(found) => read(found.as_ref()),
            Err(error) => Err(error.to_string()),
        };
        let told = |error: &String| {
            tracing::error!(name = self.name, error, "Settings cannot be read: no deletions");
        };
        self.settings = settings.inspect_err(told).ok();
    }

    /// The Settings; `None` if they cannot be read.
    pub fn get(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }
}

/// The Settings in an EnvironmentConfig. Without one, the defaults.
fn read(config: Option<&DynamicObject>) -> Result<Settings, String> {
    let data = match config.map(|config| &config.data["data"]) {
        None | Some(Value::Null) => return Ok(Settings::default()),
        Some(Value::Object(data)) => data.clone(),
        Some(_) => return Err("data is not an object".to_owned()),
    };
    Settings::read(data, &apis::sections()).map_err(|error| error.to_string())
}

/// The lifecycle of an API in the Settings; `None` if it cannot be read.
pub(crate) fn lifecycle(settings: &Settings, kind: &str) -> Option<LifecycleSettings> {
    let api = apis::for_environment_kind(kind)?;
    settings.lifecycle(api.info().settings).ok()
}
