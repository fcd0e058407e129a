//! Flags of `paved publish`.

use std::path::PathBuf;

use clap::Args;
use globset::Glob;

use super::{Access, Patience};

pub(super) const HELP: &str = "\
Examples:
  paved publish dist ada                      upload new and changed files
  paved publish dist ada --dry-run            show the changes without an upload
  paved publish dist ada --delete             also delete stale files from the bucket
  paved publish dist ada --immutable 'assets/**'

Browsers cache files with a content hash in their names, as bundlers write them, for a year. They
revalidate all other files. A file also counts as unhashed if its name is ambiguous. Use --immutable
and --revalidate to choose yourself. For files that are already in the bucket, also use --all.

paved uploads pages after the files that they refer to, and deletes stale files at the end. If a run
failed, run the command again.

paved finds credentials as the AWS CLI does: variables, profiles and single sign-on, web identity,
the machine's role.

Exit codes:
  0    done
  1    usage: a bad flag, an unreadable folder, a link out of the folder, or an environment without
       a site
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    failed: provisioning or an upload; run the command again for the remaining files
  5    timed out
  6    no access: the cluster or AWS does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

/// Flags of `paved publish`.
#[derive(Args, Debug)]
// Each bool is a separate flag.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Publish {
    /// Folder with the site's build.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Environment: NAME, or KIND/NAME if the name is ambiguous.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Delete files from the bucket that the folder does not have.
    #[arg(long)]
    pub(crate) delete: bool,

    /// Invalidate CloudFront even if no file changed.
    #[arg(long)]
    pub(crate) invalidate: bool,

    /// Upload unchanged files too, with their headers.
    #[arg(long)]
    pub(crate) all: bool,

    /// Show the changes, without an upload or a deletion.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Files that never change, for example 'assets/**'. Browsers cache them a year. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub(crate) immutable: Vec<Glob>,

    /// Files that change although their names seem to contain a hash. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub(crate) revalidate: Vec<Glob>,

    /// URL of another S3 server [default: $AWS_ENDPOINT_URL, otherwise AWS].
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) endpoint_url: Option<String>,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) access: Access,
}

fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    match host {
        Some(host) if !host.is_empty() && !text.contains([' ', '?', '#', '@']) => {
            Ok(text.to_owned())
        }
        _ => Err("allowed: https://HOST or http://HOST, with an optional port and path".to_owned()),
    }
}
