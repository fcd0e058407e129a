//! The parts of resources that have a price by the hour.
//!
//! A kind that is neither counted nor listed as free becomes a part that no list has a price for:
//! an environment with an unknown kind has no estimate. The same holds if the type or the size of a
//! resource cannot be read. Names of parts are stored, as parts of fingerprints and in Settings: do
//! not rename them.

use std::borrow::Cow;

use crossplane::api_version;
use serde_json::Value;

use crate::catalog::gcp;
use crate::models::CHOICE_PREFIX;
use crate::value::{Object, at, text};

/// A part of an environment: pieces of one type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part<'r> {
    /// The type: the cloud's name of a machine, otherwise its service and its name.
    pub name: Cow<'r, str>,
    /// The region. A workload in the team's own cluster has neither a region nor a list price.
    pub region: Option<&'r str>,
    /// The number of pieces; for a disk, of GiB.
    pub count: u128,
    /// Whether a stop of the environment turns the part off.
    pub stops: bool,
}

/// Zones of a regional cluster on Google Cloud if Google chooses the zones.
const ZONES: u128 = 3;

/// Disk of an EKS node in GiB, unless its node group says another size. The images of Amazon Linux
/// 2023 have a disk of the type gp3.
const EKS_NODE_GIB: u128 = 20;

/// Groups of kinds that are free, or cost by use: storage, requests and traffic.
const FREE_GROUPS: [&str; 8] = [
    "apiextensions.crossplane.io",
    "argoproj.io",
    "cloudfront.aws.upbound.io",
    "cloudplatform.gcp.upbound.io",
    "iam.aws.upbound.io",
    "protection.crossplane.io",
    "s3.aws.upbound.io",
    "storage.gcp.upbound.io",
];

/// Kinds of other groups that are free.
const FREE_KINDS: [(&str, &[&str]); 9] = [
    ("", &["Namespace", "Secret"]),
    (
        "ec2.aws.upbound.io",
        &["InstanceState", "SecurityGroup", "SecurityGroupEgressRule", "SecurityGroupIngressRule"],
    ),
    ("eks.aws.upbound.io", &["Addon", "ClusterAuth"]),
    ("helm.crossplane.io", &["ProviderConfig"]),
    ("kubernetes.crossplane.io", &["ProviderConfig"]),
    ("networking.k8s.io", &["Ingress"]),
    ("postgresql.sql.crossplane.io", &["Database", "Grant"]),
    ("sql.gcp.upbound.io", &["Database", "User"]),
    ("storage.k8s.io", &["StorageClass"]),
];

/// The parts of all resources of an environment.
pub(super) fn of<'r>(resources: &[&'r Object]) -> Vec<Part<'r>> {
    let resources: Vec<Resource<'r>> = resources.iter().copied().map(Resource::new).collect();
    let gke = resources.iter().find(|resource| {
        resource.kind == "Cluster" && resource.group == "container.gcp.upbound.io"
    });
    let parts = resources
        .iter()
        .flat_map(|resource| resource.parts(gke).unwrap_or_else(|| vec![resource.unknown()]));
    parts.collect()
}

/// A resource, or a Kubernetes object in one.
struct Resource<'r> {
    /// The group without the `m` of the namespaced kinds.
    group: Cow<'r, str>,
    kind: &'r str,
    object: &'r Object,
    /// The whole resource: `object` itself, or the resource that contains it.
    whole: &'r Object,
}

impl<'r> Resource<'r> {
    fn new(object: &'r Object) -> Self {
        let version = text(object, &["apiVersion"]).unwrap_or_default();
        let group = match api_version::group(version) {
            group if group.contains(".m.") => group.replace(".m.", ".").into(),
            group => group.into(),
        };
        let kind = text(object, &["kind"]).unwrap_or("unknown kind");
        Self { group, kind, object, whole: object }
    }

