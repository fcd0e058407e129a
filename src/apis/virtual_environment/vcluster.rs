//! A virtual cluster: a release of vcluster in its own namespace.
//!
//! The chart's values are those of 0.20 and later. Its schema rejects others.

use serde_json::{Value, json};

use super::settings::Charts;
use super::{
    Cluster, Expose, KUBECONFIG, Parameters, Size, VirtualEnvironmentSettings, WAIT_TIMEOUT,
    follows,
};
use crate::check::Refused;
use crate::compose::{Composer, NAMESPACE_IS_FREE};
use crate::error::Error;
use crate::models::helm::{Chart, Release};
use crate::observe::{NameRule, label};
use crate::value::{Object, at, text};

/// The chart's repository.
const REPOSITORY: &str = "https://charts.loft.sh";

/// A release's name is also the name of its StatefulSet. Pods have that name in a label, with
/// eleven more characters.
const RELEASE_NAME: NameRule = NameRule::dns(52);

/// Values that depend on the size. The volume does not, because a StatefulSet's volume cannot be
/// changed.
const BY_SIZE: &[&str] =
    &["values.controlPlane.statefulSet.resources", QUOTA, "values.policies.limitRange"];

const QUOTA: &str = "values.policies.resourceQuota";

/// The Service that `expose` configures.
const SERVICE: &str = "values.controlPlane.service";

/// The networks with access to that Service.
const SOURCE_RANGES: &str = "values.controlPlane.service.spec.loadBalancerSourceRanges";

/// Networks that a virtual cluster's workloads must not reach: private networks, and the chart's
/// other exceptions. The metadata services of AWS, Google Cloud and Azure are among them, because
/// they return the node's identity. 169.254.20.10, the DNS cache of a node, stays reachable.
const NO_EGRESS: [&str; 8] = [
    "100.64.0.0/10",
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.169.254/32",
    "169.254.170.0/24",
    "168.63.129.16/32",
];

