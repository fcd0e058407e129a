//! The actions that a managed resource allows its provider.

use serde_json::Value;

/// The rights that `spec.managementPolicies` and `spec.deletionPolicy` give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent right, as in managementPolicies"
)]
pub struct Policies {
    /// Create the external resource if it is missing.
    pub create: bool,
    /// Change it.
    pub update: bool,
    /// Delete it with the object.
    pub delete: bool,
    /// Fill in fields that the object leaves empty.
    pub late: bool,
}

impl Policies {
    /// The rights as Crossplane's runtime reads them. A deletion needs the consent of both fields,
    /// unless the policies name it explicitly.
    pub fn from_object(object: &Value) -> Self {
        let listed = object["spec"]["managementPolicies"].as_array();
        let has = |right: &str| listed.is_none_or(|all| all.iter().any(|one| one == right));
        let all = has("*");
        let may = |right: &str| all || has(right);
        let orphaned = object["spec"]["deletionPolicy"] == "Orphan";
        Self {
            create: may("Create"),
            update: may("Update"),
            late: may("LateInitialize"),
            delete: may("Delete") && (!orphaned || (!all && has("Delete"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rights(spec: &Value) -> (bool, bool, bool) {
        let Policies { create, update, delete, .. } = Policies::from_object(&json!({"spec": spec}));
        (create, update, delete)
    }

    #[test]
    fn default_policy_allows_all_actions() {
        assert_eq!(rights(&json!({})), (true, true, true));
        assert_eq!(
            rights(&json!({"managementPolicies": ["*"], "deletionPolicy": "Delete"})),
            (true, true, true)
        );
        assert_eq!(
            rights(&json!({"managementPolicies": ["*"], "deletionPolicy": "Orphan"})),
            (true, true, false)
        );
    }

    #[test]
    fn unlisted_action_is_not_performed() {
        assert_eq!(rights(&json!({"managementPolicies": ["Observe"]})), (false, false, false));
        let but_deleting =
            json!({"managementPolicies": ["Observe", "Create", "Update", "LateInitialize"]});
        assert_eq!(rights(&but_deleting), (true, true, false));
        let named =
            json!({"managementPolicies": ["Observe", "Delete"], "deletionPolicy": "Orphan"});
        assert_eq!(rights(&named), (false, false, true));
    }
}
