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

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use function_paved_road::catalog::aws;
use function_paved_road::check::Refused;
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
            let region = aws::region(region(&found.object));
            let region = region.map_err(|refused| wrong(&environment, "region", &refused))?;
            Account::open(region, args.endpoint_url.as_deref()).await?;
            let found = vec![found.read(|_| environment.clone())];
            let mut ready =
                wait::until(&cluster, found, &Goal::Ready, args.patience, console).await?;
            environment = ready.pop().unwrap_or(environment);
        }
        Self::from_environment(&environment)
    }

    /// Reads the status. Credentials are sent to a host that is made of bucket and region.
    fn from_environment(environment: &Environment) -> Result<Self, Failure> {
        let text = |field: &str| environment.fields.get(field)?.as_str().map(str::to_owned);
        let known = text("frontendBucketName").zip(text("region"));
        let (bucket, region) = known.ok_or_else(|| no_site(environment))?;
        check_bucket(&bucket)
            .map_err(|refused| wrong(environment, "frontendBucketName", &refused))?;
        aws::region(&region).map_err(|refused| wrong(environment, "region", &refused))?;
        Ok(Self {
            environment: environment.title(),
            bucket,
            region,
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

/// S3's rule for the names of buckets.
fn check_bucket(name: &str) -> Result<(), Refused> {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (3..=63).contains(&name.len())
        && name.chars().all(|c| edge(c) || "-.".contains(c))
        && name.starts_with(edge)
        && name.ends_with(edge)
        && !name.contains("..")
        && name.parse::<Ipv4Addr>().is_err();
    let allowed = "the name of an S3 bucket: 3 to 63 lowercase letters, digits, hyphens and dots";
    if fits { Ok(()) } else { Err(Refused::new(name, allowed)) }
}

fn wrong(environment: &Environment, field: &str, refused: &Refused) -> Failure {
    Failure::Provisioning {
        what: environment.title(),
        message: format!(
            "has {} in status.{field}. Allowed: {}. Nothing was uploaded. Ask your platform team \
             who changed the status",
            shown(&refused.found),
            refused.allowed
        ),
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use serde_json::json;

    use super::*;

    fn site(bucket: &str, region: &str) -> Result<Site, Failure> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "EnvironmentClaim",
            "metadata": {"name": "shop", "namespace": "team"},
            "status": {"frontendBucketName": bucket, "region": region},
        }))
        .expect("an object");
        Site::from_environment(&Environment::from_object(&object))
    }

    #[test]
    fn status_with_another_host_is_rejected() {
        assert!(site("acme-mfe-shop-7e9b51d3", "eu-west-1").is_ok());
        assert!(site("a.b", "us-gov-west-1").is_ok());
        for (bucket, region, field) in [
            ("shop", "evil.example/", "region"),
            ("shop", "evil.example#", "region"),
            ("shop", "eu-west-1.evil.example", "region"),
            ("shop", "EU-WEST-1", "region"),
            ("shop", "", "region"),
            ("evil.example/", "eu-west-1", "frontendBucketName"),
            ("evil.example#", "eu-west-1", "frontendBucketName"),
            ("user@evil", "eu-west-1", "frontendBucketName"),
            ("a..b", "eu-west-1", "frontendBucketName"),
            ("203.0.113.7", "eu-west-1", "frontendBucketName"),
            ("Shop", "eu-west-1", "frontendBucketName"),
            ("ab", "eu-west-1", "frontendBucketName"),
            ("shop-", "eu-west-1", "frontendBucketName"),
        ] {
            let error = site(bucket, region).err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("{bucket} {region}: accepted"));
            assert!(error.contains(&format!("in status.{field}. Allowed: ")), "{error}");
        }
    }
}
