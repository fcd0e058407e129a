//! Runs the program in this process, on the repository's examples.
#![allow(dead_code)]

pub mod kubernetes;
pub mod s3;
pub mod site;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstream::StripStream;
use paved::{Console, Stream};
use serde_json::Value;

/// The output of a run without styles, and its exit code.
pub struct Run {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The documents on standard output.
    pub fn documents(&self) -> Vec<Value> {
        serde_saphyr::from_multiple(&self.out).unwrap()
    }

    /// The whole output, for a snapshot.
    pub fn told(&self) -> String {
        let (out, err) = (&self.out, &self.err);
        let err = if err.is_empty() { String::new() } else { format!("--- standard error\n{err}") };
        format!("{out}{err}--- exit code {}\n", self.code)
    }
}

/// Runs `paved` in the repository's root with these arguments.
pub fn paved(args: &[&str]) -> Run {
    paved_with(args, "")
}

/// The same, with text on standard input.
pub fn paved_with(args: &[&str], input: impl AsRef<[u8]>) -> Run {
    run(args.iter().map(OsString::from).collect(), input.as_ref(), None)
}

/// Runs `paved` while the test's fake cluster responds, and a user types the text at a terminal.
/// `None` means no terminal.
pub async fn paved_typed(args: &[&str], typed: Option<&'static str>) -> Run {
    let args = args.iter().map(OsString::from).collect();
    tokio::task::spawn_blocking(move || run(args, b"", typed)).await.unwrap()
}

/// Runs `paved` in this process. Each answer of the user is a line of the typed text.
fn run(args: Vec<OsString>, input: &[u8], typed: Option<&str>) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut read = |bytes: &mut Vec<u8>| {
        bytes.extend(input);
        Ok(input.len())
    };
    let mut lines = typed.unwrap_or_default().split_inclusive('\n');
    let mut answer = || Ok(lines.next().unwrap_or_default().to_owned());
    let (mut plain, mut plain_err) = (StripStream::new(&mut out), StripStream::new(&mut err));
    let mut console = Console {
        input: &mut read,
        out: Stream::new(&mut plain),
        err: Stream::new(&mut plain_err),
        terminal: None,
        answer: if typed.is_some() { Some(&mut answer) } else { None },
    };
    let program = std::iter::once(OsString::from("paved"));
    let code = paved::run(program.chain(args), &mut console);
    Run { code, out: text(out), err: text(err) }
}

fn text(bytes: Vec<u8>) -> String {
    // Paths start at the repository's root, as a user types them.
    String::from_utf8(bytes).unwrap().replace(&format!("{}/", root().display()), "")
}

/// The path of an example in the repository.
pub fn example(path: &str) -> String {
    root().join("examples").join(path).display().to_string()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A folder with these files.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The path of a file in a folder.
pub fn within(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Formats printed JSON objects with one line for each field, and for each object of a list. A
/// golden file then shows a change as one line.
pub fn by_line(text: &str) -> String {
    let (mut told, mut object) = (String::new(), String::new());
    for line in text.lines() {
        if object.is_empty() && line != "{" {
            writeln!(told, "{line}").unwrap();
            continue;
        }
        object.push_str(line);
        if line != "}" {
            continue;
        }
        let fields: serde_json::Map<String, Value> = serde_json::from_str(&object).unwrap();
        object.clear();
        for (field, value) in fields {
            match value.as_array().filter(|list| list.first().is_some_and(Value::is_object)) {
                Some(list) => {
                    writeln!(told, "{field}:").unwrap();
                    for one in list {
                        writeln!(told, "  {one}").unwrap();
                    }
                }
                None => writeln!(told, "{field}: {value}").unwrap(),
            }
        }
    }
    told
}

/// Compares with a golden file beside the tests. Times are replaced.
pub fn assert_golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("../snapshots");
    let times = regex_lite::Regex::new(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z").unwrap();
    let text = times.replace_all(text, "<time>");
    settings.bind(|| insta::assert_snapshot!(name, text));
}
