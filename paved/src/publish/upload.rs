//! Uploads many files at once. The memory does not grow with the number or size of the files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::bucket::Bucket;
use super::folder::Folder;
use super::multipart::{self, Part, Sum};
use super::plan::{Plan, Upload};
use super::progress::{Done, Progress};
use crate::Console;
use crate::failure::Failure;
use crate::signals;

/// The number of concurrent uploads of files and parts.
const CONCURRENCY: usize = 16;

/// Uploads the planned files, turn after turn. A failure or Ctrl-C stops the upload, and aborts
/// unfinished multipart uploads. The next run uploads the rest.
pub(super) async fn all(
    plan: &Plan,
    folder: &Folder,
    bucket: &Bucket,
    mut interrupt: Pin<&mut impl Future<Output = ()>>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let hands = Hands {
        folder,
        bucket,
        slots: Semaphore::new(CONCURRENCY),
        done: Done::default(),
        begun: Mutex::new(BTreeMap::new()),
    };
    let mut progress = Progress::new(plan.uploads(), plan.bytes(), console);
    let mut ended = Ok(());
    for turn in &plan.turns {
        ended = hands.turn(turn, &mut progress, interrupt.as_mut(), console).await;
        if ended.is_err() {
            break;
        }
    }
    progress.end();
    tokio::select! {
        () = hands.abort() => {}
        // A second signal skips the abort. The parts then remain until a run on another day aborts
        // them.
        () = signals::asked() => {}
    }
    ended
}

/// The shared state of all uploads.
struct Hands<'a> {
    folder: &'a Folder,
    bucket: &'a Bucket,
    slots: Semaphore,
    done: Done,
    /// Unfinished multipart uploads, as key by upload ID.
    begun: Mutex<BTreeMap<String, String>>,
}

impl Hands<'_> {
    async fn turn(
        &self,
        uploads: &[Upload],
        progress: &mut Progress,
        mut interrupt: Pin<&mut impl Future<Output = ()>>,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let mut running =
            stream::iter(uploads).map(|upload| self.upload(upload)).buffer_unordered(CONCURRENCY);
        let mut tick = interval(Progress::TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                uploaded = running.next() => match uploaded {
                    Some(uploaded) => uploaded?,
                    None => return Ok(()),
                },
                _ = tick.tick() => progress.show(&self.done, console)?,
                () = &mut interrupt => {
                    let told = "some files are uploaded, but no page without its assets. Run the \
                                command again";
                    return Err(Failure::Interrupted(told.to_owned()));
                }
            }
        }
    }

    async fn upload(&self, upload: &Upload) -> Result<(), Failure> {
        let unreadable = |error: &io::Error| upload.file.unreadable(error);
        let file =
            Arc::new(self.folder.read(&upload.file.key).map_err(|error| unreadable(&error))?);
        if multipart::is_whole(upload.file.size) {
            for part in multipart::split(upload.file.size) {
                self.whole(upload, &file, part).await?;
            }
        } else {
            self.in_parts(upload, &file).await?;
        }
        // A file that has grown meanwhile is incomplete in the bucket. The next run uploads it
        // again.
        let now = file.metadata().map_err(|error| unreadable(&error))?.len();
        if now != upload.file.size {
            return Err(unreadable(&io::Error::other("changed during the upload")));
        }
        self.done.file();
        Ok(())
    }

    async fn whole(
        &self,
        upload: &Upload,
        file: &Arc<fs::File>,
        part: Part,
    ) -> Result<(), Failure> {
        let _slot = self.slots.acquire().await.map_err(io::Error::other)?;
        let sum = sum(upload, file, part).await?;
        let body = part.body(Arc::clone(file));
        self.bucket.put(&upload.file.key, &upload.headers, body, sum).await?;
        self.done.bytes(part.bytes());
        Ok(())
    }

    async fn in_parts(&self, upload: &Upload, file: &Arc<fs::File>) -> Result<(), Failure> {
        let key = &upload.file.key;
        let id = self.bucket.begin(key, &upload.headers).await?;
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), key.clone());
        let sent = stream::iter(multipart::split(upload.file.size))
            .map(|part| self.part(upload, file, part, &id));
        let sent: Vec<String> = sent.buffered(CONCURRENCY).try_collect().await?;
        self.bucket.complete(key, &id, &sent).await?;
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        Ok(())
    }

    async fn part(
        &self,
        upload: &Upload,
        file: &Arc<fs::File>,
        part: Part,
        id: &str,
    ) -> Result<String, Failure> {
        let _slot = self.slots.acquire().await.map_err(io::Error::other)?;
        let sum = sum(upload, file, part).await?;
        let body = part.body(Arc::clone(file));
        let sent = self.bucket.part(&upload.file.key, id, part.number, body, sum).await?;
        self.done.bytes(part.bytes());
        Ok(sent)
    }

    async fn abort(&self) {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner));
        stream::iter(begun)
            .for_each_concurrent(CONCURRENCY, |(id, key)| async move {
                self.bucket.abort(&key, &id).await;
            })
            .await;
    }
}

/// A part's checksum, computed on a thread where waiting for the disk does not block other work.
async fn sum(upload: &Upload, file: &Arc<fs::File>, part: Part) -> Result<Sum, Failure> {
    let file = Arc::clone(file);
    let sum = spawn_blocking(move || part.sum(&file)).await.map_err(io::Error::other)?;
    sum.map_err(|error| upload.file.unreadable(&error))
}
