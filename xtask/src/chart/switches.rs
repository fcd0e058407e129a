//! Options that are off remove their objects, and options that are on have only their documented
//! effect.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use function_paved_road::manifests::namespaces;
use serde_json::{Value, json};

use super::helm::{Helm, NAMESPACE, Objects};
use super::same;
use crate::package::portal;
use crate::yaml;

/// The label of the controller's objects.
const CONTROLLER: &str = "paved-controller";

/// The portal's connections to its OpenID provider.
const ISSUER: &str = "portal.networkPolicy.issuer";

/// Values, and the kinds of the portal's objects that they remove.
const OFF: [(&str, &[&str]); 4] = [
    ("rbac.create=false", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("portal.podDisruptionBudget.enabled=false", &["PodDisruptionBudget"]),
    (NO_POLICY, &["NetworkPolicy"]),
    (r#"portal.serviceAccount={"create": false, "name": "existing"}"#, &["ServiceAccount"]),
];

const NO_POLICY: &str =
    "portal.networkPolicy.ingress.enabled=false,networkPolicy.egress.enabled=false";

/// Returns the number of tested options.
pub fn check(helm: &Helm, values: &Path) -> Result<usize> {
    let render = |set: &str| {
        let text = helm.template(values, &[set]).with_context(|| set.to_owned())?;
        Ok::<_, anyhow::Error>(Objects(yaml::documents(&text)?))
    };
    let all = render;
    let render = |set: &str| Ok::<_, anyhow::Error>(all(set)?.of(portal::NAME));
    for (set, kinds) in OFF {
        let objects = render(set)?;
        let left: Vec<_> = kinds.iter().filter(|kind| objects.all(kind).next().is_some()).collect();
        ensure!(left.is_empty(), "{set}: still found {left:?}");
        objects.one("Deployment").with_context(|| set.to_owned())?;
    }
    for part in ["networkPolicy.egress.dns", "networkPolicy.egress.apiServer", ISSUER] {
        let objects = render(&format!("{part}.enabled=false"))?;
        let rules = objects.one("NetworkPolicy")?["spec"]["egress"].as_array().map(Vec::len);
        ensure!(rules == Some(2), "without {part}: expected two rules for egress, found {rules:?}");
    }
    let objects = render("networkPolicy.egress.enabled=false")?;
    same(
        "the types of the policy",
        &objects.one("NetworkPolicy")?["spec"]["policyTypes"],
        &json!(["Ingress"]),
    )?;
    let existing = render(OFF[3].0)?;
    let account = &existing.one("Deployment")?["spec"]["template"]["spec"]["serviceAccountName"];
    same("the pods' account", account, &json!("existing"))?;
    impersonates_any(&render("portal.impersonation.anyUser=true")?, "users")?;
    impersonates_any(&render("portal.impersonation.anyGroup=true")?, "groups")?;
    controller(&all("controller.enabled=true")?)?;
    protects_namespaces(&all("controller.enabled=true")?.of(CONTROLLER))?;
    let objects = all("controller.protectNamespaces=false")?.of(CONTROLLER);
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        ensure!(objects.all(kind).next().is_none(), "without protection there is a {kind}");
    }
    for (set, left) in [
        ("controller.enabled=false", [true, true, false]),
        ("portal.enabled=false", [true, false, true]),
        ("platform.enabled=false", [false, true, true]),
    ] {
        let objects = all(set)?;
        let parts = [objects.kept(), objects.of(portal::NAME), objects.of(CONTROLLER)];
        let found = parts.map(|part| !part.0.is_empty());
        ensure!(found == left, "{set}: platform, portal and controller are there: {found:?}");
    }
    Ok(OFF.len() + 12)
}

/// The controller has an account, rights and pods of its own, and the portal's Service does not reach
/// the pods.
fn controller(objects: &Objects) -> Result<()> {
    let own = objects.of(CONTROLLER);
    for kind in [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ] {
        own.one(kind)?;
    }
    let deployment = own.one("Deployment")?;
    let pod = &deployment["spec"]["template"];
    let selector = &objects.one("Service")?["spec"]["selector"];
    let name = "app.kubernetes.io/name";
    ensure!(pod["metadata"]["labels"][name] != selector[name], "the Service reaches it");
    let command = &pod["spec"]["containers"][0]["command"];
    same("its command", command, &json!(["/paved", "controller"]))
}

/// The policy on namespaces is ours. Its parameter is the ConfigMap in the controller's namespace,
/// which is the only ConfigMap that the controller may write.
fn protects_namespaces(objects: &Objects) -> Result<()> {
    let [policy, binding] = namespaces::policy(NAMESPACE);
    let found = objects.one("ValidatingAdmissionPolicy")?;
    same("the policy", &found["spec"], &policy["spec"])?;
    let bound = &objects.one("ValidatingAdmissionPolicyBinding")?["spec"];
    same("the bound policy", &bound["policyName"], &found["metadata"]["name"])?;
    for field in ["validationActions", "paramRef"] {
        same(field, &bound[field], &binding["spec"][field])?;
    }
    let rules = objects.all("Role").filter_map(|role| role["rules"].as_array()).flatten();
    let written = rules.filter(|rule| rule["verbs"].to_string().contains("update"));
    let config_maps: Vec<&Value> =
        written.filter(|rule| rule["resources"] == json!(["configmaps"])).collect();
    let [rule] = config_maps.as_slice() else { bail!("found the rules {config_maps:?}") };
    same("the name of the ConfigMap", &rule["resourceNames"], &json!([namespaces::NAME]))
}

/// The dangerous options allow only impersonation of all users or groups.
fn impersonates_any(objects: &Objects, resource: &str) -> Result<()> {
    let is_it = |role: &&Value| role.to_string().contains("impersonate");
    let role = objects.all("ClusterRole").find(is_it).context("no role allows impersonation")?;
    let rules = json!([{"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"]}]);
    same("the rules of impersonation", &role["rules"], &rules)
}
