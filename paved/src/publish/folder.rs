//! The files in the site's folder, and only these.
//!
//! Every file is opened beneath the folder, by means of the operating system if available. Neither
//! links nor names can leave the folder, even if they change during the run.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType};

use super::{multipart, shown};
use crate::Console;
use crate::failure::Failure;

/// The only hidden folder that belongs to a site (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// Why a link is rejected although the file is inside the folder.
const LINK_TO_HIDDEN: &str = "is a link to a hidden file, which paved does not publish";

/// S3's maximum length of a key, in bytes.
const LONGEST_KEY: usize = 1024;

/// A folder at the time when it was opened.
pub(super) struct Folder {
    root: Dir,
    pub(super) files: Vec<File>,
    /// Hidden files and folders, which are not published.
    hidden: Vec<String>,
}

/// A file of the site.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File {
    /// The path in the folder, with slashes. It is also the key in the bucket.
    pub(super) key: String,
    /// In bytes.
    pub(super) size: u64,
}

impl File {
    /// The failure for a file that cannot be read.
    pub(super) fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::Usage(format!("{}: cannot be read: {error}", shown(&self.key)))
    }
}

impl Folder {
    /// Reads the names and sizes of all files. Reports all files that cannot be published at once.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let named = shown_path(path);
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| {
            Failure::Usage(format!("could not read the folder {named}: {error}"))
        })?;
        let mut folder = Self { root, files: Vec::new(), hidden: Vec::new() };
        let mut failures = Vec::new();
        folder.walk(Path::new(""), &mut failures);
        Failure::combine(
            failures.into_iter().map(|why| Failure::Usage(format!("{named}: {why}"))).collect(),
        )?;
        if folder.files.is_empty() {
            return Err(Failure::Usage(format!("{named} has no files. Nothing was published")));
        }
        folder.files.sort_by(|a, b| a.key.cmp(&b.key));
        folder.hidden.sort();
        Ok(folder)
    }

    /// Opens one of the files.
    pub(super) fn read(&self, key: &str) -> io::Result<fs::File> {
        // A link may have been added or changed since the folder was listed.
        let path = self.root.canonicalize(key)?;
        if has_hidden(&path) {
            return Err(io::Error::other(LINK_TO_HIDDEN));
        }
        Ok(self.root.open(path)?.into_std())
    }

    /// Whether the folder has the start page of a site.
    pub(super) fn has_start(&self) -> bool {
        self.files.binary_search_by(|file| file.key.as_str().cmp("index.html")).is_ok()
    }

    /// Prints notes about skipped files and a missing start page.
    pub(super) fn notes(&self, console: &mut Console<'_>) -> io::Result<()> {
        if !self.hidden.is_empty() {
            let names = self.hidden.join(", ");
            writeln!(console.err, "note: skipped hidden files (except {WELL_KNOWN}): {names}")?;
        }
        if !self.has_start() {
            writeln!(
                console.err,
                "note: the folder has no index.html. Check that it is the folder of the build"
            )?;
        }
        Ok(())
    }

    fn walk(&mut self, at: &Path, failures: &mut Vec<String>) {
        let listed =
            if at.as_os_str().is_empty() { self.root.entries() } else { self.root.read_dir(at) };
        let entries = listed.and_then(|entries| {
            let each = entries
                .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))));
            each.collect::<io::Result<Vec<_>>>()
        });
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                return failures.push(format!("{}: cannot be read: {error}", shown_path(at)));
            }
        };
        for (name, kind) in entries {
            let path = at.join(&name);
            if is_hidden(&name) {
                self.hidden.push(shown_path(&path));
            } else if kind.is_dir() {
                self.walk(&path, failures);
            } else if let Err(why) = self.take(&path, kind) {
                failures.push(format!("{}: {why}", shown_path(&path)));
            }
        }
    }

    fn take(&mut self, path: &Path, kind: FileType) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("cannot be read: {error}");
        let metadata = if kind.is_symlink() {
            let outside = |error| {
                format!("is a broken link, or a link to a file outside the folder: {error}")
            };
            if has_hidden(&self.root.canonicalize(path).map_err(outside)?) {
                return Err(LINK_TO_HIDDEN.to_owned());
            }
            self.root.metadata(path).map_err(outside)?
        } else {
            self.root.symlink_metadata(path).map_err(unreadable)?
        };
        if metadata.is_dir() {
            return Err(
                "is a link to a folder; allowed: links to files of the same folder".to_owned()
            );
        }
        if !metadata.is_file() {
            return Err("is not a file or folder".to_owned());
        }
        let size = metadata.len();
        if size > multipart::LARGEST {
            return Err(format!("has {size} bytes; allowed: at most {}", multipart::LARGEST));
        }
        self.files.push(File { key: key(path)?, size });
        Ok(())
    }
}

/// Whether a file or folder with that name is skipped.
fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && name != WELL_KNOWN
}

/// Whether a path in the folder contains a hidden name.
fn has_hidden(path: &Path) -> bool {
    path.components().any(|part| matches!(part, Component::Normal(name) if is_hidden(name)))
}

