//! The sizes that users can choose.

use super::{ClusterType, Size, VirtualEnvironmentSettings, aks, eks, gke, vcluster};
use crate::offers::Offered;

impl VirtualEnvironmentSettings {
    /// A size with the quota of a virtual cluster, and the nodes of managed clusters.
    pub(super) fn offered_size(&self, size: Size) -> Offered {
        let nodes = self.types().filter_map(|cluster_type| {
            let machine = match cluster_type {
                ClusterType::Vcluster => return None,
                ClusterType::Gke => self.machine_types.gke.for_size(size, gke::MACHINES),
                ClusterType::Eks => self.machine_types.eks.for_size(size, eks::MACHINES),
                ClusterType::Aks => self.machine_types.aks.for_size(size, aks::MACHINES),
            };
            Some(format!("; {}: {machine}", cluster_type.name()))
        });
        let quota = vcluster::quota(size);
        Offered::described(size.name(), format!("{quota}{}", nodes.collect::<String>()))
    }
}
