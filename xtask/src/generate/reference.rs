//! The generated sections of pages, most of them reference pages.
//!
//! A section starts with the line `<!-- generated: NAME -->` and ends with `<!-- end: NAME -->`.
//! The text around the sections is written by hand.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use clap::CommandFactory as _;
use crossplane::releases::PROBLEMS;
use function_paved_road::{manifests, server};
use serde_json::Value;

use crate::composed::{self, Composed};
use crate::markdown::table;
use crate::package::rbac;
use crate::{versions, workspace};
use paved_render::packages::Package;

/// The pages with generated sections, by their paths from the repository's root.
///
/// # Errors
/// A page is unreadable, or a marker is missing.
pub(super) fn pages() -> Result<Vec<(String, String)>> {
    let command = {
        let mut command = paved::command();
        command.build();
        command
    };
    let sections = [
        (
            "docs/reference/cli.md",
            vec![("commands", commands(&command)), ("flags", flags(&command))],
        ),
        ("docs/reference/environment-variables.md", vec![("variables", variables(&command))]),
        ("docs/reference/exit-codes.md", vec![("exit codes", exit_codes())]),
        ("docs/reference/provider-versions.md", vec![("providers", providers()?)]),
        ("docs/reference/roles.md", vec![("rules", rules()?)]),
        ("docs/reference/settings.md", vec![("settings", manifests::settings_reference())]),
        ("docs/contributing/testing.md", vec![("core scenarios", core_scenarios()?)]),
        ("SUPPORT.md", vec![("versions", versions::supported()?), ("known problems", problems())]),
    ];
    let page = |(path, sections): (&str, Vec<(&str, String)>)| {
        let page = std::fs::read_to_string(workspace::root().join(path));
        let mut page = page.with_context(|| format!("could not read {path}"))?;
        for (name, content) in sections {
            page = with_section(&page, name, &content).with_context(|| path.to_owned())?;
        }
        Ok((path.to_owned(), page))
    };
    sections.into_iter().map(page).collect()
}

/// The page with new content in a section.
///
/// # Errors
/// A marker is missing.
pub fn with_section(page: &str, name: &str, content: &str) -> Result<String> {
    let (start, end) = markers(name);
    let Some((before, rest)) = page.split_once(&start) else { bail!("missing marker {start:?}") };
    let Some((_, after)) = rest.split_once(&end) else { bail!("missing marker {end:?}") };
    Ok(format!("{before}{start}\n{}\n\n{end}{after}", content.trim()))
}

/// The content of a section.
///
/// # Errors
/// A marker is missing.
pub fn section<'p>(page: &'p str, name: &str) -> Result<&'p str> {
    let (start, end) = markers(name);
    let Some((_, rest)) = page.split_once(&start) else { bail!("missing marker {start:?}") };
    let Some((content, _)) = rest.split_once(&end) else { bail!("missing marker {end:?}") };
    Ok(content.trim())
}