fn shown_path(path: &Path) -> String {
    shown(&path.display().to_string())
}

/// The key of a file: its path with slashes, as in a URL's path.
fn key(path: &Path) -> Result<String, String> {
    let names: Option<Vec<&str>> = path.iter().map(|name| name.to_str()).collect();
    let key = names.ok_or("its name is not UTF-8. Rename the file")?.join("/");
    if key.chars().any(char::is_control) {
        return Err("its name has a control character".to_owned());
    }
    if key.len() > LONGEST_KEY {
        return Err(format!("its path has {} bytes; allowed: at most {LONGEST_KEY}", key.len()));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    fn keys(path: &Path) -> Result<Vec<String>, String> {
        let folder = Folder::open(path).map_err(|failure| {
            assert_eq!(failure.code(), 1);
            let mut told = Vec::new();
            failure.print(&mut told).unwrap();
            String::from_utf8(told).unwrap()
        })?;
        Ok(folder.files.into_iter().map(|file| file.key).collect())
    }

    fn site() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("index.html", "<p>"), ("assets/a b.css", "p {}"), (".well-known/x", "x")]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn keys_are_paths_and_hidden_files_are_left_out() {
        let site = site();
        fs::write(site.path().join(".env"), "SECRET=1").unwrap();
        fs::create_dir(site.path().join(".git")).unwrap();
        fs::write(site.path().join(".git/config"), "x").unwrap();
        assert_eq!(keys(site.path()).unwrap(), [".well-known/x", "assets/a b.css", "index.html"]);
        assert_eq!(Folder::open(site.path()).unwrap().hidden, [".env", ".git"]);
    }

    #[test]
    fn a_link_to_a_file_of_the_same_folder_is_that_file() {
        let site = site();
        symlink("../index.html", site.path().join("assets/home.html")).unwrap();
        assert!(keys(site.path()).unwrap().contains(&"assets/home.html".to_owned()));
    }

    #[test]
    fn link_to_a_hidden_file_is_rejected() {
        let site = site();
        fs::write(site.path().join(".env"), "SECRET=1").unwrap();
        fs::create_dir(site.path().join(".git")).unwrap();
        fs::write(site.path().join(".git/config"), "token=1").unwrap();
        symlink(".env", site.path().join("public.txt")).unwrap();
        symlink("../.git/config", site.path().join("assets/config.txt")).unwrap();
        symlink("public.txt", site.path().join("twice.txt")).unwrap();
        let told = keys(site.path()).unwrap_err();
        for name in ["public.txt", "assets/config.txt", "twice.txt"] {
            assert!(
                told.contains(&format!("{name}: is a link to a hidden file")),
                "{name}: {told}"
            );
        }
    }

    #[test]
    fn link_to_a_hidden_file_that_is_made_later_is_not_read() {
        let site = site();
        fs::write(site.path().join(".env"), "SECRET=1").unwrap();
        symlink(".well-known/x", site.path().join("x")).unwrap();
        let folder = Folder::open(site.path()).unwrap();
        assert!(folder.read("x").is_ok(), "well-known files are public");
        fs::remove_file(site.path().join("x")).unwrap();
        symlink(".env", site.path().join("x")).unwrap();
        assert!(folder.read("x").is_err());
    }

    #[test]
    fn links_out_of_the_folder_are_rejected() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let site = site();
        symlink(outside.path().join("secret"), site.path().join("absolute")).unwrap();
        let up = format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
        symlink(up, site.path().join("relative")).unwrap();
        symlink(outside.path(), site.path().join("folder")).unwrap();
        symlink("nowhere", site.path().join("dangling")).unwrap();
        symlink(".", site.path().join("round")).unwrap();
        let told = keys(site.path()).unwrap_err();
        for name in ["absolute", "relative", "folder", "dangling"] {
            let line =
                format!("{name}: is a broken link, or a link to a file outside the folder: ");
            assert!(told.contains(&line), "{name}: {told}");
        }
        assert!(told.contains("round: is a link to a folder; allowed: links to files"), "{told}");
    }

    #[test]
    fn link_created_later_is_not_followed() {
        let site = site();
        let folder = Folder::open(site.path()).unwrap();
        fs::remove_file(site.path().join("index.html")).unwrap();
        symlink("/etc/hostname", site.path().join("index.html")).unwrap();
        assert!(folder.read("index.html").is_err());
        assert!(folder.read("../x").is_err() && folder.read("/etc/hostname").is_err());
    }

    #[test]
    fn folder_without_a_site_is_rejected() {
        let empty = tempfile::tempdir().unwrap();
        assert!(keys(empty.path()).unwrap_err().contains("has no files"));
        assert!(
            keys(&empty.path().join("none")).unwrap_err().contains("could not read the folder")
        );
        fs::write(empty.path().join("a\n::error::b\u{1b}[2J"), "").unwrap();
        let told = keys(empty.path()).unwrap_err();
        assert!(told.contains("a ::error::b[2J: its name has a control character"), "{told:?}");
    }
}
