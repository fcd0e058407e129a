//! CloudFront's edges, which keep what they have fetched: told to fetch it anew.

use std::time::Duration;

use aws_sdk_cloudfront::Client;
use aws_sdk_cloudfront::client::Waiters;
use aws_sdk_cloudfront::types::{InvalidationBatch, Paths};
use jiff::Timestamp;

use super::account::Account;
use super::trouble::{explain, failed};
use crate::Console;
use crate::failure::Failure;

/// Everything, which counts and costs as one path. Of files that are new, edges may keep that they
/// are not there.
const EVERYTHING: &str = "/*";

/// A distribution's edges, in somebody's hands.
pub(super) struct Edges {
    client: Client,
    distribution: String,
}

impl Edges {
    pub(super) fn new(account: &Account, distribution: &str) -> Self {
        Self { client: account.cloudfront(), distribution: distribution.to_owned() }
    }

    /// Whether an invalidation was begun since that moment, in seconds: a run that ended early has
    /// begun none. Where that cannot be read none was, as far as anybody knows.
    pub(super) async fn were_told_since(&self, moment: i64) -> bool {
        // The newest come first.
        let answer =
            self.client.list_invalidations().distribution_id(&self.distribution).send().await;
        let list = answer.ok().and_then(|answer| answer.invalidation_list);
        list.is_some_and(|list| list.items().iter().any(|one| one.create_time().secs() >= moment))
    }

    /// Lets every edge fetch the site anew, and waits until it does: from then on nobody is given
    /// the pages of before.
    pub(super) async fn renew(
        &self,
        longest: Duration,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let again = "the files are uploaded. Run the command again to retry";
        let Some(id) = self.begin(again, console).await? else { return Ok(()) };
        let wait = self.client.wait_until_invalidation_completed();
        let wait = wait.distribution_id(&self.distribution).id(&id);
        if wait.wait(longest.max(Duration::from_secs(1))).await.is_err() {
            writeln!(
                console.err,
                "note: could not confirm that CloudFront finished invalidation {id} of \
                 distribution {}",
                self.distribution
            )?;
        }
        Ok(())
    }

    /// Lets every edge forget what was deleted, without waiting for it. The bucket keeps no mark of
    /// that by which another run could know.
    pub(super) async fn forget(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let again = "stale files are deleted, but edges may still serve them. Run the command \
                     again with --invalidate";
        self.begin(again, console).await.map(drop)
    }

    /// The invalidation's id, where the caller may begin one; `again` says what follows from a
    /// failure. Who may upload may not always: edges ask for what was published here anew by
    /// themselves, as its headers say, so that it is worth a note.
    async fn begin(
        &self,
        again: &str,
        console: &mut Console<'_>,
    ) -> Result<Option<String>, Failure> {
        let act = format!("invalidate CloudFront distribution {}", self.distribution);
        let paths = Paths::builder().quantity(1).items(EVERYTHING).build();
        let batch = paths.and_then(|paths| {
            InvalidationBatch::builder().paths(paths).caller_reference(reference()).build()
        });
        let batch = batch.map_err(|error| failed(&act, &error.to_string()))?;
        let request = self.client.create_invalidation().distribution_id(&self.distribution);
        let act = format!("{act} ({again})");
        match request.invalidation_batch(batch).send().await.map_err(|error| explain(&error, &act))
        {
            Ok(answer) => Ok(answer.invalidation.map(|invalidation| invalidation.id)),
            Err(Failure::NoAccess { message, .. }) => {
                let kept = "the files are uploaded. Edges serve older files until they expire";
                writeln!(console.err, "note: {message}; {kept}")?;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Two invalidations of the same reference are one.
fn reference() -> String {
    format!("paved-{}-{}", Timestamp::now().as_nanosecond(), std::process::id())
}
