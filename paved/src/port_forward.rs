//! Ports of a workspace on this machine: `-L 8888:localhost:8888`.

use std::net::Ipv6Addr;
use std::str::FromStr;

use serde_json::json;

/// A port of this machine, and the place where its connections end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortForward {
    /// The port on loopback of this machine.
    near: u16,
    /// A host as the workspace sees it.
    host: String,
    far: u16,
}

impl FromStr for PortForward {
    type Err = String;

    /// Reads `PORT`, or `PORT:HOST:PORT` as in ssh. An IPv6 address has brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once(':') {
            None => port(text).map(|near| Self { near, host: "localhost".to_owned(), far: near }),
            Some((near, rest)) => rest.rsplit_once(':').and_then(|(host, far)| {
                Some(Self { near: port(near)?, host: self::host(host)?, far: port(far)? })
            }),
        };
        parsed.ok_or_else(|| {
            "allowed: PORT or PORT:HOST:PORT, for example 8888:localhost:8888".to_owned()
        })
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

/// A host name, an IPv4 address, or an IPv6 address without its brackets.
fn host(text: &str) -> Option<String> {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits);
    is_name.then(|| text.to_owned())
}

impl PortForward {
    /// The option of ssh.
    pub(crate) fn option(&self) -> String {
        let Self { near, host, far } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!("127.0.0.1:{near}:{host}:{far}")
    }

    /// The document of Session Manager and its parameters.
    pub(crate) fn document(&self) -> (&'static str, String) {
        let mut parameters = json!({
            "portNumber": [self.far.to_string()],
            "localPortNumber": [self.near.to_string()],
        });
        let name = if ["localhost", "127.0.0.1"].contains(&self.host.as_str()) {
            "AWS-StartPortForwardingSession"
        } else {
            parameters["host"] = json!([self.host]);
            "AWS-StartPortForwardingSessionToRemoteHost"
        };
        (name, parameters.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn port_is_forwarded_as_in_ssh() {
        for (text, option) in [
            ("8888", "127.0.0.1:8888:localhost:8888"),
            ("8888:localhost:80", "127.0.0.1:8888:localhost:80"),
            ("1:10.0.0.7:65535", "127.0.0.1:1:10.0.0.7:65535"),
            ("5432:[::1]:5432", "127.0.0.1:5432:[::1]:5432"),
        ] {
            assert_eq!(text.parse::<PortForward>().unwrap().option(), option);
        }
        for text in [
            "",
            "0",
            "65536",
            "8888:localhost",
            "8888::80",
            "8888:-oProxyCommand=x:80",
            "8888:a b:80",
            "8888:$(x):80",
            "8888:::1:80",
            "*:8888:localhost:80",
            "/x.sock:localhost:80",
            "-1:localhost:80",
        ] {
            let error = text.parse::<PortForward>().unwrap_err();
            assert!(error.contains("for example 8888:localhost:8888"), "{text}: {error}");
        }
    }

    #[test]
    fn host_beyond_the_machine_has_another_document() {
        let of = |text: &str| text.parse::<PortForward>().unwrap().document();
        assert_eq!(of("80").0, "AWS-StartPortForwardingSession");
        let (name, parameters) = of("5432:db.internal:5433");
        assert_eq!(name, "AWS-StartPortForwardingSessionToRemoteHost");
        let parameters: serde_json::Value = serde_json::from_str(&parameters).unwrap();
        assert_eq!(
            parameters,
            json!({"portNumber": ["5433"], "localPortNumber": ["5432"], "host": ["db.internal"]})
        );
    }
}
