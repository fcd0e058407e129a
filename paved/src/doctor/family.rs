//! Families of providers, and the API groups of their provider configs.

use function_paved_road::models::Provider;

/// A provider family, and whether its kinds are namespaced.
pub(super) type Family = (Provider, bool);

const FAMILIES: [Provider; 6] = [
    Provider::Aws,
    Provider::Azure,
    Provider::Gcp,
    Provider::Helm,
    Provider::Kubernetes,
    Provider::Sql,
];

/// The name of a family in `providerConfigs` of Settings, and in API groups.
pub(super) fn key(provider: Provider) -> &'static str {
    match provider {
        Provider::Aws => "aws",
        Provider::Azure => "azure",
        Provider::Gcp => "gcp",
        Provider::Helm => "helm",
        Provider::Kubernetes => "kubernetes",
        Provider::Sql => "sql",
    }
}

/// The family of a group's configs. For example, `aws.m.upbound.io` belongs to the namespaced kinds
/// of AWS.
pub(super) fn family(group: &str) -> Option<Family> {
    let theirs = group.ends_with(".upbound.io") || group.ends_with(".crossplane.io");
    let mut labels = group.trim_start_matches("postgresql.").split('.');
    let first = labels.next()?;
    let second = labels.next()?;
    let provider = FAMILIES.into_iter().find(|provider| key(*provider) == first)?;
    (theirs && ["m", "upbound", "crossplane"].contains(&second))
        .then_some((provider, second == "m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_belongs_to_a_family() {
        for (group, is) in [
            ("aws.upbound.io", Some((Provider::Aws, false))),
            ("aws.m.upbound.io", Some((Provider::Aws, true))),
            ("kubernetes.crossplane.io", Some((Provider::Kubernetes, false))),
            ("helm.m.crossplane.io", Some((Provider::Helm, true))),
            ("postgresql.sql.crossplane.io", Some((Provider::Sql, false))),
            ("postgresql.sql.m.crossplane.io", Some((Provider::Sql, true))),
            ("ec2.aws.upbound.io", None),
            ("aws.example.org", None),
            ("apps", None),
            ("", None),
        ] {
            assert_eq!(family(group), is, "{group}");
        }
    }
}
