//! Clusters of clouds. The cloud's own command line supplies the credentials at each call, so no
//! secret is written.

use function_paved_road::catalog::aws::PARTITIONS;
use serde_json::{Value, json};
use url::Url;

use super::Target;
use crate::failure::Failure;
use crate::style::harmless_name;

/// The Azure application ID of AKS, for tokens. It is the same in all tenants.
const AKS: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";

/// The address and certificate authority of a cloud's cluster. The address comes from the status,
/// which users cannot write. The caller's own token is sent there, so a Secret that names another
/// host is rejected.
pub(super) fn cluster(target: &Target, said: &Value) -> Result<Value, Failure> {
    let field = if target.environment.kind == "ApplicationEnvironment" {
        "gkeEndpoint"
    } else {
        "endpoint"
    };
    let endpoint = target.field(field).filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.ok_or_else(|| target.missing(field))?;
    let server =
        if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") };
    let in_secret = said["server"].as_str().unwrap_or_default();
    if place(in_secret).is_none() || place(in_secret) != place(&server) {
        return Err(Failure::Provisioning {
            what: target.environment.title(),
            message: format!(
                "has a Secret with the server {}, but its status has {}. No entry was written, \
                 because kubectl would send your cloud token there. Ask your platform team who \
                 changed the Secret",
                harmless_name(in_secret),
                harmless_name(&server)
            ),
        });
    }
    let mut cluster = json!({"server": server});
    if let Some(authority) = said.get("certificate-authority-data") {
        cluster["certificate-authority-data"] = authority.clone();
    }
    Ok(cluster)
}

/// Host and port of an `https` URL.
fn place(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

/// Credentials from Google's plugin, which asks gcloud.
pub(super) fn gke() -> Value {
    let hint = "install it with `gcloud components install gke-gcloud-auth-plugin`, and log in with `gcloud auth login`";
    exec("gke-gcloud-auth-plugin", &[], hint)
}

/// A token from the AWS CLI, because the token in the Secret expires within minutes.
pub(super) fn eks(target: &Target) -> Result<Value, Failure> {
    let name = target.part("cluster").ok_or_else(|| target.missing("cluster"))?;
    let region = target
        .field("endpoint")
        .and_then(region_of)
        .ok_or_else(|| target.missing("endpoint on EKS"))?;
    let args = ["eks", "get-token", "--cluster-name", name, "--region", region, "--output", "json"];
    Ok(exec("aws", &args, "install the AWS CLI: https://aws.amazon.com/cli/"))
}

/// Credentials of the user of `az login`.
pub(super) fn aks() -> Value {
    let args = ["get-token", "--login", "azurecli", "--server-id", AKS];
    exec("kubelogin", &args, "install it with `az aks install-cli`, and log in with `az login`")
}

/// The right that a user needs besides credentials. A cloud's cluster admits only its creator and
/// the users with such a right in the cloud.
pub(super) fn needed(kind: &str) -> Option<&'static str> {
    match kind {
        "gke" => Some(
            "to get access to GKE, you need a role in the project, for example \
             roles/container.developer",
        ),
        "eks" => Some(
            "to get access to EKS, you need an access entry. An administrator of the AWS account \
             creates it with `aws eks create-access-entry` and `aws eks associate-access-policy`",
        ),
        "aks" => Some(
            "to get access to AKS, you need a role in Azure, for example Azure Kubernetes Service \
             RBAC Writer",
        ),
        _ => None,
    }
}

fn exec(command: &str, args: &[&str], hint: &str) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": command,
        "args": args,
        "env": null,
        "installHint": format!("{command} is not installed: {hint}"),
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": true,
    }})
}

/// The region in `https://ID.gr7.eu-west-1.eks.amazonaws.com`.
fn region_of(endpoint: &str) -> Option<&str> {
    let (before, domain) = endpoint.trim_end_matches('/').split_once(".eks.")?;
    PARTITIONS.iter().find(|partition| partition.domain == domain)?;
    before.rsplit('.').next().filter(|region| !region.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::{place, region_of};

    #[test]
    fn place_is_host_and_port_in_any_spelling() {
        assert_eq!(place("https://0A1B.eks.example"), place("https://0a1b.eks.example:443/"));
        for other in [
            "https://evil.example",
            "https://0a1b.eks.example:8443",
            "http://0a1b.eks.example",
            "x",
        ] {
            assert_ne!(place(other), place("https://0a1b.eks.example"), "{other}");
        }
    }

    #[test]
    fn endpoint_contains_the_region() {
        assert_eq!(region_of("https://0A1B.gr7.eu-west-1.eks.amazonaws.com"), Some("eu-west-1"));
        assert_eq!(
            region_of("https://0A1B.sk1.cn-north-1.eks.amazonaws.com.cn"),
            Some("cn-north-1")
        );
        assert_eq!(
            region_of("https://0A1B.yl4.us-iso-east-1.eks.c2s.ic.gov"),
            Some("us-iso-east-1")
        );
        assert_eq!(region_of("https://203.0.113.7"), None);
        assert_eq!(region_of("https://eu.eks.amazonaws.com"), None);
    }
}
