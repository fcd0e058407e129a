//! Finds the proxy to a cluster, as kubectl does.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::Kubeconfig;

/// The `proxy-url` of the context's cluster, if it has one.
pub(super) fn own(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    let cluster =
        kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

/// The proxy to a server. The kubeconfig's own proxy takes precedence over the environment.
/// Otherwise `HTTPS_PROXY` or `HTTP_PROXY` applies, unless `NO_PROXY` lists the server or the
/// server is on this machine. The library would search `NO_PROXY` for the proxy instead of the
/// server.
pub(super) fn to(
    server: &Uri,
    own: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Uri> {
    if let Some(own) = own {
        return own.parse().ok();
    }
    let first =
        |names: [&str; 2]| names.into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let names = if server.scheme_str() == Some("http") {
        ["HTTP_PROXY", "http_proxy"]
    } else {
        ["HTTPS_PROXY", "https_proxy"]
    };
    let proxy = first(names)?;
    let no = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if is_here(server)
        || Matcher::builder().all(proxy.clone()).no(no).build().intercept(server).is_none()
    {
        return None;
    }
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    proxy.parse().ok()
}

fn is_here(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PROXY: &str = "http://ada:x@proxy.corp:3128";

    fn through(server: &str, own: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let proxy = to(&server.parse().unwrap(), own, variable)?;
        Some(proxy.to_string().trim_end_matches('/').to_owned())
    }

    #[test]
    fn no_proxy_is_about_the_server_and_not_about_the_proxy() {
        let https = ("HTTPS_PROXY", PROXY);
        for (server, no, proxied) in [
            ("https://10.1.2.3:6443", "10.0.0.0/8,.svc", false),
            ("https://10.1.2.3:6443", "192.168.0.0/16", true),
            ("https://api.corp:6443", ".corp", false),
            ("https://api.example.org", ".corp", true),
            ("https://api.example.org", "*", false),
            ("https://api.example.org", "localhost,", true),
            ("https://127.0.0.1:6443", "", false),
            ("https://[::1]:6443", "", false),
            ("http://api.example.org", "", false),
        ] {
            let found = through(server, None, &[https, ("NO_PROXY", no)]);
            assert_eq!(found.as_deref(), proxied.then_some(PROXY), "{server} {no}");
        }
    }

    #[test]
    fn kubeconfig_proxy_and_lowercase_variables_have_precedence() {
        let server = "https://api.example.org";
        let own = through(
            server,
            Some("socks5://own:1080"),
            &[("HTTPS_PROXY", PROXY), ("NO_PROXY", "*")],
        );
        assert_eq!(own.as_deref(), Some("socks5://own:1080"));
        let small = through(
            server,
            None,
            &[("https_proxy", "proxy.corp:3128"), ("no_proxy", "10.0.0.0/8")],
        );
        assert_eq!(small.as_deref(), Some("http://proxy.corp:3128"));
        assert_eq!(through(server, None, &[]), None);
    }

    #[test]
    fn proxy_url_is_read_from_the_contexts_cluster() {
        let text = "{contexts: [{name: a, context: {cluster: x}}, {name: b, context: {cluster: y}}], current-context: b, \
                    clusters: [{name: x, cluster: {server: s, proxy-url: http://own}}, {name: y, cluster: {server: s}}]}";
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        assert_eq!(own(&kubeconfig, Some("a")).as_deref(), Some("http://own"));
        assert_eq!(own(&kubeconfig, None), None);
    }
}
