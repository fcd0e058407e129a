//! The admission policies that protect Crossplane's fields in claims and composites: the reference
//! from a claim to its composite, and from a composite to its resources, and the status.
//!
//! Crossplane trusts these fields. A claim with a reference to another composite takes that
//! composite over. Before Crossplane 2.4, a composite that names foreign resources has them
//! deleted. Commands and the portal read addresses and names from the status, but Crossplane's own
//! `edit` roles may write it.

use serde_json::{Value, json};

use crate::apis::{APIS, Flavour};

/// The user of Crossplane in Crossplane's own chart.
pub const CROSSPLANE: &str = "system:serviceaccount:crossplane-system:crossplane";

/// The ClusterRole that exempts its subjects, for example a tool that restores backups.
pub const RESTORE_ROLE: &str = "paved-road-restore";

/// The right that exempts a user. Its resource does not exist, and its group is only for it,
/// because Crossplane's `edit` roles grant every verb on claims and composites.
const RESTORE: (&str, &str, &str) = ("paved-road.fn.crossplane.io", "references", "restore");

/// The beginning of a condition that exempts one user. `!= '<user>'` follows.
pub const NOT_BY: &str = "request.userInfo.username";

/// The condition that exempts the subjects of [`RESTORE_ROLE`].
pub fn exempts_restore() -> String {
    let (group, resource, verb) = RESTORE;
    format!("!authorizer.group('{group}').resource('{resource}').check('{verb}').allowed()")
}

/// The kinds with fields that belong to Crossplane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// Claims: `spec.resourceRef`.
    Claims,
    /// Composites of claims: `spec.claimRef` and `spec.resourceRefs`.
    ClaimedComposites,
    /// Composites in namespaces: `spec.crossplane.resourceRefs`.
    NamespacedComposites,
    /// The status of claims.
    ClaimsStatus,
    /// The status of composites of claims.
    ClaimedCompositesStatus,
    /// The status of composites in namespaces.
    NamespacedCompositesStatus,
}

impl Guarded {
    /// The guarded kinds of the claims API or the namespaced API.
    pub fn for_flavour(flavour: Flavour) -> &'static [Self] {
        match flavour {
            Flavour::Claims => &[
                Self::Claims,
                Self::ClaimedComposites,
                Self::ClaimsStatus,
                Self::ClaimedCompositesStatus,
            ],
            Flavour::Namespaced => &[Self::NamespacedComposites, Self::NamespacedCompositesStatus],
        }
    }

    /// The fields that only Crossplane sets, changes and removes.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Claims => &["spec.resourceRef"],
            Self::ClaimedComposites => &["spec.claimRef", "spec.resourceRefs"],
            Self::NamespacedComposites => &["spec.crossplane.resourceRefs"],
            Self::ClaimsStatus
            | Self::ClaimedCompositesStatus
            | Self::NamespacedCompositesStatus => &["status"],
        }
    }

    /// Whether the kinds are claims.
    pub fn is_of_claims(self) -> bool {
        matches!(self, Self::Claims | Self::ClaimsStatus)
    }

    /// The end of the resources' names: the part of an object that the policy checks.
    pub fn subresource(self) -> &'static str {
        if self.fields() == ["status"] { "/status" } else { "" }
    }

    /// The name of the policy for a group.
    pub fn policy(self, group: &str) -> String {
        format!("{}.{group}", self.name())
    }

    /// The beginning of a policy's name. The API group follows.
    fn name(self) -> &'static str {
        match self {
            Self::Claims => "paved-road-claims",
            Self::ClaimedComposites => "paved-road-composites",
            Self::NamespacedComposites => "paved-road-environments",
            Self::ClaimsStatus => "paved-road-claims-status",
            Self::ClaimedCompositesStatus => "paved-road-composites-status",
            Self::NamespacedCompositesStatus => "paved-road-environments-status",
        }
    }

    /// The resources that have the fields: `environmentclaims`.
    pub fn resources(self) -> Vec<String> {
        let plural = |info: &'static crate::apis::Info| match self {
            Self::Claims | Self::ClaimsStatus => info.claim.plural,
            Self::ClaimedComposites | Self::ClaimedCompositesStatus => info.composite.plural,
            Self::NamespacedComposites | Self::NamespacedCompositesStatus => info.namespaced.plural,
        };
        let whole = |info| format!("{}{}", plural(info), self.subresource());
        let mut all: Vec<_> = APIS.iter().map(|api| whole(api.info())).collect();
        all.sort_unstable();
        all
    }

    /// A policy's checks of the fields, in CEL, with a message for each.
    pub fn validations(self) -> Vec<Value> {
        self.fields().iter().map(|field| validation(field)).collect()
    }
}

