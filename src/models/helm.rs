//! provider-helm: a release of a chart.
//!
//! Fields and their types are those of provider-helm 1.4.

use serde_json::Value;

use super::{Kind, Managed};

impl Managed for Release {
    const KIND: Kind = Kind::helm("Release").spec_fields(&["connectionDetails", "rollbackLimit"]);
    type Status = ReleaseStatus;
}

model! {
    /// A release of a chart. Its name is the external name.
    pub struct Release {
        /// What is installed.
        pub chart: Option<Chart>,
        /// The namespace that it goes to; the namespaced flavour does not demand one, and takes its
        /// own.
        pub namespace: Option<String>,
        /// Whether the namespace has to be there already.
        pub skip_create_namespace: Option<bool>,
        /// The chart's values. Every reader of Releases sees them: never a secret.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub values: Option<Value>,
        /// Whether the release counts as deployed only once its workloads are ready.
        pub wait: Option<bool>,
        /// For how long that is waited for, such as `10m0s`.
        pub wait_timeout: Option<String>,
    }

    /// A chart.
    pub struct Chart {
        /// URL of its repository, `https://…` or `oci://…`.
        pub repository: Option<String>,
        /// Its name there.
        pub name: Option<String>,
        /// Its version; none: the newest.
        pub version: Option<String>,
    }

    /// What a release became.
    pub struct ReleaseStatus {
        /// `deployed`, `failed`, `pending-install` and the like.
        pub state: Option<String>,
        /// How often it was installed, upgraded or rolled back.
        pub revision: Option<i64>,
        /// Version of the chart that is installed.
        pub version: Option<String>,
    }
}
