//! Resources in the clouds that still have the tag of the checks.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::{Check, Cloud, TAG};

/// The result of a search in a region, project or subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    /// The place, for example `aws eu-west-1`.
    pub place: String,
    /// The ids of the resources, or the reason why the search failed.
    pub found: Result<Vec<String>, String>,
}

impl Search {
    /// Whether the search succeeded and found no resource.
    pub(super) fn is_clean(&self) -> bool {
        self.found.as_ref().is_ok_and(Vec::is_empty)
    }
}

/// Searches the clouds of the checks. IAM roles of AWS are not part of AWS's search.
pub(super) fn resources(checks: &[Check], settings: &Value, tag: &str) -> Vec<Search> {
    let has = |cloud: Cloud| checks.iter().any(|check| check.cloud == Some(cloud));
    let mut searches = Vec::new();
    for region in regions(settings).into_iter().filter(|_| has(Cloud::Aws)) {
        let filter = format!("Key={TAG},Values={tag}");
        let query = "ResourceTagMappingList[].ResourceARN";
        let args = ["resourcegroupstaggingapi", "get-resources", "--region", &region];
        let rest = ["--tag-filters", &filter, "--query", query, "--output", "text"];
        searches.push(search(format!("aws {region}"), "aws", &[&args[..], &rest].concat()));
    }
    let projects = projects(settings);
    if has(Cloud::Gcp) && projects.is_empty() {
        let found = Err("the Settings have no projectId".to_owned());
        searches.push(Search { place: "gcloud".to_owned(), found });
    }
    for project in projects.into_iter().filter(|_| has(Cloud::Gcp)) {
        let scope = format!("projects/{project}");
        let query = format!("labels.{TAG}:{tag}");
        let args = ["asset", "search-all-resources", "--scope", &scope, "--query", &query];
        let rest = ["--format", "value(name)"];
        searches.push(search(format!("gcloud {project}"), "gcloud", &[&args[..], &rest].concat()));
    }
    if has(Cloud::Azure) {
        let tag = format!("{TAG}={tag}");
        let args = ["resource", "list", "--tag", &tag, "--query", "[].id", "--output", "tsv"];
        searches.push(search("az".to_owned(), "az", &args));
    }
    searches
}

fn search(place: String, program: &str, args: &[&str]) -> Search {
    let found = match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.split_whitespace().map(str::to_owned).collect())
        }
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("could not run {program}: {error}")),
    };
    Search { place, found }
}

/// The regions in Settings, and the region of CloudFront.
pub(super) fn regions(settings: &Value) -> BTreeSet<String> {
    let images = settings["gpuWorkspace"]["amis"].as_object();
    let images = images.into_iter().flat_map(|images| images.keys().cloned());
    let paths = ["/unifiedEnvironment/region", "/environment/eks/region"];
    let others = paths.iter().filter_map(|path| settings.pointer(path)?.as_str());
    images.chain(others.map(str::to_owned)).chain(["us-east-1".to_owned()]).collect()
}

/// The projects in Settings.
fn projects(settings: &Value) -> BTreeSet<String> {
    let paths = ["/applicationEnvironment/projectId", "/environment/gke/projectId"];
    let named = paths.iter().filter_map(|path| settings.pointer(path)?.as_str());
    named.map(str::to_owned).collect()
}
