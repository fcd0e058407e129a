//! `paved ssh config`: writes the entries of workspaces into a configuration file of OpenSSH.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use function_paved_road::apis::ConnectionTarget;
use paved_client::cluster::{Kinds, context};

use super::block::Parts;
use super::entry::{Commands, Workspace};
use super::folder;
use crate::Console;
use crate::cli::SshConfig;
use crate::connect::USER;
use crate::failure::Failure;
use crate::list::Place;
use crate::outputs::file::replace;
use crate::ssh_host as host;
use crate::style::harmless_name;

/// The first OpenSSH with `KnownHostsCommand`. Earlier ones reject the whole file.
const FIRST_VERSION: (u32, u32) = (8, 5);

/// Writes the entries, or removes them.
pub(super) async fn run(args: &SshConfig, console: &mut Console<'_>) -> Result<(), Failure> {
    let usual = folder()?.join("config");
    let path = args.file.clone().unwrap_or_else(|| usual.clone());
    if args.remove {
        return remove(&path, console);
    }
    check_version(console)?;
    let access = (&args.access).into();
    let context = context(&access)?;
    let kubeconfig = args.access.kubeconfig.clone().or_else(|| named_kubeconfig(console));
    let flags = [(args.start, "--start"), (args.ssm, "--ssm")];
    let commands = Commands::new(&args.access, kubeconfig.as_deref(), context.as_deref(), &flags)?;
    // A damaged block is an error before the requests.
    let before = read(&path)?;
    let parts = parts(&path, &before)?;
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?.with_target(ConnectionTarget::Machine);
    let default = cluster.namespace.clone();
    let namespace = (!args.all_namespaces).then(|| default.clone());
    let title = title(context.as_deref(), namespace.as_deref(), kubeconfig.as_deref());
    let kinds = kinds.all().to_vec();
    let place = Place { cluster, kinds, namespace, labels: None, expiring: None };
    let named = |object: kube::api::DynamicObject| {
        let metadata = object.metadata;
        metadata
            .deletion_timestamp
            .is_none()
            .then(|| (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default()))
    };
    let found = place.all(console, |_, object| named(object)).await?;
    let workspaces = workspaces(found.into_iter().flatten(), &default, console)?;
    let entries: String = workspaces.iter().map(|one| commands.entry(one)).collect();
    let after = parts.with(&title, &entries, &commands.rest(USER));
    let is_changed = write(&path, &before, &after)?;
    tell(&path, &title, &workspaces, is_changed, console)?;
    if path != usual {
        writeln!(
            console.err,
            "note: OpenSSH reads this file only if the first line of {} is: Include {}",
            usual.display(),
            std::path::absolute(&path)?.display()
        )?;
    }
    Ok(())
}

/// The kubeconfig in `$KUBECONFIG`. Programs with a window do not have the variable of a shell.
fn named_kubeconfig(console: &mut Console<'_>) -> Option<PathBuf> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    let first = paths.next()?;
    if paths.next().is_some() {
        // The command continues if the note cannot be written.
        _ = writeln!(
            console.err,
            "note: $KUBECONFIG has several files, so the entries need this variable"
        );
        return None;
    }
    Some(first)
}

/// The title of the section for these workspaces.
fn title(context: Option<&str>, namespace: Option<&str>, kubeconfig: Option<&Path>) -> String {
    let namespace = namespace.map_or("all namespaces".to_owned(), |one| format!("namespace {one}"));
    let context = context.map_or(String::new(), |context| format!(" of context {context:?}"));
    let file = kubeconfig.map_or(String::new(), |file| format!(" in {}", file.display()));
    format!("{namespace}{context}{file}")
}

