//! The backend: a Deployment with access to the environment's database, a Service, and an Ingress
//! if there is a domain.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::database::Connection;
use super::place::{NAMESPACE_READY, Place, keep_namespace_usage};
use super::{Backend, Size, UnifiedEnvironmentSettings};
use crate::compose::Composer;
use crate::error::Error;
use crate::observe::label;
use crate::value::{Object, at, text};

const DEPLOYMENT: &str = "backend-deployment";
const SERVICE: &str = "backend-service";
const INGRESS: &str = "backend-ingress";

/// The annotation of pods that changes with their credentials, so that new pods replace the old
/// pods.
const CREDENTIALS: &str = "paved-road.fn.crossplane.io/credentials";

impl Backend {
    /// Composes all resources, and returns the backend's URL.
    pub(super) fn compose(
        &self,
        size: Size,
        database: &Connection,
        place: &Place,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<Option<String>, Error> {
        self.deployment(size, database, place, settings, cx)?;
        cx.object(SERVICE, service(place)).needs(place.ready, NAMESPACE_READY).add()?;
        database.outlives(DEPLOYMENT, cx)?;
        keep_namespace_usage(SERVICE, cx)?;
        ingress(place, settings, cx)?;
        Ok(url(place, cx))
    }

    /// Whether the Service would answer a request.
    pub(super) fn answers(&self, cx: &Composer<'_>) -> bool {
        self.replicas > 0 && cx.is_ready(DEPLOYMENT) && cx.is_ready(SERVICE)
    }

    /// The Deployment. Its memory and CPU are resolved from the size. The user's fields are
    /// updatable, and the pods follow their credentials.
    fn deployment(
        &self,
        size: Size,
        database: &Connection,
        place: &Place,
        settings: &UnifiedEnvironmentSettings,
        cx: &mut Composer<'_>,
    ) -> Result<(), Error> {
        const UPDATABLE: [&str; 4] = [
            "spec.replicas",
            "spec.template.spec.containers.backend.image",
            "spec.template.spec.containers.backend.env",
            "spec.template.spec.containers.backend.ports",
        ];
        let credentials = database.credentials();
        let mark = credentials.map(|password| fingerprint(password, &database.way(&cx.xr.uid)));
        let updatable: &[&'static str] = match mark {
            Some(_) => &["spec.template.metadata.annotations"],
            // Credentials that were not observed have not changed.
            None => &[],
        };
        let labels = labels(place);
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": place.name, "namespace": place.namespace, "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": {CREDENTIALS: mark.unwrap_or_default()}},
                    "spec": self.pod(size, database, place, settings),
                },
            },
        });
        cx.object(DEPLOYMENT, deployment)
            .updatable(&UPDATABLE)
            .updatable(updatable)
            .resolved_from(
                "size",
                size.name(),
                &["spec.template.spec.containers.backend.resources"],
            )
            .needs(credentials.is_some(), "the credentials of its database")
            .add()
    }

    fn pod(
        &self,
        size: Size,
        database: &Connection,
        place: &Place,
        settings: &UnifiedEnvironmentSettings,
    ) -> Value {
        let (cpu, memory) = settings.amounts(size);
        // The paths that the image answers are not known.
        let probe = |failures: u8| json!({"tcpSocket": {"port": "http"}, "periodSeconds": 10, "failureThreshold": failures});
        // Without it, some container runtimes let no user but root listen on a port below 1024.
        let sysctls = json!([{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]);
        json!({
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": sysctls,
            },
            "containers": [{
                "name": "backend",
                "image": self.image,
                "ports": [{"name": "http", "containerPort": self.port, "protocol": "TCP"}],
                "envFrom": [{"secretRef": {"name": place.secret.name}}],
                "env": self.variables(database, &place.secret.name),
                "readinessProbe": probe(3),
                "livenessProbe": probe(6),
                "resources": {
                    "requests": {"cpu": cpu, "memory": memory},
                    "limits": {"memory": memory},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        })
    }

    /// Variables that others use come first, because Kubernetes uses only earlier definitions. The
    /// URL contains values without escapes. Providers generate passwords of letters and digits, and
    /// the only special characters in our names are hyphens.
    fn variables(&self, database: &Connection, secret: &str) -> Value {
        let from = |name: &str, key: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}});
        let plain = |name: &str, value: &str| json!({"name": name, "value": value});
        let mut all = vec![
            from("PGHOST", database.host_key),
            from("PGPORT", "port"),
            from("PGUSER", "username"),
            from("PGPASSWORD", "password"),
            plain("PGDATABASE", &database.name),
            plain(
                "DATABASE_URL",
                "postgresql://$(PGUSER):$(PGPASSWORD)@$(PGHOST):$(PGPORT)/$(PGDATABASE)",
            ),
        ];
        if !self.env.contains_key("PGSSLMODE") {
            all.push(plain("PGSSLMODE", "require"));
        }
        all.extend(self.env.iter().map(|(name, value)| plain(name, value)));
        all.into()
    }
}

