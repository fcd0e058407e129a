//! The controller's own account: its rights, for the chart, and a manifest that needs no chart.

use anyhow::Result;
use function_paved_road::apis::Flavour;
use function_paved_road::manifests::{ENVIRONMENT_CONFIG, REGISTRY, namespaces};
use function_paved_road::observe::MADE_WITH;
use serde_json::{Value, json};

use super::rule::{GET, Plurals, Rights};
use crate::composed::Composed;
use crate::workspace;

/// The name of all objects in the manifest.
const NAME: &str = "paved-controller";

/// The verbs for environments: the controller watches, marks and deletes them.
const TEND: [&str; 5] = ["get", "list", "watch", "patch", "delete"];

/// The rights for APIs in a group: to environments, and to the resources with the function's notes.
pub fn for_group(flavour: Flavour, group: &str, composed: &[Composed]) -> Result<Rights> {
    let plurals = super::plurals(workspace::root())?;
    Ok(super::own(flavour, group, &TEND).and(notes(flavour, composed, &plurals)?))
}

/// The rules that no group changes, for the chart: those to the Settings and Usages, and those in
/// the controller's own namespace.
pub fn common() -> Value {
    let settings = [vec![settings()], usages()].concat();
    json!({
        "settings": settings,
        "lease": lease(),
        "namespaces": [listed_namespaces()],
    })
}

/// The rules of its ClusterRole where the APIs have their default groups.
fn all(composed: &[Composed]) -> Result<Vec<Value>> {
    let mut rights = Rights::default();
    for flavour in Flavour::ALL {
        rights = rights.and(for_group(flavour, flavour.default_group(), composed)?);
    }
    Ok([rights.rules(), vec![settings()], usages()].concat())
}

/// The first resources of environments, which have the function's notes.
fn notes(flavour: Flavour, composed: &[Composed], plurals: &Plurals) -> Result<Rights> {
    let is_first = |object: &Value| object["metadata"]["annotations"][MADE_WITH].is_string();
    super::resources(flavour, composed, plurals, is_first)
}

/// The Settings.
fn settings() -> Value {
    json!({
        "apiGroups": ["apiextensions.crossplane.io"],
        "resources": ["environmentconfigs"],
        "resourceNames": [ENVIRONMENT_CONFIG],
        "verbs": GET,
    })
}

/// The Usages of Crossplane 1 and 2: some protect environments, and the controller follows the
/// deletion of others. The right to their status cannot lift a protection.
fn usages() -> Vec<Value> {
    let groups = ["apiextensions.crossplane.io", "protection.crossplane.io"];
    vec![
        json!({"apiGroups": groups, "resources": ["usages"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": groups, "resources": ["usages/status"], "verbs": ["patch"]}),
        json!({"apiGroups": [groups[1]], "resources": ["clusterusages"], "verbs": ["list"]}),
    ]
}

/// The election of a leader, in its own namespace.
fn lease() -> Vec<Value> {
    let group = json!(["coordination.k8s.io"]);
    vec![
        json!({"apiGroups": group, "resources": ["leases"], "verbs": ["create"]}),
        json!({"apiGroups": group, "resources": ["leases"], "resourceNames": [NAME],
            "verbs": ["get", "update"]}),
    ]
}

/// The ConfigMap with the namespaces that have environments, in its own namespace. It has no right
/// to Namespaces. The name also limits the creation, because server-side apply names the object.
fn listed_namespaces() -> Value {
    json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [namespaces::NAME],
        "verbs": ["get", "create", "update", "patch"]})
}

/// A manifest with the controller's pods, account and rights, and the policy on namespaces.
pub fn manifest(composed: &[Composed]) -> Result<Vec<Value>> {
    let metadata = json!({"name": NAME, "namespace": NAME, "labels": labels()});
    let group = "rbac.authorization.k8s.io";
    let api_version = format!("{group}/v1");
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}]);
    let reference = |kind: &str| json!({"apiGroup": group, "kind": kind, "name": NAME});
    let cluster_wide = json!({"name": NAME, "labels": labels()});
    let rules = [lease(), vec![listed_namespaces()]].concat();
    let mut documents = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": NAME,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        }}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata,
            "automountServiceAccountToken": false}),
        json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": cluster_wide,
            "rules": all(composed)?}),
        json!({"apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": cluster_wide,
            "roleRef": reference("ClusterRole"), "subjects": subjects}),
        json!({"apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": rules}),
        json!({"apiVersion": api_version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": reference("Role"), "subjects": subjects}),
        deployment(&metadata),
        network_policy(&metadata),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
            "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
                "selector": {"matchLabels": selector()}}}),
    ];
    documents.extend(namespaces::policy(NAME));
    Ok(documents)
}

fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME})
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/part-of": "paved-road"})
}

/// Connections of the controller: Prometheus reads the metrics, which have the costs of all
/// namespaces. The controller reaches DNS, the API server and a receiver of notifications. In most
/// clusters, the API server is not a pod, so ports select these peers.
fn network_policy(metadata: &Value) -> Value {
    let namespace = |name: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}});
    let mut prometheus = namespace("monitoring");
    prometheus["podSelector"] = json!({"matchLabels": {"app.kubernetes.io/name": "prometheus"}});
    let port = |port: &Value, protocol: &str| json!({"port": port, "protocol": protocol});
    let tcp = |number: u16| port(&json!(number), "TCP");
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [port(&json!("http"), "TCP")], "from": [prometheus]}],
            "egress": [
                {"ports": [port(&json!(53), "UDP"), tcp(53)], "to": [namespace("kube-system")]},
                {"ports": [tcp(443), tcp(6443)]},
            ],
        },
    })
}

fn deployment(metadata: &Value) -> Value {
    let probe = |path: &str, period: u32| {
        json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": period,
            "timeoutSeconds": 3})
    };
    let image = format!("{REGISTRY}/paved-portal:v{}", env!("CARGO_PKG_VERSION"));
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532,
                        "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": selector()},
                    }],
                    "containers": [{
                        "name": "controller",
                        "image": image,
                        "command": ["/paved", "controller"],
                        "args": ["--listen=0.0.0.0:8080"],
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "securityContext": {"allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
                        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"},
                            "limits": {"memory": "256Mi"}},
                        "readinessProbe": probe("/readyz", 5),
                        "livenessProbe": probe("/healthz", 10),
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::composed;

    #[test]
    fn controller_reads_no_secret_and_writes_environments_and_the_status_of_usages() {
        for rule in all(composed::all().unwrap()).unwrap() {
            let has = |key: &str, wanted: &str| {
                rule[key].as_array().unwrap().iter().any(|one| one == wanted)
            };
            assert!(!has("resources", "secrets") && !has("resources", "*"), "{rule}");
            let writes =
                ["delete", "patch", "update", "create"].iter().any(|verb| has("verbs", verb));
            let groups = Flavour::ALL.map(Flavour::default_group);
            let is_own = groups.iter().any(|group| has("apiGroups", group));
            let is_status = rule["resources"] == json!(["usages/status"]);
            assert!(!writes || is_own || is_status, "{rule}");
        }
    }

    #[test]
    fn controller_writes_one_config_map_and_reads_no_namespace() {
        let manifest = manifest(composed::all().unwrap()).unwrap();
        let of = |kind: &str| manifest.iter().find(|one| one["kind"] == kind).unwrap();
        let role = of("Role")["rules"].as_array().unwrap();
        let config_maps: Vec<_> =
            role.iter().filter(|rule| rule["resources"] == json!(["configmaps"])).collect();
        assert_eq!(config_maps, [&listed_namespaces()]);
        assert!(!of("ClusterRole")["rules"].to_string().contains("namespaces\""));
        let binding = &of("ValidatingAdmissionPolicyBinding")["spec"]["paramRef"];
        assert_eq!(binding["name"], config_maps[0]["resourceNames"][0]);
        assert_eq!(binding["namespace"], of("Deployment")["metadata"]["namespace"]);
    }

    #[test]
    fn only_prometheus_reaches_the_controller() {
        let manifest = manifest(composed::all().unwrap()).unwrap();
        let of = |kind: &str| manifest.iter().find(|one| one["kind"] == kind).unwrap();
        let policy = &of("NetworkPolicy")["spec"];
        let pod = &of("Deployment")["spec"]["template"]["metadata"]["labels"];
        let selected = policy["podSelector"]["matchLabels"].as_object().unwrap();
        assert!(selected.iter().all(|(key, value)| pod[key] == *value));
        assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
        let [ingress] = policy["ingress"].as_array().unwrap().as_slice() else { panic!() };
        assert_eq!(ingress["from"].as_array().unwrap().len(), 1);
        assert!(ingress["from"][0]["podSelector"].is_object(), "{ingress}");
        assert!(policy["egress"].as_array().unwrap().iter().all(|rule| rule["ports"].is_array()));
    }

    #[test]
    fn controller_reads_the_first_resource_of_each_api() {
        let composed = composed::all().unwrap();
        let plurals = super::super::plurals(workspace::root()).unwrap();
        for api in composed {
            let rules = notes(api.flavour, std::slice::from_ref(api), &plurals).unwrap().rules();
            assert!(!rules.is_empty(), "{} {}", api.api.info().name, api.flavour);
        }
    }
}
