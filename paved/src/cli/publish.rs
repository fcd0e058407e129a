//! Flags of `paved publish`.

use std::path::PathBuf;

use clap::Args;
use globset::Glob;

use super::{Access, Patience};

pub(super) const HELP: &str = "\
Examples:
  paved publish dist ada                      upload what is new or has changed
  paved publish dist ada --dry-run            only say what would be done
  paved publish dist ada --delete             and delete what is no longer there
  paved publish dist ada --immutable 'assets/**'

Files that carry a hash in their names, as bundlers write it, are kept by browsers for a year; all others are asked for anew
each time, also where a name leaves a doubt: --immutable settles it. What pages name is uploaded before the pages, and stale
files go last. A run that was broken off is simply begun again.

Credentials are those of the AWS CLI: variables, profiles and single sign-on, web identity, the machine's role.

Exit codes:
  0    done
  1    usage: a bad flag, an unreadable folder, a link out of it, an environment without a site
  3    refused by the composition: the spec or the platform's settings are invalid
  4    failed: the environment, or an upload; begin it again for the rest
  5    timed out
  6    no access: the cluster or AWS does not answer, or does not let you
  130  ended by Ctrl-C or SIGTERM";

/// Flags of `paved publish`.
#[derive(Args, Debug)]
// Each is a flag of its own.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Publish {
    /// The folder with the site as it was built.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// The environment: NAME, or KIND/NAME where the name alone is not enough.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Delete what the bucket has and the folder has not.
    #[arg(long)]
    pub(crate) delete: bool,

    /// Let CloudFront forget what it keeps, although it was told of all that is there.
    #[arg(long)]
    pub(crate) invalidate: bool,

    /// Upload what has not changed too, with its headers.
    #[arg(long)]
    pub(crate) all: bool,

    /// Change nothing: say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Files that never change under one name, such as 'assets/**': kept for a year, whatever they are called. With --all this
    /// counts for what is there already.
    #[arg(long, value_name = "GLOB")]
    pub(crate) immutable: Vec<Glob>,

    /// Files that do change although their names look as if they carried a hash: asked for anew each time. With --all this counts
    /// for what is there already.
    #[arg(long, value_name = "GLOB")]
    pub(crate) revalidate: Vec<Glob>,

    /// Another server that speaks S3 [default: $AWS_ENDPOINT_URL, else AWS].
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
        Some(host) if !host.is_empty() && !text.contains([' ', '?', '#', '@']) => Ok(text.to_owned()),
        _ => Err("expected https://HOST or http://HOST, with a port or a path if need be".to_owned()),
    }
}
