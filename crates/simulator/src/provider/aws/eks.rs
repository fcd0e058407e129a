//! Kubernetes clusters of AWS.

use serde_json::{Value, json};

use super::super::kind_behaviour::{Id, KindBehaviour, details, one};
use super::super::kubeconfig;
use super::super::rules::{Rules, needed};
use super::{KIND, RULES, arn};

pub(super) fn behaviour(kind: &str) -> KindBehaviour {
    match kind {
        "Cluster" => CLUSTER,
        "NodeGroup" => KindBehaviour {
            rounds: 2,
            references: const { &[one("clusterName", "Cluster"), one("nodeRoleArn", "Role")] },
            at_provider: |f| json!({"arn": arn(f, "eks", "nodegroup"), "status": "ACTIVE"}),
            rules: Rules {
                state: Some("status"),
                slow: &["scalingConfig"],
                contradiction: Some(more_than_desired),
                ..RULES
            },
            ..KIND
        },
        "Addon" => KindBehaviour {
            rounds: 2,
            // The real ID has two names: `<cluster>:<add-on>`.
            id: Id::Assigned("addon-"),
            references: const { &[one("clusterName", "Cluster"), one("serviceAccountRoleArn", "Role")] },
            at_provider: |f| json!({"arn": arn(f, "eks", "addon")}),
            late_initialize: |_| json!({"addonVersion": "v1.53.0-eksbuild.1"}),
            rules: Rules {
                part_of: Some("clusterName"),
                immutable: &["region", "clusterName", "addonName"],
                ..RULES
            },
            ..KIND
        },
        "ClusterAuth" => KindBehaviour {
            references: const { &[one("clusterName", "Cluster")] },
            connection: |f| {
                let endpoint = format!("https://{}.eks.amazonaws.com", f.hex(32));
                let kubeconfig = kubeconfig(&endpoint);
                details([("endpoint", &endpoint), ("kubeconfig", &kubeconfig), ("clusterCA", "ca")])
            },
            rules: Rules { part_of: Some("clusterName"), immutable: &[], ..RULES },
            ..KIND
        },
        _ => KIND,
    }
}

/// EKS refuses more nodes at least than are desired.
fn more_than_desired(parameters: &Value) -> Option<String> {
    let size = |field: &str| parameters["scalingConfig"][field].as_i64();
    let (least, desired) = (size("minSize")?, size("desiredSize")?);
    (least > desired).then(|| {
        format!(
            "operation error EKS: UpdateNodegroupConfig, https response error StatusCode: 400, \
             InvalidParameterException: Minimum capacity {least} can't be greater than desired \
             size {desired}"
        )
    })
}

const CLUSTER: KindBehaviour = KindBehaviour {
    rounds: 4,
    references: &[one("roleArn", "Role")],
    at_provider: |f| {
        let region = f.region("us-east-1");
        json!({
            "arn": arn(f, "eks", "cluster"), "status": "ACTIVE",
            "version": f.param_or_late("version"),
            "endpoint": format!("https://{}.gr7.{region}.eks.amazonaws.com", f.hex(32)),
            "certificateAuthority": [{"data": "Y2E="}],
        })
    },
    rules: Rules {
        needed_by: &[needed("NodeGroup", "/clusterName", "dependency")],
        rises: &[("version", "version")],
        state: Some("status"),
        ..RULES
    },
    ..KIND
};
