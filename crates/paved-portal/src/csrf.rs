//! Checks whether a request is from the portal's own pages. A browser also sends the session with
//! requests that other sites cause.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use url::Url;

use super::config::{self, Auth, Config};
use super::problem::Problem;
use super::session;

/// The source of a request by its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    Own,
    Foreign,
    /// Unknown. Current browsers always name the source of a write and of a WebSocket.
    Nothing,
}

/// The portal's own origins.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    own: Vec<String>,
    /// The hosts that a request may name, if each caller of the portal has rights. A foreign name
    /// that resolves to loopback is not one of them.
    hosts: Option<Vec<String>>,
}

impl Origins {
    /// Creates the origins of a portal at this URL.
    pub(super) fn new(config: &Config, url: &Url) -> Self {
        let mut own = vec![url.origin().ascii_serialization()];
        if config::is_loopback(url) {
            for host in ["localhost", "127.0.0.1", "[::1]"] {
                let mut same = url.clone();
                // These hosts are always valid.
                let _ = same.set_host(Some(host));
                own.push(same.origin().ascii_serialization());
            }
        }
        own.sort();
        own.dedup();
        let hosts = own
            .iter()
            .filter_map(|origin| origin.split_once("://").map(|(_, host)| host.to_owned()));
        let hosts = matches!(config.auth, Auth::None).then(|| hosts.collect());
        Self { own, hosts }
    }

    /// Rejects requests that another site may have caused.
    pub(super) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        self.host(uri, headers)?;
        let path = uri.path();
        // Browsers do not add tokens automatically.
        let has_token = headers.get(header::AUTHORIZATION).is_some_and(|value| {
            value.as_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
        });
        let switches = headers.contains_key(header::UPGRADE);
        let is_write = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_page =
            !(path.starts_with("/api/") || path.starts_with("/ws/") || path == "/auth/sign-out");
        if has_token && !switches || is_page && !is_write && !switches {
            return Ok(());
        }
        let has_session = headers
            .get_all(header::COOKIE)
            .iter()
            .any(|cookies| cookies.to_str().is_ok_and(|cookies| cookies.contains(session::COOKIE)));
        match self.evidence(headers) {
            Evidence::Nothing if has_session && (is_write || switches) => Err(Problem::forbidden(
                "A request with a session needs the header Origin or Sec-Fetch-Site. Scripts use \
                 a token instead.",
            )),
            Evidence::Own | Evidence::Nothing => Ok(()),
            Evidence::Foreign => Err(Problem::forbidden(
                "The request comes from another site. Open the portal's \
                 own pages.",
            )),
        }
    }

    /// Rejects requests to another host's name, in the header or the URI: HTTP/2 has the name in
    /// the URI.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let named = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
        let mut told = named.chain(uri.authority().map(|authority| authority.as_str().as_bytes()));
        let is_own =
            |host: &[u8]| hosts.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(host));
        match told.find(|host| !is_own(host)) {
            Some(host) => {
                let (host, hosts) = (String::from_utf8_lossy(host), hosts.join(" or "));
                Err(Problem::forbidden(format!("host: found {host:?}; allowed: {hosts}")))
            }
            None => Ok(()),
        }
    }

    fn evidence(&self, headers: &HeaderMap) -> Evidence {
        let site = headers.get("sec-fetch-site").map(|site| match site.as_bytes() {
            b"same-origin" => Evidence::Own,
            b"none" => Evidence::Nothing,
            _ => Evidence::Foreign,
        });
        let origin = headers.get(header::ORIGIN).map(|origin| {
            let is_own =
                origin.to_str().is_ok_and(|origin| self.own.iter().any(|own| own == origin));
            if is_own { Evidence::Own } else { Evidence::Foreign }
        });
        match (site, origin) {
            (Some(Evidence::Foreign), _) | (_, Some(Evidence::Foreign)) => Evidence::Foreign,
            (Some(Evidence::Own), _) | (_, Some(Evidence::Own)) => Evidence::Own,
            _ => Evidence::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn origins() -> Origins {
        Origins { own: vec!["https://p.example.org".into()], hosts: None }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    const SESSION: (&str, &str) = ("cookie", "a=b; __Host-paved-session=x");

    #[test]
    fn a_write_with_a_session_must_come_from_our_own_pages() {
        let write = |all: &[(&'static str, &'static str)]| {
            origins()
                .check(&Method::POST, &Uri::from_static("/api/workspaces"), &headers(all))
                .is_ok()
        };
        assert!(write(&[SESSION, ("origin", "https://p.example.org")]));
        assert!(write(&[SESSION, ("sec-fetch-site", "same-origin")]));
        for foreign in [
            "https://evil.example.org",
            "https://p.example.org.evil.com",
            "http://p.example.org",
            "null",
        ] {
            assert!(!write(&[SESSION, ("origin", foreign)]), "{foreign}");
            assert!(
                !write(&[SESSION, ("origin", foreign), ("sec-fetch-site", "same-origin")]),
                "{foreign}"
            );
        }
        for site in ["cross-site", "same-site", "none", "nonsense"] {
            assert!(!write(&[SESSION, ("sec-fetch-site", site)]), "{site}");
        }
        assert!(!write(&[SESSION]));
        assert!(
            !write(&[SESSION, ("authorization", "Basic YTpi")]),
            "browsers may add this automatically"
        );
    }

    #[test]
    fn scripts_need_no_header_beside_their_token() {
        let token = ("authorization", "Bearer abc");
        let uri = Uri::from_static("/api/workspaces/a");
        assert!(origins().check(&Method::DELETE, &uri, &headers(&[token])).is_ok());
    }

    #[test]
    fn streams_are_not_for_other_sites_either() {
        let read = |path: &'static str, all: &[(&'static str, &'static str)]| {
            origins().check(&Method::GET, &Uri::from_static(path), &headers(all)).is_ok()
        };
        let (evil, upgrade) = (("origin", "https://evil.example.org"), ("upgrade", "websocket"));
        assert!(!read("/api/v1/watch", &[SESSION, evil]));
        assert!(read("/api/v1/watch", &[SESSION]), "a browser may omit the source of a read");
        assert!(!read("/ws/status/", &[upgrade, evil]), "with or without a session");
        assert!(!read("/ws/status/", &[upgrade, SESSION]));
        assert!(!read("/ws/status/", &[upgrade, evil, ("authorization", "Bearer abc")]));
        assert!(read("/ws/status/", &[upgrade]));
        assert!(read("/", &[SESSION, ("sec-fetch-site", "cross-site")]), "a link to a page");
    }

    #[test]
    fn foreign_host_is_rejected_on_loopback() {
        let origins = Origins {
            own: vec!["http://127.0.0.1:8080".into()],
            hosts: Some(vec!["127.0.0.1:8080".into()]),
        };
        let read = |uri: &'static str, hosts: &[&'static [u8]]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_bytes(host).unwrap());
            }
            origins.check(&Method::GET, &Uri::from_static(uri), &headers).is_ok()
        };
        assert!(read("/", &[b"127.0.0.1:8080"]) && read("http://127.0.0.1:8080/", &[]));
        assert!(!read("/", &[b"evil.example.org:8080"]));
        assert!(!read("/", &[b"127.0.0.1:8080", b"evil.example.org:8080"]), "one of two");
        assert!(!read("/", &[b"\xe9vil"]), "not a text");
        assert!(!read("http://evil.example.org/", &[]), "HTTP/2 has it in the URI");
    }
}
