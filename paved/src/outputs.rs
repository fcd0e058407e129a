//! What the next step of a pipeline needs: the status fields of environments that are ready, in files that pipelines read.
//! Never a secret: status holds none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Outputs;
use crate::environment::Environment;
use crate::failure::Failure;

/// Finds out whether they can be written, before anybody has waited for them.
pub(crate) fn prepare(outputs: &Outputs) -> Result<(), Failure> {
    for path in outputs.output_file.as_deref().into_iter().chain(outputs.github_output()) {
        OpenOptions::new().append(true).create(true).open(path).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot write the outputs to {}: {error}", path.display()))
}

/// Writes what is asked for.
pub(crate) fn write(outputs: &Outputs, environments: &[Environment]) -> Result<(), Failure> {
    if let Some(path) = &outputs.output_file {
        let text = if path.extension().is_some_and(|end| end == "json") {
            json(environments)
        } else {
            dotenv(environments)
        };
        fs::write(path, text).map_err(|error| unwritable(path, &error))?;
    }
    if let Some(path) = outputs.github_output() {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(github(environments).as_bytes()))
            .map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

/// Lines `PAVED_PUBLIC_IP=203.0.113.7`: GitLab, Docker and dotenv libraries take a value as it stands, up to the line's end.
/// Values of several lines cannot be written so, and are left out. Several environments have their names in the keys.
fn dotenv(environments: &[Environment]) -> String {
    let mut text = String::new();
    for (prefix, environment) in named(environments) {
        for (path, value) in fields(environment) {
            if !value.contains(['\n', '\r']) {
                let parts =
                    std::iter::once("PAVED").chain(prefix.as_deref()).chain(path.iter().map(String::as_str));
                let key: Vec<String> = parts.map(screaming).collect();
                _ = writeln!(text, "{}={value}", key.join("_"));
            }
        }
    }
    text
}

/// An object for each environment: kind, name, namespace, and all its status fields as they are.
fn json(environments: &[Environment]) -> String {
    let one = |environment: &Environment| {
        let mut all = json!({
            "kind": environment.kind,
            "name": environment.name,
            "namespace": environment.namespace,
            "phase": environment.word(),
        });
        for (field, value) in &environment.fields {
            // An API's own field never hides what it is.
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

/// Outputs of a step of GitHub Actions: `publicIp=…`, or `name-publicIp=…` where there are several.
fn github(environments: &[Environment]) -> String {
    let mut text = String::new();
    for (prefix, environment) in named(environments) {
        for (path, value) in fields(environment) {
            let key: Vec<&str> =
                prefix.as_deref().into_iter().chain(path.iter().map(String::as_str)).collect();
            let key = key.join("-");
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

/// A line that does not stand in the value: nothing that a provider says can end it early and add outputs of its own.
fn delimiter(value: &str) -> String {
    let mut end = "PAVED_END".to_owned();
    while value.contains(&end) {
        end.push('_');
    }
    end
}

/// One environment needs no name in front of its fields.
fn named(environments: &[Environment]) -> impl Iterator<Item = (Option<String>, &Environment)> {
    let several = environments.len() > 1;
    environments.iter().map(move |environment| (several.then(|| environment.name.clone()), environment))
}

/// Every single value of the status, by its path.
fn fields(environment: &Environment) -> BTreeMap<Vec<String>, String> {
    let mut all = BTreeMap::new();
    let own =
        [("kind", &environment.kind), ("name", &environment.name), ("namespace", &environment.namespace)];
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

/// `publicIp` as `PUBLIC_IP`; what no shell takes in a name becomes `_`.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::environment::tests::{environment, ready};

    fn workspace(change: impl Fn(&mut Value)) -> Environment {
        let mut object = ready();
        change(&mut object);
        environment(&object)
    }

    #[test]
    fn a_dotenv_file_has_a_line_for_each_field() {
        let one = workspace(|object| {
            object["status"]["kubeconfigSecret"] = json!({"name": "k", "key": "kubeconfig"});
            object["status"]["odd"] = json!("two\nlines");
            object["status"]["list"] = json!(["x"]);
        });
        insta::assert_snapshot!(dotenv(&[one]), @r"
        PAVED_CONNECTION=ssh developer@203.0.113.7
        PAVED_KIND=GpuDevWorkspaceClaim
        PAVED_KUBECONFIG_SECRET_KEY=kubeconfig
        PAVED_KUBECONFIG_SECRET_NAME=k
        PAVED_MACHINE=1 GPU
        PAVED_NAME=ada
        PAVED_NAMESPACE=team-vision
        PAVED_PUBLIC_IP=203.0.113.7
        ");
    }

    #[test]
    fn several_environments_have_their_names_in_the_keys() {
        let both = [workspace(|_| ()), workspace(|object| object["metadata"]["name"] = json!("grace-1"))];
        let text = dotenv(&both);
        assert!(text.contains("PAVED_ADA_PUBLIC_IP=") && text.contains("PAVED_GRACE_1_PUBLIC_IP="), "{text}");
        assert!(github(&both).contains("grace-1-publicIp=203.0.113.7\n"));
        assert_eq!(serde_json::from_str::<Value>(&json(&both)).unwrap()[1]["name"], "grace-1");
    }

    #[test]
    fn no_value_can_add_outputs_of_its_own() {
        let one = workspace(|object| object["status"]["odd"] = json!("a\nPAVED_END\nevil=1"));
        let text = github(&[one]);
        assert!(text.contains("odd<<PAVED_END_\na\nPAVED_END\nevil=1\nPAVED_END_\n"), "{text}");
    }

    #[test]
    fn json_has_the_fields_as_they_are() {
        let one = workspace(|object| object["status"]["name"] = json!("other"));
        let value: Value = serde_json::from_str(&json(&[one])).unwrap();
        assert_eq!((value["publicIp"].as_str(), value["name"].as_str()), (Some("203.0.113.7"), Some("ada")));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_a_mistake_in_the_flags() {
        let outputs = Outputs { output_file: Some("/no/such/folder/x".into()), github_output: None };
        assert_eq!(write(&outputs, &[workspace(|_| ())]).unwrap_err().code(), 1);
    }

    #[test]
    fn outputs_of_github_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "before=1\n").unwrap();
        let outputs = Outputs { output_file: None, github_output: Some(path.clone().into()) };
        write(&outputs, &[workspace(|_| ())]).unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert!(
            text.starts_with("before=1\nconnection=") && text.contains("publicIp=203.0.113.7\n"),
            "{text}"
        );
    }
}
