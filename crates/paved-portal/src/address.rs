//! The source address of a request.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use ipnet::IpNet;

/// The source address of a request, if it is public.
#[derive(Clone, Copy)]
pub(super) struct PublicAddress(pub(super) IpAddr);

/// Whether an address is public, and so has a meaning outside its network.
pub(super) fn is_public(address: &IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
                || is_shared)
        }
        IpAddr::V6(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local())
        }
    }
}

/// The address of the client: the last address that trusted proxies report and that is not the
/// address of a trusted proxy. An entry that is not an address ends the search, because a client
/// can write any text before it.
pub(super) fn client(trusted: &[IpNet], request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())?;
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(&peer) {
        return Some(peer);
    }
    let forwarded = request.headers().get_all("x-forwarded-for").iter();
    let entries: Vec<&str> = forwarded
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .map(str::trim)
        .collect();
    let mut said = entries.into_iter().rev().map_while(address);
    said.find(|address| !is_trusted(address)).or(Some(peer))
}

/// Parses an address. Some proxies add a port.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use axum::body::Body;

    use super::*;

    #[test]
    fn forwarded_address_is_read_only_from_a_trusted_proxy() {
        let from = |peer: &str, forwarded: &str| {
            let mut request = Request::new(Body::empty());
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
            request.headers_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
            client(&["10.0.0.0/8".parse().unwrap()], &request).unwrap().to_string()
        };
        assert_eq!(from("10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2"), "198.51.100.7");
        assert_eq!(from("192.0.2.1", "203.0.113.9"), "192.0.2.1");
        assert_eq!(from("10.0.0.1", "nonsense"), "10.0.0.1");
        assert_eq!(from("10.0.0.1", "203.0.113.9, 198.51.100.7:4711"), "198.51.100.7");
        assert_eq!(from("10.0.0.1", "203.0.113.9, [2001:db8::7]:4711, 10.0.0.2"), "2001:db8::7");
        assert_eq!(
            from("10.0.0.1", "203.0.113.9, unknown"),
            "10.0.0.1",
            "a client wrote the first entry"
        );
    }

    #[test]
    fn only_an_address_of_the_internet_is_public() {
        for (text, fits) in [
            ("203.0.113.9", true),
            ("2001:db8::7", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("::ffff:192.168.0.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_public(&text.parse().unwrap()), fits, "{text}");
        }
    }
}
