//! The providers that serve what we compose: which package, and since which version.

use function_paved_road::models::{KINDS, Provider, Scope};

/// Where the providers' packages are.
const REGISTRY: &str = "xpkg.crossplane.io/crossplane-contrib";

/// The oldest versions of the clouds' packages that will do.
const AWS: &str = "2.6";
const GCP: &str = "3.0";
const AZURE: &str = "2.7";

/// A provider's package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// `provider-aws-ec2`
    pub name: String,
    /// The oldest version that has all that we set and read: major and minor.
    pub since: &'static str,
}

impl Package {
    /// The package that serves an API group; `None` where none has to be installed: the group is
    /// Kubernetes' or Crossplane's own, or ours.
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

    /// The package that a cloud's others depend on: it has the kinds of their provider configs.
    /// `None` where the provider is one package.
    pub fn family(cloud: &str) -> Option<Self> {
        let since = match cloud {
            "aws" => AWS,
            "gcp" => GCP,
            "azure" => AZURE,
            _ => return None,
        };
        Some(Self { name: format!("provider-family-{cloud}"), since })
    }

    /// The cloud in its name: `aws` of `provider-aws-ec2`.
    pub fn cloud(&self) -> &str {
        self.name.split('-').nth(1).unwrap_or_default()
    }

    /// The reference, without a version.
    pub fn reference(&self) -> String {
        format!("{REGISTRY}/{}", self.name)
    }

    /// The versions that will do, as Crossplane has constraints. The next major version may have
    /// dropped API versions that we compose. Before 1.0 any minor one may, by the rules of
    /// versions; provider-sql's have kept them so far, and are trusted.
    pub fn versions(&self) -> String {
        let (major, _) = self.since.split_once('.').unwrap_or((self.since, ""));
        // A version that is none gives a constraint that takes nothing, which tests of all of them
        // would see.
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
