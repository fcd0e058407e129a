//! Writes a file completely or not at all.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Checks whether the file can be written, without a change.
pub(super) fn try_out(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => beside(path).map(drop),
        Err(error) => Err(error),
    }
}

/// Replaces a file. For a link, its target is replaced. Special files, for example pipes, are
/// written in place. The same applies to files in folders without write permission.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(&path, text);
    }
    let made = beside(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Some(old) = &old {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.persist(&path).map_err(|error| error.error).map(drop)
    });
    match made {
        Err(error) if old.is_some() && in_place_only(error.kind()) => fs::write(&path, text),
        made => made,
    }
}

/// Whether the folder accepts no new file, or the file cannot be replaced, for example because it
/// is mounted into a container.
fn in_place_only(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    [PermissionDenied, ReadOnlyFilesystem, ResourceBusy].contains(&kind)
}

/// A temporary file beside the path, with the permissions of a new file.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| nameless(&error))
}

/// An error without the name of the temporary file, which the user does not know.
fn nameless(error: &io::Error) -> io::Error {
    error.kind().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn try_out_changes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        try_out(&path).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::write(&path, "before").unwrap();
        try_out(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert!(try_out(folder.path()).is_err(), "a folder");
        let told = try_out(Path::new("/no/such/folder/x")).unwrap_err().to_string();
        assert_eq!(told, "entity not found");
    }

    #[test]
    fn replaced_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("x"), folder.path().join("link"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, "1").unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert_eq!(mode(&path), mode(&plain), "the mode of a new file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        replace(&link, "2").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("2", 0o600));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
    }

    #[test]
    fn special_file_is_written_in_place() {
        replace(Path::new("/dev/null"), "x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
