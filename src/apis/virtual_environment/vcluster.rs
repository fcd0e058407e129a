//! A virtual cluster: a release of vcluster in a namespace of its own.
//!
//! The chart's values are those of 0.20 and later, whose schema knows no others.

use serde_json::{Value, json};

use super::{Cluster, Expose, KUBECONFIG, Parameters, Size, VirtualEnvironmentSettings};
use crate::check::Refused;
use crate::compose::{Composition, NAMESPACE_IS_FREE, NameRule, label};
use crate::error::Error;
use crate::models::helm::{Chart, Release};
use crate::value::{Object, at, text};

/// Where the chart is.
const REPOSITORY: &str = "https://charts.loft.sh";

/// A release's name is that of its StatefulSet too, whose pods carry it in a label with eleven characters more.
const RELEASE_NAME: NameRule = NameRule::dns(52);

/// Values that follow from the size. The volume does not: that of a StatefulSet cannot be changed.
const BY_SIZE: &[&str] = &[
    "values.controlPlane.statefulSet.resources",
    "values.policies.resourceQuota",
    "values.policies.limitRange",
];

impl Parameters {
    pub(super) fn vcluster(
        &self,
        settings: &VirtualEnvironmentSettings,
        cx: &mut Composition<'_>,
    ) -> Result<Cluster, Error> {
        let namespace = host_namespace(cx).map_err(|refused| Error::spec("metadata.name", refused))?;
        let name = cx.external_name("vcluster").unwrap_or_else(|| cx.xr.cloud_name(RELEASE_NAME));
        let in_use = cx.exists("vcluster");
        let labels = json!({"pod-security.kubernetes.io/enforce": "baseline"});
        let free = cx.own_namespace("host-namespace", &namespace, in_use, labels)?;
        let url = format!("https://{name}.{namespace}.svc");
        let release = Release {
            chart: Some(Chart {
                repository: Some(REPOSITORY.to_owned()),
                name: Some("vcluster".to_owned()),
                version: Some(settings.charts.vcluster.clone()),
            }),
            namespace: Some(namespace.clone()),
            skip_create_namespace: Some(false),
            values: Some(self.values(&name, &namespace)),
            wait: Some(true),
            wait_timeout: Some("10m0s".to_owned()),
        };
        let release = cx
            .managed("vcluster", release)
            .external_name(&name)
            .live(&["values.controlPlane.service.spec.type"])
            .choice("size", self.size.name(), BY_SIZE)
            .beside("rollbackLimit", 3)
            .beside("connectionDetails", json!([kubeconfig_of(&name, &namespace)]))
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
        })
    }

    /// The URL at a load balancer, where the cluster has one. Its Service is the chart's: it is only looked at.
    fn exposed(
        &self,
        name: &str,
        namespace: &str,
        cx: &mut Composition<'_>,
    ) -> Result<Option<String>, Error> {
        const SLOT: &str = "vcluster-service";
        if self.expose == Expose::Cluster {
            cx.retire(SLOT)?;
            return Ok(None);
        }
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}});
        let installed = cx.is_ready("vcluster");
        cx.object(SLOT, service).observe().needs(installed, "the virtual cluster to be installed").add()?;
        let address = cx.seen(SLOT).and_then(address);
        if address.is_none() {
            // Seen before the release changed it, the Service is still one without a load balancer, and ready as such.
            cx.hold(SLOT, "has no load balancer with an address yet");
        }
        Ok(address.map(|address| format!("https://{address}")))
    }

    fn values(&self, name: &str, namespace: &str) -> Value {
        let address = format!("{name}.{namespace}.svc");
        let service = match self.expose {
            Expose::Cluster => "ClusterIP",
            Expose::LoadBalancer => "LoadBalancer",
        };
        let size = Allowance::of(self.size);
        json!({
            "controlPlane": {
                "statefulSet": {
                    "image": {"repository": "loft-sh/vcluster-oss"},
                    "resources": size.control_plane(),
                    "persistence": {"volumeClaim": {"size": "10Gi", "retentionPolicy": "Delete"}},
                },
                "proxy": {"extraSANs": [address, format!("{address}.cluster.local")]},
                "service": {"spec": {"type": service}},
            },
            "exportKubeConfig": {"server": format!("https://{address}:443")},
            "policies": {
                "podSecurityStandard": "baseline",
                "networkPolicy": {"enabled": true},
                "resourceQuota": {"enabled": true, "quota": size.quota()},
                "limitRange": {
                    "enabled": true,
                    "default": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "4Gi"},
                    "defaultRequest": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "256Mi"},
                },
            },
        })
    }
}