    /// The size that the user chose, from the annotation of the resource.
    fn size(&self) -> Option<&'r str> {
        text(self.whole, &["metadata", "annotations", &format!("{CHOICE_PREFIX}size")])
    }

    /// `None` if the resource costs and its type or its number cannot be read, or if its kind is
    /// unknown.
    fn parts(&self, gke: Option<&Resource<'r>>) -> Option<Vec<Part<'r>>> {
        match (&*self.group, self.kind) {
            ("ec2.aws.upbound.io", "Instance") => self.machine(),
            ("eks.aws.upbound.io", "Cluster") => self.eks_cluster(),
            ("eks.aws.upbound.io", "NodeGroup") => self.eks_nodes(),
            ("rds.aws.upbound.io", "Instance") => self.rds_server(),
            ("container.gcp.upbound.io", "Cluster") => {
                Some(vec![fixed("gke-cluster", Some(region_of(self.text(&["location"])?)), 1)])
            }
            ("container.gcp.upbound.io", "NodePool") => self.gke_nodes(gke?),
            ("sql.gcp.upbound.io", "DatabaseInstance") => self.cloud_sql_server(),
            ("containerservice.azure.upbound.io", "KubernetesCluster") => self.aks_cluster(),
            ("postgresql.sql.crossplane.io", "Role") => {
                Some(vec![fixed(format!("shared-database-{}", self.size()?), None, 1)])
            }
            ("helm.crossplane.io", "Release") => Some(self.release()),
            ("kubernetes.crossplane.io", "Object") => {
                let manifest = self.field(&["manifest"])?.as_object()?;
                let inner = Resource { whole: self.whole, ..Resource::new(manifest) };
                Some(inner.parts(None).unwrap_or_else(|| vec![inner.unknown()]))
            }
            ("apps", "Deployment") => self.deployment(),
            ("", "Service") => {
                let is_exposed = text(self.object, &["spec", "type"]) == Some("LoadBalancer");
                Some(load_balancer(is_exposed))
            }
            ("operator.knative.dev", "KnativeServing") => {
                let kourier = at(self.object, &["spec", "ingress", "kourier"])?;
                Some(load_balancer(kourier["service-type"] != "ClusterIP"))
            }
            (group, kind) => {
                let is_free = FREE_GROUPS.contains(&group)
                    || FREE_KINDS
                        .iter()
                        .any(|(free, kinds)| *free == group && kinds.contains(&kind));
                is_free.then(Vec::new)
            }
        }
    }

    /// A part that no list has a price for.
    fn unknown(&self) -> Part<'r> {
        fixed(format!("{}.{}", self.kind, self.group).trim_end_matches('.').to_owned(), None, 1)
    }

    /// A machine of EC2. Its disk stays when it stops, and its public address does not.
    fn machine(&self) -> Option<Vec<Part<'r>>> {
        let region = Some(self.text(&["region"])?);
        let disk = self.text(&["rootBlockDevice", "volumeType"])?;
        let gib = self.count(&["rootBlockDevice", "volumeSize"])?;
        Some(vec![
            stopping(self.text(&["instanceType"])?, region, 1),
            stopping("public-ipv4-address", region, 1),
            fixed(format!("ec2-volume-{disk}"), region, gib),
        ])
    }

    /// The fee of a cluster. A cluster that may be in extended support has another fee.
    fn eks_cluster(&self) -> Option<Vec<Part<'r>>> {
        let is_standard = self.text(&["upgradePolicy", "supportType"]) == Some("STANDARD");
        let name = if is_standard { "eks-cluster" } else { "eks-cluster-extended-support" };
        Some(vec![fixed(name, Some(self.text(&["region"])?), 1)])
    }

    fn eks_nodes(&self) -> Option<Vec<Part<'r>>> {
        let region = Some(self.text(&["region"])?);
        let [machine] = self.field(&["instanceTypes"])?.as_array()?.as_slice() else {
            return None;
        };
        let nodes = self.count(&["scalingConfig", "desiredSize"])?;
        let gib = match self.field(&["diskSize"]) {
            Some(size) => whole(size)?,
            None => EKS_NODE_GIB,
        };
        Some(vec![
            stopping(machine.as_str()?, region, nodes),
            stopping("ec2-volume-gp3", region, nodes.checked_mul(gib)?),
        ])
    }

    /// A stopped environment keeps its RDS server.
    fn rds_server(&self) -> Option<Vec<Part<'r>>> {
        let region = Some(self.text(&["region"])?);
        let disk = self.text(&["storageType"])?;
        Some(vec![
            fixed(self.text(&["instanceClass"])?, region, 1),
            fixed(format!("rds-volume-{disk}"), region, self.count(&["allocatedStorage"])?),
        ])
    }

    /// The nodes of a pool are as many in each zone of their cluster. Nodes of a private cluster
    /// have no public address.
    fn gke_nodes(&self, cluster: &Resource<'_>) -> Option<Vec<Part<'r>>> {
        let location = self.text(&["location"])?;
        let region = Some(region_of(location));
        let listed = cluster.field(&["nodeLocations"]).and_then(Value::as_array);
        let listed = listed.into_iter().flatten();
        let others = u128::try_from(listed.filter(|zone| *zone != location).count()).ok()?;
        // A zonal cluster lists only its further zones.
        let zones = match (gcp::region(location).is_ok(), others) {
            (true, 0) => ZONES,
            (true, zones) => zones,
            (false, others) => 1 + others,
        };
        let nodes = self.count(&["nodeCount"])?.checked_mul(zones)?;
        let gib = self.count(&["nodeConfig", "diskSizeGb"])?.checked_mul(nodes)?;
        let disk = self.text(&["nodeConfig", "diskType"]).unwrap_or("pd-balanced");
        let mut parts = vec![
            stopping(self.text(&["nodeConfig", "machineType"])?, region, nodes),
            stopping(format!("gce-disk-{disk}"), region, gib),
        ];
        let private = cluster.field(&["privateClusterConfig", "enablePrivateNodes"]);
        if private != Some(&Value::Bool(true)) {
            parts.push(stopping("public-ipv4-address", region, nodes));
        }
        Some(parts)
    }

    /// A server of Cloud SQL. Its disk stays when it stops. A regional server has a second machine
    /// and a second disk.
    fn cloud_sql_server(&self) -> Option<Vec<Part<'r>>> {
        let region = Some(self.text(&["region"])?);
        let disk = self.text(&["settings", "diskType"]).unwrap_or("PD_SSD");
        let disk = disk.to_ascii_lowercase().replace('_', "-");
        let is_regional = self.text(&["settings", "availabilityType"]) == Some("REGIONAL");
        let copies = if is_regional { 2 } else { 1 };
        let gib = self.count(&["settings", "diskSize"])?.checked_mul(copies)?;
        Some(vec![
            stopping(self.text(&["settings", "tier"])?, region, copies),
            fixed(format!("cloud-sql-disk-{disk}"), region, gib),
        ])
    }

    /// A cluster of the free tier, which cannot be stopped. AKS makes a load balancer for the
    /// nodes' way out.
    fn aks_cluster(&self) -> Option<Vec<Part<'r>>> {
        let region = Some(self.text(&["location"])?);
        let nodes = self.count(&["defaultNodePool", "nodeCount"])?;
        Some(vec![
            fixed(self.text(&["defaultNodePool", "vmSize"])?, region, nodes),
            fixed("aks-node-disk", region, nodes),
            fixed("load-balancer", region, 1),
        ])
    }

    /// Only the release of a virtual cluster has a size. Others run on nodes that are counted.
    fn release(&self) -> Vec<Part<'r>> {
        let Some(size) = self.size() else { return Vec::new() };
        let service = ["values", "controlPlane", "service", "spec", "type"];
        let mut parts = load_balancer(self.text(&service) == Some("LoadBalancer"));
        parts.push(fixed(format!("vcluster-{size}"), None, 1));
        parts
    }

    /// Pods in the team's own cluster: a stock pool, with the specification of its pods as the
    /// type, or a backend.
    fn deployment(&self) -> Option<Vec<Part<'r>>> {
        let pods = whole(at(self.object, &["spec", "replicas"])?)?;
        let label = |key| text(self.object, &["metadata", "labels", key]);
        let name = match label("app.kubernetes.io/name")? {
            "stock-pool" => Cow::from(label("app.kubernetes.io/component")?),
            "backend" => format!("backend-{}", self.size()?).into(),
            _ => return None,
        };
        Some(vec![stopping(name, None, pods)])
    }

    fn field(&self, path: &[&str]) -> Option<&'r Value> {
        let for_provider = at(self.object, &["spec", "forProvider"])?.as_object()?;
        at(for_provider, path).filter(|value| !value.is_null())
    }

    fn text(&self, path: &[&str]) -> Option<&'r str> {
        self.field(path)?.as_str().filter(|text| !text.is_empty())
    }

    fn count(&self, path: &[&str]) -> Option<u128> {
        whole(self.field(path)?)
    }
}

/// A part that a stop turns off.
fn stopping<'r>(name: impl Into<Cow<'r, str>>, region: Option<&'r str>, count: u128) -> Part<'r> {
    Part { name: name.into(), region, count, stops: true }
}

/// A part that costs as long as the environment exists.
fn fixed<'r>(name: impl Into<Cow<'r, str>>, region: Option<&'r str>, count: u128) -> Part<'r> {
    Part { stops: false, ..stopping(name, region, count) }
}

/// A load balancer that the software in a cluster makes.
fn load_balancer<'r>(exists: bool) -> Vec<Part<'r>> {
    if exists { vec![fixed("load-balancer", None, 1)] } else { Vec::new() }
}

/// The region of a region or a zone of Google Cloud.
fn region_of(location: &str) -> &str {
    match location.rsplit_once('-') {
        Some((region, _)) if gcp::region(region).is_ok() => region,
        _ => location,
    }
}

/// A whole number that is not negative.
fn whole(value: &Value) -> Option<u128> {
    value.as_u64().map(u128::from)
}
