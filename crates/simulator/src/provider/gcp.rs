//! provider-upjet-gcp.

use serde_json::json;

use super::manner::{Facts, Id, Manner, Reference, UPJET, await_secret, details, one};
use crossplane::json::{at, text};

const PROJECT: &str = "acme-dev";

const INSTANCE: &[Reference] = &[one("instance", "DatabaseInstance")];

pub(super) fn manner(service: &str, kind: &str) -> Manner {
    match (service, kind) {
        ("container", "Cluster") => CLUSTER,
        ("container", "NodePool") => Manner {
            rounds: 2,
            references: const { &[one("cluster", "Cluster")] },
            late: |_| json!({"maxPodsPerNode": 110}),
            ..UPJET
        },
        ("sql", "DatabaseInstance") => DATABASE_INSTANCE,
        ("sql", "Database") => Manner { references: INSTANCE, late: |_| json!({"charset": "UTF8"}), ..UPJET },
        ("sql", "User") => Manner {
            references: INSTANCE,
            waits: |object, world| await_secret(object, world, "passwordSecretRef"),
            connection: user_connection,
            ..UPJET
        },
        ("storage", "Bucket") => Manner {
            at_provider: |f| {
                let name = f.external();
                json!({"projectNumber": 123_456_789_012_i64, "url": format!("gs://{name}"), "selfLink": format!("https://www.googleapis.com/storage/v1/b/{name}")})
            },
            late: |_| json!({"storageClass": "STANDARD"}),
            ..UPJET
        },
        ("storage", _) => Manner { references: const { &[one("bucket", "Bucket")] }, ..UPJET },
        ("cloudplatform", "ServiceAccount") => Manner {
            at_provider: |f| {
                let email = format!("{}@{PROJECT}.iam.gserviceaccount.com", f.external());
                json!({"email": email, "member": format!("serviceAccount:{email}")})
            },
            ..UPJET
        },
        ("compute", _) => {
            Manner { id: Id::Name, at_provider: |f| json!({"selfLink": link(f, "compute")}), ..UPJET }
        }
        _ => UPJET,
    }
}

/// GKE takes its time; the kubeconfig in its secret holds server and CA, no token.
const CLUSTER: Manner = Manner {
    rounds: 4,
    at_provider: |f| {
        json!({
            "endpoint": endpoint(f), "selfLink": link(f, "container"),
            "masterAuth": {"clusterCaCertificate": "Y2E="}, "masterVersion": "1.33.2-gke.1111000",
        })
    },
    late: |_| json!({"loggingService": "logging.googleapis.com/kubernetes"}),
    connection: |f| {
        let kubeconfig = super::kubeconfig(&format!("https://{}", endpoint(f)));
        details([("kubeconfig", &kubeconfig)])
    },
    ..UPJET
};

const DATABASE_INSTANCE: Manner = Manner {
    rounds: 3,
    at_provider: |f| {
        json!({
            "connectionName": connection_name(f), "firstIpAddress": address(f), "publicIpAddress": address(f),
            "selfLink": link(f, "sqladmin"), "serviceAccountEmailAddress": "p1@gcp-sa-cloud-sql.iam.gserviceaccount.com",
        })
    },
    late: |_| json!({"project": PROJECT}),
    connection: |f| {
        details([
            ("connectionName", &connection_name(f)),
            ("publicIP", &address(f)),
            ("privateIP", ""),
            ("password", &f.password()),
            ("serverCACertificateCert", "-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n"),
        ])
    },
    ..UPJET
};

/// A SQL user's secret holds the password it was given.
fn user_connection(f: &Facts<'_>) -> crate::core::ConnectionDetails {
    let reference = at(f.object, &["spec", "forProvider", "passwordSecretRef"]);
    let part = |key| reference.and_then(|reference| text(reference, &[key])).unwrap_or_default();
    let namespace = text(f.object, &["metadata", "namespace"]).unwrap_or_else(|| part("namespace"));
    let given = f.world.secret_data(namespace, part("name")).remove(part("key"));
    given.map(|password| ("password".to_owned(), password)).into_iter().collect()
}

fn connection_name(f: &Facts<'_>) -> String {
    format!("{}:{}:{}", f.param("project").unwrap_or(PROJECT), f.region("us-central1"), f.external())
}

/// Addresses of the ranges that documentation uses.
fn endpoint(f: &Facts<'_>) -> String {
    format!("198.51.100.{}", f.byte(0).max(1))
}

fn address(f: &Facts<'_>) -> String {
    format!("203.0.113.{}", f.byte(0).max(1))
}

fn link(f: &Facts<'_>, api: &str) -> String {
    let (project, region, name) =
        (f.param("project").unwrap_or(PROJECT), f.region("us-central1"), f.external());
    format!("https://{api}.googleapis.com/v1/projects/{project}/locations/{region}/{name}")
}
