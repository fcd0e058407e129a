#![allow(clippy::unwrap_used)]
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const THEIRS: &str = "\
apiVersion: v1
kind: Config
current-context: work
preferences: {colors: true}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: '007'}
clusters:
- name: work
  cluster: {server: https://work.example.org}
users:
- name: me
  user: {token: hunter2}
";

fn entry(server: &str) -> Entry {
    Entry { cluster: json!({"server": server}), user: json!({"token": "t"}) }
}

fn home(text: Option<&str>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".kube/config");
    if let Some(text) = text {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    (folder, path)
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn existing_entries_stay_unchanged() {
    let (_home, path) = home(Some(THEIRS));
    add(&path, "paved/team/a", &entry("https://a"), "u", false).unwrap();
    let (before, after): (Value, Value) = (serde_saphyr::from_str(THEIRS).unwrap(), read(&path));
    for field in ["apiVersion", "kind", "current-context", "preferences"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    for list in ["contexts", "clusters", "users"] {
        assert_eq!(after[list][0], before[list][0], "{list}");
        assert_eq!(after[list][1]["name"], "paved/team/a", "{list}");
    }
    assert_eq!(after["clusters"][1]["cluster"]["server"], "https://a");
    let known: kube::config::Kubeconfig = serde_json::from_value(after).unwrap();
    assert_eq!(known.contexts.len(), 2);
}

#[test]
fn a_new_file_is_for_its_owner_alone() {
    let (_home, path) = home(None);
    add(&path, "a", &entry("https://a"), "u", false).unwrap();
    assert_eq!(read(&path)["current-context"], "a");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "a lock or a temporary file remains"
    );
}

#[test]
fn own_entry_is_replaced_and_foreign_entry_is_kept() {
    let (_home, path) = home(Some(THEIRS));
    add(&path, "a", &entry("https://a"), "u", false).unwrap();
    add(&path, "a", &entry("https://b"), "u", false).unwrap();
    assert_eq!(read(&path)["clusters"][1]["cluster"]["server"], "https://b");
    let text = fs::read_to_string(&path).unwrap();
    for (name, uid) in [("a", "another"), ("work", "u"), ("me", "u")] {
        let told = add(&path, name, &entry("https://c"), uid, false).unwrap_err();
        assert_eq!(told.code(), 1);
        assert!(told.to_string().contains("--replace"), "{told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name}");
    }
    add(&path, "work", &entry("https://c"), "u", true).unwrap();
    assert_eq!(read(&path)["clusters"][0]["cluster"]["server"], "https://c");
    assert_eq!(read(&path)["users"].as_array().unwrap().len(), 3, "the user `me` stays");
}

#[test]
fn added_entry_is_removed_unless_it_was_changed() {
    let (_home, path) = home(Some(THEIRS));
    add(&path, "a", &entry("https://a"), "u", false).unwrap();
    assert!(!remove(&path, "a", &entry("https://another")).unwrap(), "the entry has changed");
    assert!(remove(&path, "a", &entry("https://a")).unwrap());
    assert_eq!(read(&path), serde_saphyr::from_str::<Value>(THEIRS).unwrap());
    assert!(!remove(&path, "a", &entry("https://a")).unwrap());

    let (_home, path) = home(None);
    add(&path, "a", &entry("https://a"), "u", false).unwrap();
    assert!(remove(&path, "a", &entry("https://a")).unwrap());
    assert_eq!(read(&path)["current-context"], "");
}

#[test]
fn a_link_stays_a_link() {
    let (home, path) = home(Some(THEIRS));
    let link = home.path().join("link");
    symlink(&path, &link).unwrap();
    add(&link, "a", &entry("https://a"), "u", false).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&path)["clusters"].as_array().unwrap().len(), 2);
}

#[test]
fn link_to_a_missing_file_is_followed() {
    let (home, path) = home(None);
    let link = home.path().join("link");
    symlink(".kube/config", &link).unwrap();
    add(&link, "a", &entry("https://a"), "u", false).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&path)["contexts"][0]["name"], "a");
    let round = home.path().join("round");
    symlink("round", &round).unwrap();
    assert!(add(&round, "a", &entry("https://a"), "u", false).is_err());
    assert!(fs::symlink_metadata(&round).unwrap().is_symlink());
}

#[test]
fn pipe_device_or_folder_is_unchanged() {
    let (home, _) = home(None);
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let link = home.path().join("null");
    symlink("/dev/null", &link).unwrap();
    for path in [pipe.as_path(), &link, home.path()] {
        let failure = add(path, "a", &entry("https://a"), "u", false).unwrap_err();
        assert!(failure.to_string().contains("not a regular file"), "{failure}");
        assert!(!fs::metadata(path).unwrap().is_file(), "{}", path.display());
    }
}

#[test]
fn malformed_kubeconfig_stays_unchanged() {
    for text in ["[1, 2]", "contexts: 3", "a: [", "just a text"] {
        let (_home, path) = home(Some(text));
        let told = add(&path, "a", &entry("https://a"), "u", false).unwrap_err();
        assert_eq!(told.code(), 1, "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn locked_kubeconfig_is_not_written() {
    let (_home, path) = home(Some(THEIRS));
    let lock = path.with_file_name("config.lock");
    fs::write(&lock, "").unwrap();
    let told = add(&path, "a", &entry("https://a"), "u", false).unwrap_err().to_string();
    assert!(told.contains("config.lock"), "{told}");
    assert!(lock.exists(), "the lock belongs to another program");
}
