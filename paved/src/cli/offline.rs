//! Flags of the commands that need no cluster, except `preview`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use function_paved_road::apis::Flavour;
use function_paved_road::manifests::{self, policy, rights::Cloud};
use paved_client::names::{A_NAME, is_name};

use crate::failure::Failure;

pub(super) const VALIDATE_HELP: &str = "\
Examples:
  paved validate claim.yaml                            check all documents of a file
  paved validate environments/                         check all documents in a folder
  paved validate claims/*.yaml --settings settings.yaml
  paved validate environments/ -o github               write annotations for a pull request

Exit codes:
  0  all documents are valid
  1  usage: a bad flag, an unreadable file, invalid YAML, or no document to check
  2  rejected: an API server would reject a document
  3  rejected by the composition: the spec or the platform's Settings are invalid";

pub(super) const INIT_HELP: &str = "\
Examples:
  paved init GpuDevWorkspaceClaim                      ask for fields, and print the claim
  paved init gpu-workspace ada -f ada.yaml             write the claim to a file
  paved init stockpool pool --flavour namespaced --set specName=a100 --set replicas=2
  paved init EnvironmentClaim shop --set backend.image=ghcr.io/acme/shop:1 \\
    --set database.size=small --set frontend.appName=shop

Exit codes:
  0  done
  1  usage: a bad flag, an unknown kind, a missing required field, or a file that exists
  2  rejected: an API server would reject the claim
  3  rejected by the composition: the spec is invalid";

/// The help of `paved offers`, with the exit codes of the cluster in a build with a client.
macro_rules! offers_help {
    ($cluster:literal) => {
        concat!(
            "\
Without --settings and --composition, the offers are those of your cluster.

Examples:
  paved offers gpu-workspace                           machines, regions and releases
  paved offers gpu-workspace --field instanceType --region eu-west-1
  paved offers --settings settings.yaml -o json        the offers of all APIs, for scripts

Exit codes:
  0    done
  1    usage: a bad flag, an unknown kind or field, an unreadable file, or invalid Settings",
            $cluster
        )
    };
}

#[cfg(not(feature = "cluster"))]
pub(super) const OFFERS_HELP: &str = offers_help!("");
#[cfg(feature = "cluster")]
pub(super) const OFFERS_HELP: &str = offers_help!(
    "
  6    no access: the cluster that a flag selects does not answer, or denies access
  130  stopped by Ctrl-C"
);

pub(super) const PLATFORM_HELP: &str = "\
Examples:
  paved platform --settings settings.yaml -o platform/
  paved platform --settings settings.yaml --flavour namespaced --group platform.example.org | kubectl apply -f -
  paved platform --settings settings.yaml --cloud-rights aws -o rights/
  paved platform --settings new.yaml --old settings.yaml --check environments/
  paved platform --settings new.yaml --check claim.yaml --observed cluster.yaml
  paved platform uninstall

Exit codes:
  0  done; with --check, also if environments would change
  1  usage: a bad flag, or an unreadable file
  2  rejected: with --check, an API server would reject an environment
  3  rejected by the composition: the Settings are invalid; with --check, also an invalid spec";

/// Files with the platform team's Settings.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// Settings or EnvironmentConfig [default: the Settings in FILE over the Composition's].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Composition with the Settings [default: composition.yaml beside FILE, otherwise built-in].
    #[arg(long, value_name = "FILE")]
    pub(crate) composition: Option<PathBuf>,
}

/// Flags of `paved validate`.
#[derive(Args, Debug)]
pub(crate) struct Validate {
    /// Claims, XRs and Settings: files, folders, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
}

/// Output format of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The line of each error, with a mark below.
    Text,
    /// One object: errors, valid documents and skipped documents.
    Json,
    /// GitHub workflow commands, which are annotations in a review.
    Github,
}

/// Flags of `paved init`.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// Kind, its plural or abbreviation, or the name of the API, for example gpu-workspace.
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,

    /// Name of the environment.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Flavour: claims or namespaced [default: the kind's flavour, otherwise claims].
    #[arg(long, value_name = "FLAVOUR")]
    pub(crate) flavour: Option<Flavour>,

    /// API group of your company [default: the flavour's group].
    #[arg(long, value_name = "GROUP", value_parser = manifests::group)]
    pub(crate) group: Option<String>,

    /// Namespace of the environment [default: none; `paved apply` sets it].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Field (its path or a unique end) and YAML value, for example backend.port=8080. Repeatable.
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub(crate) set: Vec<(String, String)>,

    /// Settings or EnvironmentConfig with the offers and limits [default: those of the current
    /// context for the questions on a terminal, otherwise none].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// File with your public SSH key, for a GPU workspace, for example ~/.ssh/id_ed25519.pub. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_key: Vec<PathBuf>,

    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Replace the file if it exists.
    #[arg(long, requires = "file")]
    pub(crate) force: bool,
}

/// Flags of `paved offers`.
#[derive(Args, Debug)]
pub(crate) struct Offers {
    /// Kind, its plural or abbreviation, or the name of the API [default: all APIs].
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Field: its path or the end of its path, for example instanceType [default: all fields].
    #[arg(long, value_name = "FIELD")]
    pub(crate) field: Option<String>,

    /// Region of the prices [default: the first region of the offer].
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,

    #[command(flatten)]
    pub(crate) sources: Sources,

    /// Output format: text or json.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: TextOrJson,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) access: super::online::Access,
}

/// Output format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// Numbered tables.
    Text,
    /// A list of offers.
    Json,
}

/// Flags of `paved platform`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Platform {
    #[cfg(feature = "cluster")]
    #[command(subcommand)]
    pub(crate) command: Option<super::online::PlatformCommand>,

    /// Settings document, or EnvironmentConfig with Settings in its data.
    #[arg(long, value_name = "FILE", required = true)]
    settings: Option<PathBuf>,

    /// API group of your company, for example platform.example.org [default: the flavour's].
    #[arg(long, value_name = "GROUP", value_parser = manifests::group, conflicts_with = "check")]
    pub(crate) group: Option<String>,

    /// Flavour: claims (XRD v1, Crossplane 1.20 and 2.x) or namespaced (XRD v2, Crossplane 2.x).
    #[arg(long, value_name = "FLAVOUR", default_value = "claims", conflicts_with = "check")]
    pub(crate) flavour: Flavour,

    /// Name of the installed Function, as `kubectl get functions` shows it.
    #[arg(
        long,
        value_name = "NAME",
        default_value_t = manifests::installed_function(manifests::REGISTRY),
        value_parser = object_name,
        conflicts_with = "check"
    )]
    pub(crate) function: String,

    /// User of Crossplane. The policies let only this user write Crossplane's own fields.
    #[arg(long, value_name = "USER", default_value = policy::CROSSPLANE, value_parser = policy::user, conflicts_with = "check")]
    pub(crate) crossplane_user: String,

    /// Folder to write to. Existing files are overwritten [default: print everything].
    #[arg(short, long, value_name = "DIR", conflicts_with = "check")]
    pub(crate) output: Option<PathBuf>,

    /// Print the ConfigMap of Argo CD with health checks for the APIs instead.
    #[arg(long, conflicts_with_all = ["check", "output", "cloud_rights"])]
    pub(crate) argocd: bool,

    /// Write the rights of providers in these clouds instead: aws, gcp, azure [default: all].
    #[arg(long, value_name = "CLOUD", num_args = 0.., conflicts_with = "check")]
    pub(crate) cloud_rights: Option<Vec<Cloud>>,

    /// Show the changes of these environments and write nothing: files, folders, or -.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Check")]
    pub(crate) check: Vec<PathBuf>,

    /// Current Settings [default: from composition.yaml beside the environment, otherwise none].
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Check")]
    pub(crate) old: Option<PathBuf>,

    /// Existing resources and connection Secrets: a file or a folder. Repeatable.
    #[arg(long, value_name = "FILE", requires = "check", help_heading = "Check")]
    pub(crate) observed: Vec<PathBuf>,
}

impl Platform {
    /// The file with the Settings.
    pub(crate) fn settings(&self) -> Result<&Path, Failure> {
        let missing = || Failure::Usage("--settings: found none; allowed: a file".to_owned());
        self.settings.as_deref().ok_or_else(missing)
    }
}

fn object_name(text: &str) -> Result<String, String> {
    let fits = is_name(text) && text.ends_with(|last: char| last.is_ascii_alphanumeric());
    if fits { Ok(text.to_owned()) } else { Err(format!("{text:?}: allowed: {A_NAME}")) }
}

/// Returns the given group, or else the flavour's default group.
///
/// # Errors
/// The given group is the default group of the other flavour.
pub(crate) fn group_of(flavour: Flavour, group: Option<&str>) -> Result<String, Failure> {
    let group = group.unwrap_or_else(|| flavour.default_group());
    match Flavour::ALL.into_iter().find(|other| *other != flavour && other.default_group() == group)
    {
        Some(other) => Err(Failure::Usage(format!(
            "--group {group} belongs to --flavour {other}, but the flavour is {flavour}. Remove \
             one of the flags, or use your own group"
        ))),
        None => Ok(group.to_owned()),
    }
}

fn path_and_value(text: &str) -> Result<(String, String), String> {
    let (path, value) =
        text.split_once('=').ok_or("allowed: PATH=VALUE, for example spec.backend.port=8080")?;
    Ok((path.trim().to_owned(), value.to_owned()))
}