impl Parameters {
    pub(super) fn vcluster(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Cluster, Error> {
        let namespace =
            host_namespace(cx).map_err(|refused| Error::spec("metadata.name", refused))?;
        let name = cx.external_name("vcluster").unwrap_or_else(|| cx.xr.cloud_name(RELEASE_NAME));
        let in_use = cx.exists("vcluster");
        let labels = json!({"pod-security.kubernetes.io/enforce": "baseline"});
        let free = cx.own_namespace("host-namespace", &namespace, in_use, labels)?;
        let url = format!("https://{name}.{namespace}.svc");
        let version = Charts::own_version(&settings.charts.vcluster);
        let release = Release {
            chart: Some(Chart {
                repository: Some(REPOSITORY.to_owned()),
                name: Some("vcluster".to_owned()),
                version: Some(version.clone()),
            }),
            namespace: Some(namespace.clone()),
            skip_create_namespace: Some(false),
            values: Some(self.values(&name, &namespace, &version, settings, cx)),
            wait: Some(true),
            wait_timeout: Some(WAIT_TIMEOUT.to_owned()),
        };
        let updatable = self.updatable(settings, cx);
        let release = cx
            .managed("vcluster", release)
            .external_name(&name)
            .updatable(&updatable)
            .resolved_from("size", self.size.name(), BY_SIZE)
            .spec_field("rollbackLimit", 3)
            .spec_field("connectionDetails", json!([kubeconfig_of(&name, &namespace)]))
            .publishes()
            .needs(free, NAMESPACE_IS_FREE)
            .add()?;
        cx.usage("host-namespace", "vcluster")?;
        let exposed = self.exposed(&name, &namespace, cx)?;
        let kubeconfig = release.connection(KUBECONFIG);
        let known = kubeconfig.is_some();
        Ok(Cluster {
            slot: "vcluster",
            kubeconfig,
            identity: None,
            endpoint: known.then(|| exposed.unwrap_or_else(|| format!("{url}:443"))),
            url: Some(url).filter(|_| known),
            takes_all: true,
            beneath: &[],
            storage_class: None,
        })
    }

    /// The URL at a load balancer, if the cluster has one. Its Service belongs to the chart, so it
    /// is only observed.
    fn exposed(
        &self,
        name: &str,
        namespace: &str,
        cx: &mut Composer<'_>,
    ) -> Result<Option<String>, Error> {
        const SLOT: &str = "vcluster-service";
        if self.expose == Expose::Cluster {
            cx.remove(SLOT)?;
            return Ok(None);
        }
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}});
        let installed = cx.is_ready("vcluster");
        cx.object(SLOT, service)
            .observe()
            .needs(installed, "the virtual cluster to be installed")
            .add()?;
        let address = cx.seen(SLOT).and_then(address);
        if address.is_none() {
            // Before the release has changed it, the observed Service has no load balancer, and is
            // ready without one.
            cx.mark_unready(SLOT, "has no load balancer with an address yet");
        }
        Ok(address.map(|address| format!("https://{address}")))
    }

    /// The type of the cluster's Service.
    fn service_type(&self) -> &'static str {
        match self.expose {
            Expose::Cluster => "ClusterIP",
            Expose::LoadBalancer => "LoadBalancer",
        }
    }

    /// The values that change in an existing cluster. A change of `expose` changes the Service and
    /// its quota, and a change of Settings the source ranges. A load balancer that an earlier
    /// release left open to all networks is preserved, because its users would lose access.
    fn updatable(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &Composer<'_>,
    ) -> Vec<&'static str> {
        if running_service(cx, &["type"]).and_then(Value::as_str) != Some(self.service_type()) {
            return [SERVICE].into_iter().chain(cx.is_limited_since(2).then_some(QUOTA)).collect();
        }
        let is_restricted =
            running_service(cx, &["loadBalancerSourceRanges"]).is_some() || cx.is_limited_since(2);
        if self.expose == Expose::LoadBalancer && is_restricted {
            return follows(&settings.allowed_cidrs, &[SOURCE_RANGES]).to_vec();
        }
        Vec::new()
    }

    /// The cluster's Service. A load balancer is limited to the networks of Settings, if Settings
    /// have any.
    fn service(&self, settings: &VirtualEnvironmentSettings) -> Value {
        let mut service = json!({"spec": {"type": self.service_type()}});
        if self.expose == Expose::LoadBalancer {
            if !settings.allowed_cidrs.is_empty() {
                service["spec"]["loadBalancerSourceRanges"] = json!(settings.allowed_cidrs);
            }
            if !settings.load_balancer_annotations.is_empty() {
                service["annotations"] = json!(settings.load_balancer_annotations);
            }
        }
        service
    }

    fn values(
        &self,
        name: &str,
        namespace: &str,
        version: &str,
        settings: &VirtualEnvironmentSettings,
        cx: &Composer<'_>,
    ) -> Value {
        let address = format!("{name}.{namespace}.svc");
        let size = Allowance::for_size(self.size);
        let exposed = self.expose == Expose::LoadBalancer;
        // An environment of an earlier release may have load balancers inside, so its quota keeps
        // room for them.
        let services = match (cx.is_limited_since(2), exposed) {
            (false, _) => Services { load_balancers: 4, node_ports: 20 },
            (true, false) => Services::default(),
            (true, true) => Services { load_balancers: 1, node_ports: 2 },
        };
        json!({
            "controlPlane": {
                "statefulSet": {
                    "image": {"repository": "loft-sh/vcluster-oss"},
                    "resources": size.control_plane(),
                    "persistence": {"volumeClaim": {"size": "10Gi", "retentionPolicy": "Delete"}},
                },
                "proxy": {"extraSANs": [address, format!("{address}.cluster.local")]},
                "service": self.service(settings),
            },
            "exportKubeConfig": {"server": format!("https://{address}:443")},
            "telemetry": {"enabled": false},
            "policies": {
                "podSecurityStandard": "baseline",
                "networkPolicy": network_policy(version),
                "resourceQuota": {"enabled": true, "quota": size.quota(&services)},
                "limitRange": {
                    "enabled": true,
                    "default": {"cpu": "4", "memory": "4Gi", "ephemeral-storage": "4Gi"},
                    "defaultRequest": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "256Mi"},
                },
            },
        })
    }
}

/// An observed field of the cluster's Service.
fn running_service<'c>(cx: &'c Composer<'_>, field: &[&str]) -> Option<&'c Value> {
    cx.running("vcluster", &[&["values", "controlPlane", "service", "spec"], field].concat())
}

/// Whether the existing cluster has a load balancer.
pub(super) fn is_exposed(cx: &Composer<'_>) -> bool {
    running_service(cx, &["type"]).and_then(Value::as_str) == Some("LoadBalancer")
}

/// The chart's network policy. The name of its exceptions depends on the chart's version, because
/// the chart's schema rejects unknown names.
fn network_policy(version: &str) -> Value {
    if Charts::minor(version).is_some_and(|version| version < (0, 31)) {
        return json!({"enabled": true, "outgoingConnections": {"ipBlock": {"except": NO_EGRESS}}});
    }
    json!({"enabled": true, "workload": {"publicEgress": {"except": NO_EGRESS}}})
}

