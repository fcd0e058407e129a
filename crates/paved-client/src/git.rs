//! Tools that apply an environment repeatedly, for example from Git. Such a tool restores a changed
//! field, and creates a deleted environment again.

use std::fmt;

use kube::api::ObjectMeta;

/// A tool that applies objects repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Argo CD.
    ArgoCd,
    /// Flux.
    Flux,
    /// Fleet of Rancher.
    Fleet,
    /// Config Sync of Google.
    ConfigSync,
    /// kapp of Carvel, and kapp-controller.
    Kapp,
    /// A tool that we do not know.
    Unknown,
}

/// The reason why a tool counts as the applier of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A label or an annotation that only this tool sets.
    Mark,
    /// A field manager of server-side apply that is neither ours nor a tool for people.
    FieldManager,
    /// Only the label `app.kubernetes.io/instance`. Argo CD before version 3 tracks objects by this
    /// label, but charts and people set the label too.
    InstanceLabel,
}

/// The tool that applies an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applier {
    /// The tool.
    pub tool: Tool,
    /// The reason.
    pub evidence: Evidence,
    /// The field manager of an unknown tool.
    manager: Option<String>,
}

/// Labels and annotations on applied objects, with their tools. Sources: "Resource tracking" in the
/// documentation of Argo CD, the API references of Flux's kustomize-controller and helm-controller,
/// Fleet's `postrender_test.go`, "Stop managing a managed object" in the documentation of Config
/// Sync, and "Labels and annotations" in the documentation of kapp.
const MARKS: [(&str, Tool); 9] = [
    ("argocd.argoproj.io/tracking-id", Tool::ArgoCd),
    ("argocd.argoproj.io/instance", Tool::ArgoCd),
    ("kustomize.toolkit.fluxcd.io/name", Tool::Flux),
    ("helm.toolkit.fluxcd.io/name", Tool::Flux),
    ("objectset.rio.cattle.io/id", Tool::Fleet),
    ("configmanagement.gke.io/managed", Tool::ConfigSync),
    ("configsync.gke.io/resource-id", Tool::ConfigSync),
    ("kapp.k14s.io/app", Tool::Kapp),
    ("kapp.k14s.io/identity", Tool::Kapp),
];

/// A label of Argo CD before version 3.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The annotation of `helm install` on its objects.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// The value of a mark that makes Config Sync leave an object alone.
const DISABLED: &str = "disabled";

/// The field manager of Helm 4. People run it.
const HELM: &str = "helm";

/// Beginnings of field managers that do not apply repeatedly: kubectl, ours and Crossplane's.
const OTHERS: [&str; 4] = ["kubectl", "paved", "apiextensions.crossplane.io/", "crossplane"];

impl fmt::Display for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ArgoCd => "Argo CD",
            Self::Flux => "Flux",
            Self::Fleet => "Fleet",
            Self::ConfigSync => "Config Sync",
            Self::Kapp => "kapp",
            Self::Unknown => "another tool",
        })
    }
}

impl fmt::Display for Applier {
    /// The subject of a sentence: `Argo CD applies`, `Argo CD probably applies`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.manager, self.evidence) {
            (Some(manager), _) => write!(out, "{} (field manager {manager:?}) applies", self.tool),
            (None, Evidence::InstanceLabel) => write!(out, "{} probably applies", self.tool),
            (None, _) => write!(out, "{} applies", self.tool),
        }
    }
}

/// The tool that applies an object repeatedly. `None` without a sign of a tool.
pub fn applier(metadata: &ObjectMeta) -> Option<Applier> {
    let value = |name: &str| {
        metadata.labels.iter().chain(&metadata.annotations).find_map(|all| all.get(name))
    };
    let is_marked = |(name, _): &(&str, Tool)| value(name).is_some_and(|value| value != DISABLED);
    if let Some((_, tool)) = MARKS.into_iter().find(is_marked) {
        return Some(Applier { tool, evidence: Evidence::Mark, manager: None });
    }
    let entries = metadata.managed_fields.iter().flatten();
    let applying = entries.filter(|entry| entry.operation.as_deref() == Some("Apply"));
    let mut managers = applying.filter_map(|entry| entry.manager.as_deref());
    let is_unknown =
        |name: &&str| *name != HELM && !OTHERS.iter().any(|other| name.starts_with(other));
    if let Some(manager) = managers.find(is_unknown) {
        let (tool, evidence) = (Tool::Unknown, Evidence::FieldManager);
        return Some(Applier { tool, evidence, manager: Some(manager.to_owned()) });
    }
    let is_instance = value(INSTANCE).is_some() && value(HELM_RELEASE).is_none();
    let (tool, evidence) = (Tool::ArgoCd, Evidence::InstanceLabel);
    is_instance.then_some(Applier { tool, evidence, manager: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn found(metadata: Value) -> Option<(Tool, Evidence)> {
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
        applier(&metadata).map(|one| (one.tool, one.evidence))
    }

    fn applied(manager: &str, operation: &str) -> Value {
        json!({"managedFields": [
            {"manager": "kubectl-edit", "operation": "Update"},
            {"manager": manager, "operation": operation},
        ]})
    }

    #[test]
    fn marks_of_known_tools_are_found_as_labels_and_as_annotations() {
        for (mark, tool) in MARKS {
            for place in ["labels", "annotations"] {
                let found = found(json!({place: {mark: "x"}}));
                assert_eq!(found, Some((tool, Evidence::Mark)), "{place} {mark}");
            }
        }
    }

    #[test]
    fn object_that_config_sync_leaves_alone_has_no_applier() {
        let unmanaged = json!({"annotations": {"configmanagement.gke.io/managed": "disabled"}});
        assert_eq!(found(unmanaged), None);
    }

    #[test]
    fn field_manager_of_an_unknown_applier_is_found() {
        for manager in ["argocd-controller", "helm-controller", "my-gitops", "Terraform"] {
            let expected = Some((Tool::Unknown, Evidence::FieldManager));
            assert_eq!(found(applied(manager, "Apply")), expected, "{manager}");
            assert_eq!(found(applied(manager, "Update")), None, "{manager}");
        }
        let ours = [
            "kubectl",
            "kubectl-last-applied",
            "helm",
            "paved",
            "paved-lifecycle",
            "paved-portal",
            "apiextensions.crossplane.io/claim",
        ];
        for manager in ours {
            assert_eq!(found(applied(manager, "Apply")), None, "{manager}");
        }
    }

    #[test]
    fn instance_label_is_weak_evidence_and_none_in_a_helm_release() {
        let label = json!({INSTANCE: "apps"});
        let expected = Some((Tool::ArgoCd, Evidence::InstanceLabel));
        assert_eq!(found(json!({"labels": label})), expected);
        let release = json!({HELM_RELEASE: "apps"});
        assert_eq!(found(json!({"labels": label, "annotations": release})), None);
        assert_eq!(found(json!({})), None);
    }

    #[test]
    fn applier_is_the_subject_of_a_sentence() {
        let sentence = |metadata: Value| {
            applier(&serde_json::from_value(metadata).unwrap()).unwrap().to_string()
        };
        for (metadata, expected) in [
            (json!({"labels": {"kapp.k14s.io/app": "1"}}), "kapp applies"),
            (json!({"labels": {INSTANCE: "x"}}), "Argo CD probably applies"),
            (applied("gitops", "Apply"), "another tool (field manager \"gitops\") applies"),
        ] {
            assert_eq!(sentence(metadata), expected);
        }
    }
}
