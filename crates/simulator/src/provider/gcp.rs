//! provider-upjet-gcp.

use serde_json::{Value, json};

use super::kind_behaviour::{
    Context, Id, KindBehaviour, PROJECT, Reference, UPJET, await_secret, details, one,
};
use super::rules::{Dependent, Rules, needed};
use crossplane::json::{at, text};

const INSTANCE: &[Reference] = &[one("instance", "DatabaseInstance")];

/// The rules for every kind: a resource cannot move to another location or project.
const RULES: Rules = Rules { immutable: &["location", "project"], ..Rules::NONE };

/// An ordinary kind of the provider.
const KIND: KindBehaviour = KindBehaviour { rules: RULES, ..UPJET };

/// The error when deleting a server with deletion protection in its own settings.
const PROTECTED_SERVER: &str = "googleapi: Error 400: The instance is protected. Please disable \
     the deletion protection and try again. To disable deletion protection, update the instance \
     settings with deletionProtectionEnabled set to false., failedPrecondition";

/// The words about a change inside a server that is stopped.
const STOPPED_SERVER: &str = "googleapi: Error 400: Invalid request: Invalid request since \
     instance is not running., invalid";

/// The words about a creation inside a server that does not exist.
const NO_SERVER: &str =
    "googleapi: Error 404: The Cloud SQL instance does not exist., instanceDoesNotExist";

/// The words about a node pool of a cluster that does not exist.
const NO_CLUSTER: &str = "googleapi: Error 404: Not found: \
     projects/acme-dev/locations/europe-west1/clusters/<name>., notFound";

pub(super) fn behaviour(service: &str, kind: &str) -> KindBehaviour {
    match (service, kind) {
        ("container", "Cluster") => CLUSTER,
        ("container", "NodePool") => KindBehaviour {
            rounds: 2,
            references: const { &[one("cluster", "Cluster")] },
            rules: Rules {
                part_of: Some("cluster"),
                refused_alone: Some(NO_CLUSTER),
                immutable: &["location", "project", "cluster"],
                slow: &["nodeCount"],
                ..RULES
            },
            ..KIND
        },
        ("sql", "DatabaseInstance") => DATABASE_INSTANCE,
        ("sql", "Database") => KindBehaviour {
            references: INSTANCE,
            rules: Rules {
                part_of: Some("instance"),
                refused_alone: Some(NO_SERVER),
                refused_while_stopped: Some(STOPPED_SERVER),
                ..RULES
            },
            ..KIND
        },
        ("sql", "User") => KindBehaviour {
            references: INSTANCE,
            waits: |object, world| await_secret(object, world, "passwordSecretRef"),
            connection: user_connection,
            rules: Rules {
                part_of: Some("instance"),
                refused_alone: Some(NO_SERVER),
                unreadable: Some("server gone"),
                refused_while_stopped: Some(STOPPED_SERVER),
                immutable: &["project", "instance"],
                ..RULES
            },
            ..KIND
        },
        ("storage", "Bucket") => KindBehaviour {
            at_provider: |f| {
                let name = f.external();
                json!({
                    "projectNumber": 123_456_789_012_i64, "url": format!("gs://{name}"),
                    "selfLink": format!("https://www.googleapis.com/storage/v1/b/{name}"),
                })
            },
            // A fake bucket counts as full.
            rules: Rules {
                protected: Some(|parameters: &Value| {
                    (parameters["forceDestroy"] != true).then_some("not empty")
                }),
                foreign: Some("name taken by another project, at the look"),
                ..RULES
            },
            ..KIND
        },
        ("storage", _) => KindBehaviour {
            references: const { &[one("bucket", "Bucket")] },
            rules: Rules {
                part_of: Some("bucket"),
                immutable: &["bucket", "role", "member", "condition"],
                ..RULES
            },
            ..KIND
        },
        ("cloudplatform", "ProjectIAMMember") => KindBehaviour {
            rules: Rules { immutable: &["project", "role", "member", "condition"], ..RULES },
            ..KIND
        },
        ("cloudplatform", "ServiceAccount") => KindBehaviour {
            at_provider: |f| {
                let email = format!("{}@{PROJECT}.iam.gserviceaccount.com", f.external());
                json!({"email": email, "member": format!("serviceAccount:{email}")})
            },
            ..KIND
        },
        ("compute", _) => KindBehaviour {
            id: Id::Name,
            at_provider: |f| json!({"selfLink": link(f, "compute")}),
            ..KIND
        },
        _ => KIND,
    }
}

