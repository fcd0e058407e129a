//! `paved publish`: uploads a site's build to its environment.
//!
//! A run compares files with the bucket by checksums, so that a run after a failure uploads the
//! rest. A page is uploaded after the files that it refers to. Stale files are deleted after the
//! pages that referred to them have changed.

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

/// The state in the message of an early interruption.
const NOTHING: &str = "nothing was uploaded";

/// Publishes the folder to the environment that the flags name.
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
    // One signal listener for all following steps, because a new one would miss earlier signals.
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

/// Finishes after the upload. Invalidates the edges if `always`, after uploads, or if no
/// invalidation followed the newest object. Waits for the edges at most `longest`. Then deletes
/// stale files.
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

/// The location of an environment's site.
struct Site {
    /// Kind, namespace and name of the environment, for messages.
    environment: String,
    bucket: String,
    region: String,
    /// The CloudFront distribution of the bucket.
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
            // Without credentials, the command fails before the wait.
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

/// Whether the environment has a bucket for a site, or will have one.
fn has_site(object: &DynamicObject) -> bool {
    ["/spec/frontend", "/status/frontendBucketName"]
        .iter()
        .any(|path| object.data.pointer(path).is_some())
}

/// The environment's region, or else AWS's first region. The region does not affect the check for
/// credentials.
fn region(object: &DynamicObject) -> &str {
    let said = ["/status/region", "/spec/region"]
        .iter()
        .find_map(|path| object.data.pointer(path)?.as_str());
    said.unwrap_or("us-east-1")
}

/// The name of a file or an object, in one line.
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
