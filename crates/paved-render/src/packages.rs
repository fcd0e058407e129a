//! The providers of the kinds that we compose: the package and its oldest version for each.

use function_paved_road::models::{KINDS, Provider, Scope};

/// The registry of the providers' packages.
const REGISTRY: &str = "xpkg.crossplane.io/crossplane-contrib";

/// The oldest supported versions of the clouds' packages.
const AWS: &str = "2.6";
const GCP: &str = "3.0";
const AZURE: &str = "2.7";

/// A provider's package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// `provider-aws-ec2`
    pub name: String,
    /// The oldest version with all fields that we set and read: major and minor.
    pub since: &'static str,
}

impl Package {
    /// The package that serves an API group. `None` if no package is needed, because the group
    /// belongs to Kubernetes, to Crossplane or to us.
    pub fn serving(group: &str) -> Option<Self> {
        let of_group = |kind: &&function_paved_road::models::KindInfo| {
            [Scope::LegacyCluster, Scope::Namespaced]
                .iter()
                .any(|scope| kind.kind.group(*scope) == group)
        };
        let kind = KINDS.iter().find(of_group)?.kind;
        let (name, since) = match kind.provider {
            Provider::Aws => (format!("provider-aws-{}", kind.service), AWS),
            Provider::Gcp => (format!("provider-gcp-{}", kind.service), GCP),
            Provider::Azure => (format!("provider-azure-{}", kind.service), AZURE),
            Provider::Kubernetes => ("provider-kubernetes".to_owned(), "1.2"),
            Provider::Helm => ("provider-helm".to_owned(), "1.0"),
            Provider::Sql => ("provider-sql".to_owned(), "0.16"),
        };
        Some(Self { name, since })
    }

    /// The package on which all other packages of a cloud depend. It has the kinds of their
    /// provider configs. `None` if the provider is one package.
    pub fn family(cloud: &str) -> Option<Self> {
        let since = match cloud {
            "aws" => AWS,
            "gcp" => GCP,
            "azure" => AZURE,
            _ => return None,
        };
        Some(Self { name: format!("provider-family-{cloud}"), since })
    }

    /// The cloud in the name of the package: `aws` for `provider-aws-ec2`.
    pub fn cloud(&self) -> &str {
        self.name.split('-').nth(1).unwrap_or_default()
    }

    /// The reference without a version.
    pub fn reference(&self) -> String {
        format!("{REGISTRY}/{}", self.name)
    }

    /// The allowed versions, in Crossplane's syntax of constraints. The next major version may drop
    /// API versions that we compose. Before 1.0, semantic versioning allows this in minor versions
    /// too. So far, provider-sql has kept its API versions, so they are allowed.
    pub fn versions(&self) -> String {
        let (major, _) = self.since.split_once('.').unwrap_or((self.since, ""));
        // An invalid version gives a constraint that no version satisfies, so tests would fail.
        let next = major.parse::<u32>().map_or(0, |major| major + 1);
        format!(">=v{}.0, <v{next}.0.0", self.since)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_next_major_version_will_not_do() {
        for (group, versions) in [
            ("ec2.aws.upbound.io", ">=v2.6.0, <v3.0.0"),
            ("sql.gcp.m.upbound.io", ">=v3.0.0, <v4.0.0"),
            ("containerservice.azure.upbound.io", ">=v2.7.0, <v3.0.0"),
            ("kubernetes.m.crossplane.io", ">=v1.2.0, <v2.0.0"),
            ("helm.crossplane.io", ">=v1.0.0, <v2.0.0"),
            ("postgresql.sql.crossplane.io", ">=v0.16.0, <v1.0.0"),
        ] {
            assert_eq!(Package::serving(group).unwrap().versions(), versions, "{group}");
        }
    }
}
