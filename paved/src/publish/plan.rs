//! Compares the folder with the bucket, and plans the uploads and deletions.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use indicatif::HumanBytes;
use tokio::task::spawn_blocking;

use super::bucket::Stored;
use super::folder::{File, Folder};
use super::headers::{Headers, Rules, Turn};
use super::multipart;
use super::{Site, shown};
use crate::Console;
use crate::cli::Publish;
use crate::failure::Failure;
use crate::style::{BOLD, DIM, harmless};

/// The number of files that are read at once for the comparison.
const CONCURRENCY: usize = 8;

/// The planned uploads and deletions.
pub(super) struct Plan {
    /// The files to upload, by turn.
    pub(super) turns: Vec<Vec<Upload>>,
    pub(super) unchanged: usize,
    /// The objects that the folder does not have, if they are deleted.
    pub(super) stale: Vec<String>,
    /// The number of such objects, if they are not deleted.
    left: usize,
    delete: bool,
    /// The time of the newest object before the upload, in seconds.
    pub(super) newest: i64,
}

/// A file to upload.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) file: File,
    pub(super) headers: Headers,
    /// Whether the bucket is known to have another object with this key.
    replaces: bool,
}

impl Plan {
    /// Compares the files with the objects. A file of another size is not read.
    pub(super) async fn new(
        folder: &Folder,
        rules: &Rules,
        stored: BTreeMap<String, Stored>,
        args: &Publish,
    ) -> Result<Self, Failure> {
        let compared = stream::iter(&folder.files).map(|file| {
            let there = stored.get(&file.key).filter(|_| !args.all);
            async move { Ok::<_, Failure>((file, is_same(folder, file, there).await?)) }
        });
        let compared: Vec<(&File, bool)> = compared.buffered(CONCURRENCY).try_collect().await?;
        let changed = compared.iter().filter(|(_, same)| !same).map(|(file, _)| *file);
        let mut turns = vec![Vec::new(); Turn::ALL.len()];
        for file in changed {
            let upload = Upload {
                file: file.clone(),
                headers: rules.headers(&file.key),
                replaces: !args.all && stored.contains_key(&file.key),
            };
            turns[rules.turn(&file.key) as usize].push(upload);
        }
        let newest = stored.values().map(|one| one.written).max().unwrap_or_default();
        let here = |key: &String| folder.files.binary_search_by(|file| file.key.cmp(key)).is_ok();
        let stale: Vec<String> = stored.into_keys().filter(|key| !here(key)).collect();
        let (left, stale) = if args.delete { (0, stale) } else { (stale.len(), Vec::new()) };
        let unchanged = compared.iter().filter(|(_, same)| *same).count();
        Ok(Self { turns, unchanged, stale, left, delete: args.delete, newest })
    }

    fn all(&self) -> impl Iterator<Item = &Upload> {
        self.turns.iter().flatten()
    }

    /// The number of files to upload.
    pub(super) fn uploads(&self) -> usize {
        self.all().count()
    }

    /// The total size of the uploads, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.all().map(|upload| upload.file.size).sum()
    }

    /// Warns about changed files that browsers cache.
    pub(super) fn notes(&self, console: &mut Console<'_>) -> std::io::Result<()> {
        const SHOWN: usize = 3;
        let odd: Vec<&str> = self.turns[Turn::Asset as usize]
            .iter()
            .filter(|upload| upload.replaces)
            .map(|upload| upload.file.key.as_str())
            .collect();
        if !odd.is_empty() {
            let names = odd.iter().take(SHOWN).map(|key| shown(key)).collect::<Vec<_>>().join(", ");
            let more = if odd.len() > SHOWN {
                format!(" and {} more", odd.len() - SHOWN)
            } else {
                String::new()
            };
            writeln!(
                console.err,
                "note: browsers cache these changed files for a year: {names}{more}. Use --all \
                 --revalidate GLOB to make browsers revalidate them"
            )?;
        }
        Ok(())
    }

    /// Prints every step, for a dry run.
    pub(super) fn print(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        for Upload { file, headers, .. } in self.all() {
            let (size, key) = (HumanBytes(file.size).to_string(), shown(&file.key));
            let Headers { content_type, cache_control } = headers;
            writeln!(
                console.out,
                "would upload {key}  {DIM}{size}, {content_type}, {cache_control}{DIM:#}"
            )?;
        }
        for key in &self.stale {
            writeln!(console.out, "would delete {}", shown(key))?;
        }
        writeln!(console.out, "nothing is changed: {}", self.counts(["to upload", "to delete"]))?;
        Ok(())
    }

    /// Prints the result.
    pub(super) fn summary(&self, site: &Site, console: &mut Console<'_>) -> Result<(), Failure> {
        let counts = self.counts(["uploaded", "deleted"]);
        writeln!(console.out, "{BOLD}{}{BOLD:#}: {counts}", site.environment)?;
        if let Some(url) = &site.url {
            writeln!(console.out, "  {}", harmless(url))?;
        }
        console.out.flush()?;
        Ok(())
    }

    fn counts(&self, [uploaded, deleted]: [&str; 2]) -> String {
        let (uploads, bytes) = (self.uploads(), HumanBytes(self.bytes()));
        let stale = match (self.delete, self.left) {
            (true, _) => format!(", {} {deleted}", self.stale.len()),
            (false, 0) => String::new(),
            (false, left) => format!(", {left} stale (use --delete to delete them)"),
        };
        format!("{uploads} {uploaded} ({bytes}), {} unchanged{stale}", self.unchanged)
    }
}

/// Whether the bucket has a file with the same content.
async fn is_same(folder: &Folder, file: &File, there: Option<&Stored>) -> Result<bool, Failure> {
    let Some(there) = there.filter(|there| there.size == file.size) else { return Ok(false) };
    let (opened, size) =
        (folder.read(&file.key).map_err(|error| file.unreadable(&error))?, file.size);
    let sum = spawn_blocking(move || multipart::etag(&opened, size))
        .await
        .map_err(std::io::Error::other)?;
    Ok(sum.map_err(|error| file.unreadable(&error))? == there.etag)
}
