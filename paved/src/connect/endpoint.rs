//! The addresses of clouds' clusters. A status can be written by others in rare cases, and kubectl
//! sends a token for a whole cloud account to the address.

use function_paved_road::catalog::aws::{self, PARTITIONS, Partition};
use url::{Host, Url};

/// The domains of AKS in the public cloud, in Azure Government and in China.
const AKS: [&str; 3] =
    [".azmk8s.io", ".cx.aks.containerservice.azure.us", ".cx.prod.service.azk8s.cn"];

/// The domain of GKE's endpoints by DNS.
const GKE: &str = ".gke.goog";

/// The address if it is the address of a cluster in this cloud: `gke`, `eks` or `aks`. It is an
/// `https` URL with a host, and a port if needed.
pub(super) fn of_cloud(cloud: &str, address: &str) -> Option<Url> {
    let url = plain(address)?;
    let host = url.host_str()?;
    let fits = match cloud {
        "eks" => eks_region(&url).is_some(),
        "aks" => AKS.iter().any(|domain| host.len() > domain.len() && host.ends_with(domain)),
        "gke" => {
            matches!(url.host()?, Host::Ipv4(_) | Host::Ipv6(_))
                || host.len() > GKE.len() && host.ends_with(GKE)
        }
        _ => false,
    };
    fits.then_some(url)
}

/// The allowed addresses of a cloud, for messages.
pub(super) fn allowed(cloud: &str) -> &'static str {
    match cloud {
        "eks" => "https://ID.REGION.eks.amazonaws.com, or the domain of another AWS partition",
        "aks" => "https://NAME.azmk8s.io, or the domain of Azure Government or Azure China",
        _ => "an IP address, or https://NAME.REGION.gke.goog",
    }
}

/// An `https` URL without user, path, query and fragment.
pub(super) fn plain(address: &str) -> Option<Url> {
    let clean = |c: char| c.is_ascii_alphanumeric() || "-.:/[]".contains(c);
    let url = Url::parse(address).ok().filter(|_| address.chars().all(clean))?;
    let bare = url.path() == "/" && url.username().is_empty() && url.password().is_none();
    (url.scheme() == "https" && bare && url.host().is_some()).then_some(url)
}

/// The region of an EKS cluster: `https://ID.gr7.eu-west-1.eks.amazonaws.com`, or with IPv6
/// `https://ID.eks-cluster.eu-west-1.api.aws`.
pub(super) fn eks_region(url: &Url) -> Option<&str> {
    let host = url.host_str()?;
    let domains = PARTITIONS.iter().flat_map(|partition| {
        [(partition, partition.domain, ".eks"), (partition, partition.dual_stack_domain, "")]
    });
    for (partition, domain, service) in domains {
        let before = host.strip_suffix(domain).and_then(|host| host.strip_suffix('.'));
        let Some(before) = before.and_then(|host| host.strip_suffix(service)) else { continue };
        let Some((id, region)) = before.rsplit_once('.') else { continue };
        let is_cluster = !service.is_empty() || id.ends_with(".eks-cluster");
        let of_partition = Partition::for_region(region).name == partition.name;
        if is_cluster && of_partition && aws::region(region).is_ok() {
            return Some(region);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_of_eks_contains_its_region() {
        for (address, region) in [
            ("https://0A1B.gr7.eu-west-1.eks.amazonaws.com", Some("eu-west-1")),
            ("https://0A1B.gr7.us-gov-west-1.eks.amazonaws.com", Some("us-gov-west-1")),
            ("https://0A1B.sk1.cn-north-1.eks.amazonaws.com.cn", Some("cn-north-1")),
            ("https://0A1B.yl4.us-iso-east-1.eks.c2s.ic.gov", Some("us-iso-east-1")),
            ("https://0a1b.eks-cluster.eu-west-1.api.aws", Some("eu-west-1")),
            ("https://203.0.113.7", None),
            ("https://eu.eks.amazonaws.com", None),
            ("https://eks.amazonaws.com", None),
            ("https://0A1B.gr7.cn-north-1.eks.amazonaws.com", None),
            ("https://s3.eu-west-1.api.aws", None),
        ] {
            let url = plain(address);
            assert_eq!(url.as_ref().and_then(eks_region), region, "{address}");
        }
    }

    #[test]
    fn address_outside_of_its_cloud_is_rejected() {
        for (cloud, good) in [
            ("eks", "https://0A1B.gr7.eu-west-1.eks.amazonaws.com:443/"),
            ("aks", "https://x.hcp.westeurope.azmk8s.io:443"),
            ("aks", "https://x.hcp.usgovvirginia.cx.aks.containerservice.azure.us"),
            ("aks", "https://x.hcp.chinaeast2.cx.prod.service.azk8s.cn"),
            ("gke", "https://203.0.113.7"),
            ("gke", "https://[2001:db8::1]"),
            ("gke", "https://gke-0a1b.europe-west1.gke.goog"),
        ] {
            assert!(of_cloud(cloud, good).is_some(), "{good}");
        }
        for bad in [
            "https://evil.example/?.eu-west-1.eks.amazonaws.com",
            "https://evil.example/.eu-west-1.eks.amazonaws.com",
            "https://evil.example#.eu-west-1.eks.amazonaws.com",
            "https://0A1B.gr7.eu-west-1.eks.amazonaws.com@evil.example",
            "https://user@0A1B.gr7.eu-west-1.eks.amazonaws.com",
            "https://0A1B.gr7.eu-west-1.eks.amazonaws.com/path",
            "https://0A1B.gr7.eu-west-1.eks.amazonaws.com?x=1",
            "https://0A1B.gr7.eu-west-1.eks.amazonaws.com.evil.example",
            "https://evileks.amazonaws.com",
            "https://evilazmk8s.io",
            "https://.azmk8s.io",
            "https://x.azmk8s.io.evil.example",
            "https://x.azmk8s.io\\@evil.example",
            "https://evil.gke.goog.example",
            "https://evilgke.goog",
            "https://localhost",
            "http://203.0.113.7",
            "https://203.0.113.7/x",
            "https://203.0.113.7\n.eks.amazonaws.com",
            "evil.example",
            "",
        ] {
            for cloud in ["eks", "aks", "gke", "vcluster"] {
                assert!(of_cloud(cloud, bad).is_none(), "{cloud}: {bad}");
            }
        }
    }
}
