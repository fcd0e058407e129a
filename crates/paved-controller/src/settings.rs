//! The Settings of the platform team, from the EnvironmentConfig.

use std::time::Duration;

use function_paved_road::apis;
use function_paved_road::lifecycle::LifecycleSettings;
use function_paved_road::settings::Settings;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster};
use serde_json::Value;

use crate::verdict::Hold;

/// How often Settings are read.
const PERIOD: Duration = Duration::from_mins(1);

/// Where the Settings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SettingsFrom {
    /// In an EnvironmentConfig. Without it, no environment is deleted.
    EnvironmentConfig,
    /// The platform has no EnvironmentConfig: the defaults apply. If there is one after all, it
    /// applies.
    None,
}

/// Reads Settings, and keeps those that it read last.
pub(crate) struct Source {
    api: Api<DynamicObject>,
    name: String,
    from: SettingsFrom,
    read: Option<Duration>,
    /// An error is the reason why no environment is deleted.
    settings: Result<Settings, Hold>,
}

impl Source {
    /// The EnvironmentConfig with this name.
    pub fn new(cluster: &Cluster, name: &str, from: SettingsFrom) -> Self {
        let resource = ApiResource {
            group: "apiextensions.crossplane.io".to_owned(),
            version: "v1beta1".to_owned(),
            api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
            kind: "EnvironmentConfig".to_owned(),
            plural: "environmentconfigs".to_owned(),
        };
        let api = Api::for_resource(&cluster.client, None, &resource);
        let settings = Err(Hold::Unreadable);
        Self { api, name: name.to_owned(), from, read: None, settings }
    }

    /// Reads Settings if they are a minute old. `true`: they were read, and the EnvironmentConfig
    /// has been missing since this reading.
    pub async fn refresh(&mut self, steady: Duration) -> bool {
        if self.read.is_some_and(|read| steady.saturating_sub(read) < PERIOD) {
            return false;
        }
        self.read = Some(steady);
        let was_missing = self.is_missing();
        self.settings = match self.api.get_opt(&self.name).await {
            Ok(found) => self.read(found.as_ref()),
            Err(error) => Err(self.report(Hold::Unreadable, &error.to_string())),
        };
        self.is_missing() && !was_missing
    }

    /// Reads Settings again at the next refresh, as if for the first time.
    pub fn forget(&mut self) {
        self.read = None;
        self.settings = Err(Hold::Unreadable);
    }

    /// The Settings in an EnvironmentConfig.
    fn read(&self, config: Option<&DynamicObject>) -> Result<Settings, Hold> {
        let data = match config.map(|config| &config.data["data"]) {
            None | Some(Value::Null) if self.from == SettingsFrom::None => {
                return Ok(Settings::default());
            }
            None | Some(Value::Null) => {
                let found = if config.is_some() { "it has no data" } else { "it was not found" };
                let next = "create it, or start the controller with --settings-from none if the \
                            platform has no Settings";
                return Err(self.report(Hold::NoSettings, &format!("{found}; {next}")));
            }
            Some(Value::Object(data)) => data.clone(),
            Some(_) => return Err(self.report(Hold::Unreadable, "data is not an object")),
        };
        Settings::read(data, &apis::sections())
            .map_err(|error| self.report(Hold::Unreadable, &error.to_string()))
    }

    fn report(&self, why: Hold, error: &str) -> Hold {
        tracing::error!(environment_config = self.name, error, "no Settings: no deletions");
        why
    }

    /// The Settings, or the reason why no environment is deleted.
    pub fn get(&self) -> Result<&Settings, Hold> {
        self.settings.as_ref().map_err(|why| *why)
    }

    /// Whether the EnvironmentConfig is missing or has no data.
    pub fn is_missing(&self) -> bool {
        self.settings.as_ref().is_err_and(|why| *why == Hold::NoSettings)
    }

    /// The name of the EnvironmentConfig.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The lifecycle of an API in the Settings; `None` if it cannot be read.
pub(crate) fn lifecycle(settings: &Settings, kind: &str) -> Option<LifecycleSettings> {
    let api = apis::for_environment_kind(kind)?;
    settings.lifecycle(api.info().settings).ok()
}