/// The policies of API groups, their bindings, and the role that exempts. `crossplane` is the user
/// of Crossplane.
pub fn policies(groups: &[(Flavour, &str)], crossplane: &str) -> Vec<Value> {
    let mut documents = vec![restore_role()];
    for (flavour, group) in groups {
        for guarded in Guarded::for_flavour(*flavour) {
            let name = guarded.policy(group);
            documents.push(policy(*guarded, &name, group, crossplane));
            documents.push(json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            }));
        }
    }
    documents
}

fn restore_role() -> Value {
    let (group, resource, verb) = RESTORE;
    let about = "Exempts from the policies on references of Crossplane's. For a ClusterRoleBinding of a tool that restores \
                 claims and composites from a backup.";
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": RESTORE_ROLE, "annotations": {"kubernetes.io/description": about}},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}],
    })
}

fn policy(guarded: Guarded, name: &str, group: &str, crossplane: &str) -> Value {
    let about =
        format!("Only Crossplane sets, changes and removes {}.", guarded.fields().join(" and "));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "annotations": {"kubernetes.io/description": about}},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": guarded.resources(),
            }]},
            "matchConditions": [
                {
                    "name": "is-not-crossplane",
                    "expression": format!("{NOT_BY} != '{crossplane}'"),
                },
                {"name": "does-not-restore", "expression": exempts_restore()},
            ],
            "validations": guarded.validations(),
        },
    })
}

/// The field is unchanged: set both before and after with the same value, or not set at all.
fn validation(field: &str) -> Value {
    let (is, was) = (has("object", field), has("oldObject", field));
    let expression = format!(
        "({is}) == (request.operation == 'UPDATE' && {was}) && (!({is}) || object.{field} == oldObject.{field})"
    );
    let message = format!(
        "{field} is Crossplane's own: leave it as it is. A tool that restores backups needs the ClusterRole {RESTORE_ROLE}"
    );
    json!({"expression": expression, "message": message})
}

/// Whether an object has a field, in CEL. Every segment of the field's path is tested.
fn has(object: &str, field: &str) -> String {
    let mut path = object.to_owned();
    let mut tests = Vec::new();
    for part in field.split('.') {
        path = format!("{path}.{part}");
        tests.push(format!("has({path})"));
    }
    tests.join(" && ")
}

/// Checks that a policy can quote the name of a user.
pub fn user(text: &str) -> Result<String, String> {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.:@/".contains(c);
    if !text.is_empty() && text.len() <= 253 && text.chars().all(fit) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?}: allowed: the name of a user, for example {CROSSPLANE}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_that_a_policy_could_not_quote_is_rejected() {
        assert!(user(CROSSPLANE).is_ok());
        for bad in ["", "a'b", "a b", "a\\b", "a\nb"] {
            assert!(user(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_flavour_has_a_binding_for_each_policy() {
        let groups = [(Flavour::Claims, "a.example.org"), (Flavour::Namespaced, "b.example.org")];
        let documents = policies(&groups, CROSSPLANE);
        let names_of = |kind: &str| -> Vec<&str> {
            let of_kind = documents.iter().filter(|document| document["kind"] == kind);
            of_kind.filter_map(|document| document["metadata"]["name"].as_str()).collect()
        };
        let names = [
            "paved-road-claims.a.example.org",
            "paved-road-composites.a.example.org",
            "paved-road-claims-status.a.example.org",
            "paved-road-composites-status.a.example.org",
            "paved-road-environments.b.example.org",
            "paved-road-environments-status.b.example.org",
        ];
        assert_eq!(names_of("ValidatingAdmissionPolicy"), names);
        assert_eq!(names_of("ValidatingAdmissionPolicyBinding"), names);
    }
}
