//! `paved ssh known-hosts`: the host keys of a workspace.
//!
//! The user's `known_hosts` has the accepted keys under the ID of the instance, because addresses
//! are reassigned to other machines, and IDs are not.

use std::path::Path;
use std::process::Command;

use super::folder;
use crate::Console;
use crate::cli::SshKnownHosts;
use crate::connect::{find_workspace, instance_id};
use crate::failure::Failure;
use crate::ssh_host::{self as host, Host};
use crate::style::command;

/// The keys that an administrator of this machine has accepted for all users.
const GLOBAL: &str = "/etc/ssh/ssh_known_hosts";

/// Prints the keys under the name that OpenSSH looks up.
pub(super) async fn run(args: &SshKnownHosts, console: &mut Console<'_>) -> Result<(), Failure> {
    let host = Host::parse(without_port(&args.name))?;
    let (cluster, found) = find_workspace(&args.access, &host).await?;
    let metadata = &found.object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let title = format!("{} {namespace}/{name}", found.kind.name());
    let id = instance_id(&found.object).ok_or_else(|| Failure::Provisioning {
        what: title.clone(),
        message: "has no machine yet, so its host key is not known".to_owned(),
    })?;
    let mut keys = Vec::new();
    for file in [folder()?.join("known_hosts"), GLOBAL.into()] {
        keys.extend(accepted(&id, &file)?);
    }
    let whole = host::whole(&name, &namespace);
    if keys.is_empty() {
        let named = if host.has_domain { &args.name } else { &whole };
        let ask = command(&format!(
            "ssh -o KnownHostsCommand=none -o UserKnownHostsFile=~/.ssh/known_hosts -o \
             StrictHostKeyChecking=ask -o HostKeyAlias={id} {named}"
        ));
        return Err(Failure::Provisioning {
            what: title,
            message: format!(
                "has no known host key: ~/.ssh/known_hosts has none for its instance {id}. Look at \
                 the key once, and accept it: {ask}"
            ),
        });
    }
    let names = if host.has_domain {
        args.name.clone()
    } else {
        let is_default = !cluster.is_namespace_chosen && cluster.namespace == namespace;
        let short = host::short(&name).filter(|_| is_default);
        std::iter::once(whole).chain(short).collect::<Vec<_>>().join(",")
    };
    for Key { marker, key } in keys {
        writeln!(console.out, "{marker}{names} {key}")?;
    }
    Ok(())
}

/// A name without the brackets and the port that OpenSSH adds for another port than 22.
fn without_port(text: &str) -> &str {
    let inner = text.strip_prefix('[').and_then(|rest| rest.rsplit_once("]:"));
    inner.filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(text, |(host, _)| host)
}

/// A line of `known_hosts` without its names.
#[derive(Debug, PartialEq)]
struct Key {
    /// Empty, `@revoked ` or `@cert-authority `.
    marker: String,
    /// Type, key and comment.
    key: String,
}

/// The keys in a file under this name, which may be hashed.
fn accepted(id: &str, file: &Path) -> Result<Vec<Key>, Failure> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let output = Command::new("ssh-keygen").args(["-F", id, "-f"]).arg(file).output();
    let output = output.map_err(|error| {
        Failure::Usage(format!("could not run ssh-keygen: {error}. Install the OpenSSH client"))
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(key).collect())
}

fn key(line: &str) -> Option<Key> {
    let mut words = line.split_whitespace().peekable();
    if words.peek()?.starts_with('#') {
        return None;
    }
    let marker = words.next_if(|word| word.starts_with('@'));
    let marker = marker.map_or(String::new(), |marker| format!("{marker} "));
    words.next()?;
    let key = words.collect::<Vec<_>>().join(" ");
    (!key.is_empty()).then_some(Key { marker, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_known_hosts_has_marker_and_key() {
        let some =
            |marker: &str, key: &str| Some(Key { marker: marker.to_owned(), key: key.to_owned() });
        assert_eq!(key("# Host i-1 found: line 3"), None);
        assert_eq!(key("i-1 ssh-ed25519 AAAA me"), some("", "ssh-ed25519 AAAA me"));
        assert_eq!(key("|1|a=|b= ssh-rsa B"), some("", "ssh-rsa B"));
        assert_eq!(key("@revoked i-1 ssh-rsa B"), some("@revoked ", "ssh-rsa B"));
        assert_eq!((key(""), key("i-1")), (None, None));
    }

    #[test]
    fn port_of_a_name_is_not_part_of_the_name() {
        for (text, host) in [
            ("ada.paved", "ada.paved"),
            ("[ada.paved]:2222", "ada.paved"),
            ("[ada.paved]:x", "[ada.paved]:x"),
        ] {
            assert_eq!(without_port(text), host);
        }
    }
}
