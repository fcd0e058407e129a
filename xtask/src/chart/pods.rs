//! The pods. They are restricted by Kubernetes' Pod Security Standards, have probes, are spread
//! over nodes, and are replaced without a gap.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Case, same};

/// The time for the portal to finish requests, and the pause before it, in seconds.
const GRACE: u64 = 20 + 5;

pub fn check(case: &Case) -> Result<()> {
    let deployment = &case.objects.one("Deployment")?["spec"];
    let pod = &case.pod()?["spec"];
    let [container] = pod["containers"].as_array().context("no containers")?.as_slice() else {
        anyhow::bail!("more than one container");
    };
    ensure!(pod["initContainers"].is_null(), "the pod has init containers");
    replaced(case, deployment, pod)?;
    restricted(pod, container)?;
    probes(case, container)?;
    let image = container["image"].as_str().unwrap_or_default();
    let (digest, tag) = (case.text("/image/digest"), concat!("v", env!("CARGO_PKG_VERSION")));
    let image_of = case.text("/image/repository");
    let expected = if digest.is_empty() {
        format!("{image_of}:{tag}")
    } else {
        format!("{image_of}@{digest}")
    };
    same("the image", &json!(image), &json!(expected))?;
    same("the resources", &container["resources"], case.value("/portal/resources"))?;
    ensure!(container["resources"]["limits"]["memory"].is_string(), "memory has no limit");
    disruptions(case)
}

fn replaced(case: &Case, deployment: &Value, pod: &Value) -> Result<()> {
    same("replicas", &deployment["replicas"], case.value("/portal/replicas"))?;
    ensure!(deployment["replicas"].as_u64() >= Some(2), "fewer than two replicas");
    let rolling =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    same("the strategy", &deployment["strategy"], &rolling)?;
    let spread = pod["topologySpreadConstraints"].as_array().context("replicas are not spread")?;
    let keys: Vec<_> = spread.iter().map(|one| one["topologyKey"].clone()).collect();
    same("the topology keys", &json!(keys), case.value("/topologyKeys"))?;
    for one in spread {
        selects(case, &one["labelSelector"])?;
    }
    selects(case, &deployment["selector"])?;
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or_default();
    ensure!(grace > GRACE, "a grace period of {grace} s is too short");
    Ok(())
}

/// Restricted by <https://kubernetes.io/docs/concepts/security/pod-security-standards/>, with a
/// read-only root.
fn restricted(pod: &Value, container: &Value) -> Result<()> {
    let expected = json!({"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"}});
    same("the pod's security context", &pod["securityContext"], &expected)?;
    let expected = json!({"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]}});
    same("the container's security context", &container["securityContext"], &expected)?;
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        ensure!(pod[host].is_null(), "{host} is set");
    }
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let kinds = volume.as_object().context("a volume")?.keys();
        let allowed = |kind: &String| ["name", "configMap", "secret"].contains(&kind.as_str());
        ensure!(kinds.clone().all(allowed), "unexpected type of volume: {volume}");
    }
    let mounts = container["volumeMounts"].as_array().context("no mounts")?;
    ensure!(mounts.iter().all(|mount| mount["readOnly"] == true), "a mount is writable");
    Ok(())
}

fn probes(case: &Case, container: &Value) -> Result<()> {
    for (probe, path) in
        [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
    {
        let expected =
            json!({"path": path, "port": case.port(), "scheme": case.port().to_uppercase()});
        same(probe, &container[probe]["httpGet"], &expected)?;
    }
    let ports = json!([{"name": case.port(), "containerPort": 8080}]);
    same("the ports", &container["ports"], &ports)
}

fn disruptions(case: &Case) -> Result<()> {
    let budget = &case.objects.one("PodDisruptionBudget")?["spec"];
    let most = case.value("/portal/podDisruptionBudget/maxUnavailable");
    same("the maximum of unavailable pods", &budget["maxUnavailable"], most)?;
    selects(case, &budget["selector"])
}

/// Fails unless a selector selects the portal's pods.
pub(super) fn selects(case: &Case, selector: &Value) -> Result<()> {
    let wanted = selector["matchLabels"].as_object().context("a selector without labels")?;
    let labels = &case.pod()?["metadata"]["labels"];
    let fits = wanted.iter().all(|(key, value)| labels[key] == *value);
    ensure!(!wanted.is_empty() && fits, "{selector} does not select the pods");
    Ok(())
}
