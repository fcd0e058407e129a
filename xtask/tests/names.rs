//! Names of the command line and in the sources, which scripts, browsers and clusters store or use.
//! A release may add a name. It never changes or removes one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Command;
use xtask::workspace;

/// The product's sources, including the deployed files.
const SOURCES: [&str; 6] = ["src", "crates", "paved/src", "web/src", "deploy", "package"];

fn assert_golden(name: &str, names: &BTreeSet<String>) {
    let text: Vec<String> = names.iter().map(|name| format!("{name}\n")).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.concat()));
}

/// `paved wait`, `paved wait --timeout`, `paved wait --for=ready`, `paved wait exits 5`.
fn add_command(prefix: &str, command: &Command, names: &mut BTreeSet<String>) {
    names.insert(prefix.to_owned());
    names.extend(command.get_all_aliases().map(|alias| format!("{prefix}, {alias}")));
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("{prefix} --{long}"),
            (None, Some(short)) => format!("{prefix} -{short}"),
            (None, None) => format!("{prefix} <{}>", arg.get_id()),
        };
        if let (Some(_), Some(short)) = (arg.get_long(), arg.get_short()) {
            names.insert(format!("{flag}, -{short}"));
        }
        if let Some(variable) = arg.get_env() {
            names.insert(format!("{flag}, ${}", variable.display()));
        }
        for alias in arg.get_all_aliases().into_iter().flatten() {
            names.insert(format!("{flag}, --{alias}"));
        }
        let values = arg.get_action().takes_values().then(|| arg.get_possible_values());
        for value in values.into_iter().flatten() {
            names.insert(format!("{flag}={}", value.get_name()));
        }
        names.insert(flag);
    }
    let help = command.get_after_help().or_else(|| command.get_after_long_help());
    let codes = help.map(ToString::to_string).unwrap_or_default();
    for word in codes.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        if word.parse::<u8>().is_ok() {
            names.insert(format!("{prefix} exits {word}"));
        }
    }
    for inner in command.get_subcommands() {
        add_command(&format!("{prefix} {}", inner.get_name()), inner, names);
    }
}

#[test]
fn commands_flags_and_exit_codes_are_those_of_the_last_release() {
    let mut names = BTreeSet::new();
    add_command("paved", &paved::command(), &mut names);
    assert_golden("commands", &names);
}

fn add_sources(folder: &Path, names: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if is_test => {}
            _ if path.is_dir() => add_sources(&path, names),
            Some("rs" | "ts" | "tsx" | "yaml" | "tpl") => {
                add_names(&fs::read_to_string(&path).unwrap(), names);
            }
            _ => {}
        }
    }
}

/// Collects names with the product's prefix, outside of tests. They are names of labels, cookies,
/// metrics and roles.
fn add_names(text: &str, names: &mut BTreeSet<String>) {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['/', '*', '#'])) {
        for word in line.split(|c: char| !is_part(c)) {
            let word = word.trim_matches(['.', '/', '-']);
            let prefixes = ["paved-", "paved_", "paved.", "PAVED_", "__Host-paved"];
            let is_module = word.contains("paved_road") && !word.starts_with("paved_road_");
            if prefixes.iter().any(|prefix| word.starts_with(prefix))
                && !is_module
                && !word.contains("example")
            {
                names.insert(word.to_owned());
            }
        }
    }
}

#[test]
fn names_in_the_sources_are_those_of_the_last_release() {
    let mut names = BTreeSet::new();
    for folder in SOURCES {
        add_sources(&workspace::root().join(folder), &mut names);
    }
    for krate in fs::read_dir(workspace::root().join("crates")).unwrap() {
        names.remove(&krate.unwrap().file_name().to_string_lossy().replace('-', "_"));
    }
    assert_golden("stored", &names);
}
