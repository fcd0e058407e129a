//! Checks whether the needed Functions and Providers are installed and healthy.

use std::collections::BTreeSet;

use kube::api::DynamicObject;

use super::check::Check;
use super::objects::{holds, message, name};
use super::snapshot::ListResult;
use crate::style::harmless;

/// The packages that environments need.
pub(super) enum Needed {
    /// Packages with these names. They must exist.
    Named(BTreeSet<String>),
    /// Packages from these repositories. Another check reports whether their kinds are served.
    From(BTreeSet<String>),
}

impl Needed {
    fn has(&self, package: &DynamicObject) -> bool {
        match self {
            Self::Named(names) => names.contains(name(package)),
            Self::From(repositories) => repositories.contains(repository(package)),
        }
    }
}

/// Checks whether packages of a kind are installed and healthy, and whether the needed packages
/// exist. A package that no environment needs may be broken.
pub(super) fn check(kind: &str, seen: &ListResult, needed: &Needed) -> Vec<Check> {
    let ListResult::All(objects) = seen else {
        return vec![seen.unread(format!("{kind}s"))];
    };
    let mut checks: Vec<Check> =
        objects.iter().map(|object| package(kind, object, needed)).collect();
    if let Needed::Named(names) = needed {
        let there: BTreeSet<&str> = objects.iter().map(name).collect();
        checks.extend(names.iter().filter(|name| !there.contains(name.as_str())).map(|name| {
            Check::bad(
                format!("{kind} {name}"),
                "is not installed, but a Composition uses it",
                "install it, or correct the Composition's functionRef",
            )
        }));
    }
    if checks.is_empty() {
        checks.push(Check::open(format!("{kind}s"), "none found"));
    }
    checks
}

fn package(kind: &str, object: &DynamicObject, needed: &Needed) -> Check {
    let name = name(object);
    let what = format!("{kind} {name}");
    let Some(condition) = ["Installed", "Healthy"].into_iter().find(|kind| !holds(object, kind))
    else {
        return Check::good(what, version(object));
    };
    let found = format!("is not {condition}{}", message(object, condition));
    if !needed.has(object) {
        return Check::open(what, format!("{found}; no environment uses it"));
    }
    Check::bad(
        what,
        found,
        &format!("run `kubectl describe {}.pkg.crossplane.io {name}`", kind.to_lowercase()),
    )
}

/// The source of a package without its digest, and the tag.
fn path(package: &DynamicObject) -> (&str, Option<&str>) {
    let text = package.data["spec"]["package"].as_str().unwrap_or_default();
    let text = text.split_once('@').map_or(text, |(name, _)| name);
    match text.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (text, None),
    }
}

/// The last segment of the source, for example `provider-aws-ec2`.
fn repository(package: &DynamicObject) -> &str {
    path(package).0.rsplit('/').next().unwrap_or_default()
}

/// The tag, or else the whole source.
fn version(package: &DynamicObject) -> String {
    let whole = package.data["spec"]["package"].as_str().unwrap_or_default();
    harmless(path(package).1.unwrap_or(whole))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::style::Mark;

    fn provider(package: &str, healthy: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"package": package},
            "status": {"conditions": [{"type": "Installed", "status": "True"}, {"type": "Healthy", "status": healthy}]}}))
        .unwrap()
    }

    #[test]
    fn only_needed_packages_are_red() {
        let needed = Needed::From(["provider-aws-ec2".to_owned()].into());
        for (package, healthy, mark) in [
            ("xpkg.upbound.io/upbound/provider-aws-ec2:v2.6.0", "True", Mark::Good),
            ("xpkg.upbound.io/upbound/provider-aws-ec2:v2.6.0", "False", Mark::Bad),
            ("registry:5000/mirror/provider-aws-ec2@sha256:01", "False", Mark::Bad),
            ("registry:5000/mirror/provider-aws-ec2:v1@sha256:01", "False", Mark::Bad),
            ("xpkg.upbound.io/upbound/provider-aws-sqs:v2.6.0", "False", Mark::Busy),
            ("", "False", Mark::Busy),
        ] {
            let checks =
                check("Provider", &ListResult::All(vec![provider(package, healthy)]), &needed);
            assert_eq!((checks.len(), checks[0].mark), (1, mark), "{package}: {}", checks[0].found);
        }
    }

    #[test]
    fn the_version_is_the_tag() {
        for (package, is) in [
            ("r.example.org/x/y:v1.2.3", "v1.2.3"),
            ("registry:5000/y", "registry:5000/y"),
            ("registry:5000/y:v1@sha256:01", "v1"),
            ("r.example.org/y@sha256:01", "r.example.org/y@sha256:01"),
        ] {
            assert_eq!(version(&provider(package, "True")), is);
        }
    }
}
