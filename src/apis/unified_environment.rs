//! Unified environment: a site on CloudFront, a backend on Kubernetes and a PostgreSQL database, in
//! one claim.

mod backend;
mod checks;
mod database;
mod frontend;
mod place;
mod settings;

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Api, Info, Names, Tagged};
use crate::check::kubernetes;
use crate::compose::Composition;
use crate::error::Error;
use place::Place;
pub use settings::UnifiedEnvironmentSettings;

/// A site, a backend and a database that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnifiedEnvironment {
    /// The service that answers.
    pub backend: Backend,
    /// The database of the service.
    pub database: Database,
    /// The site.
    pub frontend: Frontend,
}

/// A service, made of one image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Image of the service. It must not run as root, and name its user by number.
    #[schemars(length(min = 1, max = kubernetes::LONGEST_IMAGE), regex(pattern = kubernetes::IMAGE))]
    pub image: String,
    /// TCP port on which it listens.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i64,
    /// How many of it run.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i64,
    /// Environment variables, beside those that lead to the database: PGHOST, PGPORT, PGUSER,
    /// PGPASSWORD, PGDATABASE, DATABASE_URL, and PGSSLMODE (require, unless it is given here). No
    /// secrets: everyone who may read claims can read them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = checks::MOST_VARIABLES), inner(length(max = checks::LONGEST_VALUE)))]
    pub env: BTreeMap<String, String>,
}

/// A PostgreSQL database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// How many connections it takes, or which machine it is given where it has a server of its
    /// own; and what the backend gets of CPU and memory.
    pub size: Size,
}

/// Sizes of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Size {
    /// 20 connections on a shared server, or db.t4g.micro.
    Small,
    /// 50 connections on a shared server, or db.t4g.medium.
    Medium,
    /// 200 connections on a shared server, or db.m7g.large.
    Large,
}

impl Size {
    /// As it stands in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// A site of static files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Frontend {
    /// Name of the site, of which its bucket's name is made. It cannot be changed.
    #[schemars(length(min = 1, max = checks::LONGEST_APP), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("appName cannot be changed: create a new environment"))]
    pub app_name: String,
    /// Whether deleting the environment leaves the bucket with the site's files in the cloud.
    /// Without it they are deleted.
    #[serde(default = "default_retain_files")]
    pub retain_files: bool,
}

/// What is known of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnifiedEnvironmentStatus {
    /// Host of the database's server.
    pub database_host: Option<String>,
    /// Bucket that holds the site's files.
    pub frontend_bucket_name: Option<String>,
    /// Address of the site: https://…
    pub frontend_url: Option<String>,
    /// Id of the site's CloudFront distribution, for invalidations.
    pub frontend_distribution_id: Option<String>,
    /// What becomes of the site's files when the environment is deleted, once they have a bucket:
    /// Retained or Deleted.
    pub frontend_files_on_deletion: Option<FilesOnDeletion>,
    /// AWS region of the bucket, and of the database where it has a server of its own.
    pub region: Option<String>,
    /// Address of the backend: that of its Ingress where it has one, else one inside the cluster.
    pub backend_url: Option<String>,
    /// Whether a request to the backend's Service would be answered, and the site is served
    /// everywhere.
    pub ready: Option<bool>,
}

/// What becomes of files when their environment is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FilesOnDeletion {
    /// They stay in the cloud, in their bucket.
    Retained,
    /// They go with the environment.
    Deleted,
}

impl Api for UnifiedEnvironment {
    const INFO: Info = Info {
        name: "unified-environment",
        title: "unified environment",
        summary: "A site on CloudFront, a backend on Kubernetes and a PostgreSQL database.",
        provider: "aws",
        settings: "unifiedEnvironment",
        composite: Names {
            kind: "UnifiedEnvironment",
            plural: "unifiedenvironments",
            singular: "unifiedenvironment",
            short: &[],
        },
        claim: Names {
            kind: "EnvironmentClaim",
            plural: "environmentclaims",
            singular: "environmentclaim",
            short: &["uenv"],
        },
        namespaced: Names {
            kind: "UnifiedEnvironment",
            plural: "unifiedenvironments",
            singular: "unifiedenvironment",
            short: &["uenv"],
        },
        suffix: "site",
        endpoints: &["frontendUrl", "backendUrl"],
        connection_keys: &["database", "endpoint", "password", "port", "username"],
        columns: &[
            ("App", ".spec.frontend.appName", "string"),
            ("URL", ".status.frontendUrl", "string"),
            ("Ready", ".status.ready", "boolean"),
        ],
        first_slots: &["frontend-bucket"],
        since_revision: &[],
    };
    type Settings = UnifiedEnvironmentSettings;
    type Status = UnifiedEnvironmentStatus;

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composition<'_>,
    ) -> Result<Self::Status, Error> {
        self.check(cx)?;
        settings.check()?;
        let place = Place::compose(cx)?;
        let site = self.frontend.compose(settings, cx)?;
        let database = self.database.compose(&place, &site.region, settings, cx)?;
        let url = self.backend.compose(self.database.size, &database, &place, settings, cx)?;

        cx.connection("username", database.username.clone());
        cx.connection("password", database.password.clone());
        cx.connection("endpoint", database.host.clone());
        cx.connection("port", database.port.clone());
        cx.connection("database", Some(database.name));
        let ready = self.backend.answers(cx) && site.is_served(cx);
        let files = site.bucket.as_ref().map(|_| self.frontend.files_on_deletion());
        Ok(UnifiedEnvironmentStatus {
            database_host: database.host,
            region: site.bucket.is_some().then_some(site.region),
            frontend_bucket_name: site.bucket,
            frontend_url: site.domain.map(|domain| format!("https://{domain}")),
            frontend_distribution_id: site.distribution_id,
            frontend_files_on_deletion: files,
            backend_url: url,
            ready: Some(ready),
        })
    }

    fn check_settings(settings: &Self::Settings) -> Result<(), Error> {
        settings.check()?;
        settings.check_publishers(&settings.region)
    }

    fn tagged(settings: &Self::Settings) -> Tagged {
        settings.tagged()
    }

    fn example_settings() -> Self::Settings {
        UnifiedEnvironmentSettings::example()
    }
}

fn default_port() -> i64 {
    8000
}

fn default_replicas() -> i64 {
    1
}

fn default_retain_files() -> bool {
    true
}