fn markers(name: &str) -> (String, String) {
    (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->\n"))
}

/// The known problems of Crossplane's releases.
fn problems() -> String {
    let rows = PROBLEMS.iter().map(|problem| {
        let (major, minor, patch) = problem.since;
        vec![
            format!("[{}]({})", problem.id, problem.source),
            format!("Crossplane {}.", problem.effect),
            format!("{major}.{minor}.{patch}"),
            problem.fixes(),
        ]
    });
    table(&["problem", "effect", "since", "fixed in"], rows)
}

/// The scenarios that `e2e/src/scenarios.rs` marks with `core`. `e2e` depends on this crate, so
/// this reads the source.
fn core_scenarios() -> Result<String> {
    const LIST: &str = "e2e/src/scenarios.rs";
    let text = std::fs::read_to_string(workspace::root().join(LIST));
    let text = text.with_context(|| format!("could not read {LIST}"))?;
    let marked = text.lines().filter_map(|line| line.trim().strip_prefix("scenario!(core "));
    let names = marked.map(|line| line.trim_start_matches("old "));
    let mut names: Vec<&str> = names.filter_map(|line| line.split([',', ')']).next()).collect();
    names.sort_unstable();
    Ok(names.iter().map(|name| format!("- `{name}`")).collect::<Vec<_>>().join("\n"))
}

/// The commands that users see, with their names. A command that only has commands is not one.
fn shown(command: &clap::Command) -> Vec<(String, &clap::Command)> {
    let seen = command.get_subcommands();
    let seen = seen.filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let each = seen.flat_map(|one| {
        let name = one.get_name();
        let inner = shown(one).into_iter().map(|(inner, one)| (format!("{name} {inner}"), one));
        let inner: Vec<_> = inner.collect();
        let has_flags = one.get_arguments().any(|flag| flag.get_id() != "help");
        let own = (inner.is_empty() || has_flags).then(|| (name.to_owned(), one));
        own.into_iter().chain(inner).collect::<Vec<_>>()
    });
    each.collect()
}

fn commands(command: &clap::Command) -> String {
    let row = |(name, one): (String, &clap::Command)| {
        let purpose = one.get_about().map(ToString::to_string).unwrap_or_default();
        let is_online = one.get_arguments().any(|flag| flag.get_id() == "context");
        let online = if is_online { "yes" } else { "no" };
        let anchor = name.replace(' ', "-");
        vec![format!("[`{name}`](#flags-of-paved-{anchor})"), purpose, online.to_owned()]
    };
    table(&["command", "purpose", "needs a cluster"], shown(command).into_iter().map(row))
}

fn flags(command: &clap::Command) -> String {
    let section = |(title, one): (String, &clap::Command)| {
        let usage = one.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
        let usage: Vec<&str> = usage.filter(|line| !line.is_empty()).collect();
        let own = |flag: &&clap::Arg| {
            !flag.is_hide_set() && !["help", "version"].contains(&flag.get_id().as_str())
        };
        let (values, flags): (Vec<_>, Vec<_>) =
            one.get_arguments().filter(own).partition(|flag| flag.is_positional());
        let rows = values.into_iter().chain(flags).map(|flag| vec![name(flag), meaning(flag)]);
        format!(
            "### Flags of `paved {title}`\n\nUsage: `{}`\n\n{}\n",
            usage.join("` or `"),
            table(&["flag", "meaning"], rows)
        )
    };
    shown(command).into_iter().map(section).collect()
}

/// A flag or a positional argument: `-o, --output FORMAT`.
fn name(flag: &clap::Arg) -> String {
    let short = flag.get_short().map(|short| format!("-{short}"));
    let long = flag.get_long().map(|long| format!("--{long}"));
    let value = || {
        let names = flag.get_value_names().unwrap_or_default();
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let takes_value = flag.is_positional() || flag.get_action().takes_values();
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = if takes_value { value() } else { String::new() };
    if flag.is_require_equals_set() {
        return format!("`{}[={value}]`", names.join(", "));
    }
    let words = [names.join(", "), value];
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    format!("`{}`", words.join(" "))
}

/// The help of a flag, with its values, its default and its environment variable.
fn meaning(flag: &clap::Arg) -> String {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let mut words = vec![help.replace('\n', " ")];
    let values: Vec<String> = flag
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.is_empty() && flag.get_action().takes_values() {
        words.push(format!("[values: {}]", values.join(", ")));
    }
    let defaults: Vec<_> = flag
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && flag.get_action().takes_values() {
        words.push(format!("[default: {}]", defaults.join(" ")));
    }
    if let Some(variable) = flag.get_env() {
        words.push(format!("[env: {}]", variable.to_string_lossy()));
    }
    words.join(" ")
}

/// The environment variables of flags, each with the flags that read it.
fn variables(paved: &clap::Command) -> String {
    let mut flags: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |command: &clap::Command, page: &dyn Fn(&str) -> String| {
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let Some((variable, long)) = flag.get_env().zip(flag.get_long()) else { continue };
            let flag = page(&format!("--{long}"));
            flags.entry(variable.to_string_lossy().into_owned()).or_default().push(flag);
        }
    };
    for (name, command) in shown(paved) {
        let anchor = name.replace(' ', "-");
        add(command, &|flag| format!("[`paved {name} {flag}`](cli.md#flags-of-paved-{anchor})"));
    }
    add(&server::Flags::command(), &|flag| {
        format!("[`function {flag}`](../how-to/run-the-function.md#flags)")
    });
    let row =
        |(variable, flags): (String, Vec<String>)| vec![format!("`{variable}`"), flags.join(", ")];
    table(&["variable", "flag"], flags.into_iter().map(row))
}

fn exit_codes() -> String {
    let row = |(code, meaning): &(u8, &str)| vec![code.to_string(), (*meaning).to_owned()];
    table(&["code", "meaning"], paved::exit_codes().iter().map(row))
}

/// The rules of each role. Each row has the resources that share verbs.
fn rules() -> Result<String> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let mut rows = Vec::new();
    for role in rbac::files()?
        .into_iter()
        .filter(|(path, _)| path.starts_with("package/"))
        .flat_map(|file| file.1)
    {
        let role_name = role["metadata"]["name"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            let groups = texts(&rule["apiGroups"]);
            let full = |resource: &String| {
                let full = |group: &String| {
                    let separator = if group.is_empty() { "" } else { "." };
                    format!("`{resource}{separator}{group}`")
                };
                groups.iter().map(full).collect::<Vec<_>>()
            };
            let resources: Vec<String> = texts(&rule["resources"]).iter().flat_map(full).collect();
            let mut resources = resources.join(", ");
            let names: Vec<String> =
                texts(&rule["resourceNames"]).iter().map(|name| format!("`{name}`")).collect();
            if !names.is_empty() {
                resources = format!("{resources} with the name {}", names.join(" or "));
            }
            let verbs = texts(&rule["verbs"]).join(", ");
            rows.push(vec![format!("`{role_name}`"), resources, verbs]);
        }
    }
    Ok(table(&["role", "resources", "verbs"], rows))
}

