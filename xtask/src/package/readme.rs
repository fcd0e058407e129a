//! The documented provider versions are those that composing needs.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use crate::composed::{self, Composed};
use crate::providers::Package;
use crate::workspace;

const PAGE: &str = "docs/reference/provider-versions.md";

#[test]
fn provider_versions_are_documented_for_each_api() {
    let page = std::fs::read_to_string(workspace::root().join(PAGE)).unwrap();
    for api in composed::all().unwrap().chunks(2) {
        let [claims, namespaced] = api else { panic!("an API has two flavours") };
        let row = row(claims, namespaced);
        assert!(page.contains(&row), "{PAGE} lacks this row:\n{row}");
    }
}

/// `| GPU stock pool | claims: `provider-kubernetes` 1.2; namespaced: none | |`
fn row(claims: &Composed, namespaced: &Composed) -> String {
    let [needed, optional] = [Composed::needed, Composed::optional].map(|providers| {
        let (claims, namespaced) = (providers(claims), providers(namespaced));
        let both: BTreeSet<_> = claims.intersection(&namespaced).cloned().collect();
        let mut parts = vec![list(&both)];
        for (flavour, all) in [("claims", &claims), ("namespaced", &namespaced)] {
            let only = list(&all.difference(&both).cloned().collect());
            let nothing_at_all = all.is_empty() && claims != namespaced;
            if !only.is_empty() || nothing_at_all {
                let only = if only.is_empty() { "none".to_owned() } else { only };
                parts.push(format!("{flavour}: {only}"));
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    });
    format!("| {} | {needed} | {optional} |", claims.api.info().title)
}

/// Packages, with the version after the last of a family.
fn list(packages: &BTreeSet<Package>) -> String {
    let packages: Vec<_> = packages.iter().collect();
    let named = |(index, package): (usize, &&Package)| {
        let again = packages.get(index + 1).is_some_and(|next| next.since == package.since);
        let version = if again { String::new() } else { format!(" {}", package.since) };
        format!("`{}`{version}", package.name)
    };
    packages.iter().enumerate().map(named).collect::<Vec<_>>().join(", ")
}
