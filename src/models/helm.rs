//! provider-helm: a release of a chart.
//!
//! Fields and types are those of provider-helm 1.4.

use serde_json::Value;

use super::{Kind, Managed};

impl Managed for Release {
    const KIND: Kind = Kind::helm("Release").spec_fields(&["connectionDetails", "rollbackLimit"]);
    type Status = ReleaseStatus;
}

model! {
    /// A release of a chart. Its name is the external name.
    pub struct Release {
        /// The installed chart.
        pub chart: Option<Chart>,
        /// The target namespace. The namespaced API does not require it, and uses the Release's own
        /// namespace.
        pub namespace: Option<String>,
        /// Whether the namespace has to exist already.
        pub skip_create_namespace: Option<bool>,
        /// The chart's values. All readers of Releases can read them, so they must never contain a
        /// secret.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub values: Option<Value>,
        /// Whether the release counts as deployed only once its workloads are ready.
        pub wait: Option<bool>,
        /// Time limit of the wait, for example `10m0s`.
        pub wait_timeout: Option<String>,
    }

    /// A chart.
    pub struct Chart {
        /// URL of its repository, `https://…` or `oci://…`.
        pub repository: Option<String>,
        /// Its name in the repository.
        pub name: Option<String>,
        /// Its version. Absent: the newest.
        pub version: Option<String>,
    }

    /// The observed state of a release.
    pub struct ReleaseStatus {
        /// For example `deployed`, `failed` or `pending-install`.
        pub state: Option<String>,
        /// The number of installations, upgrades and rollbacks.
        pub revision: Option<i64>,
        /// Helm's words about the last installation or upgrade.
        pub release_description: Option<String>,
        /// Version of the installed chart.
        pub version: Option<String>,
    }
}
