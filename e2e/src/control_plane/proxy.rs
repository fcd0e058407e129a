//! A proxy in place of the internet. It answers for every host that programs connect to.
//!
//! Hosts of chart repositories serve our own charts, with a certificate that the programs trust.
//! Addresses within the cluster (`<service>.<namespace>.svc`) belong to virtual clusters, and
//! `<id>.eks.amazonaws.com` to EKS clusters. Both lead to a real API server. So the tested programs
//! run as in a cluster with internet access.

use std::{
    collections::BTreeSet,
    fs,
    net::Ipv4Addr,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use axum::body::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header::HOST, server::conn::http1,
    service::service_fn, upgrade,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use super::pki::{Authority, Certificate};

/// A proxy on loopback for `CONNECT`.
pub struct Proxy {
    /// The value for `HTTPS_PROXY`.
    pub url: String,
    /// The certificates to trust, for `SSL_CERT_FILE`.
    pub trusted: PathBuf,
    routes: Arc<Routes>,
    task: JoinHandle<()>,
}

struct Routes {
    /// The files that hosts serve, with a folder per host.
    sites: PathBuf,
    hosts: BTreeSet<String>,
    tls: TlsAcceptor,
    /// The port of the API server behind all virtual clusters and EKS clusters.
    inside: u16,
    /// Namespaces whose services hang.
    cut: watch::Sender<BTreeSet<String>>,
}

impl Proxy {
    /// Serves the folders in `sites`, each named like its host, and the API server on port
    /// `inside`. Writes its certificate into `folder`.
    pub async fn start(sites: PathBuf, inside: u16, folder: &Path) -> Result<Self> {
        let hosts: BTreeSet<String> = fs::read_dir(&sites)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_>>()?;
        ensure!(!hosts.is_empty(), "{} has no folder of a host", sites.display());
        let certificate = Authority::new("chart-repositories-ca")?.sign(hosts.iter().cloned())?;
        let trusted = folder.join("trusted.crt");
        fs::write(&trusted, &certificate.authority)?;
        let tls = acceptor(&certificate)?;
        let routes = Arc::new(Routes { sites, hosts, tls, inside, cut: watch::Sender::default() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let task = tokio::spawn(accept(listener, routes.clone()));
        Ok(Self { url, trusted, routes, task })
    }

    /// Makes the services of a namespace hang: their clients wait for an answer.
    pub fn cut(&self, namespace: &str) {
        self.routes.cut.send_modify(|cut| _ = cut.insert(namespace.to_owned()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The target of a connection.
enum Way {
    /// The chart repository of the host.
    Charts,
    /// An API server, by a virtual cluster's namespace or an EKS cluster's host.
    Inside(String),
}

impl Routes {
    fn way(&self, host: &str) -> Option<Way> {
        if self.hosts.contains(host) {
            return Some(Way::Charts);
        }
        if host.ends_with(".eks.amazonaws.com") {
            return Some(Way::Inside(host.to_owned()));
        }
        let (_, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
        Some(Way::Inside(namespace.to_owned()))
    }

    async fn lead(self: Arc<Self>, way: Way, mut client: TokioIo<upgrade::Upgraded>) -> Result<()> {
        match way {
            Way::Charts => {
                let client = self.tls.accept(client).await?;
                let files = service_fn(move |request| {
                    let answer = self.file(&request);
                    async { Ok::<_, hyper::Error>(answer) }
                });
                http1::Builder::new().serve_connection(TokioIo::new(client), files).await?;
            }
            Way::Inside(cluster) => {
                let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.inside)).await?;
                let mut cut = self.cut.subscribe();
                let hangs = async {
                    // The wait fails only after the proxy has ended.
                    let _ = cut.wait_for(|cut| cut.contains(&cluster)).await;
                };
                tokio::select! {
                    () = hangs => swallow(&mut client).await?,
                    done = copy_bidirectional(&mut client, &mut server) => drop(done?),
                }
            }
        }
        Ok(())
    }

    /// A file of a chart repository.
    fn file(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let host =
            request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default();
        let path = Path::new(request.uri().path().trim_start_matches('/'));
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let file = self.hosts.contains(host) && is_plain;
        match file.then(|| fs::read(self.sites.join(host).join(path))) {
            Some(Ok(content)) => answer(StatusCode::OK, content),
            _ => answer(StatusCode::NOT_FOUND, format!("no {} at {host}", path.display())),
        }
    }
}

async fn accept(listener: TcpListener, routes: Arc<Routes>) {
    // An error concerns only one connection.
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, routes.clone()));
    }
}

/// Reads from a client until it gives up, without an answer.
async fn swallow(client: &mut (impl AsyncRead + Unpin)) -> Result<()> {
    tokio::io::copy(client, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Serves one client. The client sees every error and reports it better.
async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, routes: Arc<Routes>) {
    let connect = service_fn(move |request: Request<Incoming>| {
        let answer = open(request, &routes);
        async { Ok::<_, hyper::Error>(answer) }
    });
    let _ =
        http1::Builder::new().serve_connection(TokioIo::new(stream), connect).with_upgrades().await;
}

fn open(request: Request<Incoming>, routes: &Arc<Routes>) -> Response<Full<Bytes>> {
    if request.method() != Method::CONNECT {
        return answer(StatusCode::METHOD_NOT_ALLOWED, "this proxy supports only CONNECT");
    }
    let host = request.uri().host().unwrap_or_default().to_owned();
    let Some(way) = routes.way(&host) else {
        return answer(StatusCode::BAD_GATEWAY, format!("this proxy does not serve {host}"));
    };
    let routes = routes.clone();
    tokio::spawn(async move {
        if let Ok(client) = upgrade::on(request).await {
            let _ = routes.lead(way, TokioIo::new(client)).await;
        }
    });
    answer(StatusCode::OK, "")
}

fn answer(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn acceptor(certificate: &Certificate) -> Result<TlsAcceptor> {
    let chain =
        CertificateDer::pem_slice_iter(certificate.chain.as_bytes()).collect::<Result<_, _>>()?;
    let key =
        PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).context("the server's key")?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
