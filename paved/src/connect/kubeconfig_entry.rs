//! A cluster: an entry in the kubeconfig that works from this machine.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::kubeconfig::{self, Entry};
use super::shell::quoted;
use super::{Target, cloud_cluster, endpoint, forward};
use crate::Console;
use crate::cli::Connect;
use crate::failure::Failure;
use crate::style::BOLD;

/// Fields to copy from the kubeconfig in a Secret: the address and the credentials. Other fields
/// could name files and programs of this machine.
const CLUSTER: [&str; 3] = ["server", "certificate-authority-data", "tls-server-name"];
const USER: [&str; 3] = ["client-certificate-data", "client-key-data", "token"];

/// Writes the entry. Forwards a cluster without an outside address until Ctrl-C.
pub(super) async fn connect(
    target: &Target,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let environment = &target.environment;
    let name = args.context_name.clone();
    let name =
        name.unwrap_or_else(|| format!("paved/{}/{}", environment.namespace, environment.name));
    let path = kubeconfig::path(args.into.as_deref())?;
    let mut line = vec!["kubectl".to_owned()];
    if args.into.is_some() {
        line.extend(["--kubeconfig".to_owned(), path.display().to_string()]);
    }
    line.extend(["--context".to_owned(), name.clone()]);
    let line = format!("{} get pods -A", quoted(&line));
    if args.print.is_some() {
        // The context may be missing, and for a forwarded cluster it is, unless the forwarding runs.
        let connect = quoted(&command(target, args));
        if kubeconfig::has(&path, &name, &environment.uid)? {
            writeln!(console.out, "{line}")?;
        } else if inside(target)?.is_some() {
            writeln!(console.out, "{connect}")?;
        } else {
            writeln!(console.out, "{connect} && {line}")?;
        }
        return Ok(());
    }
    let mut entry = entry(target).await?;
    let forwarded = match inside(target)? {
        Some(place) => Some(forward::open(target, &place, args.port).await?),
        None => None,
    };
    if let Some(forwarded) = &forwarded {
        forwarded.redirect(&mut entry.cluster);
    }
    kubeconfig::add(&path, &name, &entry, &environment.uid, args.replace)?;
    writeln!(
        console.out,
        "{BOLD}{}{BOLD:#} is context {name} in {}",
        environment.title(),
        path.display()
    )?;
    writeln!(console.out, "  {line}")?;
    if let Some(needed) = cloud_cluster::needed(kind(target)) {
        writeln!(console.err, "note: {needed}")?;
    }
    let Some(forwarded) = forwarded else { return Ok(()) };
    writeln!(console.out, "forwarding {}; press Ctrl-C to stop", forwarded.told())?;
    console.out.flush()?;
    let served = forwarded.serve(console).await;
    // After the forwarding, the port is closed or belongs to another program.
    if kubeconfig::remove(&path, &name, &entry)? {
        writeln!(
            console.out,
            "forwarding stopped. Removed context {name} from {}",
            path.display()
        )?;
    }
    served
}

