//! Outputs for the next step of a pipeline: the status fields of ready environments, in files that
//! pipelines read. A status has no secrets.

pub(crate) mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use paved_client::environment::Environment;
use serde_json::{Value, json};

use crate::cli::Outputs;
use crate::failure::Failure;

/// Checks before the wait that the files can be written. Existing files stay unchanged until there
/// are new outputs.
pub(crate) fn prepare(outputs: &Outputs) -> Result<(), Failure> {
    let all = outputs.output_file.as_deref().into_iter().chain(outputs.github_output());
    all.into_iter()
        .try_for_each(|path| file::try_out(path).map_err(|error| unwritable(path, &error)))
}

/// Rejects environments with the same keys in a line-based file. Each environment is given as kind,
/// namespace and name.
pub(crate) fn tell_apart<'a>(
    outputs: &Outputs,
    environments: impl IntoIterator<Item = [&'a str; 3]>,
) -> Result<(), Failure> {
    let lines = outputs.output_file.as_deref().is_some_and(|path| !is_json(path))
        || outputs.github_output().is_some();
    if lines && prefixes(&environments.into_iter().collect::<Vec<_>>()).is_none() {
        return Err(Failure::Usage(
            "the outputs of these environments would have the same names. Use an --output-file \
             that ends in .json, or one environment for each command"
                .to_owned(),
        ));
    }
    Ok(())
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("could not write the outputs to {}: {error}", path.display()))
}

/// Writes the outputs that the flags name.
pub(crate) fn write(outputs: &Outputs, environments: &[Environment]) -> Result<(), Failure> {
    if let Some(path) = &outputs.output_file {
        let text = if is_json(path) { json(environments) } else { dotenv(environments) };
        file::replace(path, &text).map_err(|error| unwritable(path, &error))?;
    }
    if let Some(path) = outputs.github_output() {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(github(environments).as_bytes()))
            .map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

/// Lines of the form `PAVED_PUBLIC_IP=203.0.113.7`. GitLab, Docker and dotenv libraries read a
/// value literally up to the end of the line. Multi-line values are therefore omitted. Several
/// environments have their names in the keys, before two underscores. No field has two underscores,
/// so all keys are unambiguous.
fn dotenv(environments: &[Environment]) -> String {
    let mut text = String::new();
    for (prefix, environment) in named(environments) {
        for (path, value) in fields(environment) {
            if !value.contains(['\n', '\r']) {
                let whose = std::iter::once("PAVED").chain(prefix.iter().copied());
                let (whose, field) = (key(whose), key(path.iter().map(String::as_str)));
                let between = if prefix.is_empty() { "_" } else { "__" };
                _ = writeln!(text, "{whose}{between}{field}={value}");
            }
        }
    }
    text
}

/// An object for each environment: kind, name, namespace, phase, and all status fields.
fn json(environments: &[Environment]) -> String {
    let one = |environment: &Environment| {
        let mut all = json!({
            "kind": environment.kind,
            "name": environment.name,
            "namespace": environment.namespace,
            "phase": environment.word(),
        });
        for (field, value) in &environment.fields {
            // A status field does not replace kind, name, namespace or phase.
            if all[field].is_null() {
                all[field] = value.clone();
            }
        }
        all
    };
    let value = match environments {
        [environment] => one(environment),
        several => several.iter().map(one).collect(),
    };
    format!("{value:#}\n")
}

/// Outputs of a GitHub Actions step: `publicIp=…`, or `name--publicIp=…` for several environments.
fn github(environments: &[Environment]) -> String {
    let mut text = String::new();
    for (prefix, environment) in named(environments) {
        for (path, value) in fields(environment) {
            let whose = if prefix.is_empty() { String::new() } else { prefix.join("-") + "--" };
            let key = whose + &path.join("-");
            if value.contains(['\n', '\r']) {
                let end = delimiter(&value);
                _ = writeln!(text, "{key}<<{end}\n{value}\n{end}");
            } else {
                _ = writeln!(text, "{key}={value}");
            }
        }
    }
    text
}

/// A line that the value does not contain. A provider's text therefore cannot end the value early
/// and add outputs.
fn delimiter(value: &str) -> String {
    let mut end = "PAVED_END".to_owned();
    while value.contains(&end) {
        end.push('_');
    }
    end
}

fn named(environments: &[Environment]) -> impl Iterator<Item = (Vec<&str>, &Environment)> {
    let all: Vec<[&str; 3]> = environments
        .iter()
        .map(|one| [one.kind.as_str(), one.namespace.as_str(), one.name.as_str()])
        .collect();
    let names = prefixes(&all).unwrap_or_else(|| vec![Vec::new(); all.len()]);
    names.into_iter().zip(environments)
}

/// The prefix of each environment's keys, from kind, namespace and name. It is empty for one
/// environment. Several environments use the shortest unambiguous prefix: the name, kind and name,
/// or all three. `None` if no prefix is unambiguous.
fn prefixes<'a>(environments: &[[&'a str; 3]]) -> Option<Vec<Vec<&'a str>>> {
    if environments.len() < 2 {
        return Some(vec![Vec::new(); environments.len()]);
    }
    let way = |[kind, namespace, name]: &[&'a str; 3], count: usize| match count {
        1 => vec![*name],
        2 => vec![*kind, *name],
        _ => vec![*namespace, *kind, *name],
    };
    (1..=3).find_map(|count| {
        let prefixes: Vec<Vec<&str>> = environments.iter().map(|one| way(one, count)).collect();
        let keys: BTreeSet<String> =
            prefixes.iter().map(|parts| key(parts.iter().copied())).collect();
        (keys.len() == prefixes.len()).then_some(prefixes)
    })
}

/// Every single value of the status, by path.
fn fields(environment: &Environment) -> BTreeMap<Vec<String>, String> {
    let mut all = BTreeMap::new();
    let own = [
        ("kind", &environment.kind),
        ("name", &environment.name),
        ("namespace", &environment.namespace),
    ];
    for (field, value) in &environment.fields {
        flatten(&mut vec![field.clone()], value, &mut all);
    }
    all.extend(own.map(|(field, value)| (vec![field.to_owned()], value.clone())));
    all
}

fn flatten(path: &mut Vec<String>, value: &Value, all: &mut BTreeMap<Vec<String>, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                path.push(field.clone());
                flatten(path, value, all);
                path.pop();
            }
        }
        Value::String(text) => drop(all.insert(path.clone(), text.clone())),
        Value::Bool(_) | Value::Number(_) => drop(all.insert(path.clone(), value.to_string())),
        Value::Array(_) | Value::Null => {}
    }
}

/// The name of a variable.
fn key<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.map(screaming).collect::<Vec<_>>().join("_")
}

/// Converts `publicIp` to `PUBLIC_IP`. A character that shells do not allow in a name becomes `_`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            text.push('_');
        }
        text.push(if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
        before = c;
    }
    text
}

#[cfg(test)]
mod tests;