/// GKE takes long. The kubeconfig in the Secret has the server and the CA, but no token.
const CLUSTER: KindBehaviour = KindBehaviour {
    rounds: 4,
    // Google chooses three zones for a regional cluster. A zonal cluster lists only further zones.
    late_initialize: |f| {
        let location = f.region("us-central1");
        let is_zone = location.matches('-').count() > 1;
        let letters: &[&str] = if is_zone { &[] } else { &["a", "b", "c"] };
        let zones: Vec<_> = letters.iter().map(|zone| format!("{location}-{zone}")).collect();
        json!({"nodeLocations": zones})
    },
    at_provider: |f| {
        json!({
            "endpoint": endpoint(f), "selfLink": link(f, "container"),
            "masterAuth": {"clusterCaCertificate": "Y2E="}, "masterVersion": "1.33.2-gke.1111000",
        })
    },
    connection: |f| {
        let kubeconfig = super::kubeconfig(&format!("https://{}", endpoint(f)));
        details([("kubeconfig", &kubeconfig)])
    },
    rules: Rules {
        // A cluster is deleted with its node pools, unless a provider is working on one of them.
        needed_by: &[Dependent { only_busy: true, ..needed("NodePool", "/cluster", "busy") }],
        protected: Some(|parameters: &Value| {
            (parameters["deletionProtection"] != false).then_some("protected")
        }),
        intermediate: Some(|parameters: &Value| {
            (parameters["removeDefaultNodePool"] == true).then_some("default-pool")
        }),
        ..RULES
    },
    ..KIND
};

const DATABASE_INSTANCE: KindBehaviour = KindBehaviour {
    rounds: 3,
    at_provider: |f| {
        json!({
            "connectionName": connection_name(f), "firstIpAddress": address(f), "publicIpAddress": address(f),
            "selfLink": link(f, "sqladmin"), "serviceAccountEmailAddress": "p1@gcp-sa-cloud-sql.iam.gserviceaccount.com",
        })
    },
    connection: |f| {
        details([
            ("connectionName", &connection_name(f)),
            ("publicIP", &address(f)),
            ("privateIP", ""),
            ("password", &f.password()),
            (
                "serverCACertificateCert",
                "-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n",
            ),
        ])
    },
    rules: Rules {
        grows: &[("settings.diskSize", SMALLER)],
        slow: &["settings.activationPolicy"],
        protected: Some(protection),
        reserved: Some("name used within a week"),
        ..RULES
    },
    ..KIND
};

/// The error when shrinking a disk.
const SMALLER: &str =
    "googleapi: Error 400: Invalid request: Disk size cannot be decreased., invalid";

fn protection(parameters: &Value) -> Option<&'static str> {
    if parameters["settings"]["deletionProtectionEnabled"] == true {
        return Some(PROTECTED_SERVER);
    }
    (parameters["deletionProtection"] != false).then_some("protected")
}

/// A SQL user's Secret has the password from its spec.
fn user_connection(f: &Context<'_>) -> crate::core::ConnectionDetails {
    let reference = at(f.object, &["spec", "forProvider", "passwordSecretRef"]);
    let part = |key| reference.and_then(|reference| text(reference, &[key])).unwrap_or_default();
    let namespace = text(f.object, &["metadata", "namespace"]).unwrap_or_else(|| part("namespace"));
    let given = f.world.secret_data(namespace, part("name")).remove(part("key"));
    given.map(|password| ("password".to_owned(), password)).into_iter().collect()
}

fn connection_name(f: &Context<'_>) -> String {
    format!(
        "{}:{}:{}",
        f.param("project").unwrap_or(PROJECT),
        f.region("us-central1"),
        f.external()
    )
}

/// Addresses of the ranges reserved for documentation.
fn endpoint(f: &Context<'_>) -> String {
    format!("198.51.100.{}", f.byte(0).max(1))
}

fn address(f: &Context<'_>) -> String {
    format!("203.0.113.{}", f.byte(0).max(1))
}

fn link(f: &Context<'_>, api: &str) -> String {
    let (project, region, name) =
        (f.param("project").unwrap_or(PROJECT), f.region("us-central1"), f.external());
    format!("https://{api}.googleapis.com/v1/projects/{project}/locations/{region}/{name}")
}
