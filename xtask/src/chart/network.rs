//! Connections to and from the portal.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::pods::selects;
use super::{Case, same};

pub fn check(case: &Case) -> Result<()> {
    let service = &case.objects.one("Service")?["spec"];
    selects(case, &json!({"matchLabels": service["selector"]}))?;
    let port = json!([{"name": case.port(), "port": case.value("/portal/service/port"), "targetPort": case.port(),
        "appProtocol": case.port()}]);
    same("the Service's ports", &service["ports"], &port)?;
    policy(case)?;
    for ingress in case.objects.all("Ingress") {
        leads_here(case, &ingress["spec"])?;
    }
    for monitor in case.objects.all("ServiceMonitor") {
        let spec = &monitor["spec"];
        let [endpoint] = spec["endpoints"].as_array().context("no endpoints")?.as_slice() else {
            anyhow::bail!("expected one endpoint: {spec}");
        };
        same("the path of the metrics", &endpoint["path"], &json!("/metrics"))?;
        same("the port of the metrics", &endpoint["port"], &json!(case.port()))?;
        let service = &case.objects.one("Service")?["metadata"]["labels"];
        let wanted = spec["selector"]["matchLabels"].as_object().context("no labels")?;
        ensure!(
            wanted.iter().all(|(key, value)| service[key] == *value),
            "the ServiceMonitor does not select the Service"
        );
    }
    Ok(())
}

fn policy(case: &Case) -> Result<()> {
    let policy = &case.objects.one("NetworkPolicy")?["spec"];
    selects(case, &policy["podSelector"])?;
    same("the types of the policy", &policy["policyTypes"], &json!(["Ingress", "Egress"]))?;
    let from = case.value("/portal/networkPolicy/ingress/from");
    let ingress = json!([{"ports": [{"port": case.port(), "protocol": "TCP"}], "from": from}]);
    same("the allowed ingress", &policy["ingress"], &ingress)?;
    let egress = case.value("/networkPolicy/egress");
    let dns = &egress["dns"]["port"];
    let dns = rule(&[(dns, "UDP"), (dns, "TCP")], &egress["dns"]["to"]);
    let ports = egress["apiServer"]["ports"].as_array().context("no ports")?;
    let ports: Vec<_> = ports.iter().map(|port| (port, "TCP")).collect();
    let mut expected = vec![
        dns,
        rule(&ports, &egress["apiServer"]["to"]),
        rule(&[(&issuer(case), "TCP")], case.value("/portal/networkPolicy/issuer/to")),
    ];
    let extra = case.value("/portal/networkPolicy/extra");
    expected.extend(extra.as_array().into_iter().flatten().cloned());
    same("the allowed egress", &policy["egress"], &json!(expected))
}

fn rule(ports: &[(&Value, &str)], to: &Value) -> Value {
    let ports: Vec<_> =
        ports.iter().map(|(port, protocol)| json!({"port": port, "protocol": protocol})).collect();
    let mut rule = json!({"ports": ports});
    // An empty list allows all peers.
    if to.as_array().is_some_and(|to| !to.is_empty()) {
        rule["to"] = to.clone();
    }
    rule
}

/// The port of the OpenID provider.
fn issuer(case: &Case) -> Value {
    let rest = case.text("/portal/oidc/issuer").trim_start_matches("https://");
    let host = rest.split('/').next().unwrap_or_default();
    json!(host.split_once(':').and_then(|(_, port)| port.parse::<u16>().ok()).unwrap_or(443))
}

fn leads_here(case: &Case, ingress: &Value) -> Result<()> {
    let service = &case.objects.one("Service")?["metadata"]["name"];
    let backend = json!({"service": {"name": service, "port": {"name": case.port()}}});
    let host = case.text("/portal/publicUrl").trim_start_matches("https://").trim_end_matches('/');
    let rules = json!([{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]);
    same("the Ingress' rules", &ingress["rules"], &rules)?;
    same("hosts with TLS", &ingress["tls"][0]["hosts"], &json!([host]))
}
