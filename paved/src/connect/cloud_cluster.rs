//! Clusters of clouds. The cloud's own command line supplies the credentials at each call, so no
//! secret is written.

use serde_json::{Value, json};
use url::Url;

use super::{Target, endpoint};
use crate::failure::Failure;
use crate::style::harmless_name;

/// The Azure application ID of AKS, for tokens. It is the same in all tenants.
const AKS: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";

/// The address and certificate authority of a cluster in `cloud`. The caller's own token is sent to
/// the address in the status. So an address outside of the cloud is rejected, and a Secret that
/// names another host too.
pub(super) fn cluster(target: &Target, cloud: &str, said: &Value) -> Result<Value, Failure> {
    let server = server(target, cloud)?;
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

/// The address of a cluster in `cloud`, from the status.
fn server(target: &Target, cloud: &str) -> Result<String, Failure> {
    let field = if target.environment.kind == "ApplicationEnvironment" {
        "gkeEndpoint"
    } else {
        "endpoint"
    };
    let address = target.field(field).filter(|address| !address.is_empty());
    let address = address.ok_or_else(|| target.missing(field))?;
    let server =
        if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    if endpoint::of_cloud(cloud, &server).is_some() {
        return Ok(server);
    }
    Err(Failure::Provisioning {
        what: target.environment.title(),
        message: format!(
            "has {} in status.{field}. Allowed: {}. No entry was written, because kubectl would \
             send your cloud token there. Ask your platform team who changed the status",
            harmless_name(&server),
            endpoint::allowed(cloud)
        ),
    })
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
    let url = endpoint::plain(&server(target, "eks")?);
    let region = url.as_ref().and_then(endpoint::eks_region);
    let region = region.ok_or_else(|| target.missing("endpoint on EKS"))?;
    let name = target.part("cluster").filter(|name| is_cluster_name(name));
    let name = name.ok_or_else(|| target.missing("valid name of the cluster"))?;
    let args = ["eks", "get-token", "--cluster-name", name, "--region", region, "--output", "json"];
    Ok(exec("aws", &args, "install the AWS CLI: https://aws.amazon.com/cli/"))
}

/// The names that EKS allows.
fn is_cluster_name(name: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(fit)
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

#[cfg(test)]
mod tests {
    use super::place;

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
}
