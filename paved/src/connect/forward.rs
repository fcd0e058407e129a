//! Forwards a virtual cluster without an outside address to a port of this machine, through the API
//! server's port forwarding.

use k8s_openapi::api::core::v1::Pod;
use paved_client::cluster::{Api, one_line};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::{self, unix};

use super::Target;
use crate::Console;
use crate::failure::Failure;

/// The port of a virtual cluster's API in its pod.
const PORT: u16 = 8443;

/// A virtual cluster's Service. The StatefulSet has the same name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    name: String,
    namespace: String,
}

impl Place {
    /// Parses `https://NAME.NAMESPACE.svc`.
    pub(super) fn from_url(url: &str) -> Option<Self> {
        let host = url.strip_prefix("https://")?.split([':', '/']).next()?;
        let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
        let whole = !name.is_empty() && !namespace.is_empty() && !namespace.contains('.');
        whole.then(|| Self { name: name.to_owned(), namespace: namespace.to_owned() })
    }

    /// The name in the cluster's certificate.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    /// The only pod of the StatefulSet.
    fn pod(&self) -> String {
        format!("{}-0", self.name)
    }
}

/// A port of this machine, which is forwarded to the cluster.
pub(super) struct Forwarded {
    listener: TcpListener,
    address: String,
    pods: Api<Pod>,
    place: Place,
}

/// Opens the port, and checks that the caller may forward.
pub(super) async fn open(
    target: &Target,
    place: &Place,
    port: Option<u16>,
) -> Result<Forwarded, Failure> {
    let asked = port.unwrap_or(0);
    let taken = |error: std::io::Error| {
        Failure::Usage(format!(
            "could not listen on 127.0.0.1:{asked}: \
             {error}"
        ))
    };
    let listener = TcpListener::bind(("127.0.0.1", asked)).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?.to_string();
    let pods: Api<Pod> = Api::namespaced(target.cluster.client.clone(), &place.namespace);
    pods.portforward(&place.pod(), &[PORT]).await.map_err(|error| Failure::NoAccess {
        message: format!(
            "could not forward to pod {} in namespace {}: {}",
            place.pod(),
            place.namespace,
            why(&error)
        ),
        check: "that you may get and create pods/portforward there. You can also set \
                spec.parameters.expose: loadBalancer"
            .to_owned(),
    })?;
    Ok(Forwarded { listener, address, pods, place: place.clone() })
}

impl Forwarded {
    /// Points a kubeconfig's cluster to this port. Its certificate names the inside address.
    pub(super) fn redirect(&self, cluster: &mut Value) {
        cluster["server"] = format!("https://{}", self.address).into();
        cluster["tls-server-name"] = self.place.host().into();
    }

    /// The local address and the target, for messages.
    pub(super) fn told(&self) -> String {
        format!("{} to {}", self.address, self.place.host())
    }

    /// Forwards every connection until Ctrl-C, SIGTERM or SIGHUP. A broken connection prints a note
    /// and does not affect the others.
    pub(super) async fn serve(self, console: &mut Console<'_>) -> Result<(), Failure> {
        let mut broken = tokio::task::JoinSet::new();
        // Every round uses the same listeners. A new listener would miss a signal from between two
        // rounds.
        let mut interrupt = std::pin::pin!(signal::ctrl_c());
        let mut terminate = unix::signal(unix::SignalKind::terminate())?;
        let mut hang_up = unix::signal(unix::SignalKind::hangup())?;
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (near, _) = accepted?;
                    let (pods, pod) = (self.pods.clone(), self.place.pod());
                    broken.spawn(async move { carry(near, &pods, &pod).await });
                }
                Some(ended) = broken.join_next() => {
                    if let Ok(Err(why)) = ended {
                        writeln!(console.err, "note: a connection was lost: {why}")?;
                    }
                }
                _ = &mut interrupt => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = hang_up.recv() => return Ok(()),
            }
        }
    }
}

/// The error in one line. For an answer of the API server, only its message.
fn why(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => one_line(&status.message),
        other => one_line(&other.to_string()),
    }
}

async fn carry(mut near: TcpStream, pods: &Api<Pod>, pod: &str) -> Result<(), String> {
    let mut forwarder = pods.portforward(pod, &[PORT]).await.map_err(|error| why(&error))?;
    let mut far = forwarder.take_stream(PORT).ok_or("the API server returned no stream")?;
    // Either side may end the connection, so its end is not an error.
    _ = copy_bidirectional(&mut near, &mut far).await;
    drop(far);
    forwarder.join().await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_inside_the_cluster_has_name_and_namespace() {
        let place = Place { name: "preview-x".into(), namespace: "team-preview".into() };
        assert_eq!(Place::from_url("https://preview-x.team-preview.svc"), Some(place.clone()));
        assert_eq!(Place::from_url("https://preview-x.team-preview.svc:443/"), Some(place.clone()));
        assert_eq!(
            (place.host().as_str(), place.pod().as_str()),
            ("preview-x.team-preview.svc", "preview-x-0")
        );
        for other in [
            "",
            "https://203.0.113.7",
            "https://a.svc",
            "https://a.b.c.svc",
            "http://a.b.svc",
            "https://.b.svc",
        ] {
            assert_eq!(Place::from_url(other), None, "{other}");
        }
    }
}