/// What an environment of a size may use.
struct Allowance {
    /// Of the cluster's own API server and store: cpu and memory that are asked for, memory that is never exceeded.
    api: [&'static str; 3],
    pods: u32,
    cpu: u32,
    /// GiB.
    memory: u32,
    /// GiB of volumes.
    storage: u32,
}

impl Allowance {
    fn of(size: Size) -> Self {
        match size {
            Size::Small => Self { api: ["200m", "512Mi", "2Gi"], pods: 40, cpu: 4, memory: 8, storage: 50 },
            Size::Medium => Self { api: ["500m", "1Gi", "4Gi"], pods: 100, cpu: 8, memory: 16, storage: 100 },
            Size::Large => Self { api: ["1", "2Gi", "8Gi"], pods: 200, cpu: 16, memory: 32, storage: 250 },
        }
    }

    fn control_plane(&self) -> Value {
        let [cpu, memory, most] = self.api;
        json!({
            "requests": {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Gi"},
            "limits": {"memory": most, "ephemeral-storage": "10Gi"},
        })
    }

    /// The quota of the namespace, the cluster's own pods included. A Service behind a load balancer takes node ports, of which
    /// the chart allows none by default.
    fn quota(&self) -> Value {
        let gi = |count: u32| format!("{count}Gi");
        json!({
            "requests.cpu": self.cpu.to_string(),
            "requests.memory": gi(self.memory),
            "requests.storage": gi(self.storage),
            "requests.ephemeral-storage": gi(self.pods),
            "limits.cpu": (self.pods + self.cpu).to_string(),
            "limits.memory": gi(self.memory * 4),
            "limits.ephemeral-storage": gi(self.pods * 5),
            "services.nodeports": "20",
            "services.loadbalancers": "4",
            "count/endpoints": (self.pods * 2).to_string(),
            "count/pods": self.pods.to_string(),
            "count/services": self.pods.to_string(),
            "count/secrets": (self.pods * 5).to_string(),
            "count/configmaps": (self.pods * 5).to_string(),
            "count/persistentvolumeclaims": "20",
        })
    }
}

/// The namespace that holds a virtual cluster, and nothing else. It is made, and deleted, with the environment: none that belongs
/// to the cluster itself.
pub(super) fn host_namespace(cx: &Composition<'_>) -> Result<String, Refused> {
    if let Some(running) = cx.namespace_of("vcluster").or_else(|| cx.namespace_of("host-namespace")) {
        return Ok(running);
    }
    let xr = &cx.xr;
    // Users choose the names of composites, also of a claim's, by its `spec.resourceRef`: without a
    // part of the uid they could name another team's namespace.
    let name = match &xr.namespace {
        Some(namespace) => label(&[namespace, &xr.name, &xr.uid5()]),
        None => label(&[&xr.name, &xr.uid5()]),
    };
    if name.starts_with("kube-") {
        let allowed = format!(
            "a name whose namespace, {name}, does not begin with kube-: Kubernetes keeps these for itself"
        );
        return Err(Refused::new(&xr.name, allowed));
    }
    Ok(name)
}

/// The chart leaves the kubeconfig in a Secret that is no part of the release.
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

/// The address of a Service's load balancer, as a URL has it.
fn address(service: &Object) -> Option<String> {
    text(service, &["spec", "type"]).filter(|kind| *kind == "LoadBalancer")?;
    let ingress = at(service, &["status", "loadBalancer", "ingress"])?.get(0)?;
    let found = ingress["hostname"].as_str().or_else(|| ingress["ip"].as_str())?;
    let is_v6 = found.parse::<std::net::Ipv6Addr>().is_ok();
    Some(if is_v6 { format!("[{found}]") } else { found.to_owned() }).filter(|address| !address.is_empty())
}
