//! `SHA256SUMS`: the digests of the built files in a folder, in the format of `sha256sum --check`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::image;

/// The name of the file.
pub const FILE: &str = "SHA256SUMS";

/// Removes the files of an earlier run and their list. Packages of another API or registry
/// would otherwise be mistaken for new ones. Files that are not in the list stay.
pub fn forget(folder: &Path) -> Result<()> {
    let list = folder.join(FILE);
    if !list.is_file() {
        return Ok(());
    }
    let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let names = text.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name);
    // Only names, so that no file outside of the folder is removed.
    for name in names.filter(|name| !name.contains('/')) {
        remove(&folder.join(name))?;
    }
    remove(&list)
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("removing {}", file.display())),
    }
}

/// Writes the list of the built files, and returns its text.
pub fn write(folder: &Path, built: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for (name, digest) in digests(built)? {
        writeln!(text, "{digest}  {name}")?;
    }
    let file = folder.join(FILE);
    fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
    Ok(text)
}

/// The names of files that differ between two builds, or that only one of them has.
pub fn differing(first: &[PathBuf], second: &[PathBuf]) -> Result<Vec<String>> {
    let (first, second) = (digests(first)?, digests(second)?);
    let names = first.keys().chain(second.keys().filter(|name| !first.contains_key(*name)));
    Ok(names.filter(|name| first.get(*name) != second.get(*name)).cloned().collect())
}

fn digests(files: &[PathBuf]) -> Result<BTreeMap<String, String>> {
    let digest = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        Ok((name, image::sha256(&content)))
    };
    files.iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn built(folder: &Path, files: &[(&str, &str)]) -> Vec<PathBuf> {
        let write = |(name, content): &(&str, &str)| {
            let file = folder.join(name);
            fs::write(&file, content).unwrap();
            file
        };
        files.iter().map(write).collect()
    }

    #[test]
    fn changed_or_missing_file_is_named() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let first = built(folders[0].path(), &[("same", "x"), ("changed", "y"), ("gone", "x")]);
        let second = built(folders[1].path(), &[("same", "x"), ("changed", "z"), ("new", "x")]);
        assert_eq!(differing(&first, &second).unwrap(), ["changed", "gone", "new"]);
        let sums = write(folders[0].path(), &first[..1]).unwrap();
        assert_eq!(
            sums,
            "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  same\n"
        );
    }

    #[test]
    fn earlier_results_are_removed_and_other_files_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("packages");
        fs::create_dir(&folder).unwrap();
        let outside = built(home.path(), &[("outside", "x")]);
        let files = built(&folder, &[("function-amd64.xpkg", "x"), ("notes", "y")]);
        write(&folder, &files[..1]).unwrap();
        let list = fs::read_to_string(folder.join(FILE)).unwrap();
        fs::write(folder.join(FILE), format!("{list}00  ../outside\n00  gone\n")).unwrap();
        forget(&folder).unwrap();
        let left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes"]);
        assert!(outside[0].is_file());
        forget(&folder).unwrap();
    }
}
