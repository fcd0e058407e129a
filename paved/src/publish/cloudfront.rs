//! CloudFront's edges, which cache the site. An invalidation makes them fetch it again.

use std::time::Duration;

use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_http::label::{EncodingStrategy, fmt_string};
use aws_smithy_runtime::client::waiters::{AcceptorState, WaiterOrchestrator};
use jiff::Timestamp;

use super::credentials::Account;
use super::error::explain;
use super::service::{Answer, Refused, Service, element};
use crate::Console;
use crate::failure::Failure;

/// All paths, which count and cost as one path. Edges may also cache that a new file is missing.
const ALL_PATHS: &str = "/*";

/// The first and the longest delay between two reads of an invalidation, as in the SDK's waiter.
const DELAYS: [Duration; 2] = [Duration::from_secs(20), Duration::from_mins(10)];

/// A distribution's edges, with the caller's credentials.
pub(super) struct CloudFront {
    service: Service,
    distribution: String,
}

impl CloudFront {
    pub(super) fn new(account: &Account, distribution: &str) -> Self {
        Self { service: account.cloudfront(), distribution: distribution.to_owned() }
    }

    /// The path of the distribution's invalidations.
    fn path(&self) -> String {
        let distribution = fmt_string(&self.distribution, EncodingStrategy::Default);
        format!("/2020-05-31/distribution/{distribution}/invalidation")
    }

    /// Whether an invalidation began at that Unix time or later. An interrupted run may not have
    /// begun an invalidation. An unreadable list counts as empty.
    pub(super) async fn were_told_since(&self, moment: i64) -> bool {
        // The newest invalidations come first.
        let answer = self.service.send("GET", &self.path(), &[], "").await;
        let list = answer.map(|answer| answer.records("InvalidationSummary")).unwrap_or_default();
        list.iter()
            .filter_map(|one| one.get("CreateTime")?.parse::<Timestamp>().ok())
            .any(|begun| begun.as_second() >= moment)
    }

    /// Invalidates the site on all edges, and waits until CloudFront reports the completion.
    pub(super) async fn renew(
        &self,
        longest: Duration,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let again = "the files are uploaded. Run the command again to retry";
        let Some(id) = self.begin(again, console).await? else { return Ok(()) };
        let target = format!("{}/{}", self.path(), fmt_string(&id, EncodingStrategy::Default));
        let waiter = WaiterOrchestrator::builder()
            .min_delay(DELAYS[0])
            .max_delay(DELAYS[1])
            .max_wait(longest.max(Duration::from_secs(1)))
            .time_source(SharedTimeSource::default())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .operation(|| self.service.send("GET", &target, &[], ""))
            .acceptor(|answer: Result<&Answer, &Refused>| match answer {
                Ok(answer) if is_completed(answer) => AcceptorState::Success,
                _ => AcceptorState::NoAcceptorsMatched,
            });
        if waiter.build().orchestrate().await.is_err() {
            writeln!(
                console.err,
                "note: could not confirm that CloudFront finished invalidation {id} of \
                 distribution {}",
                self.distribution
            )?;
        }
        Ok(())
    }

    /// Invalidates deleted files on all edges, without waiting. A later run could not detect from
    /// the bucket that this invalidation is missing.
    pub(super) async fn forget(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let again = "stale files are deleted, but edges may still serve them. Run the command \
                     again with --invalidate";
        self.begin(again, console).await.map(drop)
    }

    /// Begins an invalidation and returns its ID. `again` is the advice after a failure. A role for
    /// uploads may lack the right to invalidate. In this case a note is enough, because edges obey
    /// the files' headers.
    async fn begin(
        &self,
        again: &str,
        console: &mut Console<'_>,
    ) -> Result<Option<String>, Failure> {
        let act = format!("invalidate CloudFront distribution {}", self.distribution);
        let act = format!("{act} ({again})");
        let paths = element("Path", ALL_PATHS);
        let reference = element("CallerReference", &reference());
        let body = format!(
            "<InvalidationBatch xmlns=\"http://cloudfront.amazonaws.com/doc/2020-05-31/\">\
             <Paths><Quantity>1</Quantity><Items>{paths}</Items></Paths>{reference}\
             </InvalidationBatch>"
        );
        let headers = [("content-type", "application/xml".to_owned())];
        let sent = self.service.send("POST", &self.path(), &headers, body).await;
        match sent.map_err(|error| explain(&error, &act)) {
            Ok(answer) => Ok(answer.record("Invalidation", &act)?.remove("Id")),
            Err(Failure::NoAccess { message, .. }) => {
                let kept = "the files are uploaded. Edges serve older files until they expire";
                writeln!(console.err, "note: {message}; {kept}")?;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

fn is_completed(answer: &Answer) -> bool {
    let invalidations = answer.records("Invalidation");
    invalidations.iter().any(|one| one.get("Status").is_some_and(|status| status == "Completed"))
}

/// CloudFront treats two invalidations with the same reference as one.
fn reference() -> String {
    format!("paved-{}-{}", Timestamp::now().as_nanosecond(), std::process::id())
}
