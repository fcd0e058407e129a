//! The provenance of a release: <https://slsa.dev/spec/v1.0/provenance>.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::output;
use crate::workspace;

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Explains the build type and the builder of a release that no workflow has built.
const MANUAL: &str = "docs/contributing/release.md";

/// Fails if this runs for a tag that is not the release.
pub fn ensure_tag(release: &str) -> Result<()> {
    check_tag(release, &|name| env::var(name).ok())
}

fn check_tag(release: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<()> {
    if variable("GITHUB_REF_TYPE").as_deref() == Some("tag") {
        let tag = variable("GITHUB_REF_NAME").unwrap_or_default();
        ensure!(tag == release, "the tag is {tag}, and the version in Cargo.toml gives {release}");
    }
    Ok(())
}

/// Fails if the sources differ from their commit, because the provenance names the commit.
pub fn ensure_committed() -> Result<()> {
    let changes = git(&["status", "--porcelain"])?;
    ensure!(changes.is_empty(), "commit these changes before a release:\n{changes}");
    Ok(())
}

/// Writes the predicate for the commit of the workspace into a folder, and returns its file.
pub fn write(folder: &Path) -> Result<PathBuf> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let predicate = describe(commit.trim(), &|name| env::var(name).ok());
    let file = folder.join("provenance.json");
    fs::write(&file, predicate.to_string())
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn git(args: &[&str]) -> Result<String> {
    output(Command::new("git").args(args).current_dir(workspace::root()))
}

/// A workflow of GitHub has the build type of <https://actions.github.io/buildtypes/workflow/v1>.
fn describe(commit: &str, variable: &dyn Fn(&str) -> Option<String>) -> Value {
    let text = |name: &str| variable(name).unwrap_or_default();
    if text("GITHUB_ACTIONS") != "true" {
        let manual = format!("{REPOSITORY}/blob/{commit}/{MANUAL}");
        return json!({
            "buildDefinition": {
                "buildType": format!("{manual}#build-type"),
                "externalParameters": {"command": "cargo xtask package"},
                "resolvedDependencies": [source(REPOSITORY, commit)],
            },
            "runDetails": {"builder": {"id": format!("{manual}#release-by-hand")}},
        });
    }
    let repository = format!("{}/{}", text("GITHUB_SERVER_URL"), text("GITHUB_REPOSITORY"));
    // owner/repository/.github/workflows/release.yaml@refs/tags/v1.2.3
    let workflow = text("GITHUB_WORKFLOW_REF");
    let path = workflow.split('@').next().unwrap_or_default();
    let path = path.strip_prefix(&format!("{}/", text("GITHUB_REPOSITORY"))).unwrap_or(path);
    let run = format!("{repository}/actions/runs/{}", text("GITHUB_RUN_ID"));
    json!({
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {
                "workflow": {"ref": text("GITHUB_REF"), "repository": repository, "path": path},
            },
            "internalParameters": {"github": {
                "event_name": text("GITHUB_EVENT_NAME"),
                "repository_id": text("GITHUB_REPOSITORY_ID"),
                "repository_owner_id": text("GITHUB_REPOSITORY_OWNER_ID"),
                "runner_environment": text("RUNNER_ENVIRONMENT"),
            }},
            "resolvedDependencies": [source(&format!("{repository}@{}", text("GITHUB_REF")), commit)],
        },
        "runDetails": {
            "builder": {
                "id": format!("https://github.com/actions/runner/{}", text("RUNNER_ENVIRONMENT")),
            },
            "metadata": {
                "invocationId": format!("{run}/attempts/{}", text("GITHUB_RUN_ATTEMPT")),
            },
        },
    })
}

fn source(place: &str, commit: &str) -> Value {
    json!({"uri": format!("git+{place}"), "digest": {"gitCommit": commit}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn workflow(name: &str) -> Option<String> {
        let value = match name {
            "GITHUB_ACTIONS" => "true",
            "GITHUB_SERVER_URL" => "https://github.com",
            "GITHUB_REPOSITORY" => "acme/road",
            "GITHUB_REF" => "refs/tags/v1.2.3",
            "GITHUB_REF_TYPE" => "tag",
            "GITHUB_REF_NAME" => "v1.2.3",
            "GITHUB_WORKFLOW_REF" => "acme/road/.github/workflows/release.yaml@refs/tags/v1.2.3",
            "GITHUB_RUN_ID" => "7",
            "GITHUB_RUN_ATTEMPT" => "2",
            "RUNNER_ENVIRONMENT" => "github-hosted",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn provenance_of_a_workflow_names_its_file_and_commit() {
        let predicate = describe("0a1b", &workflow);
        let build = &predicate["buildDefinition"];
        assert_eq!(
            build["externalParameters"]["workflow"],
            json!({
                "ref": "refs/tags/v1.2.3",
                "repository": "https://github.com/acme/road",
                "path": ".github/workflows/release.yaml",
            })
        );
        assert_eq!(
            build["resolvedDependencies"],
            json!([{
                "uri": "git+https://github.com/acme/road@refs/tags/v1.2.3",
                "digest": {"gitCommit": "0a1b"},
            }])
        );
        let run = &predicate["runDetails"];
        assert_eq!(run["builder"]["id"], "https://github.com/actions/runner/github-hosted");
        assert_eq!(
            run["metadata"]["invocationId"],
            "https://github.com/acme/road/actions/runs/7/attempts/2"
        );
    }

    #[test]
    fn provenance_by_hand_points_to_sections_of_the_guide() {
        let predicate = describe("0a1b", &|_| None);
        let guide = fs::read_to_string(workspace::root().join(MANUAL)).unwrap();
        let headings = ["/buildDefinition/buildType", "/runDetails/builder/id"];
        for (path, heading) in headings.into_iter().zip(["## Build type", "## Release by hand"]) {
            let anchor = heading.trim_start_matches("## ").to_lowercase().replace(' ', "-");
            let found = predicate.pointer(path).unwrap().as_str().unwrap();
            assert!(found.ends_with(&format!("/blob/0a1b/{MANUAL}#{anchor}")), "{found}");
            assert!(guide.lines().any(|line| line == heading), "{heading}");
        }
    }

    #[test]
    fn tag_of_another_version_is_rejected() {
        check_tag("v1.2.3", &workflow).unwrap();
        let error = check_tag("v1.2.4", &workflow).unwrap_err().to_string();
        assert_eq!(error, "the tag is v1.2.3, and the version in Cargo.toml gives v1.2.4");
        check_tag("v1.2.4", &|_| None).unwrap();
    }
}
