//! Checks whether the cluster serves the providers' kinds in our Compositions.

use std::collections::{BTreeMap, BTreeSet};

use paved_render::providers::{composed, package, scope};

use super::check::Check;
use super::compositions::{self, UsedComposition};
use super::snapshot::ClusterSnapshot;

/// A line for each provider with kinds that are not served although our Compositions compose them.
pub(super) fn check(snapshot: &ClusterSnapshot) -> Vec<Check> {
    let Some(served) = &snapshot.served else {
        return vec![Check::open("Providers' kinds", "the API server does not list its kinds")];
    };
    let served: BTreeSet<(&str, &str)> =
        served.iter().map(|(group, _, kind)| (group.as_str(), kind.as_str())).collect();
    let mut missing: BTreeMap<String, Missing> = BTreeMap::new();
    for UsedComposition { api, flavour, input, .. } in compositions::all(snapshot) {
        let revision = input["schemaRevision"].as_u64().unwrap_or(1);
        for (kind, needed) in composed(api, flavour) {
            if u64::from(kind.since) > revision {
                continue;
            }
            let group = kind.group(scope(flavour));
            if served.contains(&(group.as_str(), kind.kind)) {
                continue;
            }
            let others = served.iter().any(|(other, _)| *other == group);
            let missing = missing
                .entry(package(kind))
                .or_insert_with(|| Missing { others, ..Missing::default() });
            missing.needed |= needed;
            missing.kinds.insert(format!("{}.{group}", kind.kind));
            missing.apis.insert(api.info().title);
        }
    }
    missing.into_iter().map(|(package, missing)| missing.check(&package)).collect()
}

/// The missing kinds of a provider.
#[derive(Default)]
struct Missing {
    kinds: BTreeSet<String>,
    apis: BTreeSet<&'static str>,
    needed: bool,
    /// Whether other kinds of its group are served.
    others: bool,
}

impl Missing {
    fn check(self, package: &str) -> Check {
        let join = |words: Vec<&str>| words.join(", ");
        let apis = join(self.apis.into_iter().collect());
        let kinds = join(self.kinds.iter().map(String::as_str).collect());
        let what = format!("Provider {package}");
        if !self.needed && !self.others {
            let found = format!("does not serve {kinds}, which some options of {apis} need");
            return Check::open(what, found);
        }
        let helps = if self.others {
            "update it, or activate the kinds with a ManagedResourceActivationPolicy".to_owned()
        } else {
            format!("install {package}")
        };
        let found = if self.needed {
            format!("no provider serves {kinds}, which {apis} needs")
        } else {
            // The provider is installed, so users can choose its options. One missing kind then
            // blocks the whole environment.
            format!("does not serve {kinds}, which some options of {apis} need to continue")
        };
        Check::bad(what, found, &helps)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::doctor::checks::tests::{objects, snapshot};
    use crate::doctor::snapshot::ListResult;
    use crate::style::Mark;

    /// A cluster with one API, which serves these kinds.
    fn serving(kind: &str, served: &[(&str, &str)]) -> ClusterSnapshot {
        let definition = json!({"metadata": {"name": "x"}, "spec": {"group": "dev.example.org",
            "names": {"kind": kind, "categories": ["paved"]}}});
        let composition = json!({"metadata": {"name": "x"}, "spec": {
            "compositeTypeRef": {"apiVersion": "dev.example.org/v1alpha1", "kind": kind},
            "pipeline": [{"functionRef": {"name": "fn"}, "input": {"kind": "Settings", "schemaRevision": 2}}]}});
        let served = served
            .iter()
            .map(|(group, kind)| ((*group).to_owned(), "v1".to_owned(), (*kind).to_owned()));
        ClusterSnapshot {
            served: Some(served.collect()),
            definitions: objects(&[definition]),
            compositions: objects(&[composition]),
            ..snapshot()
        }
    }

    #[test]
    fn unserved_kind_is_red_and_names_the_provider() {
        let ec2 = "ec2.aws.m.upbound.io";
        let iam = ["Role", "RolePolicy", "RolePolicyAttachment", "InstanceProfile"]
            .map(|kind| ("iam.aws.m.upbound.io", kind));
        let told =
            |served: &[(&str, &str)]| check(&serving("GpuDevWorkspace", &[&iam, served].concat()));
        let none = told(&[]);
        assert_eq!((none.len(), none[0].mark), (1, Mark::Bad));
        assert_eq!(none[0].what, "Provider provider-aws-ec2");
        for words in ["Instance.ec2.aws.m.upbound.io", "GPU workspace", "install provider-aws-ec2"]
        {
            assert!(none[0].found.contains(words), "{words}: {}", none[0].found);
        }
        let half =
            told(&[(ec2, "Instance"), (ec2, "SecurityGroup"), (ec2, "SecurityGroupIngressRule")]);
        assert!(half[0].found.contains("ManagedResourceActivationPolicy"), "{}", half[0].found);
        assert!(!half[0].found.contains("Instance."), "{}", half[0].found);
        let all =
            ["Instance", "SecurityGroup", "SecurityGroupIngressRule", "SecurityGroupEgressRule"];
        assert_eq!(told(&all.map(|kind| (ec2, kind))), []);
    }

    #[test]
    fn optional_kind_is_not_red() {
        let served =
            [("helm.m.crossplane.io", "Release"), ("kubernetes.m.crossplane.io", "Object")];
        let checks = check(&serving("Environment", &served));
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|check| check.mark == Mark::Busy), "{checks:?}");
    }

    #[test]
    fn kind_that_an_installed_provider_lacks_is_red() {
        let served = [("eks.aws.m.upbound.io", "Cluster"), ("eks.aws.m.upbound.io", "NodeGroup")];
        let checks = check(&serving("Environment", &served));
        let eks = checks.iter().find(|check| check.what == "Provider provider-aws-eks").unwrap();
        assert_eq!(eks.mark, Mark::Bad);
        assert!(eks.found.contains("ClusterAuth.eks.aws.m.upbound.io"), "{}", eks.found);
        assert!(eks.found.contains("Addon.eks.aws.m.upbound.io"), "{}", eks.found);
        assert!(eks.found.contains("update it"), "{}", eks.found);
    }

    #[test]
    fn kind_of_a_later_schema_revision_is_not_missing() {
        let served =
            ["Cluster", "NodeGroup", "ClusterAuth"].map(|kind| ("eks.aws.m.upbound.io", kind));
        let mut snapshot = serving("Environment", &served);
        let eks = |snapshot: &ClusterSnapshot| {
            check(snapshot).iter().any(|check| check.what == "Provider provider-aws-eks")
        };
        assert!(eks(&snapshot));
        let ListResult::All(compositions) = &mut snapshot.compositions else { panic!() };
        compositions[0].data["spec"]["pipeline"][0]["input"]["schemaRevision"] = json!(1);
        assert!(!eks(&snapshot));
    }

    #[test]
    fn hidden_kinds_are_not_reported() {
        let blind = ClusterSnapshot { served: None, ..serving("GpuDevWorkspace", &[]) };
        assert_eq!(check(&blind)[0].mark, Mark::Busy);
        assert_eq!(
            check(&ClusterSnapshot {
                compositions: ListResult::Hidden,
                ..serving("GpuDevWorkspace", &[])
            }),
            []
        );
    }
}
