//! `paved publish`: a site's build becomes what its environment serves.
//!
//! What the bucket has is compared by checksums, so that a run after a failure does the rest. No
//! page is there before what it names, and nothing goes before the pages that named it have.

mod bucket;
mod cloudfront;
mod credentials;
mod error;
mod fingerprint;
mod folder;
mod headers;
mod multipart;
mod plan;
mod progress;
mod service;
mod upload;

use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use paved_client::cluster::{Kinds, find};
use paved_client::environment::Environment;
use paved_client::wait::Goal;

use crate::Console;
use crate::cli::Publish;
use crate::failure::Failure;
use crate::style::harmless;
use crate::{signals, wait};
use bucket::Bucket;
use cloudfront::CloudFront;
use credentials::Account;
use fingerprint::Fingerprints;
use folder::Folder;
use headers::Rules;
use plan::Plan;

/// What has become of it where somebody ends it before it begins.
const NOTHING: &str = "nothing was uploaded";

/// Publishes what the flags name.
pub(crate) async fn run(args: &Publish, console: &mut Console<'_>) -> Result<(), Failure> {
    let folder = Folder::open(&args.folder)?;
    let hashes = Fingerprints::among(folder.files.iter().map(|file| file.key.as_str()));
    let rules = Rules::new(&args.immutable, &args.revalidate, hashes)?;
    folder.notes(console)?;
    if args.delete && !folder.has_start() {
        return Err(Failure::Usage(format!(
            "--delete would delete the site, because {} has no index.html. Pass the folder of the \
             build",
            args.folder.display()
        )));
    }
    let begin = Instant::now();
    let site = signals::unless_asked(Box::pin(Site::find(args, console)), NOTHING).await?;
    let left = args.patience.timeout.saturating_sub(begin.elapsed());
    let opened = Account::open(&site.region, args.endpoint_url.as_deref());
    let account = signals::unless_asked(Box::pin(opened), NOTHING).await?;
    let bucket = Bucket::new(&account, &site.bucket);

    let planned = async { Plan::new(&folder, &rules, bucket.list().await?, args).await };
    let plan = signals::unless_asked(Box::pin(planned), NOTHING).await?;
    plan.notes(console)?;
    if args.dry_run {
        return plan.print(console);
    }
    // One for all that follows: a new one would not hear what came in between.
    let mut interrupt = std::pin::pin!(signals::asked());
    upload::all(&plan, &folder, &bucket, interrupt.as_mut(), console).await?;
    tokio::select! {
        finished = finish(&plan, &site, &account, &bucket, (args.invalidate, left), console) => finished?,
        () = &mut interrupt => {
            let told = "all files are uploaded, but edges may serve old files, and stale files \
                        may be left. Run it again with --invalidate";
            return Err(Failure::Interrupted(told.to_owned()));
        }
    }
    plan.summary(&site, console)
}

/// What comes once the files are there: the edges serve them, asked for `always` or where they were
/// not told of what is there, and waited for no longer than that; and what nobody names any more
/// goes.
async fn finish(
    plan: &Plan,
    site: &Site,
    account: &Account,
    bucket: &Bucket,
    (always, longest): (bool, Duration),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let edges = site.distribution.as_deref().map(|id| CloudFront::new(account, id));
    if let Some(edges) = &edges
        && (always || plan.uploads() > 0 || !edges.were_told_since(plan.newest).await)
    {
        edges.renew(longest, console).await?;
    }
    bucket.delete(&plan.stale).await?;
    if let Some(edges) = edges.as_ref().filter(|_| !plan.stale.is_empty()) {
        edges.forget(console).await?;
    }
    bucket.clean_up().await;
    Ok(())
}

/// Where an environment's site lies.
struct Site {
    /// Kind, namespace and name of the environment, for messages.
    environment: String,
    bucket: String,
    region: String,
    /// The CloudFront distribution in front of it.
    distribution: Option<String>,
    url: Option<String>,
}

impl Site {
    /// Waits until the environment is ready, and reads its status.
    async fn find(args: &Publish, console: &mut Console<'_>) -> Result<Self, Failure> {
        let cluster = args.access.connect().await?;
        let kinds = Kinds::discover(&cluster).await?;
        let found = find(&cluster, &kinds, &args.name).await?;
        let mut environment = Environment::from_object(&found.object);
        if !has_site(&found.object) {
            return Err(no_site(&environment));
        }
        if !(environment.is_ready() && environment.is_current()) {
            // Whoever has none need not wait for it.
            Account::open(region(&found.object), args.endpoint_url.as_deref()).await?;
            let found = vec![found.read(|_| environment.clone())];
            let mut ready =
                wait::until(&cluster, found, &Goal::Ready, args.patience, console).await?;
            environment = ready.pop().unwrap_or(environment);
        }
        Self::from_environment(&environment).ok_or_else(|| no_site(&environment))
    }

    fn from_environment(environment: &Environment) -> Option<Self> {
        let text = |field: &str| environment.fields.get(field)?.as_str().map(str::to_owned);
        Some(Self {
            environment: environment.title(),
            bucket: text("frontendBucketName")?,
            region: text("region")?,
            distribution: text("frontendDistributionId"),
            url: text("frontendUrl"),
        })
    }
}

/// Whether it will have a bucket for a site, or has one.
fn has_site(object: &DynamicObject) -> bool {
    ["/spec/frontend", "/status/frontendBucketName"]
        .iter()
        .any(|path| object.data.pointer(path).is_some())
}

/// The region that it says, while it is made; else AWS' first one: whose credentials they are does
/// not depend on it.
fn region(object: &DynamicObject) -> &str {
    let said = ["/status/region", "/spec/region"]
        .iter()
        .find_map(|path| object.data.pointer(path)?.as_str());
    said.unwrap_or("us-east-1")
}

/// A name of a file or of an object as a line shows it.
fn shown(name: &str) -> String {
    harmless(name).replace('\n', " ")
}

fn no_site(environment: &Environment) -> Failure {
    Failure::Usage(format!(
        "{} has no site. Only unified environments (EnvironmentClaim, UnifiedEnvironment) with \
         status.frontendBucketName have a site",
        environment.title()
    ))
}