/// 16 hexadecimal digits that change with the credentials, and do not reveal them. They are an HMAC
/// of the rest, with the password as its key.
fn fingerprint(password: &[u8], rest: &str) -> String {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(password) else { return String::new() };
    mac.update(rest.as_bytes());
    let code = mac.finalize().into_bytes();
    code.first_chunk()
        .map(|first| format!("{:016x}", u64::from_be_bytes(*first)))
        .unwrap_or_default()
}

/// The labels that the Service selects pods by.
fn labels(place: &Place) -> Value {
    json!({"app.kubernetes.io/name": "backend", "app.kubernetes.io/instance": place.environment})
}

fn service(place: &Place) -> Value {
    let labels = labels(place);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": place.name, "namespace": place.namespace, "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "selector": labels,
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}

/// An Ingress, if Settings have a domain. An existing Ingress is preserved, because Settings do not
/// change existing resources.
fn ingress(
    place: &Place,
    settings: &UnifiedEnvironmentSettings,
    cx: &mut Composer<'_>,
) -> Result<(), Error> {
    let domain = settings.ingress.domain.as_ref();
    let route = match cx.manifest_of(INGRESS) {
        Some(running) => Route {
            host: host(running),
            class: text(running, &["spec", "ingressClassName"]).map(str::to_owned),
            certificate: None,
            annotations: annotations(running, cx.noted(INGRESS, ANNOTATIONS)),
        },
        None => Route {
            host: domain.map(|domain| format!("{}.{domain}", subdomain(cx))),
            class: settings.ingress.class_name.clone(),
            certificate: settings.ingress.tls_secret_name.clone(),
            annotations: settings.ingress.annotations(),
        },
    };
    if route.host.is_none() && !cx.exists(INGRESS) {
        return Ok(());
    }
    let keys: Vec<&str> = route.annotations.keys().map(String::as_str).collect();
    let noted = (!keys.is_empty()).then(|| keys.join(","));
    let mut ingress = cx.object(INGRESS, route.manifest(place)).needs(place.ready, NAMESPACE_READY);
    if let Some(keys) = noted {
        ingress = ingress.resolved_from(ANNOTATIONS, keys, &[]);
    }
    ingress.add()?;
    keep_namespace_usage(INGRESS, cx)
}

/// The environment's own part of a host, a label of at most 63 characters. It contains a part of
/// the uid, because other environments may have the same name, and users choose the names of
/// composites.
fn subdomain(cx: &Composer<'_>) -> String {
    label(&[&cx.xr.name, &cx.xr.uid5()])
}

/// Name of the annotation that records the keys of the annotations from Settings. Other clients set
/// further annotations.
const ANNOTATIONS: &str = "ingress-annotations";

/// The annotations of an existing Ingress that came from Settings.
fn annotations(running: &Object, noted: Option<&str>) -> BTreeMap<String, String> {
    let keys = noted.into_iter().flat_map(|keys| keys.split(','));
    keys.filter_map(|key| {
        let value = text(running, &["metadata", "annotations", key])?;
        Some((key.to_owned(), value.to_owned()))
    })
    .collect()
}

/// The properties of an Ingress.
struct Route {
    host: Option<String>,
    class: Option<String>,
    /// The Secret with its certificate. `None`: its own Secret.
    certificate: Option<String>,
    annotations: BTreeMap<String, String>,
}

impl Route {
    fn manifest(&self, place: &Place) -> Value {
        let service = json!({"service": {"name": place.name, "port": {"name": "http"}}});
        let paths = json!([{"path": "/", "pathType": "Prefix", "backend": service}]);
        let mut spec = json!({"rules": [{"http": {"paths": paths}}]});
        if let Some(host) = &self.host {
            let certificate =
                self.certificate.clone().unwrap_or_else(|| format!("{}-tls", place.name));
            spec["rules"][0]["host"] = json!(host);
            spec["tls"] = json!([{"hosts": [host], "secretName": certificate}]);
        }
        if let Some(class) = &self.class {
            spec["ingressClassName"] = json!(class);
        }
        let mut metadata =
            json!({"name": place.name, "namespace": place.namespace, "labels": labels(place)});
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": metadata,
            "spec": spec,
        })
    }
}

/// The host of an Ingress.
fn host(ingress: &Object) -> Option<String> {
    at(ingress, &["spec", "rules"])?.as_array()?.first()?["host"].as_str().map(str::to_owned)
}

/// The backend's URL: the host of its Ingress, else its address inside the cluster. `None` while
/// neither exists.
fn url(place: &Place, cx: &Composer<'_>) -> Option<String> {
    match cx.manifest_of(INGRESS).and_then(host) {
        Some(host) => Some(format!("https://{host}")),
        None => {
            cx.exists(SERVICE).then(|| format!("http://{}.{}.svc", place.name, place.namespace))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn a_fingerprint_follows_the_password_and_the_environment() {
        let one = fingerprint(b"a password", "uid-1");
        assert_eq!(one, fingerprint(b"a password", "uid-1"));
        assert_ne!(one, fingerprint(b"another", "uid-1"));
        assert_ne!(one, fingerprint(b"a password", "uid-2"), "equal passwords differ here");
        assert!(one.len() == 16 && one.chars().all(|c| c.is_ascii_hexdigit()), "{one}");
        assert_eq!(fingerprint(&[0xff; 300], "").len(), 16);
    }
}