/// The workspaces with an entry, by name. A note names each other one.
fn workspaces(
    found: impl Iterator<Item = (String, String)>,
    default: &str,
    console: &mut Console<'_>,
) -> Result<Vec<Workspace>, Failure> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for key in found {
        *counts.entry(key).or_default() += 1;
    }
    let mut all = Vec::new();
    for ((namespace, name), count) in counts {
        let workspace = Workspace::new(&name, &namespace, default).filter(|_| count == 1);
        if workspace.is_none() {
            let why = if count > 1 { "several workspaces" } else { "not a host name" };
            writeln!(
                console.err,
                "note: no entry for {}: {why}",
                harmless_name(&format!("{namespace}/{name}"))
            )?;
        }
        all.extend(workspace);
    }
    Ok(all)
}

/// Prints the entries of the file, and the next step.
fn tell(
    path: &Path,
    title: &str,
    workspaces: &[Workspace],
    is_changed: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let count = match workspaces.len() {
        0 => "no workspaces".to_owned(),
        1 => "1 workspace".to_owned(),
        count => format!("{count} workspaces"),
    };
    let state = if is_changed { "now has" } else { "already has" };
    writeln!(console.out, "{} {state} {count} of {title}", path.display())?;
    let names = |one: &Workspace| host::short(&one.name).filter(|_| one.is_default);
    for one in workspaces {
        let name = names(one).unwrap_or_else(|| host::whole(&one.name, &one.namespace));
        writeln!(console.out, "  ssh {name}")?;
    }
    if let Some(one) = workspaces.first() {
        let name = host::whole(&one.name, &one.namespace);
        writeln!(console.out, "VS Code: code --remote ssh-remote+{name} /home/{USER}")?;
    } else {
        writeln!(console.out, "Other workspaces: ssh NAME.NAMESPACE.paved")?;
    }
    Ok(())
}

/// Removes our block.
fn remove(path: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let before = read(path)?;
    match parts(path, &before)?.without(&before) {
        Some(after) => {
            write(path, &before, &after)?;
            writeln!(console.out, "removed the entries of paved from {}", path.display())?;
        }
        None => writeln!(console.out, "{} has no entries of paved", path.display())?,
    }
    Ok(())
}

fn parts<'t>(path: &Path, text: &'t str) -> Result<Parts<'t>, Failure> {
    Parts::of(text).map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))
}

/// The file's text. A missing file is empty.
fn read(path: &Path) -> Result<String, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("could not read {}: {error}", path.display()))
    };
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(wrong(&"not a regular file. Choose another file with --file"));
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(wrong(&error)),
    }
}

/// Replaces the file, and keeps its permissions. Returns whether it changed. OpenSSH rejects a file
/// that others may write, so a new file is the user's alone.
fn write(path: &Path, before: &str, after: &str) -> Result<bool, Failure> {
    if before == after {
        return Ok(false);
    }
    let replaced = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        replace(path, after)
    };
    let wrong = |error| Failure::Usage(format!("could not write {}: {error}", path.display()));
    replaced().map_err(wrong).map(|()| true)
}

/// An error for an OpenSSH that would reject the whole file.
fn check_version(console: &mut Console<'_>) -> Result<(), Failure> {
    let Ok(output) = Command::new("ssh").arg("-V").output() else {
        writeln!(console.err, "note: ssh is not installed: install the OpenSSH client")?;
        return Ok(());
    };
    let text = String::from_utf8_lossy(&output.stderr);
    match version(&text) {
        Some(found) if found < FIRST_VERSION => Err(Failure::Usage(format!(
            "found OpenSSH {}.{}; allowed: 8.5 or later, which has KnownHostsCommand. Nothing was \
             changed. Use `paved connect NAME`",
            found.0, found.1
        ))),
        _ => Ok(()),
    }
}

/// The version in the output of `ssh -V`: `OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("OpenSSH_")?;
    let (major, rest) = rest.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_openssh_is_read() {
        assert_eq!(version("OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19"), Some((9, 2)));
        assert_eq!(version("OpenSSH_10.0, LibreSSL 3.3.6"), Some((10, 0)));
        assert_eq!(version("OpenSSH_8.0p1"), Some((8, 0)));
        assert_eq!(version("Dropbear v2022.83"), None);
    }
}