/// Numbers of an environment's Services that can be reached from outside.
#[derive(Default)]
struct Services {
    load_balancers: u32,
    /// A load balancer uses one for each of its ports.
    node_ports: u32,
}

/// The quota of a virtual cluster of a size, in words.
pub(super) fn quota(size: Size) -> String {
    let Allowance { cpu, memory, pods, .. } = Allowance::for_size(size);
    format!("vcluster: {cpu} CPUs, {memory} GiB, {pods} pods")
}

/// The resources that an environment of a size may use.
struct Allowance {
    /// For the cluster's own API server and store: requests for CPU and memory, limits for CPU and
    /// memory.
    api: [&'static str; 4],
    pods: u32,
    cpu: u32,
    /// GiB.
    memory: u32,
    /// GiB of volumes.
    storage: u32,
}

impl Allowance {
    fn for_size(size: Size) -> Self {
        match size {
            Size::Small => Self {
                api: ["200m", "512Mi", "2", "2Gi"],
                pods: 40,
                cpu: 4,
                memory: 8,
                storage: 50,
            },
            Size::Medium => Self {
                api: ["500m", "1Gi", "4", "4Gi"],
                pods: 100,
                cpu: 8,
                memory: 16,
                storage: 100,
            },
            Size::Large => {
                Self { api: ["1", "2Gi", "8", "8Gi"], pods: 200, cpu: 16, memory: 32, storage: 250 }
            }
        }
    }

    fn control_plane(&self) -> Value {
        let [cpu, memory, most_cpu, most_memory] = self.api;
        json!({
            "requests": {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Gi"},
            "limits": {"cpu": most_cpu, "memory": most_memory, "ephemeral-storage": "10Gi"},
        })
    }

    /// The quota of the namespace, including the cluster's own pods. Limits have room for the
    /// default limit of every pod, and for some second containers. The number of pods limits an
    /// environment, and not the default limits of its pods.
    fn quota(&self, services: &Services) -> Value {
        let gi = |count: u32| format!("{count}Gi");
        let limits = self.pods * 5;
        json!({
            "requests.cpu": self.cpu.to_string(),
            "requests.memory": gi(self.memory),
            "requests.storage": gi(self.storage),
            "requests.ephemeral-storage": gi(self.pods),
            "limits.cpu": limits.to_string(),
            "limits.memory": gi(limits),
            "limits.ephemeral-storage": gi(limits),
            "services.nodeports": services.node_ports.to_string(),
            "services.loadbalancers": services.load_balancers.to_string(),
            "count/endpoints": (self.pods * 2).to_string(),
            "count/pods": self.pods.to_string(),
            "count/services": self.pods.to_string(),
            "count/secrets": (self.pods * 5).to_string(),
            "count/configmaps": (self.pods * 5).to_string(),
            "count/persistentvolumeclaims": "20",
        })
    }
}

/// The namespace of a virtual cluster, without other content. It is created and deleted with the
/// environment, so it must not be a namespace of Kubernetes itself.
pub(super) fn host_namespace(cx: &Composer<'_>) -> Result<String, Refused> {
    if let Some(running) = cx.namespace_of("vcluster").or_else(|| cx.namespace_of("host-namespace"))
    {
        return Ok(running);
    }
    let xr = &cx.xr;
    // Users choose the names of composites, and by `spec.resourceRef` also of a claim's composite.
    // Without a part of the uid, they could name another team's namespace.
    let name = match &xr.namespace {
        Some(namespace) => label(&[namespace, &xr.name, &xr.uid5()]),
        None => label(&[&xr.name, &xr.uid5()]),
    };
    if name.starts_with("kube-") {
        let allowed = format!("another name, because Kubernetes reserves the namespace {name}");
        return Err(Refused::new(&xr.name, allowed));
    }
    Ok(name)
}

/// The chart writes the kubeconfig to a Secret that does not belong to the release.
fn kubeconfig_of(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "name": format!("vc-{name}"),
        "namespace": namespace,
        "fieldPath": "data.config",
        "toConnectionSecretKey": KUBECONFIG,
        "skipPartOfReleaseCheck": true,
    })
}

/// The address of a Service's load balancer, in the notation of a URL.
fn address(service: &Object) -> Option<String> {
    text(service, &["spec", "type"]).filter(|kind| *kind == "LoadBalancer")?;
    let ingress = at(service, &["status", "loadBalancer", "ingress"])?.get(0)?;
    let found = ingress["hostname"].as_str().or_else(|| ingress["ip"].as_str())?;
    let is_v6 = found.parse::<std::net::Ipv6Addr>().is_ok();
    Some(if is_v6 { format!("[{found}]") } else { found.to_owned() })
        .filter(|address| !address.is_empty())
}
