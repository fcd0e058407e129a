//! A user's kubeconfig. Adds and removes one entry, and preserves everything else.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::documents;
use crate::failure::Failure;

/// The extension that marks a context as ours.
const OURS: &str = "paved-road";

/// A cluster and its user, as the bodies of a kubeconfig's entries.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) cluster: Value,
    pub(super) user: Value,
}

/// The kubeconfig to change. As in kubectl, the first file of `$KUBECONFIG`, or else the file in
/// the home directory.
pub(super) fn path(into: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = into {
        return Ok(path.to_owned());
    }
    let told = std::env::var_os("KUBECONFIG").unwrap_or_default();
    if let Some(first) = std::env::split_paths(&told).find(|path| !path.as_os_str().is_empty()) {
        return Ok(first);
    }
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home = home.ok_or_else(|| {
        Failure::Usage("no home directory. Pass a file with --into FILE".to_owned())
    })?;
    Ok(home.join(".kube/config"))
}

/// Adds context, cluster and user of one name, for the environment with this uid. Entries of
/// another environment stay, unless `replace` is set. The current context stays too, so that other
/// programs keep their cluster.
pub(super) fn add(
    path: &Path,
    name: &str,
    entry: &Entry,
    uid: &str,
    replace: bool,
) -> Result<(), Failure> {
    change(path, |before| merged(before, name, entry, uid, replace).map(Some)).map(drop)
}

/// Removes context, cluster and user of this name if they still have this entry. Returns whether
/// they were removed.
pub(super) fn remove(path: &Path, name: &str, entry: &Entry) -> Result<bool, Failure> {
    change(path, |before| Ok(without(before, name, entry)))
}

/// Whether the file has the context of this name for the environment with this uid.
pub(super) fn has(path: &Path, name: &str, uid: &str) -> Result<bool, Failure> {
    let wrong = |why: String| {
        Failure::Usage(format!("could not read kubeconfig {}: {why}", path.display()))
    };
    match fs::read_to_string(path) {
        Ok(text) => parsed(&text).map(|all| is_ours(&all, name, uid)).map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Replaces the file's content under kubectl's lock, unless `change` returns `None`. Returns
/// whether the file was written.
fn change(
    path: &Path,
    change: impl FnOnce(Value) -> Result<Option<Value>, String>,
) -> Result<bool, Failure> {
    let shown = path.display();
    let wrong = |error: io::Error| {
        Failure::Usage(format!(
            "could not write kubeconfig {shown}: \
             {error}"
        ))
    };
    let path = resolved(path).map_err(wrong)?;
    if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
        return Err(Failure::Usage(format!(
            "could not write kubeconfig {shown}: not a regular file. Choose another file with \
             --into FILE"
        )));
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(wrong)?;
    let _lock = Lock::take(&path).map_err(wrong)?;
    let before = match fs::read_to_string(&path) {
        Ok(text) => {
            parsed(&text).map_err(|why| Failure::Usage(format!("kubeconfig {shown}: {why}")))?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
        Err(error) => return Err(wrong(error)),
    };
    let after =
        change(before).map_err(|why| Failure::Usage(format!("kubeconfig {shown}: {why}")))?;
    let Some(after) = after else { return Ok(false) };
    let text = documents::yaml(&after)?;
    // Only the owner can read the temporary file. It replaces the kubeconfig atomically.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(wrong)?;
    file.persist(&path).map_err(|error| wrong(error.error))?;
    Ok(true)
}

/// The target of a link, even if it does not exist. The target is replaced, not the link.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    /// Linux follows at most this number of links.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

fn parsed(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let value: Value = serde_saphyr::from_str(text).map_err(|error| {
        format!("is not valid YAML: {}", error.to_string().lines().next().unwrap_or_default())
    })?;
    let lists = ["contexts", "clusters", "users"];
    let fits = value.is_object()
        && lists.iter().all(|list| value[*list].is_array() || value[*list].is_null());
    if fits { Ok(value) } else { Err("is not a kubeconfig. The file was not changed".to_owned()) }
}

/// A kubeconfig with the entry.
fn merged(
    mut all: Value,
    name: &str,
    entry: &Entry,
    uid: &str,
    replace: bool,
) -> Result<Value, String> {
    if all.is_null() {
        all = json!({"apiVersion": "v1", "kind": "Config", "current-context": name});
    }
    let taken = ["contexts", "clusters", "users"]
        .into_iter()
        .find(|list| position(&all, list, name).is_some());
    if let Some(list) = taken.filter(|_| !replace && !is_ours(&all, name, uid)) {
        return Err(format!(
            "{name} in {list} belongs to another cluster. Use --context-name for another name, or \
             --replace to overwrite it"
        ));
    }
    let mark = json!([{"name": OURS, "extension": {"environment": uid}}]);
    let context = json!({"cluster": name, "user": name, "extensions": mark});
    for (list, kind, body) in [
        ("contexts", "context", context),
        ("clusters", "cluster", entry.cluster.clone()),
        ("users", "user", entry.user.clone()),
    ] {
        put(&mut all, list, name, json!({"name": name, kind: body}));
    }
    Ok(all)
}

/// A kubeconfig without the entry. `None` if the entry does not exist or has changed.
fn without(mut all: Value, name: &str, entry: &Entry) -> Option<Value> {
    let index = position(&all, "clusters", name)?;
    if all["clusters"][index]["cluster"] != entry.cluster {
        return None;
    }
    for list in ["contexts", "clusters", "users"] {
        if let (Some(index), Some(entries)) = (position(&all, list, name), all[list].as_array_mut())
        {
            entries.remove(index);
        }
    }
    if all["current-context"] == name {
        all["current-context"] = "".into();
    }
    Some(all)
}

fn position(all: &Value, list: &str, name: &str) -> Option<usize> {
    all[list].as_array()?.iter().position(|one| one["name"] == name)
}

/// Whether we wrote the context of that name for this environment.
fn is_ours(all: &Value, name: &str, uid: &str) -> bool {
    let Some(index) = position(all, "contexts", name) else { return false };
    let context = &all["contexts"][index]["context"];
    let extensions = context["extensions"].as_array();
    let marked = extensions.into_iter().flatten().find(|one| one["name"] == OURS);
    marked.is_some_and(|mark| mark["extension"]["environment"] == uid)
        && context["cluster"] == name
        && context["user"] == name
}

fn put(all: &mut Value, list: &str, name: &str, body: Value) {
    if let Some(index) = position(all, list, name) {
        all[list][index] = body;
    } else if let Some(entries) = all[list].as_array_mut() {
        entries.push(body);
    } else {
        all[list] = json!([body]);
    }
}

/// kubectl's lock file beside the kubeconfig. kubectl does not write while the lock exists.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let begin = Instant::now();
        loop {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock) {
                Ok(_) => return Ok(Self(lock)),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && begin.elapsed() < LOCK_TIMEOUT =>
                {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(io::Error::other(format!(
                        "another program is writing to the file: {} exists. Delete it if no \
                         program uses it",
                        lock.display()
                    )));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