/// The providers of each API. `composed::all` has both flavours of an API in sequence.
fn providers() -> Result<String> {
    let mut rows = Vec::new();
    for api in composed::all()?.chunks(2) {
        let [claims, namespaced] = api else { bail!("an API must have two flavours") };
        let title = claims.api.info().title.to_owned();
        let [needed, optional] =
            [Composed::needed, Composed::optional].map(|of| packages(&of(claims), &of(namespaced)));
        rows.push(vec![title, needed, optional]);
    }
    Ok(table(&["API", "comes with", "only for some options"], rows))
}

/// The packages of both flavours, and of each flavour: `provider-sql` 0.16; claims: `…` 1.2.
fn packages(claims: &BTreeSet<Package>, namespaced: &BTreeSet<Package>) -> String {
    let both: BTreeSet<_> = claims.intersection(namespaced).cloned().collect();
    let mut parts = vec![list(&both)];
    for (flavour, all) in [("claims", claims), ("namespaced", namespaced)] {
        let only = list(&all.difference(&both).cloned().collect());
        if !only.is_empty() {
            parts.push(format!("{flavour}: {only}"));
        } else if all.is_empty() && claims != namespaced {
            parts.push(format!("{flavour}: none"));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// Package names. The version follows the last package of a family.
fn list(packages: &BTreeSet<Package>) -> String {
    let packages: Vec<_> = packages.iter().collect();
    let named = |(index, package): (usize, &&Package)| {
        let again = packages.get(index + 1).is_some_and(|next| next.since == package.since);
        let version = if again { String::new() } else { format!(" {}", package.since) };
        format!("`{}`{version}", package.name)
    };
    packages.iter().enumerate().map(named).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn section_replaces_only_the_text_between_its_markers() {
        let page = "# Page\n\n<!-- generated: a -->\nold\n<!-- end: a -->\n\nText.\n";
        let expected = "# Page\n\n<!-- generated: a -->\n\nnew\n\n<!-- end: a -->\n\nText.\n";
        let written = with_section(page, "a", "new\n").unwrap();
        assert_eq!(written, expected);
        assert_eq!(with_section(&written, "a", "new\n").unwrap(), expected);
    }

    #[test]
    fn section_without_marker_is_an_error() {
        for page in ["# Page\n", "<!-- generated: a -->\n"] {
            assert!(with_section(page, "a", "new").is_err(), "{page}");
        }
    }

    #[test]
    fn bar_in_a_cell_is_escaped() {
        let rows = [vec!["`a|b`".to_owned(), "c".to_owned()]];
        assert_eq!(table(&["x", "y"], rows), "| x | y |\n|---|---|\n| `a\\|b` | c |\n");
    }
}
