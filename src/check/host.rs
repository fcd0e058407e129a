//! Hosts that the internet reaches. A URL of a user must not lead a program of the platform to a
//! loopback, link-local, private or in-cluster place.

use std::net::Ipv4Addr;

use super::is_public;

/// Last labels of names that only a machine, a cluster or a private network resolves. `default`
/// is the namespace in `kubernetes.default`.
const PRIVATE_DOMAINS: [&str; 13] = [
    "arpa",
    "corp",
    "default",
    "home",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
];

/// Top-level domains in which hosts of two labels are public: these and the countries'. In a pod,
/// the host `web.apps` is the service `web` in the namespace `apps` first, also if the internet has
/// a domain `apps`.
const COMMON_DOMAINS: [&str; 7] = ["com", "edu", "gov", "info", "int", "net", "org"];

/// Labels below which a cluster has its services and pods.
const CLUSTER: [&str; 2] = ["svc", "pod"];

/// Public names of the metadata services of clouds.
const METADATA: [&str; 1] = ["metadata.goog"];

/// Networks without public hosts, besides those of [`is_public`]: protocol assignments,
/// benchmarks, and Azure's service for virtual machines.
const RESERVED: [(Ipv4Addr, u32); 3] = [
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// Checks that a host name or an IPv4 address is public. The error completes the sentence "found
/// URL, …". A name is not resolved, so a public name may still lead to a private address.
pub(super) fn public(host: &str) -> Result<(), &'static str> {
    let host = host.to_ascii_lowercase();
    let labels: Vec<&str> = host.split('.').collect();
    if labels.iter().any(|label| label.is_empty()) {
        return Err("a host name with an empty part");
    }
    let last = labels.last().copied().unwrap_or_default();
    if is_number(last) {
        return match host.parse() {
            Ok(address) if is_public_address(address) => Ok(()),
            Ok(_) => Err("an address that is not public"),
            Err(_) => Err("an address in an unusual notation"),
        };
    }
    if labels.len() == 1 {
        return Err("a host name without a dot, which only a private network resolves");
    }
    let is_top_level = last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_common = last.len() == 2 || last.starts_with("xn--") || COMMON_DOMAINS.contains(&last);
    let is_service = labels.len() == 2 && !is_common;
    let in_cluster = PRIVATE_DOMAINS.contains(&last)
        || is_service
        || labels.iter().skip(2).any(|label| CLUSTER.contains(label))
        || !(is_top_level || last.starts_with("xn--"));
    if in_cluster || METADATA.contains(&host.as_str()) {
        return Err("a host name that only a cluster or a private network resolves");
    }
    Ok(())
}

/// Whether programs read a last label as a part of an address: decimal, octal or hexadecimal.
fn is_number(label: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = label.strip_prefix("0x");
    digits(label) || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_public_address(address: Ipv4Addr) -> bool {
    let within = |(network, prefix): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= *prefix
    };
    is_public(&format!("{address}/32")) && !RESERVED.iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::public;

    #[test]
    fn private_host_is_rejected_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "Kubernetes.Default.Svc",
            "kubernetes.default.svc.",
            "kubernetes.default.svc.cluster.local",
            "kubernetes.default.svc.k8s.acme.io",
            "web-0.web.team.svc.k8s.acme.io",
            "10-0-0-1.default.pod.k8s.acme.io",
            "grafana.monitoring",
            "vault.vault",
            "registry.registry",
            "web.dev",
            "repo.kube-system",
            "repo.team1",
            "printer.local",
            "router.home.arpa",
            "metadata.google.internal",
            "metadata.goog",
            "ip-10-0-0-1.ec2.internal",
            "a..example.org",
            "",
            ".",
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.8.9.10",
            "0.0.0.0",
            "0",
            "2130706433",
            "0x7f000001",
            "0x7F.0.0.1",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "010.0.0.1",
            "127.0.0.0x1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "169.254.170.2",
            "100.64.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
        ] {
            assert!(public(host).is_err(), "{host}");
        }
    }

    #[test]
    fn public_host_is_accepted() {
        for host in [
            "charts.example.org",
            "ghcr.io",
            "GHCR.io",
            "stefanprodan.github.io",
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com",
            "localhost.example.org",
            "svc.acme.io",
            "charts.svc.acme.io",
            "www.xn--bcher-kva.example",
            "helm.dev.example",
            "acme.com",
            "charts.xn--p1ai",
            "8.8.8.8",
            "172.32.0.1",
            "10.example.org",
        ] {
            assert_eq!(public(host), Ok(()), "{host}");
        }
    }
}