/// The command that writes the entry, with the caller's flags.
fn command(target: &Target, args: &Connect) -> Vec<String> {
    let access = &args.access;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut words = vec!["paved".to_owned(), "connect".to_owned(), args.name.clone()];
    for (flag, value) in [
        ("--kubeconfig", path(&access.kubeconfig)),
        ("--context", access.context.clone()),
        ("--namespace", Some(target.environment.namespace.clone())),
        ("--as", access.impersonate.clone()),
        ("--into", path(&args.into)),
        ("--context-name", args.context_name.clone()),
        ("--port", args.port.map(|port| port.to_string())),
    ] {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    words.extend(args.replace.then(|| "--replace".to_owned()));
    words
}

/// The address inside the platform's cluster, if users have no other one and are outside.
fn inside(target: &Target) -> Result<Option<forward::Place>, Failure> {
    if kind(target) != "vcluster" || target.cluster.is_around() {
        return Ok(None);
    }
    let place = target.field("url").and_then(forward::Place::from_url);
    let place = place.ok_or_else(|| target.missing("url inside the cluster"))?;
    let endpoint = target.field("endpoint").filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.ok_or_else(|| target.missing("endpoint"))?;
    Ok(endpoint.contains(&place.host()).then_some(place))
}

/// The kubeconfig entry.
async fn entry(target: &Target) -> Result<Entry, Failure> {
    let details = target.details().await?;
    let mut entry = read(details.get(&["kubeconfig"])?).ok_or_else(|| Failure::Provisioning {
        what: target.environment.title(),
        message: "has a Secret whose kubeconfig has no cluster".to_owned(),
    })?;
    let user = match kind(target) {
        "gke" => Some(cloud_cluster::gke()),
        "eks" => Some(cloud_cluster::eks(target)?),
        "aks" => Some(cloud_cluster::aks()),
        _ => None,
    };
    if let Some(user) = user {
        entry.cluster = cloud_cluster::cluster(target, kind(target), &entry.cluster)?;
        entry.user = user;
        return Ok(entry);
    }
    let place = target.field("url").and_then(forward::Place::from_url);
    let place = place.ok_or_else(|| target.missing("url inside the cluster"))?;
    let endpoint = target.field("endpoint").filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.ok_or_else(|| target.missing("endpoint"))?;
    if endpoint.contains(&place.host()) {
        return Ok(entry);
    }
    if endpoint::plain(endpoint).is_none() {
        return Err(target.missing("valid endpoint"));
    }
    // The certificate names the inside address, regardless of the load balancer's name.
    entry.cluster["server"] = endpoint.into();
    entry.cluster["tls-server-name"] = place.host().into();
    Ok(entry)
}

/// The type of the cluster: `gke`, `eks`, `aks` or `vcluster`.
fn kind(target: &Target) -> &str {
    match target.environment.kind.as_str() {
        "ApplicationEnvironment" => "gke",
        _ => target.field("type").unwrap_or("vcluster"),
    }
}

/// Reads the entry of a kubeconfig's current context, or of its first cluster.
fn read(text: &str) -> Option<Entry> {
    let all: Value = serde_saphyr::from_str(text).ok()?;
    let current = named(&all, "contexts", all["current-context"].as_str());
    let of = |list: &str, kind: &str, fields: &[&str]| {
        let name = current.and_then(|context| context["context"][kind].as_str());
        let body = named(&all, list, name)?[kind].as_object()?;
        let kept = fields
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), body.get(*field)?.clone())));
        Some(Value::Object(kept.collect::<Map<_, _>>()))
    };
    let cluster = of("clusters", "cluster", &CLUSTER)?;
    cluster["server"].as_str()?;
    let user = of("users", "user", &USER).unwrap_or_else(|| Value::Object(Map::new()));
    Some(Entry { cluster, user })
}

/// The element of that name in a list, or the first element without a name.
fn named<'v>(all: &'v Value, list: &str, name: Option<&str>) -> Option<&'v Value> {
    let list = all[list].as_array()?;
    match name {
        Some(name) => list.iter().find(|one| one["name"] == name),
        None => list.first(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn kubeconfig_gives_addresses_and_credentials_without_programs() {
        let text = json!({
            "current-context": "b",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}},
                {"name": "b", "context": {"cluster": "b", "user": "b"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://a"}},
                {"name": "b", "cluster": {"server": "https://b", "certificate-authority-data": "Q0E=",
                    "certificate-authority": "/etc/passwd", "proxy-url": "http://evil"}}],
            "users": [{"name": "b", "user": {"token": "t", "exec": {"command": "evil"}, "tokenFile": "/etc/shadow"}}],
        })
        .to_string();
        let entry = read(&text).unwrap();
        assert_eq!(
            entry.cluster,
            json!({"server": "https://b", "certificate-authority-data": "Q0E="})
        );
        assert_eq!(entry.user, json!({"token": "t"}));
    }

    #[test]
    fn kubeconfig_without_contexts_uses_its_only_cluster() {
        let entry = read("clusters: [{name: x, cluster: {server: https://x}}]").unwrap();
        assert_eq!((entry.cluster, entry.user), (json!({"server": "https://x"}), json!({})));
        for strange in [
            "",
            "3",
            "[]",
            "clusters: 3",
            "clusters: [{cluster: {}}]",
            "a: [",
            "clusters: [{name: x}]",
        ] {
            assert!(read(strange).is_none(), "{strange}");
        }
    }
}
