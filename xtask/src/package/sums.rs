//! `SHA256SUMS`: the digests of everything in a folder, as `sha256sum --check` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::image;

/// The file's name.
const SUMS: &str = "SHA256SUMS";

/// Writes the file; gives what is in it.
pub fn write(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for (name, digest) in digests(folder)? {
        writeln!(text, "{digest}  {name}")?;
    }
    let file = folder.join(SUMS);
    fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
    Ok(text)
}

/// The files of `second` that are not in `first` byte by byte.
pub fn differing(first: &Path, second: &Path) -> Result<Vec<String>> {
    let first: BTreeSet<_> = digests(first)?.into_iter().collect();
    let second = digests(second)?.into_iter();
    Ok(second.filter(|file| !first.contains(file)).map(|(name, _)| name).collect())
}

fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.is_file() && name != SUMS {
            let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            digests.insert(name, image::sha256(&content));
        }
    }
    Ok(digests)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_that_changed_is_named() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for folder in &folders {
            fs::write(folder.path().join("same"), "x").unwrap();
        }
        fs::write(folders[1].path().join("other"), "y").unwrap();
        write(folders[0].path()).unwrap();
        assert_eq!(differing(folders[0].path(), folders[1].path()).unwrap(), ["other"]);
        let sums = write(folders[1].path()).unwrap();
        assert!(
            sums.contains("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  same\n"),
            "{sums}"
        );
    }
}
