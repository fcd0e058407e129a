//! Unified environment: a site on CloudFront, a backend on Kubernetes and a PostgreSQL database, in
//! one claim.

mod backend;
mod checks;
mod database;
mod frontend;
mod place;
mod rewrite;
mod settings;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Api, ConnectionTarget, Info, Names, Tagged};
use crate::check::kubernetes;
use crate::compose::Composer;
use crate::error::Error;
use crate::offers::{Offer, Offered, Prices};
use crate::status::Addition;
use place::Place;
pub use settings::UnifiedEnvironmentSettings;

/// A website with its backend and its database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnifiedEnvironment {
    /// Backend service.
    pub backend: Backend,
    /// Database of the backend.
    #[serde(default)]
    pub database: Database,
    /// Website.
    pub frontend: Frontend,
}

/// Ports of TCP.
const PORTS: RangeInclusive<i64> = 1..=65535;
/// Replicas of a backend.
const REPLICAS: RangeInclusive<i64> = 0..=100;

/// A backend service that runs one container image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Container image of the backend. The image must run as a non-root user and specify that user
    /// by number.
    #[schemars(length(min = 1, max = kubernetes::LONGEST_IMAGE), regex(pattern = kubernetes::IMAGE))]
    pub image: String,
    /// TCP port that the backend listens on.
    #[serde(default = "default_port")]
    #[schemars(range(min = *PORTS.start(), max = *PORTS.end()))]
    pub port: i64,
    /// Number of backend replicas.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = *REPLICAS.start(), max = *REPLICAS.end()))]
    pub replicas: i64,
    /// Additional environment variables. The backend always gets PGHOST, PGPORT, PGUSER,
    /// PGPASSWORD, PGDATABASE and DATABASE_URL for the database. The backend also gets PGSSLMODE,
    /// which is require unless set here. As in every pod, $(NAME) is the value of another variable,
    /// and $$ is one dollar sign. Do not put secrets here: every user with read access to
    /// claims can read the variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = checks::MOST_VARIABLES), inner(length(max = checks::LONGEST_VALUE)))]
    pub env: BTreeMap<String, String>,
}

/// A PostgreSQL database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// Size of the database and of the backend. On a shared server, the size sets the database's
    /// connections. On a dedicated server, the size sets the machine type. The size also sets the
    /// backend's CPU and memory.
    pub size: Size,
}

/// Sizes of databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Size {
    /// 20 connections on a shared server, or a dedicated db.t4g.micro.
    #[default]
    Small,
    /// 50 connections on a shared server, or a dedicated db.t4g.medium.
    Medium,
    /// 200 connections on a shared server, or a dedicated db.m7g.large.
    Large,
}

impl Size {
    /// Its value in a claim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// A website of static files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Frontend {
    /// Name of the website. The bucket's name contains this name. The name cannot be changed later.
    #[schemars(length(min = 1, max = checks::LONGEST_APP), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("appName cannot be changed: create a new environment"))]
    pub app_name: String,
    /// Keep the bucket with the website's files in the cloud when the environment is deleted. If
    /// false, the files are deleted with the environment.
    #[serde(default = "default_retain_files")]
    pub retain_files: bool,
    /// Kind of the website. In both kinds, paths below /assets/ and /.well-known/ and paths with a
    /// dot in their last segment are files. In an app, all other paths return the website's
    /// index.html. In pages, /docs/ returns docs/index.html, and /docs redirects to /docs/. Default:
    /// app.
    // The XRD has no default: an API server would write it into claims of earlier releases, and
    // their function rejects unknown fields.
    #[serde(default, skip_serializing_if = "SiteKind::is_app")]
    pub kind: SiteKind,
}

/// Kinds of websites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SiteKind {
    /// An application with one page. All other paths return the website's index.html.
    #[default]
    App,
    /// A website of several pages. /docs/ returns docs/index.html, and /docs redirects to /docs/.
    Pages,
}

impl SiteKind {
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_app(&self) -> bool {
        *self == Self::App
    }
}

/// Status of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnifiedEnvironmentStatus {
    /// Host name of the database server.
    pub database_host: Option<String>,
    /// Name of the bucket with the website's files.
    pub frontend_bucket_name: Option<String>,
    /// URL of the website: https://…
    pub frontend_url: Option<String>,
    /// ID of the website's CloudFront distribution, for invalidations.
    pub frontend_distribution_id: Option<String>,
    /// Effect of deleting the environment on the website's files: Retained or Deleted. Absent until
    /// the bucket exists.
    pub frontend_files_on_deletion: Option<FilesOnDeletion>,
    /// Answer of the website for a missing file: NotFound or IndexPage. An environment with
    /// IndexPage cannot have a website of several pages. Absent until the distribution exists.
    pub frontend_missing_files: Option<MissingFiles>,
    /// AWS region of the bucket and of a dedicated database server.
    pub region: Option<String>,
    /// URL of the backend. With an Ingress, the URL is the Ingress's. Otherwise the URL is only
    /// reachable inside the cluster.
    pub backend_url: Option<String>,
    /// True if the backend's Service can answer requests and the website is served everywhere.
    pub ready: Option<bool>,
}

/// Effect of deleting the environment on its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FilesOnDeletion {
    /// The files stay in their bucket in the cloud.
    Retained,
    /// The files are deleted with the environment.
    Deleted,
}

/// Answer of a website for a missing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum MissingFiles {
    /// Status 404, with the content of the website's 404.html if it exists.
    NotFound,
    /// Status 200, with the website's index.html. Environments from before schema revision 3 keep
    /// this answer.
    IndexPage,
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
        connection_targets: &[ConnectionTarget::Database],
        columns: &[
            ("App", ".spec.frontend.appName", "string"),
            ("URL", ".status.frontendUrl", "string"),
            ("Ready", ".status.ready", "boolean"),
        ],
        first_slots: &["frontend-bucket"],
        stoppable: &["backend-deployment"],
        when_stopped: "The site and the database stay available. The backend has no pods.",
        since_revision: &[Addition::field("frontendMissingFiles", 3)],
    };
    type Settings = UnifiedEnvironmentSettings;
    type Status = UnifiedEnvironmentStatus;

    fn offers(settings: &Self::Settings, prices: Prices<'_>) -> Vec<Offer> {
        let size = |size: Size| size.offered(settings, prices);
        let kind = |kind: &str, description: &str| Offered::described(kind, description);
        vec![
            Offer {
                field: "spec.database.size",
                closed: true,
                values: [Size::Small, Size::Medium, Size::Large].map(size).into(),
            },
            Offer {
                field: "spec.frontend.kind",
                closed: true,
                values: vec![
                    kind("app", "one page, which gets every path"),
                    kind("pages", "a page for each path"),
                ],
            },
        ]
    }

    fn compose(
        &self,
        settings: &Self::Settings,
        cx: &mut Composer<'_>,
    ) -> Result<Self::Status, Error> {
        self.check(cx)?;
        settings.check()?;
        let place = Place::compose(cx)?;
        let site = self.frontend.compose(&place, settings, cx)?;
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
            frontend_missing_files: site.missing_files,
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
